/* utf8.h - letters of texts that may come from anywhere. */
#ifndef AT_REPORT_SUMMARY_UTF8_H
#define AT_REPORT_SUMMARY_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the letter at the start of a text that is not empty, and returns its size in bytes. A
 * byte that is not UTF-8, and a control character, which could play with a terminal, give '?'. */
size_t at_utf8_next(const char *text, uint32_t *letter);

/* Columns that a letter takes on a terminal: 0, 1 or 2. */
size_t at_utf8_width(uint32_t letter);

#endif

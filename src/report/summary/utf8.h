/* utf8.h - decodes text from untrusted sources. */
#ifndef AT_REPORT_SUMMARY_UTF8_H
#define AT_REPORT_SUMMARY_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the first character of a nonempty text and returns its size in bytes. Bytes that are not
 * UTF-8, and control characters, which could manipulate a terminal, give '?'. */
size_t at_utf8_next(const char *text, uint32_t *code);

/* Columns that a character takes on a terminal: 0, 1 or 2. */
size_t at_utf8_width(uint32_t code);

#endif

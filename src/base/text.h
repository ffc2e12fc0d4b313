/* text.h - bounded text building, parsing of numbers and durations, name suggestions. */
#ifndef AT_BASE_TEXT_H
#define AT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

/* A text in the caller's buffer; `full` is set when it was truncated. */
typedef struct at_text {
    char  *bytes;
    size_t used, size;
    bool   full;
} at_text;

/* Starts an empty text in the caller's buffer; size >= 1. */
at_text at_text_in(char *buffer, size_t size);

/* Appends, printf-like. */
void at_text_add(at_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a word of a command, quoted for a shell if necessary. */
void at_text_add_word(at_text *text, const char *word);

/* Replaces control characters except line feeds and tabs by question marks. Terminals obey them, so
 * no text of a file or peer is printed with them. The second form replaces line feeds and tabs,
 * too: for a name within a line or a column. */
void at_text_remove_controls(char *text);
void at_text_flatten(char *text);

/* A whole number such as 60000, 6e4 or 64k (k, M, G: powers of 1000). False for anything
 * else. */
bool at_text_whole(const char *text, int64_t *value);

/* A finite number such as 0.1, 1e-3 or 20% (= 0.2). */
bool at_text_real(const char *text, double *value);

/* strtod and strtof in the C locale: the decimal point is a point, whatever locale the program that
 * uses the library has set. */
double at_text_strtod(const char *text, char **end);
float  at_text_strtof(const char *text, char **end);

/* A size with a unit: 500kB 1.5GB 64MiB, or bytes without one. Rejects negative and huge values. */
bool at_text_bytes(const char *text, uint64_t *value);

/* A duration with a unit: 5.5s 20ms 100us 3ns 2min 1h, exponents allowed (1.6e-05s); a bare
 * number means seconds. Rejects negative values and more than 100 years. */
bool at_text_duration(const char *text, at_ns *value);

/* Formats a duration with three digits: 12.3ms, 4.56s, 2min03. */
const char *at_text_show_duration(char *buffer, size_t size, at_ns value);

/** Prints a number with four significant digits, but whole from 1000 on: "0.01234", "12346", never
 *  "1.235e+04". Returns the buffer; 32 bytes are enough below 1e30. */
const char *at_text_show_number(char *buffer, size_t size, double value);

/* Appends a number with as many digits as are needed to read the same number back. */
void at_text_add_real(at_text *text, double value);

/* Appends a duration that at_text_duration reads back: seconds with that unit ("s", or "" for
 * none), or nanoseconds where 15 digits of seconds are not the same. */
void at_text_add_duration(at_text *text, at_ns value, const char *unit);

/* The entry of `names` that is most similar to `name`, or NULL when none is similar enough. */
const char *at_text_nearest(const char *name, const char *const *names, size_t count);

/* Fails with "unknown WHAT 'NAME'" and a hint with the nearest and all known names. Returns
 * AT_ERR_USAGE. */
at_err at_text_unknown(const char *what, const char *name, const char *const *names, size_t count,
                       at_fail *fail);

#endif

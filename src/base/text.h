/* text.h - bounded text building, and numbers as people type them. */
#ifndef AT_BASE_TEXT_H
#define AT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

/* A text that never grows past the caller's buffer; `full` tells that something was cut. */
typedef struct at_text {
    char  *bytes;
    size_t used, size;
    bool   full;
} at_text;

/* Starts an empty text in the caller's buffer; size >= 1. */
at_text at_text_in(char *buffer, size_t size);

/* Appends, printf-like. */
void at_text_add(at_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A whole number such as 60000, 6e4 or 64k (k, M, G: powers of 1000). False when it is not one. */
bool at_text_whole(const char *text, int64_t *value);

/* A finite number such as 0.1, 1e-3 or 20% (= 0.2). */
bool at_text_real(const char *text, double *value);

/* A duration with a unit: 5.5s 20ms 100us 3ns 2min 1h, exponents allowed (1.6e-05s); a bare
 * number means seconds. Negative values and values past 100 years are refused. */
bool at_text_duration(const char *text, at_ns *value);

/* Writes a duration for people, three digits: 12.3ms, 4.56s, 2min03. */
const char *at_text_show_duration(char *buffer, size_t size, at_ns value);

/* The entry of `names` (count of them) that looks most like `name`, or NULL when none is near. */
const char *at_text_nearest(const char *name, const char *const *names, size_t count);

/* Refuses a name that is not among `names`: "unknown WHAT 'NAME'", with the nearest one and all of
 * them as the hint. Returns AT_ERR_USAGE. */
at_err at_text_unknown(const char *what, const char *name, const char *const *names, size_t count,
                       at_fail *fail);

#endif

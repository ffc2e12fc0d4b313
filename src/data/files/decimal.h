/* decimal.h - decimal numbers in text, read fast and exactly.
 *
 * The text MUST end with a byte that cannot be part of a number, such as the end of a line: the
 * readers look at no length.
 */
#ifndef AT_DATA_FILES_DECIMAL_H
#define AT_DATA_FILES_DECIMAL_H

#include <stdint.h>

/* Reads [+-]digits[.digits][e[+-]digits] into the nearest float. Returns what follows, or NULL when
 * there is no number or it is too large for a float. */
const char *at_decimal_float(const char *text, float *value);

/* Reads [+-]digits; NULL when there is none or it does not fit. */
const char *at_decimal_int(const char *text, int64_t *value);

#endif

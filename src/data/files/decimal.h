/* decimal.h - fast and exact parsing of decimal numbers.
 *
 * The text MUST end with a byte that cannot be part of a number, such as a line feed: the parsers
 * take no length.
 */
#ifndef AT_DATA_FILES_DECIMAL_H
#define AT_DATA_FILES_DECIMAL_H

#include <stdint.h>

/* Parses [+-]digits[.digits][e[+-]digits] into the nearest float. Returns the end of the number, or
 * NULL when there is none or it is too large for a float. */
const char *at_decimal_float(const char *text, float *value);

/* Parses [+-]digits; NULL when there is no number or it does not fit. */
const char *at_decimal_int(const char *text, int64_t *value);

#endif

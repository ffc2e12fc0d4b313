/* json_value.h - numbers and texts as JSON values. */
#ifndef AT_REPORT_SUMMARY_JSON_VALUE_H
#define AT_REPORT_SUMMARY_JSON_VALUE_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

#include "base/time.h"

/* JSON has neither NAN nor infinity: they become null. Integral values are written as integers. */
static inline json_t *at_json_number(double value)
{
    if (!isfinite(value)) return json_null();
    if (value == floor(value) && fabs(value) < 1e15) return json_integer((json_int_t)value);
    return json_real(value);
}

/* A count of samples, steps etc. */
static inline json_t *at_json_count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* A duration in seconds. */
static inline json_t *at_json_seconds(at_ns value)
{
    return at_json_number(at_seconds(value));
}

/* Text from any source: bytes that are not UTF-8 become '?'. NULL gives null. */
json_t *at_json_text(const char *text);

#endif

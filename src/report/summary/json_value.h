/* json_value.h - numbers and texts for JSON documents. */
#ifndef AT_REPORT_SUMMARY_JSON_VALUE_H
#define AT_REPORT_SUMMARY_JSON_VALUE_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

#include "base/time.h"

/* JSON has no NAN and no infinity: they become null. A whole number needs no point. */
static inline json_t *at_json_value_json(double value)
{
    if (!isfinite(value)) return json_null();
    if (value == floor(value) && fabs(value) < 1e15) return json_integer((json_int_t)value);
    return json_real(value);
}

/* A count of samples, steps and the like. */
static inline json_t *at_json_value_count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* A duration, in seconds. */
static inline json_t *at_json_value_seconds(at_ns value)
{
    return at_json_value_json(at_seconds(value));
}

/* Text from anywhere: bytes that are not UTF-8 become '?'. NULL gives null. */
json_t *at_json_value_text(const char *text);

#endif

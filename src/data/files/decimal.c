/* A decimal number is an integer m of at most 19 digits times a power of ten. In double arithmetic
 * m, the power and their product are rounded once each, by at most 2^-53: the error is below four
 * units in the last place of a double. A float has 29 bits less, so rounding the result to float is
 * right unless those 29 bits are that close to one half. In that case, and for all unusual numbers,
 * strtof decides. */
#include "data/files/decimal.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum {
    DIGITS_MAX = 19, /* always fit into 64 bits */
    POWER_MAX = 22,
    EXPONENT_MAX = 9999,
    HALF = 1 << 28, /* of the 29 extra bits of a double */
    NEAR = 4,
};

/* Of ten, from -POWER_MAX on. */
static const double powers[2 * POWER_MAX + 1] = {
    1e-22, 1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11,
    1e-10, 1e-9,  1e-8,  1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,
    1e2,   1e3,   1e4,   1e5,   1e6,   1e7,   1e8,   1e9,   1e10,  1e11,  1e12,  1e13,
    1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,  1e21,  1e22};

static const double signs[] = {1.0, -1.0};

static inline unsigned digit(const char *p)
{
    return (unsigned)(unsigned char)*p - '0';
}

static const char *parse_exactly(const char *text, float *value)
{
    char *end;
    *value = at_text_strtof(text, &end);
    assert(end > text);
    return isfinite(*value) ? end : NULL;
}

/* Adds the exponent after an e to *power; NULL when there is none. */
static const char *read_exponent(const char *p, int *power)
{
    assert(*p == 'e' || *p == 'E');
    int  exponent = 0;
    bool negative = *++p == '-';
    p += negative || *p == '+';
    if (digit(p) > 9) return NULL;
    for (; digit(p) <= 9; p++)
        if (exponent < EXPONENT_MAX) exponent = exponent * 10 + (int)digit(p);
    *power += negative ? -exponent : exponent;
    return p;
}

/* Whether rounding x to float may differ from rounding the exact number. */
static bool is_ambiguous(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rest = (uint32_t)bits & (2 * HALF - 1);
    return rest - (HALF - NEAR) <= 2 * NEAR || x < (double)FLT_MIN || x > (double)FLT_MAX / 2;
}

const char *at_decimal_float(const char *text, float *value)
{
    assert(text && value);
    const char *p = text + (*text == '-' || *text == '+'), *first = p;
    uint64_t    m = 0;
    int         power = 0;
    for (; digit(p) <= 9; p++) m = m * 10 + digit(p);
    long digits = p - first;
    if (*p == '.') {
        const char *fraction = ++p;
        for (; digit(p) <= 9; p++) m = m * 10 + digit(p);
        digits += p - fraction;
        power = p - fraction < EXPONENT_MAX ? (int)(fraction - p) : -EXPONENT_MAX;
    }
    if (digits == 0) return NULL;
    if (*p == 'e' || *p == 'E') p = read_exponent(p, &power);
    if (!p) return NULL;
    if (digits > DIGITS_MAX || power < -POWER_MAX || power > POWER_MAX)
        return parse_exactly(text, value);
    double x = (double)m * powers[POWER_MAX + power];
    if (m != 0 && is_ambiguous(x)) return parse_exactly(text, value);
    *value = (float)(x * signs[*text == '-']); /* a branch would be unpredictable */
    return p;
}

const char *at_decimal_int(const char *text, int64_t *value)
{
    assert(text && value);
    const char *p = text + (*text == '-' || *text == '+'), *first = p;
    uint64_t    m = 0;
    for (; digit(p) <= 9; p++) {
        if (p - first == DIGITS_MAX) return NULL;
        m = m * 10 + digit(p);
    }
    if (p == first || m > INT64_MAX) return NULL;
    *value = *text == '-' ? -(int64_t)m : (int64_t)m;
    return p;
}

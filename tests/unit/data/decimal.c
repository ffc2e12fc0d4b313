/* Decimal numbers: the fast path gives the same bits as strtof. */
#include "files.h"

#include "base/rng.h"
#include "data/files/decimal.h"

#include <float.h>
#include <math.h>

static at_rng dice(uint64_t test)
{
    return at_rng_stream(1, test, AT_RNG_PURPOSE_TEST, 0);
}

/* The text, which ends with a line feed, is read as strtof reads it, or refused if it is too large
 * for a float. */
static void check(const char *text)
{
    char *end;
    float got, expected = strtof(text, &end);
    assert_int_equal(*end, '\n');
    const char *after = at_decimal_float(text, &got);
    if (!isfinite(expected)) {
        assert_null(after);
        return;
    }
    if (after != end || memcmp(&got, &expected, sizeof got) != 0)
        fail_msg("%.60s is read as %.9g instead of %.9g", text, (double)got, (double)expected);
}

static void floats_and_doubles_are_read_as_printed(void **state)
{
    (void)state;
    static const char *const formats[] = {"%.9g\n", "%.17g\n", "%.6g\n", "%.25g\n", "%.3f\n"};
    at_rng                   rng = dice(0);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = at_rng_next(&rng);
        uint32_t half = (uint32_t)bits;
        float    value;
        char     text[64];
        memcpy(&value, &half, sizeof value);
        if (!isfinite(value)) continue;
        snprintf(text, sizeof text, formats[at_rng_below(&rng, 5)], (double)value);
        check(text);
        double wide = ldexp((double)(bits >> 11), (int)(bits & 127) - 100);
        snprintf(text, sizeof text, "%.*g\n", (int)(bits >> 32 & 15) + 3, wide);
        check(text);
    }
}

/* Up to 24 digits with a point anywhere, a sign and an exponent, or without them. */
static void numbers_of_any_length_and_power_are_read(void **state)
{
    (void)state;
    at_rng rng = dice(1);
    for (int i = 0; i < 300000; i++) {
        static const char *const signs[] = {"", "-", "+"};
        char                     text[64];
        int    digits = 1 + (int)at_rng_below(&rng, 24), point = (int)at_rng_below(&rng, 30);
        size_t used = (size_t)snprintf(text, sizeof text, "%s", signs[at_rng_below(&rng, 3)]);
        for (int k = 0; k < digits; k++) {
            if (k == point) text[used++] = '.';
            text[used++] = (char)('0' + at_rng_below(&rng, at_rng_below(&rng, 2) ? 10 : 1));
        }
        if (point == digits) text[used++] = '.';
        if (at_rng_below(&rng, 2))
            used += (size_t)snprintf(text + used, sizeof text - used, "%c%d",
                                     at_rng_below(&rng, 2) ? 'e' : 'E',
                                     (int)at_rng_below(&rng, 80) - 40);
        snprintf(text + used, sizeof text - used, "\n");
        check(text);
    }
}

/* The middle of two floats is a double; cut after any number of digits it is just below. */
static void numbers_near_the_middle_of_two_floats_are_rounded_right(void **state)
{
    (void)state;
    at_rng rng = dice(2);
    for (int i = 0; i < 100000; i++) {
        float low = ldexpf((float)((1 << 23) + at_rng_below(&rng, 1 << 23)),
                           (int)at_rng_below(&rng, 80) - 60);
        char  text[128];
        for (int digits = 8; digits <= 22; digits++) {
            double middle = ((double)low + (double)nextafterf(low, INFINITY)) / 2;
            snprintf(text, sizeof text, "%.*g\n", digits, middle);
            check(text);
        }
        snprintf(text, sizeof text, "%.40f\n", (double)low);
        check(text);
    }
}

static void edges_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {"16777217",
                                        "16777219",
                                        "16777217.0000001",
                                        "1e-46",
                                        "1.4e-45",
                                        "3.4028235e38",
                                        "3.4028236e38",
                                        "1e39",
                                        "0.00000000000000000000001",
                                        "-0",
                                        "-0.0e9",
                                        "8388608.5",
                                        "8388609.5",
                                        "33554434",
                                        "33554438.0",
                                        "9999999999999999999",
                                        "18446744073709551616",
                                        "1e22",
                                        "1e23",
                                        "1e-22",
                                        "1e-23",
                                        "5e-324",
                                        "1e-9999999999",
                                        "0e9999999999",
                                        "1.",
                                        ".5",
                                        "1.17549435e-38",
                                        "1.17549429e-38",
                                        "00000000000000000000000000000001"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s\n", texts[i]);
        check(text);
    }
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     "-",   "+",   ".",  "-.",  "e5",  "1e", "1e+",
                                        "1.e-", "nan", "inf", " 1", "--1", "+-1", "x",  "1e400"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        float value;
        if (at_decimal_float(texts[i], &value)) fail_msg("'%s' is not refused", texts[i]);
    }
    float value;
    assert_string_equal(at_decimal_float("0x10", &value), "x10"); /* strtof reads 16 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_and_doubles_are_read_as_printed),
        cmocka_unit_test(numbers_of_any_length_and_power_are_read),
        cmocka_unit_test(numbers_near_the_middle_of_two_floats_are_rounded_right),
        cmocka_unit_test(edges_are_read),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

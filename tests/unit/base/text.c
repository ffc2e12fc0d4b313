#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "comma_locale.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void a_text_is_truncated_at_its_buffer_and_marked_full(void **state)
{
    (void)state;
    char    buffer[8];
    at_text text = at_text_in(buffer, sizeof buffer);
    assert_string_equal(buffer, "");
    at_text_add(&text, "%d-%s", 12, "ab");
    assert_string_equal(buffer, "12-ab");
    assert_false(text.full);
    at_text_add(&text, "%s", "cdefgh");
    assert_string_equal(buffer, "12-abcd");
    assert_true(text.full);
    at_text_add(&text, "more");
    assert_string_equal(buffer, "12-abcd");
    assert_int_equal(text.used, 7);
}

static void a_text_that_fits_exactly_is_not_truncated(void **state)
{
    (void)state;
    char    buffer[4];
    at_text text = at_text_in(buffer, sizeof buffer);
    at_text_add(&text, "abc");
    assert_string_equal(buffer, "abc");
    assert_false(text.full);
}

static void whole_numbers_accept_exponents_and_suffixes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t     value;
    } good[] = {
        {"0", 0},
        {"60000", 60000},
        {"-7", -7},
        {"+7", 7},
        {"6e4", 60000},
        {"6E+4", 60000},
        {"64k", 64000},
        {"1.5M", 1500000},
        {"1.001k", 1001},
        {"2G", 2000000000},
        {"1200e-2", 12},
        {"3.0", 3},
        {"0e999999999999", 0},
        {"9223372036854775807", INT64_MAX},
        {"9007199254740993", 9007199254740993}, /* 2^53 + 1: a double would lose it */
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        int64_t value = -1;
        if (!at_text_whole(good[i].text, &value)) fail_msg("%s was refused", good[i].text);
        assert_int_equal(value, good[i].value);
    }
}

static void invalid_whole_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " 1",
        "1 ",
        "-",
        "+",
        ".",
        "e4",
        "1e",
        "1e+",
        "1.5",
        "1.0001k",
        "0x10",
        "1kk",
        "1K",
        "12a",
        "k",
        "nan",
        "inf",
        "1..2",
        "--1",
        "9223372036854775808",
        "99999999999999999999999999",
        "1e19",
        "1e999999999999",
        "1e-999999999999",
        "1e-1",
        "9.3e18",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t value = 42;
        if (at_text_whole(bad[i], &value)) fail_msg("'%s' was accepted", bad[i]);
        assert_int_equal(value, 42);
    }
}

static void real_numbers_accept_exponents_and_percent(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double      value;
    } good[] = {{"0.1", 0.1}, {"1e-3", 1e-3},  {"20%", 0.2},  {".5", 0.5},
                {"-2", -2},   {"0.5%", 0.005}, {"1e-400", 0}, {"+3", 3}};
    for (size_t i = 0; i < COUNT(good); i++) {
        double value = -1;
        if (!at_text_real(good[i].text, &value)) fail_msg("%s was refused", good[i].text);
        assert_true(value == good[i].value);
    }
}

static void invalid_real_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",    "nan", "NAN", "inf", "-inf", "infinity", "1e999", "0x1p3", "-0x1", " 1",    "1 ",
        "1%%", "%",   ".",   "-",   "1,5",  "1.2.3",    "abc",   "+-1",   "20 %", "1e999%"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        double value = 42;
        if (at_text_real(bad[i], &value)) fail_msg("'%s' was accepted", bad[i]);
        assert_true(value == 42);
    }
}

static void durations_accept_units_and_exponents(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        at_ns       value;
    } good[] = {
        {"5.5s", 5500000000}, {"20ms", 20000000},      {"100us", 100000},
        {"3ns", 3},           {"2min", 120000000000},  {"1h", 3600000000000},
        {"1.6e-05s", 16000},  {"1E3ms", 1000000000},   {"0", 0},
        {"0.25", 250000000},  {"100e0", 100000000000}, {"1e9s", 1000000000000000000},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        at_ns value = -1;
        if (!at_text_duration(good[i].text, &value)) fail_msg("%s was refused", good[i].text);
        assert_int_equal(value, good[i].value);
    }
}

static void invalid_durations_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",   "s",      "-1s",  "-0",   "1 s",  "1sec",
                                      "1m", "1e300s", "inf",  "nans", "4e9s", "1e6h",
                                      "1S", "5%",     "0x1s", "1s ",  "auto"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        at_ns value = 42;
        if (at_text_duration(bad[i], &value)) fail_msg("'%s' was accepted", bad[i]);
        assert_int_equal(value, 42);
    }
}

static void formatted_durations_have_three_digits(void **state)
{
    (void)state;
    static const struct {
        at_ns       value;
        const char *text;
    } cases[] = {
        {0, "0ns"},
        {7, "7ns"},
        {999, "999ns"},
        {1000, "1.00us"},
        {12345, "12.3us"},
        {12340000, "12.3ms"},
        {999400, "999us"},
        {999600, "1.00ms"}, /* rounds up into the next unit */
        {9996000, "10.0ms"},
        {4560000000, "4.56s"},
        {59940000000, "59.9s"},
        {59960000000, "1min00"},
        {123000000000, "2min03"},
        {3599400000000, "59min59"},
        {3599600000000, "1h00"},
        {3900000000000, "1h05"},
        {-12340000, "-12.3ms"},
        {AT_NEVER, "never"},
    };
    char buffer[32];
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(at_text_show_duration(buffer, sizeof buffer, cases[i].value),
                            cases[i].text);
}

static void a_formatted_duration_stays_within_its_buffer(void **state)
{
    (void)state;
    char buffer[4] = "zzz";
    assert_string_equal(at_text_show_duration(buffer, 3, 12340000), "12");
    at_text_show_duration(buffer, 1, INT64_MIN);
    assert_string_equal(buffer, "");
}

static void numbers_are_formatted_without_exponents(void **state)
{
    (void)state;
    char buffer[32];
    assert_string_equal(at_text_show_number(buffer, sizeof buffer, 0.0602234), "0.06022");
    assert_string_equal(at_text_show_number(buffer, sizeof buffer, 999.94), "999.9");
    assert_string_equal(at_text_show_number(buffer, sizeof buffer, 10633.4), "10633");
    assert_string_equal(at_text_show_number(buffer, sizeof buffer, -1234567), "-1234567");
}

static void the_nearest_name_tolerates_typos(void **state)
{
    (void)state;
    static const char *const names[] = {"fmb",       "amb",      "backup",    "batch-sync", "async",
                                        "async-fmb", "momentum", "straggler", "ssp"};
    static const struct {
        const char *name, *nearest;
    } cases[] = {
        {"fmb", "fmb"},
        {"AMB", "amb"},
        {"fnb", "fmb"},
        {"asnyc", "async"},
        {"momentun", "momentum"},
        {"stragler", "straggler"},
        {"mom", "momentum"},
        {"bakcup", "backup"},
        {"batch_sync", "batch-sync"},
        {"async-", "async"},
        {"fmbx", "fmb"},
        {"zebra", NULL},
        {"xyz", NULL},
        {"", NULL},
        {"q", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *nearest = at_text_nearest(cases[i].name, names, COUNT(names));
        if (!cases[i].nearest)
            assert_null(nearest);
        else if (!nearest)
            fail_msg("nothing near '%s'", cases[i].name);
        else
            assert_string_equal(nearest, cases[i].nearest);
    }
}

static void empty_lists_and_overlong_names_have_no_nearest_name(void **state)
{
    (void)state;
    char long_name[1000];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const char *const names[] = {long_name, "amb"};
    assert_null(at_text_nearest("amb", NULL, 0));
    assert_null(at_text_nearest(long_name, names, 2));
    assert_string_equal(at_text_nearest("amb", names, 2), "amb");
}

/* Random texts of the letters that occur in numbers: nothing may crash, and a text accepted as a
 * whole number must be the same real number. */
static void hostile_texts_do_no_harm_and_parsers_agree(void **state)
{
    (void)state;
    static const char letters[] = "0123456789.eE+-kMGsmunh% x";
    at_rng            rng = at_rng_stream(7, 0, AT_RNG_PURPOSE_TEST, 0);
    for (int round = 0; round < 200000; round++) {
        char   text[12] = {0};
        size_t size = at_rng_below(&rng, sizeof text);
        for (size_t i = 0; i < size; i++) text[i] = letters[at_rng_below(&rng, sizeof letters - 1)];
        int64_t whole;
        double  real;
        at_ns   duration = 0;
        bool    is_whole = at_text_whole(text, &whole), is_real = at_text_real(text, &real);
        if (at_text_duration(text, &duration)) assert_true(duration >= 0);
        if (is_whole && is_real && !strchr(text, '%')) assert_true((double)whole == real);
    }
}

static void names_stay_on_their_line(void **state)
{
    (void)state;
    char text[] = "\t\x1b[31m\xc2\x9b\n\x7f \xc3\xa9", words[40];
    at_text_flatten(text);
    assert_string_equal(text, "??[31m???? \xc3\xa9");
    at_text command = at_text_in(words, sizeof words);
    at_text_add_word(&command, "plain-1.0");
    at_text_add_word(&command, "a'b;c");
    at_text_add_word(&command, "");
    assert_string_equal(words, "plain-1.0'a'\\''b;c'''");
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    double real = 0;
    at_ns  duration = 0;
    if (!comma_locale_set()) {
        print_message("skipped: no locale with a decimal comma, and localedef cannot build one\n");
        skip();
    }
    bool is_real = at_text_real("0.125", &real), is_comma = at_text_real("0,125", &real);
    bool is_duration = at_text_duration("1.5s", &duration);
    setlocale(LC_NUMERIC, "C");
    assert_true(is_real);
    assert_false(is_comma);
    assert_true(real == 0.125);
    assert_true(is_duration);
    assert_int_equal(duration, AT_MS(1500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(names_stay_on_their_line),
        cmocka_unit_test(a_text_is_truncated_at_its_buffer_and_marked_full),
        cmocka_unit_test(a_text_that_fits_exactly_is_not_truncated),
        cmocka_unit_test(whole_numbers_accept_exponents_and_suffixes),
        cmocka_unit_test(invalid_whole_numbers_are_refused),
        cmocka_unit_test(real_numbers_accept_exponents_and_percent),
        cmocka_unit_test(invalid_real_numbers_are_refused),
        cmocka_unit_test(durations_accept_units_and_exponents),
        cmocka_unit_test(invalid_durations_are_refused),
        cmocka_unit_test(formatted_durations_have_three_digits),
        cmocka_unit_test(a_formatted_duration_stays_within_its_buffer),
        cmocka_unit_test(numbers_are_formatted_without_exponents),
        cmocka_unit_test(the_nearest_name_tolerates_typos),
        cmocka_unit_test(empty_lists_and_overlong_names_have_no_nearest_name),
        cmocka_unit_test(hostile_texts_do_no_harm_and_parsers_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

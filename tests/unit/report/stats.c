#include "report/summary/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.12g is not within %g of %.12g", value, tolerance, expected);
}

static void running_moments_match_the_definition(void **state)
{
    (void)state;
    static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    at_stats            stats = {0};
    assert_true(isnan(at_stats_sd(&stats)));
    for (size_t i = 0; i < COUNT(values); i++) at_stats_add(&stats, values[i]);
    assert_int_equal(stats.count, 8);
    check_near(stats.mean, 5, 1e-15);
    check_near(at_stats_sd(&stats), sqrt(32.0 / 7), 1e-15);
    assert_true(stats.min == 2 && stats.max == 9);
}

static void a_large_offset_does_not_spoil_the_deviation(void **state)
{
    (void)state;
    at_stats stats = {0};
    for (int i = 0; i < 1000; i++) at_stats_add(&stats, 1e9 + i % 2);
    check_near(at_stats_sd(&stats), 0.5 * sqrt(1000.0 / 999), 1e-9);
}

static void one_value_has_no_deviation(void **state)
{
    (void)state;
    at_stats stats = {0};
    at_stats_add(&stats, -3);
    assert_true(isnan(at_stats_sd(&stats)));
    assert_true(stats.min == -3 && stats.max == -3 && stats.mean == -3);
}

static void percentiles_interpolate_between_neighbors(void **state)
{
    (void)state;
    double values[] = {4, NAN, 1, 3, 2};
    size_t count = at_stats_sort(values, COUNT(values));
    assert_int_equal(count, 4);
    check_near(at_stats_percentile(values, count, 0), 1, 0);
    check_near(at_stats_percentile(values, count, 50), 2.5, 1e-15);
    check_near(at_stats_percentile(values, count, 95), 3.85, 1e-12);
    check_near(at_stats_percentile(values, count, 100), 4, 0);
    check_near(at_stats_percentile(values, 1, 95), 1, 0);
    assert_true(isnan(at_stats_percentile(values, 0, 50)));
    assert_int_equal(at_stats_sort(NULL, 0), 0);
}

/* From printed tables of the t distribution. */
static void t_quantiles_match_published_tables(void **state)
{
    (void)state;
    static const struct {
        double probability, freedom, t;
    } cases[] = {
        {0.975, 1, 12.7062},  {0.975, 2, 4.30265},   {0.975, 3, 3.18245},   {0.975, 4, 2.77645},
        {0.975, 9, 2.26216},  {0.975, 29, 2.04523},  {0.975, 120, 1.97993}, {0.95, 5, 2.01505},
        {0.995, 10, 3.16927}, {0.9, 1, 3.07768},     {0.9995, 3, 12.9240},  {0.5, 7, 0},
        {0.025, 4, -2.77645}, {0.975, 1e6, 1.95997},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_near(at_stats_t_quantile(cases[i].probability, cases[i].freedom), cases[i].t, 6e-5);
}

/* With 1 and 2 degrees of freedom the distribution has a closed form. */
static void t_probabilities_follow_the_closed_forms(void **state)
{
    (void)state;
    for (double t = -50; t <= 50; t += 0.37) {
        check_near(at_stats_t_probability(t, 1), 0.5 + atan(t) / 3.141592653589793, 1e-13);
        check_near(at_stats_t_probability(t, 2), 0.5 + t / (2 * sqrt(2 + t * t)), 1e-13);
    }
}

static void quantile_and_probability_are_inverse(void **state)
{
    (void)state;
    for (double freedom = 0.5; freedom < 500; freedom *= 1.7)
        for (double p = 0.01; p < 1; p += 0.07)
            check_near(at_stats_t_probability(at_stats_t_quantile(p, freedom), freedom), p, 1e-12);
}

static void fewer_than_three_values_have_no_interval(void **state)
{
    (void)state;
    static const double values[] = {11, 12, 13};
    at_interval         two = at_stats_mean(values, 2), three = at_stats_mean(values, 3);
    check_near(two.value, 11.5, 0);
    assert_false(at_interval_known(&two));
    assert_true(at_interval_known(&three));
    check_near(three.low, 12 - 4.302652729911 / sqrt(3), 1e-9);
    check_near(three.high, 12 + 4.302652729911 / sqrt(3), 1e-9);
    at_interval none = at_stats_mean(NULL, 0);
    assert_true(isnan(none.value));
    assert_false(at_interval_known(&none));
}

static void values_that_are_not_finite_are_ignored(void **state)
{
    (void)state;
    static const double values[] = {1, NAN, 2, INFINITY, 3};
    at_interval         mean = at_stats_mean(values, COUNT(values));
    assert_int_equal(mean.count, 3);
    check_near(mean.value, 2, 1e-15);
}

static void a_constant_ratio_has_an_interval_of_zero_width(void **state)
{
    (void)state;
    static const double bases[] = {1, 7, 100}, values[] = {0.5, 3.5, 50};
    at_interval         ratio = at_stats_ratio(values, bases, 3);
    check_near(ratio.value, 0.5, 1e-12);
    check_near(ratio.low, 0.5, 1e-12);
    check_near(ratio.high, 0.5, 1e-12);
}

static void a_ratio_is_the_geometric_mean_of_pairs(void **state)
{
    (void)state;
    static const double bases[] = {1, 1, 1}, values[] = {1, 2, 4};
    at_interval         ratio = at_stats_ratio(values, bases, 3);
    double              half = 4.302652729911 * log(2) / sqrt(3);
    check_near(ratio.value, 2, 1e-12);
    check_near(ratio.low, 2 * exp(-half), 1e-9);
    check_near(ratio.high, 2 * exp(half), 1e-9);
    at_interval inverse = at_stats_ratio(bases, values, 3);
    check_near(inverse.value * ratio.value, 1, 1e-12);
    check_near(inverse.low * ratio.high, 1, 1e-9);
}

static void pairs_without_a_ratio_are_ignored(void **state)
{
    (void)state;
    static const double bases[] = {1, 2, 0, NAN, 4}, values[] = {2, NAN, 1, 1, 8};
    at_interval         ratio = at_stats_ratio(values, bases, 5);
    assert_int_equal(ratio.count, 2);
    check_near(ratio.value, 2, 1e-12);
    assert_false(at_interval_known(&ratio));
    ratio = at_stats_ratio(values, bases, 0);
    assert_true(isnan(ratio.value));
}

/* 95 of 100 intervals contain the true mean. */
static void intervals_of_five_values_contain_the_mean_95_times_in_100(void **state)
{
    (void)state;
    at_rng rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, 0);
    int    held = 0, count = 4000;
    for (int i = 0; i < count; i++) {
        double values[5];
        for (int k = 0; k < 5; k++) values[k] = 3 + 2 * at_rng_normal(&rng);
        at_interval mean = at_stats_mean(values, 5);
        held += mean.low <= 3 && 3 <= mean.high;
    }
    check_near((double)held / count, 0.95, 0.015);
}

static void an_interval_of_positive_values_does_not_go_below_zero(void **state)
{
    (void)state;
    static const double positive[] = {0.1, 0.2, 3.0}, mixed[] = {-0.1, 0.2, 3.0};
    char                text[80];
    at_interval         mean = at_stats_mean(positive, 3);
    assert_true(mean.low == 0);
    assert_true(mean.high > 3);
    assert_non_null(strstr(at_interval_show_half(text, sizeof text, &mean, 3), "1.10 [0.00, "));
    assert_true(at_stats_mean(mixed, 3).low < 0);
}

static void intervals_are_shown_with_their_digits(void **state)
{
    (void)state;
    char        text[64];
    at_interval known = {.value = 0.6234, .low = 0.58111, .high = 0.6699, .count = 5};
    assert_string_equal(at_interval_show(text, sizeof text, &known, 3), "0.623 [0.581, 0.670]");
    at_interval unknown = {.value = 12345.6, .low = NAN, .high = NAN, .count = 2};
    assert_string_equal(at_interval_show(text, sizeof text, &unknown, 3), "12346");
    assert_string_equal(at_interval_show_half(text, sizeof text, &known, 3), "0.623 ± 0.044");
    assert_string_equal(at_interval_show_half(text, sizeof text, &unknown, 3), "12346");
    at_interval zero = {.value = 0, .low = NAN, .high = NAN, .count = 1};
    assert_string_equal(at_interval_show(text, sizeof text, &zero, 2), "0.0");
    at_interval none = {.value = NAN, .low = NAN, .high = NAN};
    assert_string_equal(at_interval_show(text, sizeof text, &none, 3), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_moments_match_the_definition),
        cmocka_unit_test(a_large_offset_does_not_spoil_the_deviation),
        cmocka_unit_test(one_value_has_no_deviation),
        cmocka_unit_test(percentiles_interpolate_between_neighbors),
        cmocka_unit_test(t_quantiles_match_published_tables),
        cmocka_unit_test(t_probabilities_follow_the_closed_forms),
        cmocka_unit_test(quantile_and_probability_are_inverse),
        cmocka_unit_test(fewer_than_three_values_have_no_interval),
        cmocka_unit_test(values_that_are_not_finite_are_ignored),
        cmocka_unit_test(a_constant_ratio_has_an_interval_of_zero_width),
        cmocka_unit_test(a_ratio_is_the_geometric_mean_of_pairs),
        cmocka_unit_test(pairs_without_a_ratio_are_ignored),
        cmocka_unit_test(intervals_of_five_values_contain_the_mean_95_times_in_100),
        cmocka_unit_test(an_interval_of_positive_values_does_not_go_below_zero),
        cmocka_unit_test(intervals_are_shown_with_their_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "report/plot/bins.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static at_reservoir reservoirs[2];

static int empty_reservoirs(void **state)
{
    (void)state;
    memset(reservoirs, 0, sizeof reservoirs);
    return 0;
}

static void add_all(at_reservoir *reservoir, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) at_reservoir_add(reservoir, values[i]);
}

static void check_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * (1 + fabs(wanted))))
        fail_msg("%.12g is not %.12g", value, wanted);
}

static double height_sum(const at_outline *outline)
{
    double sum = 0;
    for (size_t i = 0; i < outline->count; i++) sum += outline->y[i];
    return sum;
}

static void integers_are_in_the_middle_of_their_bins(void **state)
{
    (void)state;
    at_outline outline;
    add_all(reservoirs, (const double[]){0, 1, 1, 3}, 4);
    at_bins bins = at_bins_choose(reservoirs, 1);
    check_near(bins.low, -0.5);
    check_near(bins.width, 1);
    assert_int_equal(bins.count, 4);
    at_bins_outline(&bins, reservoirs, 100, false, &outline);
    static const double xs[] = {-0.5, -0.5, 0.5, 1.5, 2.5, 3.5}, ys[] = {0, 25, 50, 0, 25, 0};
    assert_int_equal(outline.count, 6);
    for (size_t i = 0; i < outline.count; i++) {
        check_near(outline.x[i], xs[i]);
        check_near(outline.y[i], ys[i]);
    }
}

static void all_reservoirs_share_the_bins(void **state)
{
    (void)state;
    at_outline outline;
    add_all(&reservoirs[0], (const double[]){0.1, 0.2}, 2);
    add_all(&reservoirs[1], (const double[]){0.7, 0.9}, 2);
    at_bins bins = at_bins_choose(reservoirs, 2);
    assert_true(bins.count >= 16);
    for (int i = 0; i < 2; i++) {
        at_bins_outline(&bins, &reservoirs[i], 100, false, &outline);
        check_near(height_sum(&outline), 100);
        assert_true(outline.x[0] <= reservoirs[i].all.min + 1e-9);
        assert_true(outline.x[outline.count - 1] >= reservoirs[i].all.max);
    }
}

static void the_area_of_a_density_is_the_total(void **state)
{
    (void)state;
    at_outline outline;
    at_rng     rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, 0);
    for (int i = 0; i < 5000; i++) at_reservoir_add(reservoirs, at_rng_uniform(&rng));
    at_bins bins = at_bins_choose(reservoirs, 1);
    at_bins_outline(&bins, reservoirs, 1, true, &outline);
    check_near(height_sum(&outline) * bins.width, 1);
}

static void a_long_tail_is_cut_and_a_short_one_is_not(void **state)
{
    (void)state;
    at_outline outline;
    for (int i = 0; i < 1000; i++) at_reservoir_add(&reservoirs[0], i / 100.0);
    at_bins near = at_bins_choose(reservoirs, 1);
    assert_true(near.low + near.width * (double)near.count >= 9.99);
    at_reservoir_add(reservoirs, 1e6);
    at_bins far = at_bins_choose(reservoirs, 1);
    assert_true(far.low + far.width * (double)far.count < 20);
    at_bins_outline(&far, reservoirs, 1001, false, &outline);
    check_near(height_sum(&outline),
               1000); /* shares of all values, including those outside the bins */
}

static void rare_values_are_shown_when_all_others_are_equal(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) at_reservoir_add(reservoirs, i == 500 ? 2.5 : 0);
    at_bins bins = at_bins_choose(reservoirs, 1);
    assert_true(bins.low + bins.width * (double)bins.count > 2.5);
}

static void beyond_its_size_a_reservoir_is_a_uniform_sample(void **state)
{
    (void)state;
    enum { VALUES = 10 * AT_RESERVOIR_SIZE, WORKERS = 8 };
    uint64_t of_worker[WORKERS] = {0};
    for (int i = 0; i < VALUES; i++) at_reservoir_add(reservoirs, i % WORKERS);
    assert_int_equal(reservoirs->count, AT_RESERVOIR_SIZE);
    assert_int_equal(reservoirs->all.count, VALUES);
    for (size_t i = 0; i < reservoirs->count; i++) of_worker[(int)reservoirs->value[i]]++;
    for (int i = 0; i < WORKERS; i++) /* 1024 each; six standard deviations are 180 */
        if (of_worker[i] < 844 || of_worker[i] > 1204)
            fail_msg("worker %d has %llu", i, (unsigned long long)of_worker[i]);
}

static void values_that_are_not_finite_or_too_large_are_ignored(void **state)
{
    (void)state;
    at_outline outline;
    add_all(reservoirs, (const double[]){NAN, INFINITY, -INFINITY, 1e300}, 4);
    assert_int_equal(reservoirs->all.count, 0);
    at_bins bins = at_bins_choose(reservoirs, 2);
    assert_int_equal(bins.count, 0);
    at_bins_outline(&bins, reservoirs, 100, false, &outline);
    assert_int_equal(outline.count, 0);
}

static void any_two_values_have_bins(void **state)
{
    (void)state;
    static const double some[] = {0,      1,      -1,   1e-300,    1e100,
                                  -1e100, 5e-324, 1e16, 1e-12,     1 / 3.,
                                  1e300,  64,     65,   1 + 1e-15, 9007199254740993.};
    at_outline          outline;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
            empty_reservoirs(NULL);
            at_reservoir_add(reservoirs, some[i]);
            at_reservoir_add(reservoirs, some[k]);
            at_bins bins = at_bins_choose(reservoirs, 1);
            assert_true(bins.count <= AT_BINS_MAX);
            at_bins_outline(&bins, reservoirs, 100, false, &outline);
            assert_true(outline.count <= AT_OUTLINE_MAX);
            if (reservoirs->count > 0 && fabs(height_sum(&outline) - 100) > 1e-9)
                fail_msg("%g and %g: %g %%", some[i], some[k], height_sum(&outline));
        }
}

#define TEST(name) cmocka_unit_test_setup(name, empty_reservoirs)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(integers_are_in_the_middle_of_their_bins),
        TEST(all_reservoirs_share_the_bins),
        TEST(the_area_of_a_density_is_the_total),
        TEST(a_long_tail_is_cut_and_a_short_one_is_not),
        TEST(rare_values_are_shown_when_all_others_are_equal),
        TEST(beyond_its_size_a_reservoir_is_a_uniform_sample),
        TEST(values_that_are_not_finite_or_too_large_are_ignored),
        TEST(any_two_values_have_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Where a timed round ends: nearest to the deadline, or after it. */
#include "step/cut.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"

/* One round at a steady speed from `start` on; returns when it ended. */
static at_ns run_round(at_cut *cut, at_ns start, at_ns sample_ns)
{
    at_ns now = start;
    for (uint32_t samples; (samples = at_cut_next(cut, now)) > 0;) {
        at_ns took = samples * sample_ns;
        now += took;
        at_cut_done(cut, samples, took);
    }
    return now;
}

static at_cut begin(uint32_t samples_max, at_ns deadline, uint32_t micro_batch, bool after)
{
    at_cut   cut = {0};
    at_order order = {.samples_max = samples_max};
    at_cut_begin(&cut, &order, deadline, micro_batch, after);
    return cut;
}

static void nearest_stops_early_when_that_is_nearer(void **state)
{
    (void)state;
    at_cut cut = begin(1000, AT_MS(24), 10, false); /* 10 ms each: 20 is nearer than 30 */
    assert_int_equal(run_round(&cut, 0, AT_MS(1)), AT_MS(20));
    cut = begin(1000, AT_MS(26), 10, false); /* and here 30 is nearer than 20 */
    assert_int_equal(run_round(&cut, 0, AT_MS(1)), AT_MS(30));
}

static void after_continues_while_any_time_is_left(void **state)
{
    (void)state;
    at_cut cut = begin(1000, AT_MS(21), 10, true);
    assert_int_equal(run_round(&cut, 0, AT_MS(1)), AT_MS(30));
    cut = begin(1000, AT_MS(20), 10, true);
    assert_int_equal(run_round(&cut, 0, AT_MS(1)), AT_MS(20));
}

static void who_overslept_still_does_one_micro_batch(void **state)
{
    (void)state;
    for (int after = 0; after <= 1; after++) {
        at_cut cut = begin(1000, AT_MS(20), 10, after);
        run_round(&cut, AT_MS(500), AT_MS(1));
        assert_int_equal(cut.done, 10);
    }
}

static void without_a_deadline_no_sample_is_lost_to_a_remainder(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 70; n++)
        for (uint32_t m = 1; m <= n; m++) {
            at_cut cut = begin(n, AT_NEVER, m, false);
            run_round(&cut, 0, 1);
            assert_int_equal(cut.done, n);
        }
}

static void the_cap_ends_a_round_with_a_smaller_micro_batch(void **state)
{
    (void)state;
    at_cut cut = begin(70, AT_SEC(1), 32, false);
    assert_int_equal(at_cut_next(&cut, 0), 32);
    at_cut_done(&cut, 32, AT_MS(1));
    assert_int_equal(at_cut_next(&cut, AT_MS(1)), 32);
    at_cut_done(&cut, 32, AT_MS(1));
    assert_int_equal(at_cut_next(&cut, AT_MS(2)), 6);
    at_cut_done(&cut, 6, AT_MS(1));
    assert_int_equal(at_cut_next(&cut, AT_MS(3)), 0);
}

static void what_was_learnt_about_speed_is_kept_and_follows_changes(void **state)
{
    (void)state;
    at_cut cut = begin(100, AT_NEVER, 10, false);
    run_round(&cut, 0, AT_MS(1));
    assert_true(fabs(cut.sample_ns - 1e6) < 1);
    at_order order = {.samples_max = 400};
    at_cut_begin(&cut, &order, AT_NEVER, 10, false);
    assert_true(fabs(cut.sample_ns - 1e6) < 1);
    run_round(&cut, 0, AT_MS(3));
    assert_true(fabs(cut.sample_ns - 3e6) < 0.03e6);
}

typedef struct misses {
    double distance, late; /* means of |end - T| and of end - T, in micro-batches */
} misses;

/* Many rounds of workers of random speeds that change by 5 % from round to round. */
static misses miss(bool after)
{
    enum { WORKERS = 40, ROUNDS = 100, MICRO = 16 };
    misses m = {0};
    for (uint64_t w = 0; w < WORKERS; w++) {
        at_rng rng = at_rng_stream(1, w, AT_RNG_PURPOSE_TEST, 0);
        double sample_ns = 1e4 + 1e5 * at_rng_uniform(&rng);
        at_cut cut = {0};
        for (int round = 0; round < ROUNDS; round++) {
            at_order order = {.samples_max = 1000000};
            at_ns    deadline = AT_MS(30 + 10 * at_rng_uniform(&rng));
            at_ns    speed = (at_ns)(sample_ns * (0.95 + 0.1 * at_rng_uniform(&rng)));
            at_cut_begin(&cut, &order, deadline, MICRO, after);
            double error = (double)(run_round(&cut, 0, speed) - deadline) / (double)(MICRO * speed);
            m.distance += fabs(error) / (WORKERS * ROUNDS);
            m.late += error / (WORKERS * ROUNDS);
        }
    }
    return m;
}

static void nearest_misses_the_deadline_by_a_quarter_micro_batch_after_by_half(void **state)
{
    (void)state;
    misses nearest = miss(false), after = miss(true);
    assert_true(nearest.distance <= 0.3);
    assert_true(fabs(nearest.late) <= 0.05); /* early as often as late */
    assert_true(fabs(after.distance - 0.5) <= 0.05);
    assert_true(after.late == after.distance); /* never early */
}

static void without_a_deadline_the_last_micro_batch_is_known_when_it_begins(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 40; n++)
        for (uint32_t m = 1; m <= n; m++) {
            at_cut cut = begin(n, AT_NEVER, m, false);
            for (uint32_t samples; (samples = at_cut_next(&cut, 0)) > 0;) {
                bool last = at_cut_is_last(&cut, samples, 0);
                at_cut_done(&cut, samples, AT_MS(1));
                assert_int_equal(last, at_cut_next(&cut, 0) == 0);
            }
        }
}

/* At a speed that is known, one of 10 ms that begins at 0. */
static bool is_last_before(double deadline_ms, bool after)
{
    at_cut cut = begin(1000, AT_MS(deadline_ms), 10, after);
    cut.sample_ns = 1e6;
    return at_cut_is_last(&cut, 10, 0);
}

static void with_a_deadline_it_is_expected_with_a_quarter_to_spare(void **state)
{
    (void)state;
    assert_true(is_last_before(6, false));
    assert_true(is_last_before(12, false));
    assert_false(is_last_before(13, false)); /* if it takes 7.5 ms, another one follows */
    assert_true(is_last_before(7, true));
    assert_false(is_last_before(8, true));
    at_cut cut = begin(1000, AT_MS(1), 10, false); /* nothing is known about the speed */
    assert_false(at_cut_is_last(&cut, 10, 0));
    assert_true(at_cut_is_last(&cut, 10, AT_MS(1)));
    cut = begin(10, AT_MS(1000), 10, false); /* the cap is reached */
    assert_true(at_cut_is_last(&cut, 10, 0));
}

/* Programs with batches of their own, as their loaders give them. */
static void a_round_of_own_batches_ends_before_another_would_pass_it(void **state)
{
    (void)state;
    at_cut cut = begin(100, AT_NEVER, 24, false);
    at_cut_own(&cut);
    run_round(&cut, 0, AT_MS(1));
    assert_int_equal(cut.done, 96);
    cut = begin(10, AT_NEVER, 24, false); /* one is always computed */
    at_cut_own(&cut);
    run_round(&cut, 0, AT_MS(1));
    assert_int_equal(cut.done, 24);
    cut = begin(100, AT_NEVER, 24, false);
    at_cut_own(&cut);
    at_cut_done(&cut, 60, AT_MS(1)); /* the next is expected to be like the last */
    assert_int_equal(at_cut_next(&cut, AT_MS(1)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_stops_early_when_that_is_nearer),
        cmocka_unit_test(after_continues_while_any_time_is_left),
        cmocka_unit_test(who_overslept_still_does_one_micro_batch),
        cmocka_unit_test(without_a_deadline_no_sample_is_lost_to_a_remainder),
        cmocka_unit_test(the_cap_ends_a_round_with_a_smaller_micro_batch),
        cmocka_unit_test(what_was_learnt_about_speed_is_kept_and_follows_changes),
        cmocka_unit_test(nearest_misses_the_deadline_by_a_quarter_micro_batch_after_by_half),
        cmocka_unit_test(without_a_deadline_the_last_micro_batch_is_known_when_it_begins),
        cmocka_unit_test(with_a_deadline_it_is_expected_with_a_quarter_to_spare),
        cmocka_unit_test(a_round_of_own_batches_ends_before_another_would_pass_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

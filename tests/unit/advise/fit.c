#include "advise/fit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "advise/slow_workers.h"
#include "base/rng.h"

enum { WORKERS = 8, STEPS = 400, BATCH = 64 };

static void check_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%g instead of %g +- %g", value, expected, tolerance);
}

/* A measured log whose round times are given by `round`. */
typedef double round_time(uint32_t worker, uint32_t step, at_rng *rng);

static at_measured measure(round_time *round)
{
    at_measured m = {.batch = BATCH, .micro_batch = 1};
    at_rng      rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, 0);
    assert_int_equal(at_step_log_init(&m.log, WORKERS, STEPS, "", NULL), AT_OK);
    m.round_s = calloc((size_t)WORKERS * STEPS, sizeof *m.round_s);
    assert_non_null(m.round_s);
    for (uint32_t step = 0; step < STEPS; step++)
        for (uint32_t w = 0; w < WORKERS; w++)
            m.round_s[(size_t)step * WORKERS + w] = round(w, step, &rng);
    return m;
}

static at_fit fit_log(const at_measured *m)
{
    at_fit fit;
    assert_int_equal(at_fit_new(m, AT_DELAYS_AUTO, &fit, NULL), AT_OK);
    return fit;
}

static double noise(at_rng *rng, double sd)
{
    return exp(sd * at_rng_normal(rng));
}

/* ---- fits ------------------------------------------------------------------------------------ */

static double equal(uint32_t worker, uint32_t step, at_rng *rng)
{
    (void)worker, (void)step;
    return noise(rng, 0.005);
}

static double two_speeds(uint32_t worker, uint32_t step, at_rng *rng)
{
    (void)step;
    return (worker == 3 ? 1.5 : 1) * noise(rng, 0.005);
}

/* Half the rounds pause: 0.5 s or 3 s. */
static double pausing(uint32_t worker, uint32_t step, at_rng *rng)
{
    (void)worker, (void)step;
    double u = at_rng_uniform(rng), time = noise(rng, 0.002);
    if (u < 0.3) time += fabs(0.5 + 0.05 * at_rng_normal(rng));
    if (u >= 0.8) time += fabs(3 + 0.2 * at_rng_normal(rng));
    return time;
}

/* Worker w is slow for 20 rounds out of 100. */
static double bursting(uint32_t worker, uint32_t step, at_rng *rng)
{
    return ((step + 11 * worker) % 100 < 20 ? 2 : 1) * noise(rng, 0.01);
}

static void speeds_are_found_among_pauses(void **state)
{
    (void)state;
    at_measured m = measure(two_speeds);
    at_fit      fit = fit_log(&m);
    check_near(fit.speed[3] / fit.speed[0], 1.5, 0.01);
    check_near(fit.sample_s * BATCH, (WORKERS + 0.5) / WORKERS, 0.01);
    assert_false(fit.pauses);
    at_fit_deinit(&fit);
    at_measured_deinit(&m);
}

static void delays_that_come_and_go_are_pauses(void **state)
{
    (void)state;
    at_measured m = measure(pausing);
    at_fit      fit = fit_log(&m);
    assert_true(fit.pauses);
    check_near(fit.persistence, 0, 0.1);
    assert_int_equal(fit.components, 3);
    double weight = 0, mean = 0;
    for (uint32_t i = 0; i < fit.components; i++) {
        weight += fit.pause[i].weight;
        mean += fit.pause[i].weight * fit.pause[i].mean;
    }
    check_near(weight, 1, 1e-6);
    check_near(mean, 0.3 * 0.5 + 0.2 * 3, 0.04);
    for (size_t i = 0; i < (size_t)STEPS * WORKERS; i++) /* the replay is the log */
        check_near(fit.sleep_s[i] + fit.factor[i] * fit.sample_s * BATCH, m.round_s[i], 1e-9);
    at_fit_deinit(&fit);
    at_measured_deinit(&m);
}

static void delays_that_last_are_slow_computing(void **state)
{
    (void)state;
    at_measured m = measure(bursting);
    at_fit      fit = fit_log(&m);
    assert_false(fit.pauses);
    check_near(fit.burst_factor, 2, 0.02);
    check_near(fit.burst_length, 20, 2);
    check_near(fit.burst_start, 1.0 / 80, 0.002);
    check_near(fit.vary, 0.01, 0.002);
    at_fit_deinit(&fit);
    assert_int_equal(at_fit_new(&m, AT_DELAYS_PAUSE, &fit, NULL), AT_OK);
    assert_true(fit.pauses);
    at_fit_deinit(&fit);
    at_measured_deinit(&m);
}

static void the_fitted_pace_is_a_straggler_model(void **state)
{
    (void)state;
    char        text[400];
    at_measured m = measure(pausing);
    at_fit      fit = fit_log(&m);
    at_text     t = at_text_in(text, sizeof text);
    at_fit_straggler(&fit, WORKERS, &t);
    assert_false(t.full);
    assert_non_null(strstr(text, "speed:"));
    assert_non_null(strstr(text, "+mix:0,"));
    at_fit_deinit(&fit);
    at_measured_deinit(&m);
}

/* ---- ceilings and slow workers --------------------------------------------------------------- */

static double known(uint32_t worker, uint32_t step, at_rng *rng)
{
    (void)step, (void)rng;
    return worker == 0 ? 2 : 1;
}

static void the_ceiling_is_the_mean_slowest_times_the_mean_of_1_over_t(void **state)
{
    (void)state;
    at_measured m = measure(known);
    check_near(at_measured_slowest(&m), 2, 1e-12);
    check_near(at_measured_ceiling(&m), 2 * (WORKERS - 0.5) / WORKERS, 1e-12);
    at_measured_deinit(&m);
}

static double degrading(uint32_t worker, uint32_t step, at_rng *rng)
{
    return (worker == 5 && step >= 250 ? 1.6 : 1) * noise(rng, 0.03);
}

static void a_worker_that_became_slow_is_named_with_the_step(void **state)
{
    (void)state;
    at_measured     m = measure(degrading);
    at_slow_workers slow;
    assert_int_equal(at_slow_workers_find(&m, &slow, NULL), AT_OK);
    assert_int_equal(slow.count, 1);
    assert_int_equal(slow.worker[0].worker, 5);
    assert_in_range(slow.worker[0].begin, 247, 253);
    assert_int_equal(slow.worker[0].end, STEPS);
    check_near(slow.worker[0].factor, 1.6, 0.05);
    assert_true(slow.worker[0].gain > 1.15 && slow.worker[0].gain < 1.3);
    at_measured_deinit(&m);
}

static double recovering(uint32_t worker, uint32_t step, at_rng *rng)
{
    return (worker == 2 && step >= 100 && step < 130 ? 2 : 1) * noise(rng, 0.03);
}

static void a_slow_period_ends_where_it_ended(void **state)
{
    (void)state;
    at_measured     m = measure(recovering);
    at_slow_workers slow;
    assert_int_equal(at_slow_workers_find(&m, &slow, NULL), AT_OK);
    assert_int_equal(slow.count, 1);
    assert_in_range(slow.worker[0].begin, 98, 102);
    assert_in_range(slow.worker[0].end, 128, 132);
    at_measured_deinit(&m);
}

static void equal_workers_and_independent_pauses_name_nobody(void **state)
{
    (void)state;
    round_time *const rounds[] = {equal, pausing};
    for (size_t i = 0; i < 2; i++) {
        at_measured     m = measure(rounds[i]);
        at_slow_workers slow;
        assert_int_equal(at_slow_workers_find(&m, &slow, NULL), AT_OK);
        assert_int_equal(slow.count, 0);
        assert_true(slow.gain == 1);
        at_measured_deinit(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_are_found_among_pauses),
        cmocka_unit_test(delays_that_come_and_go_are_pauses),
        cmocka_unit_test(delays_that_last_are_slow_computing),
        cmocka_unit_test(the_fitted_pace_is_a_straggler_model),
        cmocka_unit_test(the_ceiling_is_the_mean_slowest_times_the_mean_of_1_over_t),
        cmocka_unit_test(a_worker_that_became_slow_is_named_with_the_step),
        cmocka_unit_test(a_slow_period_ends_where_it_ended),
        cmocka_unit_test(equal_workers_and_independent_pauses_name_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Size rules: exact decisions for synthetic inputs. */
#include "step/hub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 4, EPOCH = 1000, STATE_SIZE = 4096 };

/* A rule under test with its state and input. */
typedef struct fixture {
    at_plan     plan;
    at_share    share[WORKERS];
    at_member   member[WORKERS];
    at_progress progress;
    _Alignas(64) char state[STATE_SIZE];
} fixture;

static fixture f_;

static void decide(void)
{
    f_.plan.size->decide(f_.state, &f_.plan, f_.share, &f_.progress);
}

static at_err resolve(const char *size, uint32_t batch, uint32_t min, uint32_t max, at_plan *plan,
                      at_fail *fail)
{
    char    text[64];
    at_text rule = at_text_in(text, sizeof text);
    at_text_add(&rule, "%s", size);
    if (min > 0) at_text_add(&rule, "%cmin=%u", strchr(text, ':') ? ',' : ':', min);
    if (max > 0) at_text_add(&rule, "%cmax=%u", strchr(text, ':') ? ',' : ':', max);
    at_plan_options options = {.strategy = "fmb", .size = text, .workers = WORKERS, .batch = batch};
    return at_plan_resolve(&options, plan, fail);
}

static void set_up(const char *size, uint32_t batch, uint32_t min, uint32_t max)
{
    at_fail fail = {0};
    memset(&f_, 0, sizeof f_);
    if (resolve(size, batch, min, max, &f_.plan, &fail)) fail_msg("%s", fail.text);
    f_.plan.samples_epoch = EPOCH;
    size_t needed = f_.plan.size->state_size ? f_.plan.size->state_size(&f_.plan) : 0;
    assert_true(needed <= STATE_SIZE);
    f_.progress.member = f_.member;
    decide();
    for (int i = 0; i < WORKERS; i++) f_.member[i].state = AT_MEMBER_IDLE;
}

/* One step of this many samples that ends at `elapsed`. */
static void step_to(uint64_t samples, at_ns elapsed, double loss)
{
    f_.progress.steps++;
    f_.progress.samples = samples;
    f_.progress.samples_used += samples;
    f_.progress.elapsed = elapsed;
    f_.progress.loss_sum = loss * (double)samples;
    decide();
}

static void assert_shares(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    assert_int_equal(f_.share[0].samples, a);
    assert_int_equal(f_.share[1].samples, b);
    assert_int_equal(f_.share[2].samples, c);
    assert_int_equal(f_.share[3].samples, d);
}

static void assert_all(uint32_t samples)
{
    assert_shares(samples, samples, samples, samples);
}

/* ---- speed ---------------------------------------------------------------------------------- */

/* Every worker computes its share, at these samples per millisecond. */
static void compute_at(double a, double b, double c, double d)
{
    const double speed[WORKERS] = {a, b, c, d};
    for (at_node i = 0; i < WORKERS; i++) {
        if (f_.member[i].state == AT_MEMBER_AWAY) continue;
        at_work work = {.samples = f_.share[i].samples};
        work.compute_ns = (at_ns)(1e6 * work.samples / speed[i]);
        f_.plan.size->observe(f_.state, &f_.plan, i + 1, &work);
    }
    step_to(400, 0, 0);
}

static uint32_t total(void)
{
    uint32_t sum = 0;
    for (int i = 0; i < WORKERS; i++)
        if (f_.member[i].state != AT_MEMBER_AWAY) sum += f_.share[i].samples;
    return sum;
}

static void shares_are_in_proportion_to_speed(void **state)
{
    (void)state;
    set_up("speed:step", 100, 0, 0);
    assert_all(100);
    compute_at(1, 2, 3, 4);
    assert_shares(40, 80, 120, 160);
    compute_at(1, 2, 3, 4);
    assert_shares(40, 80, 120, 160);
}

static void the_remainder_goes_to_the_largest_fractional_parts(void **state)
{
    (void)state;
    set_up("speed:step", 100, 0, 0);
    compute_at(1, 1, 1, 4); /* 57.14 each, 228.57 */
    assert_shares(57, 57, 57, 229);
    set_up("speed:step", 25, 0, 0);
    compute_at(1, 1, 1, 0.3); /* 30.30 each, 9.09: the remaining one goes to the first of equals */
    assert_shares(31, 30, 30, 9);
}

static void no_sample_is_ever_lost(void **state)
{
    (void)state;
    for (int i = 1; i <= 200; i++) {
        set_up("speed:step", (uint32_t)(1 + i % 37), 0, 0);
        compute_at(1 + 0.1 * i, 7.0 / i, 3 + i % 5, 1 + (i * i) % 11);
        assert_int_equal(total(), WORKERS * f_.plan.batch);
    }
}

static void limits_hold_and_the_excess_goes_to_the_other_workers(void **state)
{
    (void)state;
    set_up("speed:step", 100, 50, 180);
    compute_at(1, 10, 10, 79); /* 4, 40, 40, 316 without limits */
    assert_shares(50, 85, 85, 180);
    assert_int_equal(total(), 400);
    set_up("speed:step", 100, 100, 100);
    compute_at(1, 2, 3, 4);
    assert_all(100);
}

static void an_induced_sleep_counts_as_slowness_and_abandoned_rounds_do_not_count(void **state)
{
    (void)state;
    set_up("speed:step", 100, 0, 0);
    at_work slow = {.samples = 100, .compute_ns = AT_MS(50), .sleep_ns = AT_MS(150)};
    at_work fast = {.samples = 100, .compute_ns = AT_MS(50)};
    at_work lost = {.samples = 1, .compute_ns = AT_SEC(9), .abandoned = true};
    for (at_node i = 2; i <= WORKERS; i++) f_.plan.size->observe(f_.state, &f_.plan, i, &fast);
    f_.plan.size->observe(f_.state, &f_.plan, 1, &slow);
    f_.plan.size->observe(f_.state, &f_.plan, 2, &lost);
    step_to(400, 0, 0);
    assert_shares(31, 123, 123, 123); /* 30.77 and 123.08 */
}

static void a_step_moves_speed_by_a_fifth(void **state)
{
    (void)state;
    set_up("speed:step", 100, 0, 0);
    compute_at(1, 1, 1, 1);
    compute_at(6, 1, 1, 1); /* the first one's speed becomes 1 + (6 - 1) / 5 = 2 */
    assert_shares(160, 80, 80, 80);
}

static void an_epoch_is_one_window_and_moves_speed_half_way(void **state)
{
    (void)state;
    set_up("speed:epoch", 100, 0, 0);
    compute_at(1, 2, 3, 4);
    compute_at(1, 2, 3, 4);
    assert_all(100); /* 800 of 1000 samples */
    compute_at(1, 2, 3, 4);
    assert_shares(40, 80, 120, 160);
    compute_at(3, 2, 3, 4); /* 1600 */
    assert_shares(40, 80, 120, 160);
    compute_at(3, 2, 3, 4); /* 2000: 1 + (3 - 1) / 2 = 2 */
    assert_shares(73, 73, 109, 145);
    assert_int_equal(total(), 400);
}

static void the_share_of_a_dead_worker_is_redistributed_at_once(void **state)
{
    (void)state;
    set_up("speed:epoch", 100, 0, 0);
    for (int i = 0; i < 3; i++) compute_at(1, 2, 3, 4);
    f_.member[3].state = AT_MEMBER_AWAY;
    compute_at(1, 2, 3, 4);
    assert_shares(67, 133, 200, 100); /* the last one's is what it would start with */
    assert_int_equal(total(), 400);
    f_.member[3].state = AT_MEMBER_IDLE;
    compute_at(1, 2, 3, 4); /* 2000: the end of an epoch in which the last worker took part */
    assert_shares(40, 80, 120, 160);
}

static void a_worker_without_measurement_gets_the_mean_speed(void **state)
{
    (void)state;
    set_up("speed:step", 100, 0, 0);
    f_.member[3].state = AT_MEMBER_AWAY;
    compute_at(1, 2, 3, 0);
    assert_shares(67, 133, 200, 100);
    f_.member[3].state = AT_MEMBER_IDLE;
    step_to(400, 0, 0); /* it has just joined */
    assert_shares(50, 100, 150, 100);
}

static void too_few_workers_for_the_total_compute_the_maximum(void **state)
{
    (void)state;
    set_up("speed:step", 100, 0, 150);
    f_.member[0].state = f_.member[1].state = AT_MEMBER_AWAY;
    compute_at(0, 0, 1, 4);
    assert_int_equal(f_.share[2].samples, 150);
    assert_int_equal(f_.share[3].samples, 150);
}

/* ---- grow, shrink --------------------------------------------------------------------------- */

static void growing_counts_epochs_in_used_samples(void **state)
{
    (void)state;
    set_up("grow:1.5,2", 10, 1, 40);
    assert_all(10);
    step_to(1999, 0, 0);
    assert_all(10);
    step_to(1, 0, 0);
    assert_all(15);
    step_to(2000, 0, 0);
    assert_all(23); /* 22.5 */
    step_to(2000, 0, 0);
    assert_all(34); /* 33.75: from the batch, not from the rounded value */
    step_to(200000, 0, 0);
    assert_all(40);
}

static void shrinking_ends_at_the_minimum_batch(void **state)
{
    (void)state;
    set_up("shrink:2,0.5", 100, 10, 100);
    assert_all(100);
    step_to(500, 0, 0);
    assert_all(50);
    step_to(500, 0, 0);
    assert_all(25);
    step_to(500, 0, 0);
    assert_all(13); /* 12.5 */
    step_to(5000, 0, 0);
    assert_all(10);
}

static void nothing_changes_without_an_epoch_length(void **state)
{
    (void)state;
    set_up("grow", 10, 0, 0);
    f_.plan.samples_epoch = 0;
    step_to(1000000, 0, 0);
    assert_all(10);
}

static void invalid_factors_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"grow:",      "grow:1,2",       "grow:0.5,2",
                                        "shrink:2,0", "shrink:2,x",     "grow:inf,2",
                                        "speed:hour", "grow:2,2,2,99,1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at_plan plan;
        at_fail fail = {0};
        assert_int_equal(resolve(wrong[i], 64, 0, 0, &plan, &fail), AT_ERR_USAGE);
        assert_non_null(strstr(fail.text, "--size "));
    }
}

static void a_batch_outside_its_limits_is_refused(void **state)
{
    (void)state;
    at_plan plan;
    at_fail fail = {0};
    assert_int_equal(resolve("grow", 64, 65, 0, &plan, &fail), AT_ERR_USAGE);
    assert_string_equal(fail.text, "--size grow: --batch 64 is not between MIN 65 and MAX 1024");
    assert_int_equal(resolve("grow", 64, 0, 63, &plan, &fail), AT_ERR_USAGE);
    assert_int_equal(resolve("static", 64, 65, 0, &plan, &fail), AT_ERR_USAGE);
    assert_string_equal(fail.text, "--size static takes no argument");
    assert_int_equal(resolve("loss", 8, 0, 0, &plan, &fail), AT_OK);
    assert_int_equal(plan.batch_min, 1);
    assert_int_equal(plan.batch_max, 128);
}

/* ---- loss ----------------------------------------------------------------------------------- */

static void a_good_epoch_doubles_and_a_bad_one_halves(void **state)
{
    (void)state;
    set_up("loss", 16, 4, 64);
    step_to(1000, AT_SEC(1), 2.0);
    assert_all(16); /* nothing to compare with */
    step_to(1000, AT_SEC(2), 1.8);
    assert_all(16); /* 0.8 x 0.9 + 0.2 = 0.92 */
    step_to(1000, AT_SEC(3), 1.5);
    assert_all(32); /* 0.8 x 0.833 + 0.2 = 0.867 */
    step_to(1000, AT_SEC(4), 1.8);
    assert_all(16); /* 0.8 x 1.2 + 0.2 = 1.16 */
    step_to(1000, AT_SEC(5.4), 1.8);
    assert_all(16); /* 0.8 + 0.2 x 1.4 = 1.08 */
    step_to(1000, AT_SEC(8.2), 1.8);
    assert_all(8); /* 0.8 + 0.2 x 2 = 1.2 */
}

static void an_epoch_is_judged_by_all_its_steps_and_per_sample(void **state)
{
    (void)state;
    set_up("loss", 16, 4, 64);
    step_to(400, AT_MS(400), 4.0);
    step_to(800, AT_MS(1200), 1.0); /* mean 2, a millisecond per sample, 200 samples too many */
    assert_all(16);
    step_to(400, AT_MS(1600), 9.0);
    assert_all(16); /* bad, but not a full epoch yet */
    step_to(400, AT_MS(2000), 0.0);
    assert_all(8); /* mean 4.5 */
}

static void doubling_and_halving_end_at_the_limits(void **state)
{
    (void)state;
    set_up("loss", 16, 10, 40);
    step_to(1000, AT_SEC(1), 1.0);
    step_to(1000, AT_SEC(2), 0.5);
    assert_all(32);
    step_to(1000, AT_SEC(3), 0.2);
    assert_all(40);
    for (int i = 0; i < 5; i++) step_to(1000, AT_SEC(4 + i), 1.0 * (1 << i));
    assert_all(10);
}

/* ---- stall ---------------------------------------------------------------------------------- */

/* An epoch of this loss that takes a second. */
static void epoch_of(double loss)
{
    step_to(EPOCH, f_.progress.elapsed + AT_SEC(1), loss);
}

static void stalled_losses_double_the_batch_and_progress_halves_it(void **state)
{
    (void)state;
    set_up("stall", 16, 2, 64);
    for (int i = 0; i < 4; i++) epoch_of(1.0 - 0.1 * i);
    assert_all(16); /* four losses decide nothing */
    epoch_of(0.6);
    assert_all(8); /* mean 0.8, least 0.6: P is 333 */
    for (int i = 0; i < 3; i++) epoch_of(0.6);
    assert_all(2); /* still with earlier losses, and then .. */
    epoch_of(0.5999);
    assert_all(4); /* .. mean 0.59998, least 0.5999: P is 0.13 */
}

static void stall_takes_its_measure_and_its_number_of_epochs(void **state)
{
    (void)state;
    set_up("stall:150,2", 16, 1, 64);
    epoch_of(1.0);
    epoch_of(0.8); /* mean 0.9, least 0.8: P is 125 */
    assert_all(32);
    set_up("stall:100,2", 16, 1, 64);
    epoch_of(1.0);
    epoch_of(0.8);
    assert_all(8);
    set_up("stall:150,2,sum", 16, 1, 64);
    epoch_of(1.0);
    epoch_of(1.0); /* as published: the sum is twice the least, P is 1000 */
    assert_all(8);
}

static void slow_epochs_double_the_batch_at_once(void **state)
{
    (void)state;
    set_up("stall:10,5,slow=2s", 16, 1, 64);
    step_to(EPOCH, AT_SEC(3), 1.0);
    assert_all(32);
    step_to(EPOCH, AT_SEC(4), 1.0);
    assert_all(32);
}

static void a_loss_of_zero_is_stalled(void **state)
{
    (void)state;
    set_up("stall:10,2", 16, 1, 64);
    epoch_of(1.0);
    epoch_of(0);
    assert_all(8); /* the least is 0, the mean is not */
    epoch_of(0);
    assert_all(16);
}

static void steps_longer_than_an_epoch_count_once(void **state)
{
    (void)state;
    set_up("stall:10,3", 16, 1, 64);
    for (int i = 0; i < 2; i++) step_to(2 * EPOCH, AT_SEC(1 + i), 1.0);
    assert_all(16);
    step_to(2 * EPOCH, AT_SEC(3), 1.0);
    assert_all(32);
}

/* ---- loss-target ---------------------------------------------------------------------------- */

static void a_loss_above_the_target_halves_and_below_doubles(void **state)
{
    (void)state;
    set_up("loss-target:0.4", 16, 6, 40);
    epoch_of(0.5);
    assert_all(8);
    epoch_of(0.4);
    assert_all(8);
    epoch_of(0.41);
    assert_all(6);
    epoch_of(0.39);
    assert_all(12);
    epoch_of(0.1);
    assert_all(24);
    epoch_of(0.1);
    assert_all(40);
}

static void an_epoch_of_several_steps_is_judged_by_its_mean_loss(void **state)
{
    (void)state;
    set_up("loss-target", 16, 1, 64);
    step_to(400, AT_SEC(1), 0.9);
    step_to(600, AT_SEC(2), 0.2); /* mean 0.48 */
    assert_all(32);
    step_to(600, AT_SEC(3), 0.6);
    step_to(400, AT_SEC(4), 0.4); /* mean 0.52 */
    assert_all(16);
}

/* ---- noise ---------------------------------------------------------------------------------- */

/* A step of four pieces with the expected norms for a gradient of squared norm `signal` and `noise`
 * per sample. */
static void noisy_step(double signal, double noise)
{
    double piece = f_.share[0].samples, all = WORKERS * piece;
    f_.progress.pieces = WORKERS;
    f_.progress.inverse_mean = 1 / piece;
    f_.progress.norm2_piece = signal + noise / piece;
    f_.progress.norm2_step = signal + noise / all;
    step_to((uint64_t)all, 0, 0);
}

static void the_batch_becomes_the_noise_scale(void **state)
{
    (void)state;
    set_up("noise", 100, 1, 1000);
    for (int i = 0; i < 15; i++) noisy_step(0.01, 6);
    assert_all(100);
    noisy_step(0.01, 6);
    assert_all(150); /* 6 / 0.01 / 4 workers */
    for (int i = 0; i < 64; i++) noisy_step(0.01, 6);
    assert_all(150); /* independent of the batch it is measured with */
    f_.member[0].state = f_.member[1].state = AT_MEMBER_AWAY;
    for (int i = 0; i < 16; i++) noisy_step(0.01, 6);
    assert_all(300);
}

static void the_batch_changes_by_at_most_a_factor_of_two_within_its_limits(void **state)
{
    (void)state;
    set_up("noise", 100, 30, 350);
    for (int i = 0; i < 16; i++) noisy_step(0.01, 600);
    assert_all(200);
    for (int i = 0; i < 16; i++) noisy_step(0.01, 600);
    assert_all(350);
    set_up("noise", 100, 30, 350);
    for (int i = 0; i < 16; i++) noisy_step(1, 1);
    assert_all(50);
    for (int i = 0; i < 16; i++) noisy_step(1, 1);
    assert_all(30);
}

static void numerator_and_denominator_are_averaged_separately(void **state)
{
    (void)state;
    set_up("noise", 100, 1, 1000);
    for (int i = 0; i < 8; i++) { /* the mean of the ratios would be (600 + 200) / 2 */
        noisy_step(0.01, 6);
        noisy_step(0.03, 6);
    }
    assert_all(75); /* 6 / 0.02 / 4 */
}

static void pieces_of_different_sizes_use_the_mean_of_their_inverses(void **state)
{
    (void)state;
    set_up("noise", 100, 1, 1000);
    for (int i = 0; i < 16; i++) { /* two pieces of 50 and 200 samples */
        f_.progress.pieces = 2;
        f_.progress.inverse_mean = (1.0 / 50 + 1.0 / 200) / 2;
        f_.progress.norm2_piece = 0.01 + 6 * f_.progress.inverse_mean;
        f_.progress.norm2_step = 0.01 + 6.0 / 250;
        step_to(250, 0, 0);
    }
    assert_all(150);
}

static void steps_without_information_are_skipped(void **state)
{
    (void)state;
    set_up("noise", 100, 1, 1000);
    for (int i = 0; i < 100; i++) {
        f_.progress.pieces = i % 2 ? 1 : WORKERS; /* one piece, or no norms */
        f_.progress.norm2_piece = i % 2 ? 1 : 0;
        step_to(100, 0, 0);
    }
    assert_all(100);
}

static void pure_noise_grows_the_batch(void **state)
{
    (void)state;
    set_up("noise", 100, 1, 1000);
    for (int i = 0; i < 16; i++) noisy_step(-0.001, 6); /* an estimate may be below zero */
    assert_all(200);
}

/* ---- probe ---------------------------------------------------------------------------------- */

/* A little more than one epoch at this time per sample. */
static void epoch_at(at_ns sample_ns)
{
    static const uint64_t samples = 1000;
    step_to(samples, f_.progress.elapsed + (at_ns)samples * sample_ns, 0);
}

static void the_fastest_of_four_sizes_is_kept(void **state)
{
    (void)state;
    set_up("probe", 10, 0, 0);
    assert_all(10);
    epoch_at(500);
    assert_all(20);
    epoch_at(300);
    assert_all(40);
    epoch_at(200);
    assert_all(80);
    epoch_at(201);
    assert_all(40);
    epoch_at(900);
    assert_all(40); /* from now on */
}

static void sizes_beyond_the_limit_are_not_tried_and_the_smaller_of_equals_wins(void **state)
{
    (void)state;
    set_up("probe", 10, 0, 39);
    epoch_at(300);
    assert_all(20);
    epoch_at(300);
    assert_all(10);
}

static void a_probe_is_judged_per_sample(void **state)
{
    (void)state;
    set_up("probe", 10, 0, 20);
    step_to(1900, AT_US(1900), 0); /* 1000 ns per sample, nearly two epochs */
    assert_all(20);
    step_to(900, AT_US(1900) + AT_US(990), 0); /* 1100 ns per sample, less time */
    assert_all(10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_in_proportion_to_speed),
        cmocka_unit_test(the_remainder_goes_to_the_largest_fractional_parts),
        cmocka_unit_test(no_sample_is_ever_lost),
        cmocka_unit_test(limits_hold_and_the_excess_goes_to_the_other_workers),
        cmocka_unit_test(an_induced_sleep_counts_as_slowness_and_abandoned_rounds_do_not_count),
        cmocka_unit_test(a_step_moves_speed_by_a_fifth),
        cmocka_unit_test(an_epoch_is_one_window_and_moves_speed_half_way),
        cmocka_unit_test(the_share_of_a_dead_worker_is_redistributed_at_once),
        cmocka_unit_test(a_worker_without_measurement_gets_the_mean_speed),
        cmocka_unit_test(too_few_workers_for_the_total_compute_the_maximum),
        cmocka_unit_test(growing_counts_epochs_in_used_samples),
        cmocka_unit_test(shrinking_ends_at_the_minimum_batch),
        cmocka_unit_test(nothing_changes_without_an_epoch_length),
        cmocka_unit_test(invalid_factors_are_refused),
        cmocka_unit_test(a_batch_outside_its_limits_is_refused),
        cmocka_unit_test(a_good_epoch_doubles_and_a_bad_one_halves),
        cmocka_unit_test(an_epoch_is_judged_by_all_its_steps_and_per_sample),
        cmocka_unit_test(doubling_and_halving_end_at_the_limits),
        cmocka_unit_test(stalled_losses_double_the_batch_and_progress_halves_it),
        cmocka_unit_test(stall_takes_its_measure_and_its_number_of_epochs),
        cmocka_unit_test(slow_epochs_double_the_batch_at_once),
        cmocka_unit_test(a_loss_of_zero_is_stalled),
        cmocka_unit_test(steps_longer_than_an_epoch_count_once),
        cmocka_unit_test(a_loss_above_the_target_halves_and_below_doubles),
        cmocka_unit_test(an_epoch_of_several_steps_is_judged_by_its_mean_loss),
        cmocka_unit_test(the_batch_becomes_the_noise_scale),
        cmocka_unit_test(the_batch_changes_by_at_most_a_factor_of_two_within_its_limits),
        cmocka_unit_test(numerator_and_denominator_are_averaged_separately),
        cmocka_unit_test(pieces_of_different_sizes_use_the_mean_of_their_inverses),
        cmocka_unit_test(steps_without_information_are_skipped),
        cmocka_unit_test(pure_noise_grows_the_batch),
        cmocka_unit_test(the_fastest_of_four_sizes_is_kept),
        cmocka_unit_test(sizes_beyond_the_limit_are_not_tried_and_the_smaller_of_equals_wins),
        cmocka_unit_test(a_probe_is_judged_per_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

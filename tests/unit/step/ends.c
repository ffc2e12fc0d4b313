/* Scenarios of how runs end, and of evaluations. Workers take a millisecond per sample
 * unless a test says otherwise; the accuracy after step n is n/10, the loss 1/n. */
#include "scenario.h"

/* The snapshot of step 2, taken at 64 ms, reached the loss of 1/2. */
static void assert_target_times(void)
{
    assert_int_equal(stage_.target[0].at, AT_MS(64));
    assert_int_equal(stage_.target[0].step, 2);
    assert_int_equal(stage_.target[1].at, AT_MS(96));
    assert_int_equal(stage_.target[1].step, 3);
}

static void a_stop_within_a_step_counts_all_samples_and_waits_for_all_to_leave(void **state)
{
    (void)state;
    stage *s = set(fmb(3, 9));
    s->plan.micro_batch = 8;
    s->actor[1].sample_ns = AT_US(500);
    s->actor[3].sample_ns = AT_MS(4);
    stage_stop(s, AT_MS(50));
    stage_stop(s, AT_MS(51));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  50] world > stop\n"
         "[  50] hub > drop 32 samples of worker 1: stopped\n"
         "[  50] hub > leave, worker 1\n"
         "[  50] hub > drop 32 samples of worker 2: stopped\n"
         "[  50] hub > leave, worker 2\n"
         "[  50] hub > leave, worker 3\n"
         "[  50] world > worker 1 is gone, drew 32\n"
         "[  50] world > worker 2 is gone, drew 32\n"
         "[  51] world > stop\n"
         "[  64] hub > drop 16 samples of worker 3: stopped\n"
         "[  64] world > worker 3 is gone, drew 16\n"
         "[  64] hub > finish: signal\n");
}

static void a_worker_that_does_not_leave_is_evicted(void **state)
{
    (void)state;
    at_plan_options o = fmb(2, 9);
    o.lease = AT_MS(200);
    stage *s = set(o);
    stage_freeze(s, AT_MS(10), 2, AT_NEVER);
    stage_stop(s, AT_MS(20));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  20] world > stop\n"
         "[  20] hub > leave, worker 1\n"
         "[  20] hub > leave, worker 2\n"
         "[  32] hub > drop 32 samples of worker 1: stopped\n"
         "[  32] world > worker 1 is gone, drew 32\n"
         "[ 220] hub > evict worker 2\n"
         "[ 220] world > worker 2 is gone, drew 32\n"
         "[ 220] hub > drop 32 samples of worker 2: stopped\n"
         "[ 220] hub > finish: signal\n");
}

static void a_worker_that_ignores_the_order_to_leave_is_evicted(void **state)
{
    (void)state;
    stage *s = compose((at_plan_options){.gather = "any:1", .release = "free"}, 1, 1);
    s->plan.lease = AT_MS(70);
    s->actor[1].deaf = true;
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > leave, worker 1\n"
         "[  64] hub > drop 32 samples of worker 1: stopped\n"
         "[  96] hub > drop 32 samples of worker 1: stopped\n"
         "[ 102] hub > evict worker 1\n"
         "[ 102] world > worker 1 is gone, drew 104\n"
         "[ 102] hub > drop 8 samples of worker 1: stopped\n"
         "[ 102] hub > finish: steps\n");
}

static void a_run_ends_when_enough_samples_were_used(void **state)
{
    (void)state;
    at_plan_options o = fmb(1, 0);
    o.limits.samples = 60;
    set(o);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] hub > finish: samples\n");
}

static void an_epoch_limit_is_a_sample_limit(void **state)
{
    (void)state;
    at_plan_options o = fmb(1, 0);
    o.limits.samples = 32;
    o.limits.epochs = true;
    set(o);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > leave, worker 1\n"
         "[  32] world > worker 1 is gone, drew 32\n"
         "[  32] hub > finish: epochs\n");
}

static void a_run_ends_with_the_first_step_after_its_time_limit(void **state)
{
    (void)state;
    at_plan_options o = fmb(1, 0);
    o.limits.time = AT_MS(40);
    set(o);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] hub > finish: seconds\n");
}

static void a_run_ends_when_all_targets_are_met_at_the_time_of_their_snapshots(void **state)
{
    (void)state;
    at_plan_options o = fmb(1, 0);
    o.eval_steps = 1;
    o.limits.target[0] = (at_target){AT_METRIC_LOSS, 0.5};
    o.limits.target[1] = (at_target){AT_METRIC_ACCURACY, 0.3};
    o.limits.targets = 2;
    stage *s = set(o);
    s->eval_ns = AT_MS(10);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > evaluate step 1\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > evaluate step 2\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[  96] hub > evaluate step 3\n"
         "[  96] hub > order worker 1: round 3 on version 3, 32 samples\n"
         "[ 106] hub > leave, worker 1\n"
         "[ 128] hub > drop 32 samples of worker 1: stopped\n"
         "[ 128] world > worker 1 is gone, drew 128\n"
         "[ 128] hub > finish: target\n");
    assert_target_times();
}

static void an_evaluation_is_skipped_while_another_runs(void **state)
{
    (void)state;
    at_plan_options o = fmb(1, 6);
    o.eval_steps = 1;
    stage *s = set(o);
    s->eval_ns = AT_MS(70);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > evaluate step 1\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[  96] hub > order worker 1: round 3 on version 3, 32 samples\n"
         "[ 128] hub > apply step 4: worker 1 (32), 32 samples\n"
         "[ 128] hub > evaluate step 4\n"
         "[ 128] hub > order worker 1: round 4 on version 4, 32 samples\n"
         "[ 160] hub > apply step 5: worker 1 (32), 32 samples\n"
         "[ 160] hub > order worker 1: round 5 on version 5, 32 samples\n"
         "[ 192] hub > apply step 6: worker 1 (32), 32 samples\n"
         "[ 192] hub > leave, worker 1\n"
         "[ 192] world > worker 1 is gone, drew 192\n"
         "[ 192] hub > finish: steps\n");
}

static void evaluation_by_samples_happens_once_per_epoch(void **state)
{
    (void)state;
    at_plan_options o = fmb(1, 6);
    o.eval_samples = 60;
    set(o);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > evaluate step 2\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[  96] hub > order worker 1: round 3 on version 3, 32 samples\n"
         "[ 128] hub > apply step 4: worker 1 (32), 32 samples\n"
         "[ 128] hub > evaluate step 4\n"
         "[ 128] hub > order worker 1: round 4 on version 4, 32 samples\n"
         "[ 160] hub > apply step 5: worker 1 (32), 32 samples\n"
         "[ 160] hub > order worker 1: round 5 on version 5, 32 samples\n"
         "[ 192] hub > apply step 6: worker 1 (32), 32 samples\n"
         "[ 192] hub > leave, worker 1\n"
         "[ 192] world > worker 1 is gone, drew 192\n"
         "[ 192] hub > finish: steps\n");
}

static void a_loss_that_is_not_finite_ends_the_run_before_it_is_used(void **state)
{
    (void)state;
    stage *s = set(fmb(1, 9));
    s->nan_version = 1;
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > drop 32 samples of worker 1: nonfinite\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] hub > finish: diverged\n");
}

/* All workers start over when nobody has a gradient for the step; after 100 reports in a row, and
 * 10 per worker, the run ends. */
static void skipping_starts_over_until_too_many_in_a_row(void **state)
{
    (void)state;
    at_plan_options options = fmb(1, 9);
    options.nonfinite = "skip";
    stage *s = set(options);
    s->nan_version = 1;
    stage_run(s);
    assert_int_equal(s->hub->version, 1);
    assert_int_equal(s->hub->end, AT_END_DIVERGED);
    assert_int_equal(s->hub->samples_dropped,
                     32 * (AT_NONFINITE_ROW + AT_NONFINITE_ROW_WORKER + 1));
    stage_close(s);
}

/* The step is closed with the gradients of the others. */
static void skipping_one_of_two_costs_its_samples_only(void **state)
{
    (void)state;
    at_plan_options options = fmb(2, 3);
    options.nonfinite = "skip";
    stage *s = set(options);
    s->nan_version = 1;
    s->nan_worker = 2;
    stage_run(s);
    assert_int_equal(s->hub->version, 3);
    assert_int_equal(s->hub->end, AT_END_STEPS);
    assert_int_equal(s->hub->samples_used, 5 * 32);
    assert_int_equal(s->hub->samples_dropped, 32);
    stage_close(s);
}

static void ignoring_applies_what_is_not_finite(void **state)
{
    (void)state;
    at_plan_options options = fmb(1, 9);
    options.nonfinite = "ignore";
    stage *s = set(options);
    s->nan_version = 1;
    stage_run(s);
    assert_int_equal(s->hub->version, 9);
    assert_int_equal(s->hub->end, AT_END_STEPS);
    stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_within_a_step_counts_all_samples_and_waits_for_all_to_leave),
        cmocka_unit_test(a_worker_that_does_not_leave_is_evicted),
        cmocka_unit_test(a_worker_that_ignores_the_order_to_leave_is_evicted),
        cmocka_unit_test(a_run_ends_when_enough_samples_were_used),
        cmocka_unit_test(an_epoch_limit_is_a_sample_limit),
        cmocka_unit_test(a_run_ends_with_the_first_step_after_its_time_limit),
        cmocka_unit_test(a_run_ends_when_all_targets_are_met_at_the_time_of_their_snapshots),
        cmocka_unit_test(an_evaluation_is_skipped_while_another_runs),
        cmocka_unit_test(evaluation_by_samples_happens_once_per_epoch),
        cmocka_unit_test(a_loss_that_is_not_finite_ends_the_run_before_it_is_used),
        cmocka_unit_test(skipping_starts_over_until_too_many_in_a_row),
        cmocka_unit_test(skipping_one_of_two_costs_its_samples_only),
        cmocka_unit_test(ignoring_applies_what_is_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

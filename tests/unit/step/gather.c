/* Scenarios of the gather rules other than `all`, set by overrides. Workers take a
 * millisecond per sample unless a test says otherwise. */
#include "scenario.h"

static void first_k_with_abandon_discards_the_slow_workers_round(void **state)
{
    (void)state;
    stage *s = compose((at_plan_options){.gather = "first:2", .newer = "abandon"}, 3, 2);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 3 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[  48] hub > drop 16 samples of worker 2: abandoned\n"
         "[  48] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 3 (32), 64 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] hub > leave, worker 3\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] world > worker 3 is gone, drew 64\n"
         "[  72] hub > drop 8 samples of worker 2: stopped\n"
         "[  72] world > worker 2 is gone, drew 24\n"
         "[  72] hub > finish: steps\n");
}

static void a_worker_that_abandons_needlessly_starts_over(void **state)
{
    (void)state;
    stage *s = compose((at_plan_options){.gather = "first:2", .newer = "abandon"}, 2, 2);
    s->old_notices = true;
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  40] hub > drop 8 samples of worker 1: abandoned\n"
         "[  40] hub > order worker 1: round 2 on version 1, 32 samples\n"
         "[  40] hub > drop 8 samples of worker 2: abandoned\n"
         "[  40] hub > order worker 2: round 2 on version 1, 32 samples\n"
         "[  72] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  72] hub > leave, worker 1\n"
         "[  72] hub > leave, worker 2\n"
         "[  72] world > worker 1 is gone, drew 72\n"
         "[  72] world > worker 2 is gone, drew 72\n"
         "[  72] hub > finish: steps\n");
}

static void first_k_with_finish_drops_the_slow_workers_late_gradient(void **state)
{
    (void)state;
    stage *s =
        compose((at_plan_options){.gather = "first:2", .newer = "finish", .stale = "drop"}, 3, 3);
    s->actor[3].sample_ns = AT_US(1500);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  48] hub > drop 32 samples of worker 3: stale\n"
         "[  48] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 2: round 2 on version 2, 32 samples\n"
         "[  96] hub > drop 32 samples of worker 3: stale\n"
         "[  96] hub > order worker 3: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] hub > leave, worker 3\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] world > worker 2 is gone, drew 96\n"
         "[ 108] hub > drop 8 samples of worker 3: stopped\n"
         "[ 108] world > worker 3 is gone, drew 72\n"
         "[ 108] hub > finish: steps\n");
}

static void a_sleeping_hub_does_not_let_an_overtaken_worker_wait(void **state)
{
    (void)state;
    stage *s = compose((at_plan_options){.gather = "first:2"}, 3, 2);
    s->actor[3].sample_ns = AT_US(1500);
    s->patient = true;
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  48] hub > drop 32 samples of worker 3: stale\n"
         "[  48] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] hub > leave, worker 3\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] world > worker 2 is gone, drew 64\n"
         "[  72] hub > drop 16 samples of worker 3: stopped\n"
         "[  72] world > worker 3 is gone, drew 48\n"
         "[  72] hub > finish: steps\n");
}

static void a_usable_stale_gradient_keeps_its_worker_waiting_until_the_step_closes(void **state)
{
    (void)state;
    stage *s =
        compose((at_plan_options){.gather = "first:2", .newer = "finish", .stale = "use"}, 3, 3);
    s->actor[3].sample_ns = AT_US(1200);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 3 (32 of version 0), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 3: round 1 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 2 (32 of version 1), 64 samples\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] hub > leave, worker 3\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] world > worker 2 is gone, drew 64\n"
         "[ 102] hub > drop 32 samples of worker 3: stopped\n"
         "[ 102] world > worker 3 is gone, drew 64\n"
         "[ 102] hub > finish: steps\n");
}

static void first_k_uses_all_workers_when_fewer_are_alive(void **state)
{
    (void)state;
    stage *s =
        compose((at_plan_options){.gather = "first:2", .newer = "finish", .stale = "drop"}, 2, 2);
    stage_kill(s, AT_MS(10), 1, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 1 is gone, drew 16\n"
         "[  10] hub > drop 16 samples of worker 1: lost\n"
         "[  32] hub > apply step 1: worker 2 (32), 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 2 (32), 32 samples\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] world > worker 2 is gone, drew 64\n"
         "[  64] hub > finish: steps\n");
}

static void first_k_without_a_barrier_uses_all_workers_too(void **state)
{
    (void)state;
    stage *s =
        compose((at_plan_options){.gather = "first:3", .release = "free", .stale = "use"}, 3, 2);
    s->actor[2].sample_ns = AT_MS(2);
    stage_kill(s, AT_MS(10), 3, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples, repeating\n"
         "[  10] world > worker 3 is gone, drew 16\n"
         "[  10] hub > drop 16 samples of worker 3: lost\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > add worker 2 (32 of version 0)\n"
         "[  64] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  96] hub > add worker 1 (32 of version 1)\n"
         "[ 128] hub > add worker 2 (32 of version 1)\n"
         "[ 128] hub > apply step 2: worker 1 (32 of version 0), worker 1 (32), worker 2 (32), 96 "
         "samples, already added\n"
         "[ 128] hub > leave, worker 1\n"
         "[ 128] hub > leave, worker 2\n"
         "[ 128] hub > drop 32 samples of worker 1: stopped\n"
         "[ 136] hub > drop 8 samples of worker 1: stopped\n"
         "[ 136] world > worker 1 is gone, drew 136\n"
         "[ 144] hub > drop 8 samples of worker 2: stopped\n"
         "[ 144] world > worker 2 is gone, drew 72\n"
         "[ 144] hub > finish: steps\n");
}

static void first_k_waits_for_an_overtaken_worker_that_it_needs(void **state)
{
    (void)state;
    stage *s =
        compose((at_plan_options){.gather = "first:2", .newer = "finish", .stale = "drop"}, 3, 2);
    s->actor[3].sample_ns = AT_MS(2);
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  40] world > worker 2 is gone, drew 40\n"
         "[  40] hub > drop 8 samples of worker 2: lost\n"
         "[  64] hub > drop 32 samples of worker 3: stale\n"
         "[  64] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[ 128] hub > apply step 2: worker 1 (32), worker 3 (32), 64 samples\n"
         "[ 128] hub > leave, worker 1\n"
         "[ 128] hub > leave, worker 3\n"
         "[ 128] world > worker 1 is gone, drew 64\n"
         "[ 128] world > worker 3 is gone, drew 64\n"
         "[ 128] hub > finish: steps\n");
}

static void any_two_with_free_counts_a_fast_worker_twice(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){.gather = "any:2", .release = "free", .newer = "finish", .stale = "use"},
        2, 2);
    s->actor[2].sample_ns = AT_MS(5);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > apply step 1: worker 1 (32), worker 1 (32), 64 samples, already added\n"
         "[  96] hub > add worker 1 (32 of version 1)\n"
         "[ 128] hub > add worker 1 (32 of version 1)\n"
         "[ 128] hub > apply step 2: worker 1 (32), worker 1 (32), 64 samples, already added\n"
         "[ 128] hub > leave, worker 1\n"
         "[ 128] hub > leave, worker 2\n"
         "[ 136] hub > drop 8 samples of worker 1: stopped\n"
         "[ 136] world > worker 1 is gone, drew 136\n"
         "[ 160] hub > drop 32 samples of worker 2: stopped\n"
         "[ 160] world > worker 2 is gone, drew 32\n"
         "[ 160] hub > finish: steps\n");
}

static void every_period_uses_the_reports_that_arrived(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){
            .gather = "every:50ms", .release = "free", .newer = "finish", .stale = "use"},
        2, 2);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  50] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  96] hub > add worker 2 (32 of version 0)\n"
         "[  96] hub > add worker 1 (32 of version 1)\n"
         "[ 100] hub > apply step 2: worker 1 (32 of version 0), worker 2 (32 of version 0), "
         "worker 1 (32), 96 samples, already added\n"
         "[ 100] hub > leave, worker 1\n"
         "[ 100] hub > leave, worker 2\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 120] hub > drop 8 samples of worker 2: stopped\n"
         "[ 120] world > worker 2 is gone, drew 40\n"
         "[ 120] hub > finish: steps\n");
}

static void every_period_waits_for_at_least_one_report(void **state)
{
    (void)state;
    compose(
        (at_plan_options){
            .gather = "every:20ms", .release = "free", .newer = "finish", .stale = "use"},
        1, 2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > leave, worker 1\n"
         "[  72] hub > drop 8 samples of worker 1: stopped\n"
         "[  72] world > worker 1 is gone, drew 72\n"
         "[  72] hub > finish: steps\n");
}

static void every_period_with_a_barrier_lets_early_workers_wait(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){
            .gather = "every:50ms", .release = "barrier", .newer = "finish", .stale = "use"},
        2, 3);
    s->actor[2].sample_ns = AT_MS(2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  50] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  50] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[ 100] hub > apply step 2: worker 1 (32), worker 2 (32 of version 0), 64 samples\n"
         "[ 100] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[ 100] hub > order worker 2: round 1 on version 2, 32 samples\n"
         "[ 150] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[ 150] hub > leave, worker 1\n"
         "[ 150] hub > leave, worker 2\n"
         "[ 150] world > worker 1 is gone, drew 96\n"
         "[ 164] hub > drop 32 samples of worker 2: stopped\n"
         "[ 164] world > worker 2 is gone, drew 64\n"
         "[ 164] hub > finish: steps\n");
}

static void gradients_of_a_step_that_never_closes_are_counted(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){.gather = "any:9", .release = "free", .newer = "finish", .stale = "use"},
        2, 1);
    stage_kill(s, AT_MS(40), 1, AT_NEVER);
    stage_stop(s, AT_MS(70));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  40] world > worker 1 is gone, drew 40\n"
         "[  40] hub > drop 8 samples of worker 1: lost\n"
         "[  64] hub > add worker 2 (32 of version 0)\n"
         "[  70] world > stop\n"
         "[  70] hub > drop 32 samples of worker 1: stopped\n"
         "[  70] hub > drop 64 samples of worker 2: stopped\n"
         "[  70] hub > leave, worker 2\n"
         "[  72] hub > drop 8 samples of worker 2: stopped\n"
         "[  72] world > worker 2 is gone, drew 72\n"
         "[  72] hub > finish: signal\n");
}

static void any_k_behind_a_barrier_does_not_wait_for_lost_workers(void **state)
{
    (void)state;
    stage *s = compose((at_plan_options){.gather = "any:2", .newer = "abandon"}, 2, 2);
    stage_kill(s, AT_MS(40), 1, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  40] world > worker 1 is gone, drew 40\n"
         "[  40] hub > drop 8 samples of worker 1: lost\n"
         "[  64] hub > apply step 2: worker 2 (32), 32 samples\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] world > worker 2 is gone, drew 64\n"
         "[  64] hub > finish: steps\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_k_with_abandon_discards_the_slow_workers_round),
        cmocka_unit_test(a_worker_that_abandons_needlessly_starts_over),
        cmocka_unit_test(first_k_with_finish_drops_the_slow_workers_late_gradient),
        cmocka_unit_test(a_sleeping_hub_does_not_let_an_overtaken_worker_wait),
        cmocka_unit_test(a_usable_stale_gradient_keeps_its_worker_waiting_until_the_step_closes),
        cmocka_unit_test(first_k_uses_all_workers_when_fewer_are_alive),
        cmocka_unit_test(first_k_without_a_barrier_uses_all_workers_too),
        cmocka_unit_test(first_k_waits_for_an_overtaken_worker_that_it_needs),
        cmocka_unit_test(any_two_with_free_counts_a_fast_worker_twice),
        cmocka_unit_test(every_period_uses_the_reports_that_arrived),
        cmocka_unit_test(every_period_waits_for_at_least_one_report),
        cmocka_unit_test(every_period_with_a_barrier_lets_early_workers_wait),
        cmocka_unit_test(gradients_of_a_step_that_never_closes_are_counted),
        cmocka_unit_test(any_k_behind_a_barrier_does_not_wait_for_lost_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Scenarios of the release rules other than `barrier`, and of newer and stale rules, set by
 * overrides. Workers take a millisecond per sample unless a test says otherwise. */
#include "scenario.h"

static void any_one_with_free_use_is_asynchronous_sgd(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){.gather = "any:1", .release = "free", .newer = "finish", .stale = "use"},
        2, 4);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  96] hub > add worker 2 (32 of version 0)\n"
         "[  96] hub > apply step 3: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  96] hub > add worker 1 (32 of version 2)\n"
         "[  96] hub > apply step 4: worker 1 (32 of version 2), 32 samples, already added\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 120] hub > drop 8 samples of worker 2: stopped\n"
         "[ 120] world > worker 2 is gone, drew 40\n"
         "[ 120] hub > finish: steps\n");
}

static void stale_scale_weights_by_age_but_divides_by_all_samples(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){
            .gather = "any:1", .release = "free", .newer = "finish", .stale = "scale"},
        2, 4);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  96] hub > add worker 2 (32 of version 0, weight 0.333)\n"
         "[  96] hub > apply step 3: worker 2 (32 of version 0, weight 0.333), 32 samples, already "
         "added\n"
         "[  96] hub > add worker 1 (32 of version 2, weight 0.5)\n"
         "[  96] hub > apply step 4: worker 1 (32 of version 2, weight 0.5), 32 samples, already "
         "added\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 120] hub > drop 8 samples of worker 2: stopped\n"
         "[ 120] world > worker 2 is gone, drew 40\n"
         "[ 120] hub > finish: steps\n");
}

static void stale_drop_without_a_barrier_favors_the_fast_worker(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){.gather = "any:1", .release = "free", .newer = "finish", .stale = "drop"},
        2, 4);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  96] hub > drop 32 samples of worker 2: stale\n"
         "[  96] hub > add worker 1 (32 of version 2)\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[ 128] hub > add worker 1 (32 of version 3)\n"
         "[ 128] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 128] hub > leave, worker 1\n"
         "[ 128] hub > leave, worker 2\n"
         "[ 136] hub > drop 8 samples of worker 1: stopped\n"
         "[ 136] world > worker 1 is gone, drew 136\n"
         "[ 144] hub > drop 16 samples of worker 2: stopped\n"
         "[ 144] world > worker 2 is gone, drew 48\n"
         "[ 144] hub > finish: steps\n");
}

static void refresh_continues_a_round_under_its_first_version(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){.gather = "any:1", .release = "free", .newer = "refresh", .stale = "use"},
        2, 4);
    transcript_.workers = true;
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] 1 > install\n"
         "[   0] 1 > compute round 0: 32 samples\n"
         "[   0] 2 > install\n"
         "[   0] 2 > compute round 0: 32 samples\n"
         "[  32] 1 > send 1: 32 samples of version 0, slot 1\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] 1 > install\n"
         "[  32] 1 > compute round 1: 32 samples\n"
         "[  48] 2 > install\n"
         "[  64] 1 > send 2: 32 samples of version 1, slot 0\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  64] 1 > install\n"
         "[  64] 1 > compute round 2: 32 samples\n"
         "[  72] 2 > install\n"
         "[  96] 2 > send 1: 32 samples of version 0, slot 1\n"
         "[  96] 1 > send 3: 32 samples of version 2, slot 1\n"
         "[  96] hub > add worker 2 (32 of version 0)\n"
         "[  96] hub > apply step 3: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  96] 2 > install\n"
         "[  96] 2 > compute round 1: 32 samples\n"
         "[  96] hub > add worker 1 (32 of version 2)\n"
         "[  96] hub > apply step 4: worker 1 (32 of version 2), 32 samples, already added\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] 1 > install\n"
         "[  96] 1 > compute round 3: 32 samples\n"
         "[  96] 1 > abandon\n"
         "[  96] 2 > abandon\n"
         "[ 104] 1 > send 4: 8 samples of version 4, slot 0, void\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] 1 > finish\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 120] 2 > send 2: 8 samples of version 3, slot 0, void\n"
         "[ 120] hub > drop 8 samples of worker 2: stopped\n"
         "[ 120] 2 > finish\n"
         "[ 120] world > worker 2 is gone, drew 40\n"
         "[ 120] hub > finish: steps\n");
}

static void bound_zero_advances_round_by_round(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){
            .gather = "any:1", .release = "bound:0", .newer = "finish", .stale = "use"},
        2, 4);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  96] hub > add worker 2 (32 of version 0)\n"
         "[  96] hub > apply step 2: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  96] hub > order worker 1: round 1 on version 2, 32 samples\n"
         "[  96] hub > order worker 2: round 1 on version 2, 32 samples\n"
         "[ 128] hub > add worker 1 (32 of version 2)\n"
         "[ 128] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[ 192] hub > add worker 2 (32 of version 2)\n"
         "[ 192] hub > apply step 4: worker 2 (32 of version 2), 32 samples, already added\n"
         "[ 192] hub > leave, worker 1\n"
         "[ 192] hub > leave, worker 2\n"
         "[ 192] world > worker 1 is gone, drew 64\n"
         "[ 192] world > worker 2 is gone, drew 64\n"
         "[ 192] hub > finish: steps\n");
}

static void bound_one_lets_the_fast_worker_be_one_round_ahead(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){
            .gather = "any:1", .release = "bound:1", .newer = "finish", .stale = "use"},
        2, 5);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  96] hub > add worker 2 (32 of version 0)\n"
         "[  96] hub > apply step 3: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  96] hub > order worker 1: round 2 on version 3, 32 samples\n"
         "[  96] hub > order worker 2: round 1 on version 3, 32 samples\n"
         "[ 128] hub > add worker 1 (32 of version 3)\n"
         "[ 128] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 192] hub > add worker 2 (32 of version 3)\n"
         "[ 192] hub > apply step 5: worker 2 (32 of version 3), 32 samples, already added\n"
         "[ 192] hub > leave, worker 1\n"
         "[ 192] hub > leave, worker 2\n"
         "[ 192] world > worker 1 is gone, drew 96\n"
         "[ 192] world > worker 2 is gone, drew 64\n"
         "[ 192] hub > finish: steps\n");
}

static void
a_lost_worker_holds_up_no_other_and_its_replacement_starts_at_the_slowest_round(void **state)
{
    (void)state;
    stage *s = compose(
        (at_plan_options){
            .gather = "any:1", .release = "bound:0", .newer = "finish", .stale = "use"},
        2, 5);
    s->actor[2].sample_ns = AT_MS(3);
    stage_kill(s, AT_MS(50), 2, AT_MS(30));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  50] world > worker 2 is gone, drew 24, will be replaced\n"
         "[  50] hub > drop 24 samples of worker 2: lost\n"
         "[  50] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  80] world > worker 2 joins, incarnation 2\n"
         "[  80] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  82] hub > add worker 1 (32 of version 1)\n"
         "[  82] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[ 176] hub > add worker 2 (32 of version 1)\n"
         "[ 176] hub > apply step 3: worker 2 (32 of version 1), 32 samples, already added\n"
         "[ 176] hub > order worker 1: round 2 on version 3, 32 samples\n"
         "[ 176] hub > order worker 2: round 2 on version 3, 32 samples\n"
         "[ 208] hub > add worker 1 (32 of version 3)\n"
         "[ 208] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 272] hub > add worker 2 (32 of version 3)\n"
         "[ 272] hub > apply step 5: worker 2 (32 of version 3), 32 samples, already added\n"
         "[ 272] hub > leave, worker 1\n"
         "[ 272] hub > leave, worker 2\n"
         "[ 272] world > worker 1 is gone, drew 96\n"
         "[ 272] world > worker 2 is gone, drew 88\n"
         "[ 272] hub > finish: steps\n");
}

static void self_starting_workers_receive_a_new_time_limit(void **state)
{
    (void)state;
    at_plan_options o = fmb(2, 3);
    o.strategy = "amb";
    o.gather = "any:2";
    o.release = "free";
    o.stale = "use";
    o.micro_batch = 1;
    stage *s = set(o);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > apply step 1: worker 1 (32), worker 1 (32), 64 samples, already added\n"
         "[  64] hub > order worker 1: round 3 on version 1, 32 ms or 128 samples, repeating\n"
         "[  64] hub > order worker 2: round 1 on version 1, 32 ms or 128 samples, repeating\n"
         "[  96] hub > add worker 2 (32 of version 0)\n"
         "[  96] hub > add worker 1 (32 of version 1)\n"
         "[  96] hub > apply step 2: worker 2 (32 of version 0), worker 1 (32), 64 samples, "
         "already added\n"
         "[  96] hub > order worker 1: round 4 on version 2, 38 ms or 128 samples, repeating\n"
         "[  96] hub > order worker 2: round 2 on version 2, 38 ms or 128 samples, repeating\n"
         "[ 128] hub > add worker 1 (32 of version 2)\n"
         "[ 129] hub > add worker 2 (11 of version 1)\n"
         "[ 129] hub > apply step 3: worker 1 (32), worker 2 (11 of version 1), 43 samples, "
         "already added\n"
         "[ 129] hub > leave, worker 1\n"
         "[ 129] hub > leave, worker 2\n"
         "[ 130] hub > drop 2 samples of worker 1: stopped\n"
         "[ 130] world > worker 1 is gone, drew 130\n"
         "[ 132] hub > drop 1 samples of worker 2: stopped\n"
         "[ 132] world > worker 2 is gone, drew 44\n"
         "[ 132] hub > finish: steps\n");
}

static void abandon_without_a_barrier_restarts_all_on_the_new_version(void **state)
{
    (void)state;
    stage *s =
        compose((at_plan_options){.gather = "any:2", .release = "free", .newer = "abandon"}, 3, 2);
    s->actor[3].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples, already added\n"
         "[  40] hub > drop 8 samples of worker 1: abandoned\n"
         "[  48] hub > drop 16 samples of worker 3: abandoned\n"
         "[  64] hub > add worker 2 (32 of version 1)\n"
         "[  72] hub > add worker 1 (32 of version 1)\n"
         "[  72] hub > apply step 2: worker 2 (32), worker 1 (32), 64 samples, already added\n"
         "[  72] hub > leave, worker 1\n"
         "[  72] hub > leave, worker 2\n"
         "[  72] hub > leave, worker 3\n"
         "[  80] hub > drop 16 samples of worker 2: stopped\n"
         "[  80] hub > drop 8 samples of worker 1: stopped\n"
         "[  80] world > worker 2 is gone, drew 80\n"
         "[  80] world > worker 1 is gone, drew 80\n"
         "[  96] hub > drop 16 samples of worker 3: stopped\n"
         "[  96] world > worker 3 is gone, drew 32\n"
         "[  96] hub > finish: steps\n");
}

/* Behind no barrier, old parameters may be on their way for long: only a lease without a step makes
 * it certain that a worker does not use what it is sent. */
static void a_self_starting_worker_that_never_uses_what_it_is_sent_is_evicted(void **state)
{
    (void)state;
    stage *s = set((at_plan_options){.strategy = "async-fmb",
                                     .stale = "drop",
                                     .workers = 1,
                                     .batch = 32,
                                     .lease = AT_MS(50),
                                     .limits = {.steps = 2}});
    s->lags_until = AT_MS(325);
    s->actor[1].back_after = AT_MS(10);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > drop 32 samples of worker 1: stale\n"
         "[  96] hub > drop 32 samples of worker 1: stale\n"
         "[ 128] hub > drop 32 samples of worker 1: stale\n"
         "[ 160] hub > drop 32 samples of worker 1: stale\n"
         "[ 192] hub > drop 32 samples of worker 1: stale\n"
         "[ 224] hub > drop 32 samples of worker 1: stale\n"
         "[ 256] hub > drop 32 samples of worker 1: stale\n"
         "[ 288] hub > drop 32 samples of worker 1: stale\n"
         "[ 320] hub > drop 32 samples of worker 1: stale\n"
         "[ 320] hub > evict worker 1\n"
         "[ 320] world > worker 1 is gone, drew 320, will be replaced\n"
         "[ 330] world > worker 1 joins, incarnation 2\n"
         "[ 330] hub > order worker 1: round 11 on version 1, 32 samples, repeating\n"
         "[ 362] hub > add worker 1 (32 of version 1)\n"
         "[ 362] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[ 362] hub > leave, worker 1\n"
         "[ 394] hub > drop 32 samples of worker 1: stopped\n"
         "[ 394] world > worker 1 is gone, drew 384\n"
         "[ 394] hub > finish: steps\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_self_starting_worker_that_never_uses_what_it_is_sent_is_evicted),
        cmocka_unit_test(any_one_with_free_use_is_asynchronous_sgd),
        cmocka_unit_test(stale_scale_weights_by_age_but_divides_by_all_samples),
        cmocka_unit_test(stale_drop_without_a_barrier_favors_the_fast_worker),
        cmocka_unit_test(refresh_continues_a_round_under_its_first_version),
        cmocka_unit_test(bound_zero_advances_round_by_round),
        cmocka_unit_test(bound_one_lets_the_fast_worker_be_one_round_ahead),
        cmocka_unit_test(
            a_lost_worker_holds_up_no_other_and_its_replacement_starts_at_the_slowest_round),
        cmocka_unit_test(self_starting_workers_receive_a_new_time_limit),
        cmocka_unit_test(abandon_without_a_barrier_restarts_all_on_the_new_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

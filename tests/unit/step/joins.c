/* Scenarios of workers that join later, and of runs that hold because too few are present. Workers
 * take a millisecond per sample; capacity beyond --workers is used by those that join later. */
#include "scenario.h"

#include "step/snapshot.h"

static stage *elastic(uint32_t workers, uint32_t workers_max, uint32_t workers_min, uint64_t steps)
{
    at_plan_options o = fmb(workers, steps);
    o.workers_max = workers_max;
    o.workers_min = workers_min;
    o.join_timeout = AT_MS(100);
    stage *s = set(o);
    s->plan.open = true;
    return s;
}

static void a_new_worker_takes_part_from_the_next_step_on(void **state)
{
    (void)state;
    stage *s = elastic(1, 2, 0, 2);
    stage_cue(s, AT_MS(10), CUE_BACK, 2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 0 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] world > worker 2 is gone, drew 32\n"
         "[  64] hub > finish: steps\n");
}

static void a_new_worker_may_take_the_place_of_a_lost_one(void **state)
{
    (void)state;
    stage *s = elastic(2, 2, 0, 3);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    stage_cue(s, AT_MS(40), CUE_BACK, 2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 2 is gone, drew 32\n"
         "[  10] hub > drop 32 samples of worker 2: lost\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  40] world > worker 2 joins, incarnation 2\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 2: round 1 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] world > worker 2 is gone, drew 64\n"
         "[  96] hub > finish: steps\n");
}

static void with_too_few_workers_the_run_holds_until_another_joins(void **state)
{
    (void)state;
    stage *s = elastic(2, 3, 2, 2);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    stage_cue(s, AT_MS(90), CUE_BACK, 3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 2 is gone, drew 32\n"
         "[  10] hub > drop 32 samples of worker 2: lost\n"
         "[  90] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[ 122] hub > apply step 1: worker 1 (32), worker 3 (32), 64 samples\n"
         "[ 122] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[ 122] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[ 154] hub > apply step 2: worker 1 (32), worker 3 (32), 64 samples\n"
         "[ 154] hub > leave, worker 1\n"
         "[ 154] hub > leave, worker 3\n"
         "[ 154] world > worker 1 is gone, drew 64\n"
         "[ 154] world > worker 3 is gone, drew 64\n"
         "[ 154] hub > finish: steps\n");
}

static void the_successor_of_a_lost_worker_does_its_round_again(void **state)
{
    (void)state;
    stage *s = elastic(2, 2, 2, 2);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    stage_cue(s, AT_MS(40), CUE_BACK, 2);
    stage_kill(s, AT_MS(80), 1, AT_MS(10));
    transcript_play(s, &transcript_,
                    "[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
                    "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
                    "[  10] world > worker 2 is gone, drew 32\n"
                    "[  10] hub > drop 32 samples of worker 2: lost\n"
                    "[  40] world > worker 2 joins, incarnation 2\n"
                    "[  40] hub > order worker 2: round 0 on version 0, 32 samples\n"
                    "[  72] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
                    "[  72] hub > order worker 1: round 1 on version 1, 32 samples\n"
                    "[  72] hub > order worker 2: round 1 on version 1, 32 samples\n"
                    "[  80] world > worker 1 is gone, drew 64, will be replaced\n"
                    "[  80] hub > drop 32 samples of worker 1: lost\n"
                    "[  90] world > worker 1 joins, incarnation 2\n"
                    "[  90] hub > order worker 1: round 1 on version 1, 32 samples\n"
                    "[ 122] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
                    "[ 122] hub > leave, worker 1\n"
                    "[ 122] hub > leave, worker 2\n"
                    "[ 122] world > worker 1 is gone, drew 96\n"
                    "[ 122] world > worker 2 is gone, drew 96\n"
                    "[ 122] hub > finish: steps\n");
    assert_int_equal(s->hub->member[0].redrawn, 32); /* so both drew the samples 0 .. 63 */
    assert_int_equal(s->hub->member[1].redrawn, 32);
    stage_close(s);
}

static void a_round_that_is_done_again_gets_the_same_common_samples(void **state)
{
    (void)state;
    at_plan_options o = fmb(2, 2);
    o.workers_min = 2;
    o.deal_global = true;
    stage *s = set(o);
    stage_kill(s, AT_MS(10), 1, AT_MS(30));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples from 0\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples from 32\n"
         "[  10] world > worker 1 is gone, drew 32, will be replaced\n"
         "[  10] hub > drop 32 samples of worker 1: lost\n"
         "[  40] world > worker 1 joins, incarnation 2\n"
         "[  40] hub > order worker 1: round 0 on version 0, 32 samples from 0\n"
         "[  72] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  72] hub > order worker 1: round 1 on version 1, 32 samples from 64\n"
         "[  72] hub > order worker 2: round 1 on version 1, 32 samples from 96\n"
         "[ 104] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 104] hub > leave, worker 1\n"
         "[ 104] hub > leave, worker 2\n"
         "[ 104] world > worker 1 is gone, drew 96\n"
         "[ 104] world > worker 2 is gone, drew 64\n"
         "[ 104] hub > finish: steps\n");
}

static at_ns first_is_slow(const stage *s, at_node worker, uint64_t round)
{
    (void)s;
    (void)round;
    return worker == 1 ? AT_MS(20) : 0;
}

static void a_step_that_was_held_closes_at_once_if_nothing_is_missing(void **state)
{
    (void)state;
    stage *s = elastic(2, 2, 2, 1);
    s->sleep = first_is_slow;
    stage_kill(s, AT_MS(40), 2, AT_MS(50)); /* after its report */
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  40] world > worker 2 is gone, drew 32, will be replaced\n"
         "[  90] world > worker 2 joins, incarnation 2\n"
         "[  90] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  90] hub > leave, worker 1\n"
         "[  90] hub > leave, worker 2\n"
         "[  90] world > worker 1 is gone, drew 32\n"
         "[  90] world > worker 2 is gone, drew 32\n"
         "[  90] hub > finish: steps\n");
}

static void a_run_that_holds_for_too_long_stops(void **state)
{
    (void)state;
    stage *s = elastic(2, 3, 2, 9);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    stage_cue(s, AT_MS(111), CUE_BACK, 3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 2 is gone, drew 32\n"
         "[  10] hub > drop 32 samples of worker 2: lost\n"
         "[ 110] hub > drop 32 samples of worker 1: stopped\n"
         "[ 110] hub > leave, worker 1\n"
         "[ 110] world > worker 1 is gone, drew 32\n"
         "[ 110] hub > finish: too few workers\n");
}

static void self_starting_workers_hold_too(void **state)
{
    (void)state;
    at_plan_options o = fmb(2, 4);
    o.gather = "any:1";
    o.release = "free";
    o.workers_min = 2;
    o.workers_max = 3;
    o.join_timeout = AT_MS(200);
    stage *s = set(o);
    s->plan.open = true;
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    stage_cue(s, AT_MS(150), CUE_BACK, 3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > drop 32 samples of worker 2: stale\n"
         "[  40] world > worker 2 is gone, drew 64\n"
         "[  40] hub > drop 32 samples of worker 2: lost\n"
         "[  40] hub > order worker 1: round 2 on version 1, 32 samples\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[ 150] hub > order worker 1: round 2 on version 2, 32 samples, repeating\n"
         "[ 150] hub > order worker 3: round 0 on version 2, 32 samples, repeating\n"
         "[ 182] hub > add worker 1 (32 of version 2)\n"
         "[ 182] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[ 182] hub > drop 32 samples of worker 3: stale\n"
         "[ 214] hub > add worker 1 (32 of version 3)\n"
         "[ 214] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 214] hub > leave, worker 1\n"
         "[ 214] hub > leave, worker 3\n"
         "[ 214] hub > drop 32 samples of worker 3: stopped\n"
         "[ 246] hub > drop 32 samples of worker 1: stopped\n"
         "[ 246] hub > drop 32 samples of worker 3: stopped\n"
         "[ 246] world > worker 1 is gone, drew 160\n"
         "[ 246] world > worker 3 is gone, drew 96\n"
         "[ 246] hub > finish: steps\n");
}

static void a_replacement_that_fails_gives_no_further_time_to_join(void **state)
{
    (void)state;
    stage *s = elastic(2, 2, 2, 9);
    s->actor[2].stillborn = 2;
    s->actor[2].lives = 1;
    stage_kill(s, AT_MS(10), 2, AT_MS(60));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 2 is gone, drew 32, will be replaced\n"
         "[  10] hub > drop 32 samples of worker 2: lost\n"
         "[  70] world > worker 2 is gone, drew 32, will be replaced\n"
         "[ 110] hub > drop 32 samples of worker 1: stopped\n"
         "[ 110] hub > leave, worker 1\n"
         "[ 110] world > worker 1 is gone, drew 32\n"
         "[ 110] hub > finish: too few workers\n");
}

static void a_run_whose_last_worker_is_gone_waits_while_others_may_join(void **state)
{
    (void)state;
    stage *s = elastic(1, 2, 0, 1);
    stage_kill(s, AT_MS(10), 1, AT_NEVER);
    stage_cue(s, AT_MS(60), CUE_BACK, 2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 1 is gone, drew 32\n"
         "[  10] hub > drop 32 samples of worker 1: lost\n"
         "[  60] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  92] hub > apply step 1: worker 2 (32), 32 samples\n"
         "[  92] hub > leave, worker 2\n"
         "[  92] world > worker 2 is gone, drew 32\n"
         "[  92] hub > finish: steps\n");
}

static void who_is_missing_at_the_start_is_waited_for(void **state)
{
    (void)state;
    stage *s = elastic(2, 2, 1, 1);
    s->count = 0; /* nobody joins by itself */
    stage_send_hub(s, 0, (at_event){.kind = AT_EV_START});
    stage_cue(s, AT_MS(5), CUE_BACK, 1);
    play("[ 100] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[ 132] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[ 132] hub > leave, worker 1\n"
         "[ 132] world > worker 1 is gone, drew 32\n"
         "[ 132] hub > finish: steps\n");
}

/* Under release rule `bound` a round behind everyone would stop them all. */
static void a_checkpoint_lets_who_joins_later_start_at_the_slowest_round(void **state)
{
    (void)state;
    at_plan_options o = fmb(2, 9);
    o.strategy = "ssp";
    o.workers_max = 3;
    stage *s = set(o);
    s->plan.saves = true;
    stage_run(s);
    const at_snapshot *snapshot = s->hub->snapshot;
    uint64_t one = snapshot->member[0].rounds_ended, two = snapshot->member[1].rounds_ended;
    assert_true(one > 2 && two > 2);
    assert_int_equal(snapshot->member[2].rounds_ended, one < two ? one : two);
    stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_worker_takes_part_from_the_next_step_on),
        cmocka_unit_test(a_new_worker_may_take_the_place_of_a_lost_one),
        cmocka_unit_test(with_too_few_workers_the_run_holds_until_another_joins),
        cmocka_unit_test(the_successor_of_a_lost_worker_does_its_round_again),
        cmocka_unit_test(a_round_that_is_done_again_gets_the_same_common_samples),
        cmocka_unit_test(a_step_that_was_held_closes_at_once_if_nothing_is_missing),
        cmocka_unit_test(a_run_that_holds_for_too_long_stops),
        cmocka_unit_test(self_starting_workers_hold_too),
        cmocka_unit_test(a_replacement_that_fails_gives_no_further_time_to_join),
        cmocka_unit_test(a_run_whose_last_worker_is_gone_waits_while_others_may_join),
        cmocka_unit_test(who_is_missing_at_the_start_is_waited_for),
        cmocka_unit_test(a_checkpoint_lets_who_joins_later_start_at_the_slowest_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

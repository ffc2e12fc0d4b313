/* Scenarios of the named strategies: no worker slow, one slow, one dead. Workers take a millisecond
 * per sample unless a test says otherwise, and check for a newer version after every 8 samples. fmb
 * and amb are in hub.c, strategies that change sizes in strategies_size.c. */
#include "scenario.h"

static stage *enact(at_plan_options o, const char *strategy, uint32_t workers, uint64_t steps)
{
    o.strategy = strategy;
    o.workers = workers;
    o.limits.steps = steps;
    if (o.batch == 0) o.batch = 32;
    o.micro_batch = 8;
    return set(o);
}

static void backup_takes_the_first_two_and_the_third_starts_over(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "backup", 3, 2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  32] hub > drop 32 samples of worker 3: stale\n"
         "[  32] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] hub > leave, worker 3\n"
         "[  64] hub > drop 32 samples of worker 3: stopped\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] world > worker 2 is gone, drew 64\n"
         "[  64] world > worker 3 is gone, drew 64\n"
         "[  64] hub > finish: steps\n");
}

static void backup_does_not_wait_for_the_slow_worker(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "backup", 3, 3);
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
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 3: round 2 on version 2, 32 samples\n"
         "[  72] hub > drop 8 samples of worker 2: abandoned\n"
         "[  72] hub > order worker 2: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 3 (32), 64 samples\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] hub > leave, worker 3\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] world > worker 3 is gone, drew 96\n"
         "[ 120] hub > drop 16 samples of worker 2: stopped\n"
         "[ 120] world > worker 2 is gone, drew 40\n"
         "[ 120] hub > finish: steps\n");
}

static void backup_continues_without_a_spare_when_one_is_dead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "backup", 3, 3);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 2 is gone, drew 16\n"
         "[  10] hub > drop 16 samples of worker 2: lost\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 3 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 3 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 3: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 3 (32), 64 samples\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 3\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] world > worker 3 is gone, drew 96\n"
         "[  96] hub > finish: steps\n");
}

static void batch_sync_takes_any_two_batches_of_one_version(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "batch-sync", 3, 2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples, already added\n"
         "[  32] hub > drop 32 samples of worker 3: stale\n"
         "[  40] hub > drop 8 samples of worker 1: abandoned\n"
         "[  64] hub > add worker 2 (32 of version 1)\n"
         "[  64] hub > add worker 3 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 2 (32), worker 3 (32), 64 samples, already added\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] hub > leave, worker 3\n"
         "[  72] hub > drop 32 samples of worker 1: stopped\n"
         "[  72] hub > drop 8 samples of worker 2: stopped\n"
         "[  72] hub > drop 8 samples of worker 3: stopped\n"
         "[  72] world > worker 1 is gone, drew 72\n"
         "[  72] world > worker 2 is gone, drew 72\n"
         "[  72] world > worker 3 is gone, drew 72\n"
         "[  72] hub > finish: steps\n");
}

static void batch_sync_counts_a_fast_worker_twice(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "batch-sync", 3, 3);
    s->actor[2].sample_ns = AT_MS(3);
    s->actor[3].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > apply step 1: worker 1 (32), worker 1 (32), 64 samples, already added\n"
         "[  72] hub > drop 24 samples of worker 2: abandoned\n"
         "[  72] hub > drop 24 samples of worker 3: abandoned\n"
         "[  96] hub > add worker 1 (32 of version 1)\n"
         "[ 128] hub > add worker 1 (32 of version 1)\n"
         "[ 128] hub > apply step 2: worker 1 (32), worker 1 (32), 64 samples, already added\n"
         "[ 144] hub > drop 24 samples of worker 2: abandoned\n"
         "[ 144] hub > drop 24 samples of worker 3: abandoned\n"
         "[ 160] hub > add worker 1 (32 of version 2)\n"
         "[ 192] hub > add worker 1 (32 of version 2)\n"
         "[ 192] hub > apply step 3: worker 1 (32), worker 1 (32), 64 samples, already added\n"
         "[ 192] hub > leave, worker 1\n"
         "[ 192] hub > leave, worker 2\n"
         "[ 192] hub > leave, worker 3\n"
         "[ 200] hub > drop 8 samples of worker 1: stopped\n"
         "[ 200] world > worker 1 is gone, drew 200\n"
         "[ 216] hub > drop 24 samples of worker 2: stopped\n"
         "[ 216] hub > drop 24 samples of worker 3: stopped\n"
         "[ 216] world > worker 2 is gone, drew 72\n"
         "[ 216] world > worker 3 is gone, drew 72\n"
         "[ 216] hub > finish: steps\n");
}

static void batch_sync_continues_when_one_is_dead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "batch-sync", 3, 3);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples, repeating\n"
         "[  10] world > worker 2 is gone, drew 16\n"
         "[  10] hub > drop 16 samples of worker 2: lost\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > add worker 3 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 3 (32), 64 samples, already added\n"
         "[  40] hub > drop 8 samples of worker 1: abandoned\n"
         "[  64] hub > add worker 3 (32 of version 1)\n"
         "[  72] hub > add worker 1 (32 of version 1)\n"
         "[  72] hub > apply step 2: worker 3 (32), worker 1 (32), 64 samples, already added\n"
         "[  80] hub > drop 16 samples of worker 3: abandoned\n"
         "[ 104] hub > add worker 1 (32 of version 2)\n"
         "[ 112] hub > add worker 3 (32 of version 2)\n"
         "[ 112] hub > apply step 3: worker 1 (32), worker 3 (32), 64 samples, already added\n"
         "[ 112] hub > leave, worker 1\n"
         "[ 112] hub > leave, worker 3\n"
         "[ 120] hub > drop 16 samples of worker 1: stopped\n"
         "[ 120] hub > drop 8 samples of worker 3: stopped\n"
         "[ 120] world > worker 1 is gone, drew 120\n"
         "[ 120] world > worker 3 is gone, drew 120\n"
         "[ 120] hub > finish: steps\n");
}

static void async_makes_a_step_of_every_report(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "async", 2, 4);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  32] hub > apply step 2: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 3: worker 1 (32 of version 1), 32 samples, already added\n"
         "[  64] hub > add worker 2 (32 of version 2)\n"
         "[  64] hub > apply step 4: worker 2 (32 of version 2), 32 samples, already added\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  72] hub > drop 8 samples of worker 1: stopped\n"
         "[  72] hub > drop 8 samples of worker 2: stopped\n"
         "[  72] world > worker 1 is gone, drew 72\n"
         "[  72] world > worker 2 is gone, drew 72\n"
         "[  72] hub > finish: steps\n");
}

static void async_uses_a_gradient_however_stale_it_is(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "async", 2, 5);
    s->actor[2].sample_ns = AT_US(3500);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  96] hub > add worker 1 (32 of version 2)\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[ 112] hub > add worker 2 (32 of version 0)\n"
         "[ 112] hub > apply step 4: worker 2 (32 of version 0), 32 samples, already added\n"
         "[ 128] hub > add worker 1 (32 of version 3)\n"
         "[ 128] hub > apply step 5: worker 1 (32 of version 3), 32 samples, already added\n"
         "[ 128] hub > leave, worker 1\n"
         "[ 128] hub > leave, worker 2\n"
         "[ 136] hub > drop 8 samples of worker 1: stopped\n"
         "[ 136] world > worker 1 is gone, drew 136\n"
         "[ 140] hub > drop 8 samples of worker 2: stopped\n"
         "[ 140] world > worker 2 is gone, drew 40\n"
         "[ 140] hub > finish: steps\n");
}

static void async_gives_a_replacement_work_at_once(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "async", 2, 5);
    stage_kill(s, AT_MS(40), 2, AT_MS(30));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  32] hub > apply step 2: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  40] world > worker 2 is gone, drew 40, will be replaced\n"
         "[  40] hub > drop 8 samples of worker 2: lost\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 3: worker 1 (32 of version 1), 32 samples, already added\n"
         "[  70] world > worker 2 joins, incarnation 2\n"
         "[  70] hub > order worker 2: round 2 on version 3, 32 samples, repeating\n"
         "[  96] hub > add worker 1 (32 of version 3)\n"
         "[  96] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 102] hub > add worker 2 (32 of version 3)\n"
         "[ 102] hub > apply step 5: worker 2 (32 of version 3), 32 samples, already added\n"
         "[ 102] hub > leave, worker 1\n"
         "[ 102] hub > leave, worker 2\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 110] hub > drop 8 samples of worker 2: stopped\n"
         "[ 110] world > worker 2 is gone, drew 80\n"
         "[ 110] hub > finish: steps\n");
}

/* ---- ringmaster ----------------------------------------------------------------------------- */

static void ringmaster_uses_gradients_up_to_its_bound(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "ringmaster:1", 2, 4);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  32] hub > apply step 2: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 3: worker 1 (32 of version 1), 32 samples, already added\n"
         "[  64] hub > add worker 2 (32 of version 2)\n"
         "[  64] hub > apply step 4: worker 2 (32 of version 2), 32 samples, already added\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  72] hub > drop 8 samples of worker 1: stopped\n"
         "[  72] hub > drop 8 samples of worker 2: stopped\n"
         "[  72] world > worker 1 is gone, drew 72\n"
         "[  72] world > worker 2 is gone, drew 72\n"
         "[  72] hub > finish: steps\n");
}

static void ringmaster_lets_a_slow_worker_start_over(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "ringmaster:1", 2, 5);
    s->actor[2].sample_ns = AT_US(3500);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  84] hub > drop 24 samples of worker 2: abandoned\n"
         "[  96] hub > add worker 1 (32 of version 2)\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[ 128] hub > add worker 1 (32 of version 3)\n"
         "[ 128] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 140] hub > drop 16 samples of worker 2: abandoned\n"
         "[ 160] hub > add worker 1 (32 of version 4)\n"
         "[ 160] hub > apply step 5: worker 1 (32), 32 samples, already added\n"
         "[ 160] hub > leave, worker 1\n"
         "[ 160] hub > leave, worker 2\n"
         "[ 168] hub > drop 8 samples of worker 2: stopped\n"
         "[ 168] hub > drop 8 samples of worker 1: stopped\n"
         "[ 168] world > worker 2 is gone, drew 48\n"
         "[ 168] world > worker 1 is gone, drew 168\n"
         "[ 168] hub > finish: steps\n");
}

static void ringmaster_drops_what_comes_too_late(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "ringmaster:1", 2, 4);
    s->actor[2].sample_ns = AT_US(3500);
    s->newer_ns = AT_NEVER; /* nobody is told */
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  96] hub > add worker 1 (32 of version 2)\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[ 112] hub > drop 32 samples of worker 2: stale\n"
         "[ 128] hub > add worker 1 (32 of version 3)\n"
         "[ 128] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 128] hub > leave, worker 1\n"
         "[ 128] hub > leave, worker 2\n"
         "[ 136] hub > drop 8 samples of worker 1: stopped\n"
         "[ 136] world > worker 1 is gone, drew 136\n"
         "[ 140] hub > drop 8 samples of worker 2: stopped\n"
         "[ 140] world > worker 2 is gone, drew 40\n"
         "[ 140] hub > finish: steps\n");
}

static void ringmaster_gives_a_replacement_work_at_once(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "ringmaster:1", 2, 4);
    stage_kill(s, AT_MS(40), 2, AT_MS(30));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  32] hub > apply step 2: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  40] world > worker 2 is gone, drew 40, will be replaced\n"
         "[  40] hub > drop 8 samples of worker 2: lost\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 3: worker 1 (32 of version 1), 32 samples, already added\n"
         "[  70] world > worker 2 joins, incarnation 2\n"
         "[  70] hub > order worker 2: round 2 on version 3, 32 samples, repeating\n"
         "[  96] hub > add worker 1 (32 of version 3)\n"
         "[  96] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[ 102] hub > drop 32 samples of worker 2: stopped\n"
         "[ 102] world > worker 2 is gone, drew 72\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 104] hub > finish: steps\n");
}

static void async_fmb_makes_a_step_of_any_two_reports(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "async-fmb", 3, 2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples, already added\n"
         "[  32] hub > add worker 3 (32 of version 0)\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > apply step 2: worker 3 (32 of version 0), worker 1 (32 of version 0), "
         "64 samples, already added\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] hub > leave, worker 3\n"
         "[  64] hub > drop 32 samples of worker 2: stopped\n"
         "[  64] hub > drop 32 samples of worker 3: stopped\n"
         "[  72] hub > drop 8 samples of worker 1: stopped\n"
         "[  72] hub > drop 8 samples of worker 2: stopped\n"
         "[  72] hub > drop 8 samples of worker 3: stopped\n"
         "[  72] world > worker 1 is gone, drew 72\n"
         "[  72] world > worker 2 is gone, drew 72\n"
         "[  72] world > worker 3 is gone, drew 72\n"
         "[  72] hub > finish: steps\n");
}

static void async_fmb_does_not_wait_for_the_slow_worker(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "async-fmb", 3, 3);
    s->actor[2].sample_ns = AT_US(2500);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > add worker 3 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 3 (32), 64 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > add worker 3 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32 of version 0), worker 3 (32), 64 samples, "
         "already added\n"
         "[  80] hub > add worker 2 (32 of version 0)\n"
         "[  96] hub > add worker 1 (32 of version 1)\n"
         "[  96] hub > apply step 3: worker 2 (32 of version 0), worker 1 (32 of version 1), "
         "64 samples, already added\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] hub > leave, worker 3\n"
         "[  96] hub > drop 32 samples of worker 3: stopped\n"
         "[ 100] hub > drop 8 samples of worker 2: stopped\n"
         "[ 100] world > worker 2 is gone, drew 40\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] hub > drop 8 samples of worker 3: stopped\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 104] world > worker 3 is gone, drew 104\n"
         "[ 104] hub > finish: steps\n");
}

static void async_fmb_continues_when_one_is_dead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "async-fmb", 3, 3);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples, repeating\n"
         "[  10] world > worker 2 is gone, drew 16\n"
         "[  10] hub > drop 16 samples of worker 2: lost\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > add worker 3 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 3 (32), 64 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > add worker 3 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32 of version 0), worker 3 (32), 64 samples, "
         "already added\n"
         "[  96] hub > add worker 1 (32 of version 1)\n"
         "[  96] hub > add worker 3 (32 of version 2)\n"
         "[  96] hub > apply step 3: worker 1 (32 of version 1), worker 3 (32), 64 samples, "
         "already added\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 3\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] hub > drop 8 samples of worker 3: stopped\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 104] world > worker 3 is gone, drew 104\n"
         "[ 104] hub > finish: steps\n");
}

static void async_timed_closes_a_step_every_period(void **state)
{
    (void)state;
    enact((at_plan_options){.time_limit = "40ms", .batch = 64}, "async-timed", 2, 2);
    play("[   0] hub > order worker 1: round 0 on version 0, 40 ms or 64 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 40 ms or 64 samples, repeating\n"
         "[  40] hub > add worker 1 (40 of version 0)\n"
         "[  40] hub > apply step 1: worker 1 (40), 40 samples, already added\n"
         "[  40] hub > add worker 2 (40 of version 0)\n"
         "[  80] hub > add worker 1 (40 of version 1)\n"
         "[  80] hub > apply step 2: worker 2 (40 of version 0), worker 1 (40), 80 samples, "
         "already added\n"
         "[  80] hub > leave, worker 1\n"
         "[  80] hub > leave, worker 2\n"
         "[  80] hub > drop 40 samples of worker 2: stopped\n"
         "[  88] hub > drop 8 samples of worker 1: stopped\n"
         "[  88] hub > drop 8 samples of worker 2: stopped\n"
         "[  88] world > worker 1 is gone, drew 88\n"
         "[  88] world > worker 2 is gone, drew 88\n"
         "[  88] hub > finish: steps\n");
}

static void async_timed_counts_samples_of_a_slow_worker_under_their_first_version(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.time_limit = "40ms", .gather = ":period=30ms", .batch = 64},
                     "async-timed", 2, 3);
    s->actor[2].sample_ns = AT_MS(2);
    play("[   0] hub > order worker 1: round 0 on version 0, 40 ms or 64 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 40 ms or 64 samples, repeating\n"
         "[  32] hub > add worker 2 (16 of version 0)\n"
         "[  32] hub > apply step 1: worker 2 (16), 16 samples, already added\n"
         "[  40] hub > add worker 1 (40 of version 0)\n"
         "[  62] hub > apply step 2: worker 1 (40 of version 0), 40 samples, already added\n"
         "[  64] hub > add worker 2 (16 of version 1)\n"
         "[  80] hub > add worker 1 (40 of version 1)\n"
         "[  92] hub > apply step 3: worker 2 (16 of version 1), worker 1 (40 of version 1), "
         "56 samples, already added\n"
         "[  92] hub > leave, worker 1\n"
         "[  92] hub > leave, worker 2\n"
         "[  96] hub > drop 16 samples of worker 2: stopped\n"
         "[  96] hub > drop 16 samples of worker 1: stopped\n"
         "[  96] world > worker 2 is gone, drew 48\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] hub > finish: steps\n");
}

static void async_timed_continues_when_one_is_dead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.time_limit = "40ms", .batch = 64}, "async-timed", 2, 3);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 40 ms or 64 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 40 ms or 64 samples, repeating\n"
         "[  10] world > worker 2 is gone, drew 16\n"
         "[  10] hub > drop 16 samples of worker 2: lost\n"
         "[  40] hub > add worker 1 (40 of version 0)\n"
         "[  40] hub > apply step 1: worker 1 (40), 40 samples, already added\n"
         "[  80] hub > add worker 1 (40 of version 1)\n"
         "[  80] hub > apply step 2: worker 1 (40), 40 samples, already added\n"
         "[ 120] hub > add worker 1 (40 of version 2)\n"
         "[ 120] hub > apply step 3: worker 1 (40), 40 samples, already added\n"
         "[ 120] hub > leave, worker 1\n"
         "[ 128] hub > drop 8 samples of worker 1: stopped\n"
         "[ 128] world > worker 1 is gone, drew 128\n"
         "[ 128] hub > finish: steps\n");
}

static void async_timed_waits_for_all_until_its_period_is_known(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "async-timed", 2, 3);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  64] hub > add worker 1 (32 of version 0)\n"
         "[  96] hub > add worker 2 (32 of version 0)\n"
         "[  96] hub > apply step 1: worker 1 (32), worker 1 (32), worker 2 (32), 96 "
         "samples, already added\n"
         "[  96] hub > order worker 1: round 3 on version 1, 41 ms or 128 samples, repeating\n"
         "[  96] hub > order worker 2: round 2 on version 1, 41 ms or 128 samples, repeating\n"
         "[  96] hub > add worker 1 (32 of version 0)\n"
         "[ 128] hub > add worker 1 (32 of version 1)\n"
         "[ 137] hub > apply step 2: worker 1 (32 of version 0), worker 1 (32), 64 samples, "
         "already added\n"
         "[ 137] hub > order worker 1: round 5 on version 2, 37 ms or 128 samples, repeating\n"
         "[ 137] hub > order worker 2: round 2 on version 2, 37 ms or 128 samples, repeating\n"
         "[ 168] hub > add worker 1 (40 of version 1)\n"
         "[ 174] hub > apply step 3: worker 1 (40 of version 1), 40 samples, already added\n"
         "[ 174] hub > leave, worker 1\n"
         "[ 174] hub > leave, worker 2\n"
         "[ 176] hub > drop 8 samples of worker 1: stopped\n"
         "[ 176] world > worker 1 is gone, drew 176\n"
         "[ 192] hub > drop 32 samples of worker 2: stopped\n"
         "[ 192] world > worker 2 is gone, drew 64\n"
         "[ 192] hub > finish: steps\n");
}

static void ssp_without_stragglers_lets_all_run(void **state)
{
    (void)state;
    enact((at_plan_options){.release = ":staleness=1"}, "ssp", 2, 4);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > add worker 2 (32 of version 0)\n"
         "[  32] hub > apply step 2: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  32] hub > order worker 2: round 1 on version 2, 32 samples\n"
         "[  64] hub > add worker 1 (32 of version 2)\n"
         "[  64] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > order worker 1: round 2 on version 3, 32 samples\n"
         "[  64] hub > add worker 2 (32 of version 2)\n"
         "[  64] hub > apply step 4: worker 2 (32 of version 2), 32 samples, already added\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] world > worker 2 is gone, drew 64\n"
         "[  72] hub > drop 8 samples of worker 1: stopped\n"
         "[  72] world > worker 1 is gone, drew 72\n"
         "[  72] hub > finish: steps\n");
}

static void ssp_stops_a_worker_that_is_too_far_ahead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.release = ":staleness=1"}, "ssp", 2, 6);
    s->actor[2].sample_ns = AT_MS(4);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[ 128] hub > add worker 2 (32 of version 0)\n"
         "[ 128] hub > apply step 3: worker 2 (32 of version 0), 32 samples, already added\n"
         "[ 128] hub > order worker 1: round 2 on version 3, 32 samples\n"
         "[ 128] hub > order worker 2: round 1 on version 3, 32 samples\n"
         "[ 160] hub > add worker 1 (32 of version 3)\n"
         "[ 160] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 256] hub > add worker 2 (32 of version 3)\n"
         "[ 256] hub > apply step 5: worker 2 (32 of version 3), 32 samples, already added\n"
         "[ 256] hub > order worker 1: round 3 on version 5, 32 samples\n"
         "[ 256] hub > order worker 2: round 2 on version 5, 32 samples\n"
         "[ 288] hub > add worker 1 (32 of version 5)\n"
         "[ 288] hub > apply step 6: worker 1 (32), 32 samples, already added\n"
         "[ 288] hub > leave, worker 1\n"
         "[ 288] hub > leave, worker 2\n"
         "[ 288] world > worker 1 is gone, drew 128\n"
         "[ 320] hub > drop 16 samples of worker 2: stopped\n"
         "[ 320] world > worker 2 is gone, drew 80\n"
         "[ 320] hub > finish: steps\n");
}

static void ssp_does_not_wait_for_a_dead_worker(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.release = ":staleness=1"}, "ssp", 2, 5);
    s->actor[2].sample_ns = AT_MS(4);
    stage_kill(s, AT_MS(100), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[ 100] world > worker 2 is gone, drew 32\n"
         "[ 100] hub > drop 32 samples of worker 2: lost\n"
         "[ 100] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[ 132] hub > add worker 1 (32 of version 2)\n"
         "[ 132] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[ 132] hub > order worker 1: round 3 on version 3, 32 samples\n"
         "[ 164] hub > add worker 1 (32 of version 3)\n"
         "[ 164] hub > apply step 4: worker 1 (32), 32 samples, already added\n"
         "[ 164] hub > order worker 1: round 4 on version 4, 32 samples\n"
         "[ 196] hub > add worker 1 (32 of version 4)\n"
         "[ 196] hub > apply step 5: worker 1 (32), 32 samples, already added\n"
         "[ 196] hub > leave, worker 1\n"
         "[ 196] world > worker 1 is gone, drew 160\n"
         "[ 196] hub > finish: steps\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backup_takes_the_first_two_and_the_third_starts_over),
        cmocka_unit_test(backup_does_not_wait_for_the_slow_worker),
        cmocka_unit_test(backup_continues_without_a_spare_when_one_is_dead),
        cmocka_unit_test(batch_sync_takes_any_two_batches_of_one_version),
        cmocka_unit_test(batch_sync_counts_a_fast_worker_twice),
        cmocka_unit_test(batch_sync_continues_when_one_is_dead),
        cmocka_unit_test(async_makes_a_step_of_every_report),
        cmocka_unit_test(async_uses_a_gradient_however_stale_it_is),
        cmocka_unit_test(async_gives_a_replacement_work_at_once),
        cmocka_unit_test(ringmaster_uses_gradients_up_to_its_bound),
        cmocka_unit_test(ringmaster_lets_a_slow_worker_start_over),
        cmocka_unit_test(ringmaster_drops_what_comes_too_late),
        cmocka_unit_test(ringmaster_gives_a_replacement_work_at_once),
        cmocka_unit_test(async_fmb_makes_a_step_of_any_two_reports),
        cmocka_unit_test(async_fmb_does_not_wait_for_the_slow_worker),
        cmocka_unit_test(async_fmb_continues_when_one_is_dead),
        cmocka_unit_test(async_timed_closes_a_step_every_period),
        cmocka_unit_test(async_timed_counts_samples_of_a_slow_worker_under_their_first_version),
        cmocka_unit_test(async_timed_continues_when_one_is_dead),
        cmocka_unit_test(async_timed_waits_for_all_until_its_period_is_known),
        cmocka_unit_test(ssp_without_stragglers_lets_all_run),
        cmocka_unit_test(ssp_stops_a_worker_that_is_too_far_ahead),
        cmocka_unit_test(ssp_does_not_wait_for_a_dead_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Scenarios of fmb and amb: steps, and workers that join and leave. Workers take a
 * millisecond per sample unless a test says otherwise. */
#include "scenario.h"

static void fmb_without_stragglers_does_not_wait(void **state)
{
    (void)state;
    set(fmb(2, 2));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] world > worker 2 is gone, drew 64\n"
         "[  64] hub > finish: steps\n");
}

static void fmb_waits_for_the_slow_worker(void **state)
{
    (void)state;
    stage *s = set(fmb(3, 2));
    s->actor[2].sample_ns = AT_MS(10);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[ 320] hub > apply step 1: worker 1 (32), worker 2 (32), worker 3 (32), 96 samples\n"
         "[ 320] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[ 320] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[ 320] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[ 640] hub > apply step 2: worker 1 (32), worker 2 (32), worker 3 (32), 96 samples\n"
         "[ 640] hub > leave, worker 1\n"
         "[ 640] hub > leave, worker 2\n"
         "[ 640] hub > leave, worker 3\n"
         "[ 640] world > worker 1 is gone, drew 64\n"
         "[ 640] world > worker 2 is gone, drew 64\n"
         "[ 640] world > worker 3 is gone, drew 64\n"
         "[ 640] hub > finish: steps\n");
}

static void a_dead_workers_samples_are_dropped_and_its_replacement_joins_the_next_step(void **state)
{
    (void)state;
    stage *s = set(fmb(2, 3));
    s->actor[2].sample_ns = AT_MS(2);
    stage_kill(s, AT_MS(40), 2, AT_MS(30));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  40] world > worker 2 is gone, drew 32, will be replaced\n"
         "[  40] hub > drop 32 samples of worker 2: lost\n"
         "[  40] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  40] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  70] world > worker 2 joins, incarnation 2\n"
         "[  72] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  72] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  72] hub > order worker 2: round 1 on version 2, 32 samples\n"
         "[ 136] hub > apply step 3: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 136] hub > leave, worker 1\n"
         "[ 136] hub > leave, worker 2\n"
         "[ 136] world > worker 1 is gone, drew 96\n"
         "[ 136] world > worker 2 is gone, drew 64\n"
         "[ 136] hub > finish: steps\n");
}

static void a_gradient_that_was_handed_over_survives_its_worker(void **state)
{
    (void)state;
    stage *s = set(fmb(2, 1));
    s->actor[2].sample_ns = AT_MS(2);
    stage_kill(s, AT_MS(40), 1, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  40] world > worker 1 is gone, drew 32\n"
         "[  64] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] world > worker 2 is gone, drew 32\n"
         "[  64] hub > finish: steps\n");
}

static void the_replacement_of_the_only_worker_starts_at_once(void **state)
{
    (void)state;
    stage *s = set(fmb(1, 2));
    stage_kill(s, AT_MS(40), 1, AT_MS(500));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  40] world > worker 1 is gone, drew 64, will be replaced\n"
         "[  40] hub > drop 32 samples of worker 1: lost\n"
         "[ 540] world > worker 1 joins, incarnation 2\n"
         "[ 540] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[ 572] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[ 572] hub > leave, worker 1\n"
         "[ 572] world > worker 1 is gone, drew 96\n"
         "[ 572] hub > finish: steps\n");
}

static void the_run_ends_when_all_workers_are_lost_for_good(void **state)
{
    (void)state;
    stage *s = set(fmb(2, 5));
    stage_kill(s, AT_MS(10), 1, AT_NEVER);
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 1 is gone, drew 32\n"
         "[  10] hub > drop 32 samples of worker 1: lost\n"
         "[  32] hub > apply step 1: worker 2 (32), 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  40] world > worker 2 is gone, drew 64\n"
         "[  40] hub > drop 32 samples of worker 2: lost\n"
         "[  40] hub > finish: no workers\n");
}

static void a_replacement_that_dies_before_it_joins_is_not_expected(void **state)
{
    (void)state;
    stage *s = set(fmb(1, 5));
    stage_kill(s, AT_MS(10), 1, AT_MS(20));
    s->actor[1].lives = 1;
    s->actor[1].stillborn = 2;
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 1 is gone, drew 32, will be replaced\n"
         "[  10] hub > drop 32 samples of worker 1: lost\n"
         "[  30] world > worker 1 is gone, drew 32, will be replaced\n"
         "[  50] world > worker 1 is gone, drew 32\n"
         "[  50] hub > finish: no workers\n");
}

static void a_waiting_worker_makes_the_open_step_when_no_other_is_left(void **state)
{
    (void)state;
    stage *s = set(fmb(2, 2));
    s->actor[1].sample_ns = AT_MS(20);
    stage_kill(s, AT_MS(10), 2, AT_MS(5));
    stage_kill(s, AT_MS(50), 1, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 2 is gone, drew 32, will be replaced\n"
         "[  10] hub > drop 32 samples of worker 2: lost\n"
         "[  15] world > worker 2 joins, incarnation 2\n"
         "[  50] world > worker 1 is gone, drew 32\n"
         "[  50] hub > drop 32 samples of worker 1: lost\n"
         "[  50] hub > order worker 2: round 1 on version 0, 32 samples\n"
         "[  82] hub > apply step 1: worker 2 (32), 32 samples\n"
         "[  82] hub > order worker 2: round 2 on version 1, 32 samples\n"
         "[ 114] hub > apply step 2: worker 2 (32), 32 samples\n"
         "[ 114] hub > leave, worker 2\n"
         "[ 114] world > worker 2 is gone, drew 96\n"
         "[ 114] hub > finish: steps\n");
}

static void a_frozen_worker_causes_a_notice_and_is_evicted(void **state)
{
    (void)state;
    stage *s = set(fmb(2, 3));
    s->actor[2].back_after = AT_MS(100);
    stage_freeze(s, AT_MS(40), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[2128] hub > notice: step 2 waits for worker 2 for 2096 ms\n"
         "[3352] hub > evict worker 2\n"
         "[3352] world > worker 2 is gone, drew 64, will be replaced\n"
         "[3352] hub > drop 32 samples of worker 2: lost\n"
         "[3352] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[3352] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[3384] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[3384] hub > leave, worker 1\n"
         "[3384] world > worker 1 is gone, drew 96\n"
         "[3384] hub > finish: steps\n");
}

static void the_hub_waits_for_a_replacement_without_spinning(void **state)
{
    (void)state;
    stage *s = set(fmb(1, 2));
    s->actor[1].back_after = AT_SEC(30);
    transcript_.timers = true;
    stage_freeze(s, AT_MS(40), 1, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > set notice timer to 2000\n"
         "[   0] hub > set lease timer to 60000\n"
         "[  32] hub > set lease timer to 10352\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > set lease timer to 3352\n"
         "[2000] hub > set notice timer to 2128\n"
         "[2128] hub > notice: step 2 waits for worker 1 for 2096 ms\n"
         "[2128] hub > set notice timer to 4224\n"
         "[3352] hub > evict worker 1\n"
         "[3352] hub > cancel lease timer\n"
         "[3352] world > worker 1 is gone, drew 64, will be replaced\n"
         "[3352] hub > drop 32 samples of worker 1: lost\n"
         "[4224] hub > set notice timer to 8416\n"
         "[8416] hub > set notice timer to 16800\n"
         "[16800] hub > set notice timer to 33568\n"
         "[33352] world > worker 1 joins, incarnation 2\n"
         "[33352] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[33352] hub > set notice timer to 33568\n"
         "[33352] hub > set lease timer to 39992\n"
         "[33384] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[33384] hub > leave, worker 1\n"
         "[33384] hub > set lease timer to 36704\n"
         "[33384] world > worker 1 is gone, drew 96\n"
         "[33384] hub > finish: steps\n");
}

static void duplicate_reports_count_once(void **state)
{
    (void)state;
    stage *s = set(fmb(2, 2));
    s->echo = true;
    s->latency = AT_MS(5);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  42] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  42] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  42] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  84] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  84] hub > leave, worker 1\n"
         "[  84] hub > leave, worker 2\n"
         "[  89] world > worker 1 is gone, drew 64\n"
         "[  89] world > worker 2 is gone, drew 64\n"
         "[  89] hub > finish: steps\n");
}

static void a_report_of_a_dead_incarnation_is_ignored(void **state)
{
    (void)state;
    stage *s = set(fmb(1, 2));
    s->latency = AT_MS(5);
    stage_kill(s, AT_MS(38), 1, AT_MS(1)); /* one millisecond after it sent */
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  38] world > worker 1 is gone, drew 32, will be replaced\n"
         "[  38] hub > drop 32 samples of worker 1: lost\n"
         "[  39] world > worker 1 joins, incarnation 2\n"
         "[  39] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  81] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  81] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[ 123] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[ 123] hub > leave, worker 1\n"
         "[ 128] world > worker 1 is gone, drew 96\n"
         "[ 128] hub > finish: steps\n");
}

/* The hub drops what is too old, whoever is to blame for it, and nobody is left in the step. */
static void workers_that_all_compute_on_old_parameters_start_over(void **state)
{
    (void)state;
    stage *s = set(fmb(2, 2));
    s->lags_until = AT_MS(65);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > drop 32 samples of worker 1: stale\n"
         "[  64] hub > drop 32 samples of worker 2: stale\n"
         "[  64] hub > order worker 1: round 2 on version 1, 32 samples\n"
         "[  64] hub > order worker 2: round 2 on version 1, 32 samples\n"
         "[  96] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] world > worker 2 is gone, drew 96\n"
         "[  96] hub > finish: steps\n");
}

/* The hub cannot know why; it cannot wait for such a worker for ever either. */
static void a_worker_that_never_uses_what_it_is_sent_is_evicted(void **state)
{
    (void)state;
    stage *s = set(fmb(1, 2));
    s->lags_until = AT_MS(290);
    s->actor[1].back_after = AT_MS(10);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > drop 32 samples of worker 1: stale\n"
         "[  64] hub > order worker 1: round 2 on version 1, 32 samples\n"
         "[  96] hub > drop 32 samples of worker 1: stale\n"
         "[  96] hub > order worker 1: round 3 on version 1, 32 samples\n"
         "[ 128] hub > drop 32 samples of worker 1: stale\n"
         "[ 128] hub > order worker 1: round 4 on version 1, 32 samples\n"
         "[ 160] hub > drop 32 samples of worker 1: stale\n"
         "[ 160] hub > order worker 1: round 5 on version 1, 32 samples\n"
         "[ 192] hub > drop 32 samples of worker 1: stale\n"
         "[ 192] hub > order worker 1: round 6 on version 1, 32 samples\n"
         "[ 224] hub > drop 32 samples of worker 1: stale\n"
         "[ 224] hub > order worker 1: round 7 on version 1, 32 samples\n"
         "[ 256] hub > drop 32 samples of worker 1: stale\n"
         "[ 256] hub > order worker 1: round 8 on version 1, 32 samples\n"
         "[ 288] hub > drop 32 samples of worker 1: stale\n"
         "[ 288] hub > evict worker 1\n"
         "[ 288] world > worker 1 is gone, drew 288, will be replaced\n"
         "[ 298] world > worker 1 joins, incarnation 2\n"
         "[ 298] hub > order worker 1: round 8 on version 1, 32 samples\n"
         "[ 330] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[ 330] hub > leave, worker 1\n"
         "[ 330] world > worker 1 is gone, drew 320\n"
         "[ 330] hub > finish: steps\n");
}

/* The first lease is long. It must not last when somebody has shown how long a round takes. */
static void a_worker_that_freezes_in_its_first_round_does_not_have_the_first_lease(void **state)
{
    (void)state;
    stage *s = set(fmb(2, 1));
    transcript_.timers = true;
    stage_freeze(s, AT_MS(10), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > set notice timer to 2000\n"
         "[   0] hub > set lease timer to 60000\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > set lease timer to 10352\n"
         "[2000] hub > notice: step 1 waits for worker 2 for 2000 ms\n"
         "[2000] hub > set notice timer to 4000\n"
         "[4000] hub > notice: step 1 waits for worker 2 for 4000 ms\n"
         "[4000] hub > set notice timer to 8000\n"
         "[8000] hub > notice: step 1 waits for worker 2 for 8000 ms\n"
         "[8000] hub > set notice timer to 16000\n"
         "[10352] hub > evict worker 2\n"
         "[10352] hub > cancel lease timer\n"
         "[10352] world > worker 2 is gone, drew 32\n"
         "[10352] hub > drop 32 samples of worker 2: lost\n"
         "[10352] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[10352] hub > leave, worker 1\n"
         "[10352] hub > set notice timer to 12448\n"
         "[10352] hub > set lease timer to 13672\n"
         "[10352] world > worker 1 is gone, drew 32\n"
         "[10352] hub > finish: steps\n");
}

static void amb_gives_all_workers_the_same_time(void **state)
{
    (void)state;
    at_plan_options o = fmb(3, 2);
    o.strategy = "amb";
    o.time_limit = "20ms";
    o.micro_batch = 4;
    stage *s = set(o);
    s->actor[1].sample_ns = AT_US(500);
    s->actor[3].sample_ns = AT_MS(8);
    play("[   0] hub > order worker 1: round 0 on version 0, 20 ms or 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 20 ms or 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 20 ms or 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (20), worker 3 (4), 56 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 20 ms or 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 20 ms or 32 samples\n"
         "[  32] hub > order worker 3: round 1 on version 1, 20 ms or 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (20), worker 3 (4), 56 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] hub > leave, worker 3\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] world > worker 2 is gone, drew 40\n"
         "[  64] world > worker 3 is gone, drew 8\n"
         "[  64] hub > finish: steps\n");
}

static void amb_without_a_time_limit_starts_by_samples_and_finds_it(void **state)
{
    (void)state;
    at_plan_options o = fmb(2, 3);
    o.strategy = "amb";
    o.micro_batch = 1;
    stage *s = set(o);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  96] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 1 on version 1, 48 ms or 128 samples\n"
         "[  96] hub > order worker 2: round 1 on version 1, 48 ms or 128 samples\n"
         "[ 144] hub > apply step 2: worker 1 (48), worker 2 (16), 64 samples\n"
         "[ 144] hub > order worker 1: round 2 on version 2, 48 ms or 128 samples\n"
         "[ 144] hub > order worker 2: round 2 on version 2, 48 ms or 128 samples\n"
         "[ 192] hub > apply step 3: worker 1 (48), worker 2 (16), 64 samples\n"
         "[ 192] hub > leave, worker 1\n"
         "[ 192] hub > leave, worker 2\n"
         "[ 192] world > worker 1 is gone, drew 128\n"
         "[ 192] world > worker 2 is gone, drew 64\n"
         "[ 192] hub > finish: steps\n");
}

static void two_workers_share_the_common_samples_of_a_step(void **state)
{
    (void)state;
    at_plan_options o = fmb(2, 2);
    o.deal_global = true;
    set(o);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples from 0\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples from 32\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples from 64\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples from 96\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] world > worker 2 is gone, drew 64\n"
         "[  64] hub > finish: steps\n");
}

static void four_workers_share_the_same_samples_as_two(void **state)
{
    (void)state;
    at_plan_options o = fmb(4, 2);
    o.batch = 16;
    o.deal_global = true;
    set(o);
    play("[   0] hub > order worker 1: round 0 on version 0, 16 samples from 0\n"
         "[   0] hub > order worker 2: round 0 on version 0, 16 samples from 16\n"
         "[   0] hub > order worker 3: round 0 on version 0, 16 samples from 32\n"
         "[   0] hub > order worker 4: round 0 on version 0, 16 samples from 48\n"
         "[  16] hub > apply step 1: worker 1 (16), worker 2 (16), worker 3 (16), worker 4 (16), "
         "64 samples\n"
         "[  16] hub > order worker 1: round 1 on version 1, 16 samples from 64\n"
         "[  16] hub > order worker 2: round 1 on version 1, 16 samples from 80\n"
         "[  16] hub > order worker 3: round 1 on version 1, 16 samples from 96\n"
         "[  16] hub > order worker 4: round 1 on version 1, 16 samples from 112\n"
         "[  32] hub > apply step 2: worker 1 (16), worker 2 (16), worker 3 (16), worker 4 (16), "
         "64 samples\n"
         "[  32] hub > leave, worker 1\n"
         "[  32] hub > leave, worker 2\n"
         "[  32] hub > leave, worker 3\n"
         "[  32] hub > leave, worker 4\n"
         "[  32] world > worker 1 is gone, drew 32\n"
         "[  32] world > worker 2 is gone, drew 32\n"
         "[  32] world > worker 3 is gone, drew 32\n"
         "[  32] world > worker 4 is gone, drew 32\n"
         "[  32] hub > finish: steps\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fmb_without_stragglers_does_not_wait),
        cmocka_unit_test(fmb_waits_for_the_slow_worker),
        cmocka_unit_test(
            a_dead_workers_samples_are_dropped_and_its_replacement_joins_the_next_step),
        cmocka_unit_test(a_gradient_that_was_handed_over_survives_its_worker),
        cmocka_unit_test(the_replacement_of_the_only_worker_starts_at_once),
        cmocka_unit_test(the_run_ends_when_all_workers_are_lost_for_good),
        cmocka_unit_test(a_replacement_that_dies_before_it_joins_is_not_expected),
        cmocka_unit_test(a_waiting_worker_makes_the_open_step_when_no_other_is_left),
        cmocka_unit_test(a_frozen_worker_causes_a_notice_and_is_evicted),
        cmocka_unit_test(the_hub_waits_for_a_replacement_without_spinning),
        cmocka_unit_test(duplicate_reports_count_once),
        cmocka_unit_test(a_report_of_a_dead_incarnation_is_ignored),
        cmocka_unit_test(workers_that_all_compute_on_old_parameters_start_over),
        cmocka_unit_test(a_worker_that_never_uses_what_it_is_sent_is_evicted),
        cmocka_unit_test(a_worker_that_freezes_in_its_first_round_does_not_have_the_first_lease),
        cmocka_unit_test(amb_gives_all_workers_the_same_time),
        cmocka_unit_test(amb_without_a_time_limit_starts_by_samples_and_finds_it),
        cmocka_unit_test(two_workers_share_the_common_samples_of_a_step),
        cmocka_unit_test(four_workers_share_the_same_samples_as_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Scenarios of the strategies that change sizes: no worker slow, one slow, one dead. Workers take a
 * millisecond per sample unless a test says otherwise, and an epoch has 128 samples. */
#include "scenario.h"

enum { EPOCH = 128 };

static stage *enact(at_plan_options more, const char *strategy, uint32_t workers, uint64_t steps)
{
    at_plan_options o = fmb(workers, steps);
    o.strategy = strategy;
    o.size = more.size;
    o.lr_scale = more.lr_scale;
    stage *s = set(o);
    s->plan.samples_epoch = EPOCH;
    return s;
}

/* All workers sleep from the third round on. */
static at_ns sleep_from_round_3(const stage *s, at_node worker, uint64_t round)
{
    (void)s;
    (void)worker;
    return round >= 2 ? AT_MS(48) : 0;
}

/* Every round has a fixed cost. */
static at_ns sleep_always(const stage *s, at_node worker, uint64_t round)
{
    (void)s;
    (void)worker;
    (void)round;
    return AT_MS(10);
}

static void dbs_without_stragglers_is_fmb(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "dbs", 2, 3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 2: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] world > worker 2 is gone, drew 96\n"
         "[  96] hub > finish: steps\n");
}

static void dbs_gives_a_slow_worker_less_after_the_first_epoch(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "dbs", 2, 3);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  96] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  96] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[ 192] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 192] hub > order worker 1: round 2 on version 2, 48 samples\n"
         "[ 192] hub > order worker 2: round 2 on version 2, 16 samples\n"
         "[ 240] hub > apply step 3: worker 1 (48), worker 2 (16), 64 samples\n"
         "[ 240] hub > leave, worker 1\n"
         "[ 240] hub > leave, worker 2\n"
         "[ 240] world > worker 1 is gone, drew 112\n"
         "[ 240] world > worker 2 is gone, drew 80\n"
         "[ 240] hub > finish: steps\n");
}

static void dbs_redistributes_the_share_of_a_dead_worker(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "dbs", 3, 3);
    s->actor[3].sample_ns = AT_MS(2);
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  40] world > worker 2 is gone, drew 32\n"
         "[  64] hub > apply step 1: worker 1 (32), worker 2 (32), worker 3 (32), 96 samples\n"
         "[  64] hub > order worker 1: round 1 on version 1, 48 samples\n"
         "[  64] hub > order worker 3: round 1 on version 1, 48 samples\n"
         "[ 160] hub > apply step 2: worker 1 (48), worker 3 (48), 96 samples\n"
         "[ 160] hub > order worker 1: round 2 on version 2, 64 samples\n"
         "[ 160] hub > order worker 3: round 2 on version 2, 32 samples\n"
         "[ 224] hub > apply step 3: worker 1 (64), worker 3 (32), 96 samples\n"
         "[ 224] hub > leave, worker 1\n"
         "[ 224] hub > leave, worker 3\n"
         "[ 224] world > worker 1 is gone, drew 144\n"
         "[ 224] world > worker 3 is gone, drew 112\n"
         "[ 224] hub > finish: steps\n");
}

static void lb_bsp_reacts_after_one_step(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.size = "speed:step"}, "dbs", 2, 3);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  96] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 1 on version 1, 48 samples\n"
         "[  96] hub > order worker 2: round 1 on version 1, 16 samples\n"
         "[ 144] hub > apply step 2: worker 1 (48), worker 2 (16), 64 samples\n"
         "[ 144] hub > order worker 1: round 2 on version 2, 48 samples\n"
         "[ 144] hub > order worker 2: round 2 on version 2, 16 samples\n"
         "[ 192] hub > apply step 3: worker 1 (48), worker 2 (16), 64 samples\n"
         "[ 192] hub > leave, worker 1\n"
         "[ 192] hub > leave, worker 2\n"
         "[ 192] world > worker 1 is gone, drew 128\n"
         "[ 192] world > worker 2 is gone, drew 64\n"
         "[ 192] hub > finish: steps\n");
}

static void grow_doubles_every_two_epochs(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "grow", 2, 6);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 2: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 3 on version 3, 32 samples\n"
         "[  96] hub > order worker 2: round 3 on version 3, 32 samples\n"
         "[ 128] hub > apply step 4: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 128] hub > order worker 1: round 4 on version 4, 64 samples\n"
         "[ 128] hub > order worker 2: round 4 on version 4, 64 samples\n"
         "[ 192] hub > apply step 5: worker 1 (64), worker 2 (64), 128 samples\n"
         "[ 192] hub > order worker 1: round 5 on version 5, 64 samples\n"
         "[ 192] hub > order worker 2: round 5 on version 5, 64 samples\n"
         "[ 256] hub > apply step 6: worker 1 (64), worker 2 (64), 128 samples\n"
         "[ 256] hub > leave, worker 1\n"
         "[ 256] hub > leave, worker 2\n"
         "[ 256] world > worker 1 is gone, drew 256\n"
         "[ 256] world > worker 2 is gone, drew 256\n"
         "[ 256] hub > finish: steps\n");
}

static void grow_waits_for_the_slow_worker(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.size = "grow:2,1"}, "grow", 2, 3);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  96] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  96] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[ 192] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 192] hub > order worker 1: round 2 on version 2, 64 samples\n"
         "[ 192] hub > order worker 2: round 2 on version 2, 64 samples\n"
         "[ 384] hub > apply step 3: worker 1 (64), worker 2 (64), 128 samples\n"
         "[ 384] hub > leave, worker 1\n"
         "[ 384] hub > leave, worker 2\n"
         "[ 384] world > worker 1 is gone, drew 128\n"
         "[ 384] world > worker 2 is gone, drew 128\n"
         "[ 384] hub > finish: steps\n");
}

static void grow_counts_only_used_samples_when_one_is_dead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.size = "grow:2,1"}, "grow", 2, 4);
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  40] world > worker 2 is gone, drew 64\n"
         "[  40] hub > drop 32 samples of worker 2: lost\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[  96] hub > order worker 1: round 3 on version 3, 64 samples\n"
         "[ 160] hub > apply step 4: worker 1 (64), 64 samples\n"
         "[ 160] hub > leave, worker 1\n"
         "[ 160] world > worker 1 is gone, drew 160\n"
         "[ 160] hub > finish: steps\n");
}

static void shrink_halves_every_epoch_when_set(void **state)
{
    (void)state;
    enact((at_plan_options){.size = "shrink:2,1"}, "shrink", 2, 4);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 16 samples\n"
         "[  64] hub > order worker 2: round 2 on version 2, 16 samples\n"
         "[  80] hub > apply step 3: worker 1 (16), worker 2 (16), 32 samples\n"
         "[  80] hub > order worker 1: round 3 on version 3, 16 samples\n"
         "[  80] hub > order worker 2: round 3 on version 3, 16 samples\n"
         "[  96] hub > apply step 4: worker 1 (16), worker 2 (16), 32 samples\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  96] world > worker 1 is gone, drew 96\n"
         "[  96] world > worker 2 is gone, drew 96\n"
         "[  96] hub > finish: steps\n");
}

static void shrink_waits_for_the_slow_worker(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.size = "shrink:2,1"}, "shrink", 2, 3);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  96] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  96] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[ 192] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 192] hub > order worker 1: round 2 on version 2, 16 samples\n"
         "[ 192] hub > order worker 2: round 2 on version 2, 16 samples\n"
         "[ 240] hub > apply step 3: worker 1 (16), worker 2 (16), 32 samples\n"
         "[ 240] hub > leave, worker 1\n"
         "[ 240] hub > leave, worker 2\n"
         "[ 240] world > worker 1 is gone, drew 80\n"
         "[ 240] world > worker 2 is gone, drew 80\n"
         "[ 240] hub > finish: steps\n");
}

static void shrink_counts_only_used_samples_when_one_is_dead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.size = "shrink:2,1"}, "shrink", 2, 4);
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  40] world > worker 2 is gone, drew 64\n"
         "[  40] hub > drop 32 samples of worker 2: lost\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[  96] hub > order worker 1: round 3 on version 3, 16 samples\n"
         "[ 112] hub > apply step 4: worker 1 (16), 16 samples\n"
         "[ 112] hub > leave, worker 1\n"
         "[ 112] world > worker 1 is gone, drew 112\n"
         "[ 112] hub > finish: steps\n");
}

static void loss_keeps_the_batch_without_a_difference(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "loss", 2, 5);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 2: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 3 on version 3, 32 samples\n"
         "[  96] hub > order worker 2: round 3 on version 3, 32 samples\n"
         "[ 128] hub > apply step 4: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 128] hub > order worker 1: round 4 on version 4, 32 samples\n"
         "[ 128] hub > order worker 2: round 4 on version 4, 32 samples\n"
         "[ 160] hub > apply step 5: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 160] hub > leave, worker 1\n"
         "[ 160] hub > leave, worker 2\n"
         "[ 160] world > worker 1 is gone, drew 160\n"
         "[ 160] world > worker 2 is gone, drew 160\n"
         "[ 160] hub > finish: steps\n");
}

static void loss_halves_when_an_epoch_takes_much_longer(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "loss", 2, 6);
    s->sleep = sleep_from_round_3;
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 2: round 2 on version 2, 32 samples\n"
         "[ 144] hub > apply step 3: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 144] hub > order worker 1: round 3 on version 3, 32 samples\n"
         "[ 144] hub > order worker 2: round 3 on version 3, 32 samples\n"
         "[ 224] hub > apply step 4: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 224] hub > order worker 1: round 4 on version 4, 16 samples\n"
         "[ 224] hub > order worker 2: round 4 on version 4, 16 samples\n"
         "[ 288] hub > apply step 5: worker 1 (16), worker 2 (16), 32 samples\n"
         "[ 288] hub > order worker 1: round 5 on version 5, 16 samples\n"
         "[ 288] hub > order worker 2: round 5 on version 5, 16 samples\n"
         "[ 352] hub > apply step 6: worker 1 (16), worker 2 (16), 32 samples\n"
         "[ 352] hub > leave, worker 1\n"
         "[ 352] hub > leave, worker 2\n"
         "[ 352] world > worker 1 is gone, drew 160\n"
         "[ 352] world > worker 2 is gone, drew 160\n"
         "[ 352] hub > finish: steps\n");
}

static void loss_halves_when_a_dead_worker_makes_epochs_longer(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "loss", 2, 9);
    stage_kill(s, AT_MS(140), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  64] hub > order worker 2: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 3 on version 3, 32 samples\n"
         "[  96] hub > order worker 2: round 3 on version 3, 32 samples\n"
         "[ 128] hub > apply step 4: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 128] hub > order worker 1: round 4 on version 4, 32 samples\n"
         "[ 128] hub > order worker 2: round 4 on version 4, 32 samples\n"
         "[ 140] world > worker 2 is gone, drew 160\n"
         "[ 140] hub > drop 32 samples of worker 2: lost\n"
         "[ 160] hub > apply step 5: worker 1 (32), 32 samples\n"
         "[ 160] hub > order worker 1: round 5 on version 5, 32 samples\n"
         "[ 192] hub > apply step 6: worker 1 (32), 32 samples\n"
         "[ 192] hub > order worker 1: round 6 on version 6, 32 samples\n"
         "[ 224] hub > apply step 7: worker 1 (32), 32 samples\n"
         "[ 224] hub > order worker 1: round 7 on version 7, 32 samples\n"
         "[ 256] hub > apply step 8: worker 1 (32), 32 samples\n"
         "[ 256] hub > order worker 1: round 8 on version 8, 16 samples\n"
         "[ 272] hub > apply step 9: worker 1 (16), 16 samples\n"
         "[ 272] hub > leave, worker 1\n"
         "[ 272] world > worker 1 is gone, drew 272\n"
         "[ 272] hub > finish: steps\n");
}

static void noise_keeps_the_batch_without_norms(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "noise", 2, 2);
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

static void noise_waits_for_the_slow_worker(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "noise", 2, 2);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  96] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  96] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[ 192] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 192] hub > leave, worker 1\n"
         "[ 192] hub > leave, worker 2\n"
         "[ 192] world > worker 1 is gone, drew 64\n"
         "[ 192] world > worker 2 is gone, drew 64\n"
         "[ 192] hub > finish: steps\n");
}

static void noise_continues_when_one_is_dead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "noise", 2, 2);
    stage_kill(s, AT_MS(10), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 2 is gone, drew 32\n"
         "[  10] hub > drop 32 samples of worker 2: lost\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > leave, worker 1\n"
         "[  64] world > worker 1 is gone, drew 64\n"
         "[  64] hub > finish: steps\n");
}

static void probe_tries_larger_batches_and_keeps_the_first_of_equals(void **state)
{
    (void)state;
    enact((at_plan_options){0}, "probe", 2, 6);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 64 samples\n"
         "[  64] hub > order worker 2: round 2 on version 2, 64 samples\n"
         "[ 128] hub > apply step 3: worker 1 (64), worker 2 (64), 128 samples\n"
         "[ 128] hub > order worker 1: round 3 on version 3, 128 samples\n"
         "[ 128] hub > order worker 2: round 3 on version 3, 128 samples\n"
         "[ 256] hub > apply step 4: worker 1 (128), worker 2 (128), 256 samples\n"
         "[ 256] hub > order worker 1: round 4 on version 4, 256 samples\n"
         "[ 256] hub > order worker 2: round 4 on version 4, 256 samples\n"
         "[ 512] hub > apply step 5: worker 1 (256), worker 2 (256), 512 samples\n"
         "[ 512] hub > order worker 1: round 5 on version 5, 32 samples\n"
         "[ 512] hub > order worker 2: round 5 on version 5, 32 samples\n"
         "[ 544] hub > apply step 6: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 544] hub > leave, worker 1\n"
         "[ 544] hub > leave, worker 2\n"
         "[ 544] world > worker 1 is gone, drew 544\n"
         "[ 544] world > worker 2 is gone, drew 544\n"
         "[ 544] hub > finish: steps\n");
}

static void probe_waits_for_the_slow_worker(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "probe", 2, 3);
    s->actor[2].sample_ns = AT_MS(3);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  96] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  96] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[ 192] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 192] hub > order worker 1: round 2 on version 2, 64 samples\n"
         "[ 192] hub > order worker 2: round 2 on version 2, 64 samples\n"
         "[ 384] hub > apply step 3: worker 1 (64), worker 2 (64), 128 samples\n"
         "[ 384] hub > leave, worker 1\n"
         "[ 384] hub > leave, worker 2\n"
         "[ 384] world > worker 1 is gone, drew 128\n"
         "[ 384] world > worker 2 is gone, drew 128\n"
         "[ 384] hub > finish: steps\n");
}

static void probe_prefers_large_batches_when_a_round_costs_extra(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "probe", 2, 6);
    s->sleep = sleep_always;
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  42] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  42] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  42] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  84] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  84] hub > order worker 1: round 2 on version 2, 64 samples\n"
         "[  84] hub > order worker 2: round 2 on version 2, 64 samples\n"
         "[ 158] hub > apply step 3: worker 1 (64), worker 2 (64), 128 samples\n"
         "[ 158] hub > order worker 1: round 3 on version 3, 128 samples\n"
         "[ 158] hub > order worker 2: round 3 on version 3, 128 samples\n"
         "[ 296] hub > apply step 4: worker 1 (128), worker 2 (128), 256 samples\n"
         "[ 296] hub > order worker 1: round 4 on version 4, 256 samples\n"
         "[ 296] hub > order worker 2: round 4 on version 4, 256 samples\n"
         "[ 562] hub > apply step 5: worker 1 (256), worker 2 (256), 512 samples\n"
         "[ 562] hub > order worker 1: round 5 on version 5, 256 samples\n"
         "[ 562] hub > order worker 2: round 5 on version 5, 256 samples\n"
         "[ 828] hub > apply step 6: worker 1 (256), worker 2 (256), 512 samples\n"
         "[ 828] hub > leave, worker 1\n"
         "[ 828] hub > leave, worker 2\n"
         "[ 828] world > worker 1 is gone, drew 768\n"
         "[ 828] world > worker 2 is gone, drew 768\n"
         "[ 828] hub > finish: steps\n");
}

static void probe_continues_when_one_is_dead(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){0}, "probe", 2, 4);
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  40] world > worker 2 is gone, drew 64\n"
         "[  40] hub > drop 32 samples of worker 2: lost\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  64] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[  96] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[  96] hub > order worker 1: round 3 on version 3, 64 samples\n"
         "[ 160] hub > apply step 4: worker 1 (64), 64 samples\n"
         "[ 160] hub > leave, worker 1\n"
         "[ 160] world > worker 1 is gone, drew 160\n"
         "[ 160] hub > finish: steps\n");
}

typedef struct rates {
    double   factor[8];
    uint32_t count;
} rates;

static void see_rate(stage *s, const at_action *action)
{
    rates *seen = s->watcher;
    if (action->kind == AT_ACT_APPLY) seen->factor[seen->count++] = action->as.apply.lr_factor;
}

static rates rates_of(stage *s)
{
    rates seen = {0};
    s->watcher = &seen;
    s->saw_action = see_rate;
    stage_run(s);
    stage_close(s);
    assert_true(seen.count >= 5);
    return seen;
}

static void the_learning_rate_follows_the_total_batch_when_set(void **state)
{
    (void)state;
    at_plan_options shrink = {.size = "shrink:2,1", .lr_scale = "linear"};
    rates           seen = rates_of(enact(shrink, "shrink", 2, 5));
    const double    expected[] = {1, 1, 0.5, 0.5, 0.5};
    for (int i = 0; i < 5; i++) assert_true(seen.factor[i] == expected[i]);
    shrink.lr_scale = "none";
    seen = rates_of(enact(shrink, "shrink", 2, 5));
    for (int i = 0; i < 5; i++) assert_true(seen.factor[i] == 1);
}

static void the_learning_rate_can_be_divided_by_the_samples_per_worker(void **state)
{
    (void)state;
    at_plan_options shrink = {.size = "shrink:2,1", .lr_scale = "inverse"};
    rates           seen = rates_of(enact(shrink, "shrink", 2, 5));
    const double    expected[] = {1.0 / 32, 1.0 / 32, 1.0 / 16, 1.0 / 16, 1.0 / 16};
    for (int i = 0; i < 5; i++) assert_true(seen.factor[i] == expected[i]);
    stage *s = enact((at_plan_options){.lr_scale = "inverse"}, "fmb", 2, 5);
    stage_kill(s, AT_MS(40), 2, AT_NEVER); /* those who are left compute as many samples each */
    seen = rates_of(s);
    for (int i = 0; i < 5; i++) assert_true(seen.factor[i] == 1.0 / 32);
}

static void the_learning_rate_follows_the_present_workers(void **state)
{
    (void)state;
    stage *s = enact((at_plan_options){.lr_scale = "linear"}, "grow", 2, 5);
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    rates        seen = rates_of(s);
    const double expected[] = {1, 0.5, 0.5, 0.5, 0.5};
    for (int i = 0; i < 5; i++) assert_true(seen.factor[i] == expected[i]);
    /* Under dbs the other workers take over the share of the dead one from the next step on. */
    s = enact((at_plan_options){.lr_scale = "linear"}, "dbs", 2, 5);
    stage_kill(s, AT_MS(40), 2, AT_NEVER);
    seen = rates_of(s);
    const double balanced[] = {1, 0.5, 1, 1, 1};
    for (int i = 0; i < 5; i++) assert_true(seen.factor[i] == balanced[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dbs_without_stragglers_is_fmb),
        cmocka_unit_test(dbs_gives_a_slow_worker_less_after_the_first_epoch),
        cmocka_unit_test(dbs_redistributes_the_share_of_a_dead_worker),
        cmocka_unit_test(lb_bsp_reacts_after_one_step),
        cmocka_unit_test(grow_doubles_every_two_epochs),
        cmocka_unit_test(grow_waits_for_the_slow_worker),
        cmocka_unit_test(grow_counts_only_used_samples_when_one_is_dead),
        cmocka_unit_test(shrink_halves_every_epoch_when_set),
        cmocka_unit_test(shrink_waits_for_the_slow_worker),
        cmocka_unit_test(shrink_counts_only_used_samples_when_one_is_dead),
        cmocka_unit_test(loss_keeps_the_batch_without_a_difference),
        cmocka_unit_test(loss_halves_when_an_epoch_takes_much_longer),
        cmocka_unit_test(loss_halves_when_a_dead_worker_makes_epochs_longer),
        cmocka_unit_test(noise_keeps_the_batch_without_norms),
        cmocka_unit_test(noise_waits_for_the_slow_worker),
        cmocka_unit_test(noise_continues_when_one_is_dead),
        cmocka_unit_test(probe_tries_larger_batches_and_keeps_the_first_of_equals),
        cmocka_unit_test(probe_waits_for_the_slow_worker),
        cmocka_unit_test(probe_prefers_large_batches_when_a_round_costs_extra),
        cmocka_unit_test(probe_continues_when_one_is_dead),
        cmocka_unit_test(the_learning_rate_follows_the_total_batch_when_set),
        cmocka_unit_test(the_learning_rate_can_be_divided_by_the_samples_per_worker),
        cmocka_unit_test(the_learning_rate_follows_the_present_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

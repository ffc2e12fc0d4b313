/* Scenarios of gather rules that learn during a run: `quorum`, whose grace may be found, and
 * `first:K-MAX`, whose K grows. Workers take a millisecond per sample unless a test says
 * otherwise. */
#include "scenario.h"

static stage *enact(const char *strategy, uint32_t workers, uint64_t steps)
{
    return set((at_plan_options){.strategy = strategy,
                                 .workers = workers,
                                 .batch = 32,
                                 .micro_batch = 8,
                                 .limits = {.steps = steps}});
}

/* ---- quorum with a fixed grace -------------------------------------------------------------- */

static void quorum_takes_who_comes_within_the_grace(void **state)
{
    (void)state;
    stage *s = enact("quorum:1,20ms", 3, 2);
    s->actor[2].sample_ns = AT_US(1500);
    s->actor[3].sample_ns = AT_MS(4);
    transcript_.timers = true;
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > set notice timer to 2000\n"
         "[   0] hub > set lease timer to 60000\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  32] hub > set lease timer to 10352\n"
         "[  32] hub > set period timer to 52\n"
         "[  52] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  52] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  52] hub > set lease timer to 3532\n"
         "[  52] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  64] hub > drop 16 samples of worker 3: abandoned\n"
         "[  64] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[  84] hub > set period timer to 104\n"
         "[ 104] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 104] hub > leave, worker 1\n"
         "[ 104] hub > leave, worker 2\n"
         "[ 104] hub > leave, worker 3\n"
         "[ 104] world > worker 1 is gone, drew 64\n"
         "[ 104] world > worker 2 is gone, drew 64\n"
         "[ 128] hub > drop 16 samples of worker 3: stopped\n"
         "[ 128] world > worker 3 is gone, drew 32\n"
         "[ 128] hub > finish: steps\n");
}

static void quorum_closes_at_once_when_all_are_there(void **state)
{
    (void)state;
    stage *s = enact("quorum:2,20ms", 3, 2);
    s->actor[3].sample_ns = AT_US(1250);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  40] hub > apply step 1: worker 1 (32), worker 2 (32), worker 3 (32), 96 samples\n"
         "[  40] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  40] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  40] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[  80] hub > apply step 2: worker 1 (32), worker 2 (32), worker 3 (32), 96 samples\n"
         "[  80] hub > leave, worker 1\n"
         "[  80] hub > leave, worker 2\n"
         "[  80] hub > leave, worker 3\n"
         "[  80] world > worker 1 is gone, drew 64\n"
         "[  80] world > worker 2 is gone, drew 64\n"
         "[  80] world > worker 3 is gone, drew 64\n"
         "[  80] hub > finish: steps\n");
}

static void quorum_does_not_wait_for_a_worker_that_dies_in_the_grace(void **state)
{
    (void)state;
    stage *s = enact("quorum:2,20ms", 3, 2);
    s->actor[3].sample_ns = AT_US(1500);
    stage_kill(s, AT_MS(40), 3, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  40] world > worker 3 is gone, drew 32\n"
         "[  40] hub > drop 32 samples of worker 3: lost\n"
         "[  40] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  40] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  40] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  72] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  72] hub > leave, worker 1\n"
         "[  72] hub > leave, worker 2\n"
         "[  72] world > worker 1 is gone, drew 64\n"
         "[  72] world > worker 2 is gone, drew 64\n"
         "[  72] hub > finish: steps\n");
}

static void quorum_uses_all_workers_when_fewer_than_k_are_alive(void **state)
{
    (void)state;
    stage *s = enact("quorum:3,20ms", 3, 2);
    stage_kill(s, AT_MS(10), 1, AT_NEVER);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 3: round 0 on version 0, 32 samples\n"
         "[  10] world > worker 1 is gone, drew 16\n"
         "[  10] hub > drop 16 samples of worker 1: lost\n"
         "[  32] hub > apply step 1: worker 2 (32), worker 3 (32), 64 samples\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  32] hub > order worker 3: round 1 on version 1, 32 samples\n"
         "[  64] hub > apply step 2: worker 2 (32), worker 3 (32), 64 samples\n"
         "[  64] hub > leave, worker 2\n"
         "[  64] hub > leave, worker 3\n"
         "[  64] world > worker 2 is gone, drew 64\n"
         "[  64] world > worker 3 is gone, drew 64\n"
         "[  64] hub > finish: steps\n");
}

/* ---- what steps are made of, without a transcript ------------------------------------------- */

enum { STEPS = 2000 };

static struct {
    uint32_t steps;
    uint32_t pieces[STEPS];
    at_ns    wait[STEPS];
} seen;

static void saw_apply(stage *s, const at_action *action)
{
    (void)s;
    if (action->kind != AT_ACT_APPLY) return;
    assert_true(seen.steps < STEPS);
    seen.pieces[seen.steps] = action->as.apply.count;
    seen.wait[seen.steps++] = action->as.apply.wait_ns;
}

static void watch(stage *s)
{
    seen.steps = 0;
    s->saw_action = saw_apply;
    stage_run(s);
    assert_true(s->finished);
    assert_int_equal(seen.steps, s->plan.limits.steps);
}

static uint32_t steps_with(uint32_t pieces)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < seen.steps; i++) count += seen.pieces[i] == pieces;
    return count;
}

/* ---- quorum with grace `auto` --------------------------------------------------------------- */

/* Four workers: 32, 32, 36 and 3200 ms. Waiting for the third gives 3 rounds in 36 ms, waiting for
 * nobody 2 in 32 ms, waiting for all 4 in 3200 ms. */
static void auto_waits_for_those_that_are_worth_it(void **state)
{
    (void)state;
    stage *s = enact("quorum:2", 4, STEPS);
    s->actor[3].sample_ns = AT_US(1125);
    s->actor[4].sample_ns = AT_MS(100);
    s->plan.lease = AT_SEC(100);
    watch(s);
    for (int i = 0; i < 4; i++) assert_int_equal(seen.pieces[i], 4); /* it learns */
    for (int i = 4; i < STEPS; i++) {
        assert_int_equal(seen.pieces[i], 3);
        assert_true(seen.wait[i] < AT_MS(37)); /* the grid of graces is 9 percent wide */
    }
    stage_close(s);
}

static void auto_waits_for_all_when_they_are_nearly_equal(void **state)
{
    (void)state;
    stage *s = enact("quorum:1", 4, 100);
    for (at_node id = 1; id <= 4; id++) s->actor[id].sample_ns = AT_US(1000 + 10 * id);
    watch(s);
    assert_int_equal(steps_with(4), 100);
    stage_close(s);
}

static at_ns slow_at_first(const stage *s, at_node worker, uint64_t round)
{
    (void)s;
    return worker == 3 && round < 5 ? AT_MS(100) : 0;
}

/* Worker 3 is 100 ms late for its first rounds, so it is not waited for; later it is only a
 * little late, and one percent of the time is enough to find that out. */
static void auto_notices_that_a_slow_worker_has_recovered(void **state)
{
    (void)state;
    stage *s = enact("quorum:2", 3, STEPS);
    s->actor[3].sample_ns = AT_US(1125);
    s->sleep = slow_at_first;
    watch(s);
    assert_int_equal(seen.pieces[5], 2);
    assert_int_equal(seen.pieces[STEPS - 1], 3);
    assert_true(steps_with(3) > STEPS / 8);
    stage_close(s);
}

/* ---- first:K-MAX ---------------------------------------------------------------------------- */

static void k_grows_with_the_root_of_the_loss(void **state)
{
    (void)state;
    stage *s = enact("adasync", 4, 200);
    s->halvings = 0.05; /* a quarter of the loss, twice the workers, after 40 versions */
    watch(s);
    for (int i = 0; i < 20; i++) assert_int_equal(seen.pieces[i], 1); /* F_first is not known */
    for (uint32_t i = 1; i < seen.steps; i++) assert_true(seen.pieces[i] >= seen.pieces[i - 1]);
    assert_int_equal(seen.pieces[80], 2);
    assert_int_equal(seen.pieces[199], 4);
    stage_close(s);
}

static void k_stays_when_the_loss_does(void **state)
{
    (void)state;
    stage *s = enact("adasync:2-4", 4, 100);
    watch(s);
    assert_int_equal(steps_with(2), 100);
    stage_close(s);
}

static void k_has_a_maximum(void **state)
{
    (void)state;
    stage *s = enact("adasync:1-2", 4, 200);
    s->halvings = 0.1;
    watch(s);
    assert_int_equal(seen.pieces[199], 2);
    stage_close(s);
}

static void a_fixed_k_does_not_grow(void **state)
{
    (void)state;
    stage *s = enact("backup:2", 4, 200);
    s->halvings = 0.1;
    watch(s);
    assert_int_equal(steps_with(2), 200);
    stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorum_takes_who_comes_within_the_grace),
        cmocka_unit_test(quorum_closes_at_once_when_all_are_there),
        cmocka_unit_test(quorum_does_not_wait_for_a_worker_that_dies_in_the_grace),
        cmocka_unit_test(quorum_uses_all_workers_when_fewer_than_k_are_alive),
        cmocka_unit_test(auto_waits_for_those_that_are_worth_it),
        cmocka_unit_test(auto_waits_for_all_when_they_are_nearly_equal),
        cmocka_unit_test(auto_notices_that_a_slow_worker_has_recovered),
        cmocka_unit_test(k_grows_with_the_root_of_the_loss),
        cmocka_unit_test(k_stays_when_the_loss_does),
        cmocka_unit_test(k_has_a_maximum),
        cmocka_unit_test(a_fixed_k_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

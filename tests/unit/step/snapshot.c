/* What a snapshot read from a file must fulfil, so that a hub can continue from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "step/snapshot.h"

enum { WORKERS = 2, BATCH = 8 };

static _Alignas(64) unsigned char memory[1 << 16];
static at_plan     plan;
static at_snapshot snapshot;

/* A run of a second and ten steps, whose size rule is as at its start. */
static void take(const char *strategy)
{
    at_plan_options options = {
        .strategy = strategy, .workers = WORKERS, .batch = BATCH, .limits = {.steps = 100}};
    at_share share[WORKERS];
    at_fail  fail = {0};
    assert_int_equal(at_plan_resolve(&options, &plan, &fail), AT_OK);
    memset(memory, 0, sizeof memory);
    assert_true(at_snapshot_size(&plan) <= sizeof memory);
    at_snapshot_init(&snapshot, &plan, memory, sizeof memory);
    plan.size->decide(snapshot.size.bytes, &plan, share, &(at_progress){0});
    snapshot.version = 10;
    snapshot.samples_used = 10 * WORKERS * BATCH;
    snapshot.clock = snapshot.elapsed = AT_SEC(1);
    for (int i = 0; i < WORKERS; i++)
        snapshot.member[i] = (at_member_snapshot){.rounds = 10,
                                                  .rounds_ended = 10,
                                                  .sequence = 10,
                                                  .used = 10 * BATCH,
                                                  .share = share[i]};
}

static void an_epoch_that_begins_after_the_snapshot_is_refused(void **state)
{
    (void)state;
    static const char *const strategies[] = {"loss", "stall", "loss-target"};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        take(strategies[i]);
        at_size_epoch *epoch = snapshot.size.bytes; /* is first in all three */
        epoch->began = snapshot.elapsed;
        assert_true(at_snapshot_valid(&snapshot, &plan));
        epoch->began = snapshot.elapsed + 1;
        assert_false(at_snapshot_valid(&snapshot, &plan));
    }
}

static void a_part_of_a_sample_is_refused(void **state)
{
    (void)state;
    take("loss");
    at_size_epoch *epoch = snapshot.size.bytes;
    epoch->samples = 1;
    assert_true(at_snapshot_valid(&snapshot, &plan));
    epoch->samples = 1e-300;
    assert_false(at_snapshot_valid(&snapshot, &plan));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_that_begins_after_the_snapshot_is_refused),
        cmocka_unit_test(a_part_of_a_sample_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a snapshot read from a file must fulfil, so that a hub can continue from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "step/snapshot.h"

enum { WORKERS = 2, BATCH = 8 };

static _Alignas(64) unsigned char memory[1 << 16], other_memory[1 << 16];
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

static at_hub *resume(const at_plan *with)
{
    memset(other_memory, 0, sizeof other_memory);
    assert_true(at_hub_size(with) <= sizeof other_memory);
    at_hub *hub = at_hub_init(with, other_memory, sizeof other_memory);
    assert_true(at_snapshot_valid(&snapshot, with));
    at_snapshot_restore(hub, &snapshot);
    assert_int_equal(hub->version, snapshot.version);
    return hub;
}

/* K of first:1- is at most the number of workers. With two of four it waits for two. */
static void a_grown_k_is_resumed_with_fewer_workers(void **state)
{
    (void)state;
    at_plan_options fewer = {
        .strategy = "adasync", .workers = WORKERS, .workers_max = 4, .limits = {.steps = 100}};
    at_plan  two;
    uint32_t k = 4; /* of a run with more workers */
    take("adasync");
    memcpy((char *)snapshot.gather.bytes + snapshot.gather.size - 2 * sizeof k, &k, sizeof k);
    assert_int_equal(at_plan_resolve(&fewer, &two, NULL), AT_OK);
    at_hub *hub = resume(&two);
    hub->present = 4;
    for (uint32_t i = 0; i < 4; i++) hub->member[i].state = AT_MEMBER_WORKING;
    hub->pieces = hub->member[0].pieces_held = 1;
    assert_int_equal(two.gather->missing(hub, 0), 1);
}

static void a_rule_begins_without_the_state_that_one_worker_does_not_have(void **state)
{
    (void)state;
    at_plan_options alone = {.strategy = "adasync", .workers = 1, .limits = {.steps = 100}};
    at_plan         one;
    assert_int_equal(at_plan_resolve(&alone, &one, NULL), AT_OK);
    assert_int_equal(at_gather_state_bytes(&one), 0);
    take("adasync");
    snapshot.gather.size = 0;
    resume(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_that_begins_after_the_snapshot_is_refused),
        cmocka_unit_test(a_part_of_a_sample_is_refused),
        cmocka_unit_test(a_grown_k_is_resumed_with_fewer_workers),
        cmocka_unit_test(a_rule_begins_without_the_state_that_one_worker_does_not_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

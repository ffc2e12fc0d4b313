/* Stories of one worker, fed by hand: install, compute, send, wait, and how it leaves. */
#include "scenario.h"

typedef struct desk {
    at_plan   plan;
    at_worker worker;
    story     story;
} desk;

static desk desk_;

/* Worker 2 of three, in its first life, with two gradient slots. */
static void sit_down(const char *newer, const char *release)
{
    at_plan_options o = fmb(3, 9);
    o.gather = release ? "any:1" : NULL;
    o.release = release;
    o.newer = newer;
    at_fail fail = {0};
    if (at_plan_resolve(&o, &desk_.plan, &fail)) fail_msg("%s", fail.text);
    story_open(&desk_.story);
    at_worker_init(&desk_.worker, &desk_.plan, 2, 1, 2, 0);
}

static void feed(at_ns now, at_event event)
{
    at_action actions[3]; /* worker.h promises no more */
    at_out    out = {.actions = actions, .size = 3};
    event.now = now;
    at_worker_step(&desk_.worker, &event, &out);
    for (size_t i = 0; i < out.count; i++) tell_action(&desk_.story, now, 2, &actions[i]);
}

static void order(at_ns now, at_order order)
{
    at_event event = {.kind = AT_EV_MESSAGE};
    event.as.order = order;
    if (order.time_limit == 0) event.as.order.time_limit = AT_NEVER;
    if (order.samples_max == 0) event.as.order.samples_max = 32;
    feed(now, event);
}

static void computed(at_ns now, uint32_t samples, bool abandoned)
{
    at_event event = {.kind = AT_EV_COMPUTED};
    event.as.work = (at_work){.samples = samples, .abandoned = abandoned};
    feed(now, event);
}

static void sent(at_ns now)
{
    feed(now, (at_event){.kind = AT_EV_SENT});
}

static void newer(at_ns now, uint64_t version)
{
    at_event event = {.kind = AT_EV_NEWER};
    event.as.newer.version = version;
    feed(now, event);
}

static void expect(at_worker_state state, const char *expected)
{
    story_compare(&desk_.story, expected);
    assert_int_equal(desk_.worker.state, state);
}

static void an_order_is_installed_computed_sent_and_then_it_waits(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    feed(0, (at_event){.kind = AT_EV_START});
    order(AT_MS(1), (at_order){.round = 7});
    computed(AT_MS(33), 32, false);
    sent(AT_MS(34));
    expect(AT_WORKER_WAITING, "[   1] 2 > install\n"
                              "[   1] 2 > compute round 7: 32 samples\n"
                              "[  33] 2 > send 1: 32 samples of version 0, slot 1\n");
}

static void a_deadline_is_counted_from_when_the_order_arrives(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(AT_MS(100), (at_order){.time_limit = AT_MS(50), .samples_max = 400});
    expect(AT_WORKER_COMPUTING, "[ 100] 2 > install\n"
                                "[ 100] 2 > compute round 0: 400 samples until 150\n");
}

static void gradients_go_to_the_slots_in_turn(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    for (uint64_t round = 0; round < 3; round++) {
        order(AT_MS(10 * (double)round), (at_order){.round = round});
        uint32_t slot = at_worker_slot(&desk_.worker);
        assert_int_equal(slot, (round + 1) % 2);
        computed(AT_MS(10 * (double)round + 5), 32, false);
        sent(AT_MS(10 * (double)round + 5));
    }
    expect(AT_WORKER_WAITING, "[   0] 2 > install\n"
                              "[   0] 2 > compute round 0: 32 samples\n"
                              "[   5] 2 > send 1: 32 samples of version 0, slot 1\n"
                              "[  10] 2 > install\n"
                              "[  10] 2 > compute round 1: 32 samples\n"
                              "[  15] 2 > send 2: 32 samples of version 0, slot 0\n"
                              "[  20] 2 > install\n"
                              "[  20] 2 > compute round 2: 32 samples\n"
                              "[  25] 2 > send 3: 32 samples of version 0, slot 1\n");
}

static void an_order_that_overtakes_the_end_of_sending_is_kept(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 0});
    computed(AT_MS(32), 32, false);
    order(AT_MS(33), (at_order){.round = 1});
    sent(AT_MS(34));
    expect(AT_WORKER_COMPUTING, "[   0] 2 > install\n"
                                "[   0] 2 > compute round 0: 32 samples\n"
                                "[  32] 2 > send 1: 32 samples of version 0, slot 1\n"
                                "[  34] 2 > install\n"
                                "[  34] 2 > compute round 1: 32 samples\n");
}

static void it_leaves_at_once_when_it_waits(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(AT_MS(5), (at_order){.leave = true});
    expect(AT_WORKER_DONE, "[   5] 2 > finish\n");
}

static void it_leaves_a_computation_at_the_next_micro_batch_and_says_what_it_drew(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 0});
    order(AT_MS(5), (at_order){.leave = true});
    computed(AT_MS(8), 8, true);
    sent(AT_MS(9));
    expect(AT_WORKER_DONE, "[   0] 2 > install\n"
                           "[   0] 2 > compute round 0: 32 samples\n"
                           "[   5] 2 > abandon\n"
                           "[   8] 2 > send 1: 8 samples of version 0, slot 1, void\n"
                           "[   9] 2 > finish\n");
}

static void it_leaves_when_its_report_is_handed_over(void **state)
{
    (void)state;
    sit_down(NULL, "free");
    order(0, (at_order){.round = 0, .again = true});
    computed(AT_MS(32), 32, false);
    order(AT_MS(33), (at_order){.leave = true});
    sent(AT_MS(34));
    expect(AT_WORKER_DONE, "[   0] 2 > install\n"
                           "[   0] 2 > compute round 0: 32 samples\n"
                           "[  32] 2 > send 1: 32 samples of version 0, slot 1\n"
                           "[  34] 2 > finish\n");
}

static void a_stop_from_outside_ends_it_whatever_it_does(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 0});
    feed(AT_MS(3), (at_event){.kind = AT_EV_STOP});
    expect(AT_WORKER_DONE, "[   0] 2 > install\n"
                           "[   0] 2 > compute round 0: 32 samples\n"
                           "[   3] 2 > finish\n");
}

static void a_self_starting_worker_counts_its_rounds_and_takes_new_amounts(void **state)
{
    (void)state;
    sit_down(NULL, "free");
    order(0, (at_order){.round = 4, .again = true});
    computed(AT_MS(32), 32, false);
    sent(AT_MS(32));
    order(AT_MS(40), (at_order){.round = 99, .again = true, .time_limit = AT_MS(20)});
    computed(AT_MS(64), 32, false);
    sent(AT_MS(64));
    expect(AT_WORKER_COMPUTING, "[   0] 2 > install\n"
                                "[   0] 2 > compute round 4: 32 samples\n"
                                "[  32] 2 > send 1: 32 samples of version 0, slot 1\n"
                                "[  32] 2 > install\n"
                                "[  32] 2 > compute round 5: 32 samples\n"
                                "[  64] 2 > send 2: 32 samples of version 0, slot 0\n"
                                "[  64] 2 > install\n"
                                "[  64] 2 > compute round 6: 32 samples until 84\n");
}

static void finish_does_not_care_about_newer_versions(void **state)
{
    (void)state;
    sit_down("finish", NULL);
    order(0, (at_order){.round = 0});
    newer(AT_MS(5), 1);
    expect(AT_WORKER_COMPUTING, "[   0] 2 > install\n"
                                "[   0] 2 > compute round 0: 32 samples\n");
}

static void abandon_voids_the_computation_and_reports_it(void **state)
{
    (void)state;
    sit_down("abandon", "free");
    order(0, (at_order){.round = 0, .again = true});
    newer(AT_MS(5), 1);
    computed(AT_MS(8), 8, true);
    newer(AT_MS(8), 2); /* while it sends: the next round takes it anyway */
    sent(AT_MS(9));
    expect(AT_WORKER_COMPUTING, "[   0] 2 > install\n"
                                "[   0] 2 > compute round 0: 32 samples\n"
                                "[   5] 2 > abandon\n"
                                "[   8] 2 > send 1: 8 samples of version 0, slot 1, void\n"
                                "[   9] 2 > install\n"
                                "[   9] 2 > compute round 1: 32 samples\n");
}

static void refresh_installs_in_the_middle_but_not_when_it_leaves(void **state)
{
    (void)state;
    sit_down("refresh", "free");
    newer(0, 1); /* nothing to refresh yet */
    order(0, (at_order){.round = 0, .again = true});
    newer(AT_MS(5), 2);
    order(AT_MS(6), (at_order){.leave = true});
    newer(AT_MS(7), 3);
    expect(AT_WORKER_COMPUTING, "[   0] 2 > install\n"
                                "[   0] 2 > compute round 0: 32 samples\n"
                                "[   5] 2 > install\n"
                                "[   6] 2 > abandon\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_installed_computed_sent_and_then_it_waits),
        cmocka_unit_test(a_deadline_is_counted_from_when_the_order_arrives),
        cmocka_unit_test(gradients_go_to_the_slots_in_turn),
        cmocka_unit_test(an_order_that_overtakes_the_end_of_sending_is_kept),
        cmocka_unit_test(it_leaves_at_once_when_it_waits),
        cmocka_unit_test(it_leaves_a_computation_at_the_next_micro_batch_and_says_what_it_drew),
        cmocka_unit_test(it_leaves_when_its_report_is_handed_over),
        cmocka_unit_test(a_stop_from_outside_ends_it_whatever_it_does),
        cmocka_unit_test(a_self_starting_worker_counts_its_rounds_and_takes_new_amounts),
        cmocka_unit_test(finish_does_not_care_about_newer_versions),
        cmocka_unit_test(abandon_voids_the_computation_and_reports_it),
        cmocka_unit_test(refresh_installs_in_the_middle_but_not_when_it_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* One worker, fed by hand: install, sleep, micro-batches, report, and everything that can reach it
 * between any two of them. */
#include "scenario.h"

typedef struct fixture {
    at_plan    plan;
    at_worker  worker;
    transcript transcript;
} fixture;

static fixture fixture_;

/* Worker 2 of three, first incarnation, two gradient slots, micro-batches of 8 samples. */
static void sit_down(const char *newer, const char *release)
{
    at_plan_options o = fmb(3, 9);
    o.gather = release ? "any:1" : NULL;
    o.release = release;
    o.newer = newer;
    o.micro_batch = 8;
    at_fail fail = {0};
    if (at_plan_resolve(&o, &fixture_.plan, &fail)) fail_msg("%s", fail.text);
    transcript_open(&fixture_.transcript);
    fixture_.transcript.micros = true;
    at_worker_init(&fixture_.worker, &fixture_.plan, 2, 1, 2, 0);
}

/* Begins what the machine asks for until it waits; sleeping and computing end when a test says. */
static void run(at_ns now)
{
    for (;;) {
        at_worker_action action = at_worker_step(&fixture_.worker);
        if (action.kind == AT_WORKER_WAIT) return;
        log_worker(&fixture_.transcript, now, &fixture_.worker, &action);
        if (action.kind == AT_WORKER_FINISH) return;
        if (action.kind != AT_WORKER_INSTALL) continue;
        at_worker_feed(&fixture_.worker,
                       &(at_worker_event){.kind = AT_WORKER_INSTALLED, .now = now, .version = 0});
    }
}

static void feed(double ms, at_worker_event event)
{
    event.now = AT_MS(ms);
    at_worker_feed(&fixture_.worker, &event);
    run(event.now);
}

static void order(double ms, at_order order)
{
    if (order.time_limit == 0) order.time_limit = AT_NEVER;
    if (order.samples_max == 0) order.samples_max = 16;
    order.position = AT_POSITION_OWN;
    feed(ms, (at_worker_event){.kind = AT_WORKER_ORDER, .order = order});
}

static void happens(double ms, at_worker_event_kind kind)
{
    feed(ms, (at_worker_event){.kind = kind});
}

/* A micro-batch that took so long. */
static void done(double ms, double took_ms)
{
    feed(ms, (at_worker_event){.kind = AT_WORKER_MICRO_DONE,
                               .samples = fixture_.worker.micro,
                               .took = AT_MS(took_ms)});
}

/* A round of two micro-batches, 8 ms each, that began at `ms`. */
static void round_of_two(double ms)
{
    happens(ms, AT_WORKER_AWAKE);
    done(ms + 8, 8);
    done(ms + 16, 8);
}

static void expect(at_worker_state state, const char *expected)
{
    transcript_compare(&fixture_.transcript, expected);
    assert_int_equal(fixture_.worker.state, state);
}

static void an_order_is_installed_computed_and_reported_and_then_it_waits(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(1, (at_order){.round = 7});
    round_of_two(3);
    happens(20, AT_WORKER_SENT);
    expect(AT_WORKER_WAITING, "[   1] 2 > install\n"
                              "[   1] 2 > compute round 7: 16 samples\n"
                              "[   3] 2 > compute 8 samples\n"
                              "[  11] 2 > compute 8 samples\n"
                              "[  19] 2 > send 1: 16 samples of version 0, slot 1\n");
    assert_int_equal(fixture_.worker.work.sleep_ns, AT_MS(2));
    assert_int_equal(fixture_.worker.work.compute_ns, AT_MS(16));
    assert_true(fixture_.worker.work.capped);
}

static void a_deadline_counts_from_the_order_and_ends_the_round_between_two_micro_batches(void **s)
{
    (void)s;
    sit_down(NULL, NULL);
    order(100, (at_order){.time_limit = AT_MS(30), .samples_max = 400});
    happens(105, AT_WORKER_AWAKE); /* the sleep is part of the time limit */
    done(115, 10);
    done(125, 10); /* another would end at 135: 5 ms late, as far as 125 is early */
    expect(AT_WORKER_SENDING, "[ 100] 2 > install\n"
                              "[ 100] 2 > compute round 0: 400 samples until 130\n"
                              "[ 105] 2 > compute 8 samples\n"
                              "[ 115] 2 > compute 8 samples\n"
                              "[ 125] 2 > send 1: 16 samples of version 0, slot 1\n");
    assert_int_equal(fixture_.worker.work.overshoot_ns, -AT_MS(5));
}

static void a_sleep_beyond_the_deadline_still_leaves_one_micro_batch(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.time_limit = AT_MS(10), .samples_max = 400});
    happens(50, AT_WORKER_AWAKE);
    done(58, 8);
    assert_int_equal(fixture_.worker.state, AT_WORKER_SENDING);
    assert_int_equal(fixture_.worker.work.samples, 8);
    assert_true(fixture_.worker.work.overslept);
}

static void a_loader_may_give_other_numbers_of_samples(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 0, .samples_max = 20});
    happens(0, AT_WORKER_AWAKE);
    feed(8, (at_worker_event){.kind = AT_WORKER_MICRO_DONE, .samples = 7, .took = AT_MS(8)});
    feed(16, (at_worker_event){.kind = AT_WORKER_MICRO_DONE, .samples = 15, .took = AT_MS(8)});
    assert_int_equal(fixture_.worker.state, AT_WORKER_SENDING);
    assert_int_equal(fixture_.worker.work.samples, 22);
    assert_true(fixture_.worker.work.capped);
}

static void gradients_go_to_the_slots_in_turn(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    for (uint64_t round = 0; round < 3; round++) {
        order(40 * (double)round, (at_order){.round = round});
        assert_int_equal(at_worker_slot(&fixture_.worker), (round + 1) % 2);
        round_of_two(40 * (double)round);
        happens(40 * (double)round + 20, AT_WORKER_SENT);
    }
    assert_int_equal(fixture_.worker.sequence, 3);
}

static void an_order_that_overtakes_the_end_of_sending_is_kept(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 0});
    round_of_two(0);
    order(17, (at_order){.round = 1});
    happens(18, AT_WORKER_SENT);
    expect(AT_WORKER_SLEEPING, "[   0] 2 > install\n"
                               "[   0] 2 > compute round 0: 16 samples\n"
                               "[   0] 2 > compute 8 samples\n"
                               "[   8] 2 > compute 8 samples\n"
                               "[  16] 2 > send 1: 16 samples of version 0, slot 1\n"
                               "[  18] 2 > install\n"
                               "[  18] 2 > compute round 1: 16 samples\n");
}

static void it_leaves_at_once_when_it_waits(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    happens(5, AT_WORKER_LEAVE);
    expect(AT_WORKER_DONE, "[   5] 2 > finish\n");
}

static void it_leaves_a_sleep_at_once_with_an_empty_report(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 0});
    happens(5, AT_WORKER_LEAVE);
    happens(6, AT_WORKER_SENT);
    expect(AT_WORKER_DONE, "[   0] 2 > install\n"
                           "[   0] 2 > compute round 0: 16 samples\n"
                           "[   5] 2 > send 1: 0 samples of version 0, slot 1, void\n"
                           "[   6] 2 > finish\n");
    assert_int_equal(fixture_.worker.work.sleep_ns, AT_MS(5));
}

static void it_leaves_a_computation_after_the_micro_batch_and_reports_what_it_drew(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 0});
    happens(0, AT_WORKER_AWAKE);
    happens(5, AT_WORKER_LEAVE);
    happens(6, AT_WORKER_LEAVE); /* once is enough */
    done(8, 8);
    happens(9, AT_WORKER_SENT);
    expect(AT_WORKER_DONE, "[   0] 2 > install\n"
                           "[   0] 2 > compute round 0: 16 samples\n"
                           "[   0] 2 > compute 8 samples\n"
                           "[   5] 2 > abandon\n"
                           "[   8] 2 > send 1: 8 samples of version 0, slot 1, void\n"
                           "[   9] 2 > finish\n");
}

static void it_leaves_when_its_report_is_handed_over(void **state)
{
    (void)state;
    sit_down(NULL, "free");
    order(0, (at_order){.round = 0, .again = true});
    round_of_two(0);
    happens(17, AT_WORKER_LEAVE);
    happens(18, AT_WORKER_SENT);
    assert_int_equal(fixture_.worker.state, AT_WORKER_DONE);
    assert_false(fixture_.worker.work.abandoned);
}

static void a_self_starting_worker_counts_its_rounds_and_takes_new_amounts(void **state)
{
    (void)state;
    sit_down(NULL, "free");
    order(0, (at_order){.round = 4, .again = true});
    round_of_two(0);
    happens(16, AT_WORKER_SENT);
    happens(16, AT_WORKER_AWAKE);
    /* Between two micro-batches: the amounts are those of the round after this one. */
    order(20, (at_order){.round = 99, .again = true, .samples_max = 8, .time_limit = AT_MS(20)});
    done(24, 8);
    done(32, 8);
    happens(32, AT_WORKER_SENT);
    expect(AT_WORKER_SLEEPING, "[   0] 2 > install\n"
                               "[   0] 2 > compute round 4: 16 samples\n"
                               "[   0] 2 > compute 8 samples\n"
                               "[   8] 2 > compute 8 samples\n"
                               "[  16] 2 > send 1: 16 samples of version 0, slot 1\n"
                               "[  16] 2 > install\n"
                               "[  16] 2 > compute round 5: 16 samples\n"
                               "[  16] 2 > compute 8 samples\n"
                               "[  24] 2 > compute 8 samples\n"
                               "[  32] 2 > send 2: 16 samples of version 0, slot 0\n"
                               "[  32] 2 > install\n"
                               "[  32] 2 > compute round 6: 8 samples until 52\n");
}

/* A transport keeps only the newest order, so a pause may replace the order to start. */
static void a_pause_that_replaced_an_order_starts_its_round(void **state)
{
    (void)state;
    sit_down("finish", "free");
    order(0, (at_order){.round = 5, .pause = true});
    assert_int_equal(fixture_.worker.state, AT_WORKER_SLEEPING);
    assert_int_equal(fixture_.worker.work.round, 4);
    assert_false(fixture_.worker.order.again);
}

static void a_pause_that_comes_twice_starts_nothing(void **state)
{
    (void)state;
    sit_down("finish", "free");
    order(0, (at_order){.round = 4, .again = true, .samples_max = 8});
    order(1, (at_order){.round = 5, .pause = true});
    happens(2, AT_WORKER_AWAKE);
    feed(10, (at_worker_event){.kind = AT_WORKER_MICRO_DONE, .samples = 8, .took = AT_MS(8)});
    happens(11, AT_WORKER_SENT);
    assert_int_equal(fixture_.worker.state, AT_WORKER_WAITING);
    order(12, (at_order){.round = 5, .pause = true});
    assert_int_equal(fixture_.worker.state, AT_WORKER_WAITING);
}

/* On a slow network the hub may be several reports behind a worker that starts by itself. */
static void a_late_pause_does_not_turn_the_count_of_rounds_back(void **state)
{
    (void)state;
    sit_down("finish", "free");
    order(0, (at_order){.round = 4, .again = true, .samples_max = 8});
    happens(1, AT_WORKER_AWAKE);
    order(2, (at_order){.round = 3, .pause = true});
    order(3, (at_order){.round = 2, .pause = true});
    feed(10, (at_worker_event){.kind = AT_WORKER_MICRO_DONE, .samples = 8, .took = AT_MS(8)});
    happens(11, AT_WORKER_SENT);
    order(12, (at_order){.round = 5, .pause = true});
    assert_int_equal(fixture_.worker.state, AT_WORKER_WAITING);
    assert_int_equal(fixture_.worker.order.round, 4);
}

static void a_pause_between_two_micro_batches_ends_self_starting_with_this_round(void **state)
{
    (void)state;
    sit_down(NULL, "free");
    order(0, (at_order){.round = 0, .again = true});
    happens(0, AT_WORKER_AWAKE);
    order(4, (at_order){.pause = true});
    done(8, 8);
    done(16, 8);
    assert_false(fixture_.worker.continues); /* the report says so */
    happens(17, AT_WORKER_SENT);
    assert_int_equal(fixture_.worker.state, AT_WORKER_WAITING);
    order(30, (at_order){.round = 1, .again = true});
    assert_int_equal(fixture_.worker.state, AT_WORKER_SLEEPING);
    assert_int_equal(fixture_.worker.work.round, 1);
}

static void finish_ignores_newer_versions(void **state)
{
    (void)state;
    sit_down("finish", NULL);
    order(0, (at_order){.round = 0});
    happens(1, AT_WORKER_NEWER);
    happens(2, AT_WORKER_AWAKE);
    happens(5, AT_WORKER_NEWER);
    expect(AT_WORKER_COMPUTING, "[   0] 2 > install\n"
                                "[   0] 2 > compute round 0: 16 samples\n"
                                "[   2] 2 > compute 8 samples\n");
}

static void abandon_voids_the_computation_and_reports_it(void **state)
{
    (void)state;
    sit_down("abandon", "free");
    order(0, (at_order){.round = 0, .again = true});
    happens(0, AT_WORKER_AWAKE);
    happens(5, AT_WORKER_NEWER);
    done(8, 8);
    happens(8, AT_WORKER_NEWER); /* while it sends: the next round takes it anyway */
    happens(9, AT_WORKER_SENT);
    happens(12, AT_WORKER_NEWER); /* asleep: nothing was computed */
    expect(AT_WORKER_SENDING, "[   0] 2 > install\n"
                              "[   0] 2 > compute round 0: 16 samples\n"
                              "[   0] 2 > compute 8 samples\n"
                              "[   5] 2 > abandon\n"
                              "[   8] 2 > send 1: 8 samples of version 0, slot 1, void\n"
                              "[   9] 2 > install\n"
                              "[   9] 2 > compute round 1: 16 samples\n"
                              "[  12] 2 > send 2: 0 samples of version 0, slot 0, void\n");
}

static void refresh_installs_between_two_micro_batches_but_not_when_it_leaves(void **state)
{
    (void)state;
    sit_down("refresh", "free");
    happens(0, AT_WORKER_NEWER); /* nothing to refresh yet */
    order(0, (at_order){.round = 0, .again = true, .samples_max = 24});
    happens(0, AT_WORKER_AWAKE);
    happens(5, AT_WORKER_NEWER);
    done(8, 8);
    happens(10, AT_WORKER_LEAVE);
    happens(11, AT_WORKER_NEWER);
    done(16, 8);
    expect(AT_WORKER_SENDING, "[   0] 2 > install\n"
                              "[   0] 2 > compute round 0: 24 samples\n"
                              "[   0] 2 > compute 8 samples\n"
                              "[   8] 2 > install\n"
                              "[   8] 2 > compute 8 samples\n"
                              "[  10] 2 > abandon\n"
                              "[  16] 2 > send 1: 16 samples of version 0, slot 1, void\n");
}

static void a_round_put_back_to_its_sleep_goes_the_same_way_again(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 7, .samples_max = 17});
    at_worker *machine = &fixture_.worker;
    double     sample_ns = machine->cut.sample_ns;
    round_of_two(3); /* the third micro-batch is under way */
    at_work first = machine->work;
    at_cut  cut = machine->cut;
    at_worker_rewind(machine, sample_ns);
    expect(AT_WORKER_SLEEPING, "[   0] 2 > install\n"
                               "[   0] 2 > compute round 7: 17 samples\n"
                               "[   3] 2 > compute 8 samples\n"
                               "[  11] 2 > compute 8 samples\n"
                               "[  19] 2 > compute 1 samples\n");
    assert_int_equal(machine->work.samples, 0);
    assert_int_equal(machine->work.round, 7);
    round_of_two(3);
    assert_memory_equal(&first, &machine->work, sizeof first);
    assert_memory_equal(&cut, &machine->cut, sizeof cut);
    assert_int_equal(machine->micro, 1);
}

static void a_decided_end_holds_even_if_time_is_left_but_not_for_the_next_round(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    order(0, (at_order){.round = 7, .samples_max = 400, .time_limit = AT_MS(27)});
    happens(0, AT_WORKER_AWAKE);
    assert_false(at_worker_decide_end(&fixture_.worker));
    done(10, 10);
    assert_false(at_worker_decide_end(&fixture_.worker)); /* 7.5 ms would leave time for another */
    done(20, 10);
    assert_true(at_worker_decide_end(&fixture_.worker));
    done(21, 1); /* much faster than expected */
    happens(21, AT_WORKER_SENT);
    order(30, (at_order){.round = 8});
    round_of_two(30);
    expect(AT_WORKER_SENDING, "[   0] 2 > install\n"
                              "[   0] 2 > compute round 7: 400 samples until 27\n"
                              "[   0] 2 > compute 8 samples\n"
                              "[  10] 2 > compute 8 samples\n"
                              "[  20] 2 > compute 8 samples\n"
                              "[  21] 2 > send 1: 24 samples of version 0, slot 1\n"
                              "[  30] 2 > install\n"
                              "[  30] 2 > compute round 8: 16 samples\n"
                              "[  30] 2 > compute 8 samples\n"
                              "[  38] 2 > compute 8 samples\n"
                              "[  46] 2 > send 2: 16 samples of version 0, slot 0\n");
}

static void a_round_may_have_another_size_than_ordered(void **state)
{
    (void)state;
    sit_down(NULL, NULL);
    fixture_.plan.drawn_extra = 2;
    order(1, (at_order){.round = 7});
    at_worker_resize(&fixture_.worker, 18);
    round_of_two(1);
    done(19, 2);
    happens(20, AT_WORKER_SENT);
    order(21, (at_order){.round = 8}); /* the next one is as ordered again */
    at_worker_resize(&fixture_.worker, 1);
    happens(21, AT_WORKER_AWAKE);
    done(22, 1);
    expect(AT_WORKER_SENDING, "[   1] 2 > install\n"
                              "[   1] 2 > compute round 7: 16 samples\n"
                              "[   1] 2 > compute 8 samples\n"
                              "[   9] 2 > compute 8 samples\n"
                              "[  17] 2 > compute 2 samples\n"
                              "[  19] 2 > send 1: 18 samples of version 0, slot 1\n"
                              "[  21] 2 > install\n"
                              "[  21] 2 > compute round 8: 16 samples\n"
                              "[  21] 2 > compute 1 samples\n"
                              "[  22] 2 > send 2: 1 samples of version 0, slot 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_installed_computed_and_reported_and_then_it_waits),
        cmocka_unit_test(
            a_deadline_counts_from_the_order_and_ends_the_round_between_two_micro_batches),
        cmocka_unit_test(a_sleep_beyond_the_deadline_still_leaves_one_micro_batch),
        cmocka_unit_test(a_loader_may_give_other_numbers_of_samples),
        cmocka_unit_test(gradients_go_to_the_slots_in_turn),
        cmocka_unit_test(an_order_that_overtakes_the_end_of_sending_is_kept),
        cmocka_unit_test(it_leaves_at_once_when_it_waits),
        cmocka_unit_test(it_leaves_a_sleep_at_once_with_an_empty_report),
        cmocka_unit_test(it_leaves_a_computation_after_the_micro_batch_and_reports_what_it_drew),
        cmocka_unit_test(it_leaves_when_its_report_is_handed_over),
        cmocka_unit_test(a_self_starting_worker_counts_its_rounds_and_takes_new_amounts),
        cmocka_unit_test(a_pause_that_replaced_an_order_starts_its_round),
        cmocka_unit_test(a_pause_that_comes_twice_starts_nothing),
        cmocka_unit_test(a_late_pause_does_not_turn_the_count_of_rounds_back),
        cmocka_unit_test(a_pause_between_two_micro_batches_ends_self_starting_with_this_round),
        cmocka_unit_test(finish_ignores_newer_versions),
        cmocka_unit_test(abandon_voids_the_computation_and_reports_it),
        cmocka_unit_test(refresh_installs_between_two_micro_batches_but_not_when_it_leaves),
        cmocka_unit_test(a_round_put_back_to_its_sleep_goes_the_same_way_again),
        cmocka_unit_test(a_decided_end_holds_even_if_time_is_left_but_not_for_the_next_round),
        cmocka_unit_test(a_round_may_have_another_size_than_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

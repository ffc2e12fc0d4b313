/* Network and faults of the simulation; whole runs are tested in tests/e2e/sim.py and theory.py. */
#include "world/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "world/sim/faults.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- network --------------------------------------------------------------------------------- */

static void without_latency_and_bandwidth_limit_a_message_arrives_at_once(void **state)
{
    (void)state;
    at_sim_net net = {0};
    assert_int_equal(at_sim_net_up(&net, AT_SEC(3), 1, 1e9), AT_SEC(3));
    assert_int_equal(at_sim_net_down(&net, AT_SEC(3), 1, 1e9), AT_SEC(3));
}

static void a_message_takes_latency_plus_transfer_time(void **state)
{
    (void)state;
    at_sim_net net = {.latency = AT_SEC(1), .bandwidth = 100};
    assert_int_equal(at_sim_net_up(&net, AT_SEC(5), 1, 200), AT_SEC(8));
    assert_int_equal(at_sim_net_down(&net, AT_SEC(5), 1, 200), AT_SEC(8));
}

static void messages_pass_the_hubs_link_one_by_one(void **state)
{
    (void)state;
    at_sim_net net = {.latency = AT_SEC(1), .bandwidth = 100};
    for (int i = 1; i <= 5; i++)
        assert_int_equal(at_sim_net_up(&net, 0, 1, 200), AT_SEC(1 + 2 * i));
    assert_int_equal(at_sim_net_up(&net, AT_SEC(20), 1, 200), AT_SEC(23)); /* the link was free */
}

static void the_two_directions_are_independent(void **state)
{
    (void)state;
    at_sim_net net = {.bandwidth = 100};
    assert_int_equal(at_sim_net_up(&net, 0, 1, 500), AT_SEC(5));
    assert_int_equal(at_sim_net_down(&net, 0, 1, 500), AT_SEC(5));
    assert_int_equal(at_sim_net_down(&net, 0, 1, 500), AT_SEC(10));
}

static void a_message_delay_does_not_occupy_the_link(void **state)
{
    (void)state;
    enum { MESSAGES = 20000 };
    at_sim_net net = {.delay_sigma = 0.5, .seed = 9};
    double     sum = 0;
    for (int i = 0; i < MESSAGES; i++) {
        at_ns arrives = at_sim_net_up(&net, AT_SEC(1), 1, 100);
        assert_true(arrives >= AT_SEC(1));
        sum += at_seconds(arrives - AT_SEC(1));
    }
    double mean = sum / MESSAGES, expected = 0.5 * 0.79788456; /* sigma sqrt(2 / pi) */
    assert_true(mean > 0.98 * expected && mean < 1.02 * expected);
    assert_int_equal(net.in_free, AT_SEC(1));
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void faults_are_parsed_and_sorted_by_time(void **state)
{
    (void)state;
    at_fault faults[AT_FAULTS_MAX];
    size_t   count;
    at_fail  fail = {0};
    assert_int_equal(
        at_faults_parse("freeze:2@3s+500ms, die:3@2.5s,die:1@2.5s", 3, faults, &count, &fail),
        AT_OK);
    assert_int_equal(count, 3);
    assert_int_equal(faults[0].worker, 1);
    assert_int_equal(faults[0].at, AT_SEC(2.5));
    assert_int_equal(faults[1].worker, 3);
    assert_int_equal(faults[1].kind, AT_FAULT_DIE);
    assert_int_equal(faults[2].worker, 2);
    assert_int_equal(faults[2].kind, AT_FAULT_FREEZE);
    assert_int_equal(faults[2].at, AT_SEC(3));
    assert_int_equal(faults[2].lasts, AT_SEC(0.5));
}

static at_err check_joins(const char *text, bool respawn)
{
    at_fault faults[AT_FAULTS_MAX];
    size_t   count;
    at_fail  fail = {0};
    assert_int_equal(at_faults_parse(text, 6, faults, &count, &fail), AT_OK);
    assert_true(at_faults_have_joins(faults, count));
    at_err err = at_faults_check(faults, count, 4, respawn, &fail);
    assert_int_equal(err != AT_OK, fail.text[0] != 0);
    return err;
}

static void a_worker_joins_only_while_it_is_away(void **state)
{
    (void)state;
    assert_int_equal(check_joins("join:5@1s,join:6@1s", true), AT_OK);
    assert_int_equal(check_joins("join:4@1s", true), AT_ERR_USAGE);
    assert_int_equal(check_joins("join:5@1s,join:5@2s", true), AT_ERR_USAGE);
    assert_int_equal(check_joins("die:4@1s,join:4@2s", true), AT_ERR_USAGE); /* was replaced */
    assert_int_equal(check_joins("die:4@1s,join:4@2s", false), AT_OK);
    assert_int_equal(check_joins("join:4@1s,die:4@2s", false), AT_ERR_USAGE);
    assert_int_equal(check_joins("freeze:4@1s+9s,join:4@20s", false), AT_OK); /* may be evicted */
}

static void who_joined_before_a_checkpoint_and_lives_is_known(void **state)
{
    (void)state;
    at_fault faults[AT_FAULTS_MAX];
    size_t   count;
    at_err   err = at_faults_parse("join:5@1s,die:5@3s,join:6@5s", 6, faults, &count, NULL);
    assert_int_equal(err, AT_OK);
    assert_false(at_faults_joined(faults, count, 5, false, AT_SEC(1)));
    assert_true(at_faults_joined(faults, count, 5, false, AT_SEC(2)));
    assert_false(at_faults_joined(faults, count, 5, false, AT_SEC(4)));
    assert_true(at_faults_joined(faults, count, 5, true, AT_SEC(4)));
    assert_false(at_faults_joined(faults, count, 6, true, AT_SEC(5)));
}

static void an_empty_text_has_no_faults(void **state)
{
    (void)state;
    at_fault faults[AT_FAULTS_MAX];
    size_t   count = 7;
    assert_int_equal(at_faults_parse(NULL, 3, faults, &count, NULL), AT_OK);
    assert_int_equal(count, 0);
    assert_int_equal(at_faults_parse(" , ", 3, faults, &count, NULL), AT_OK);
    assert_int_equal(count, 0);
}

static void every_invalid_fault_is_refused(void **state)
{
    (void)state;
    static const char *const invalid[] = {"die",
                                          "die:1",
                                          "die:@1s",
                                          "die:1@",
                                          "die:0@1s",
                                          "die:4@1s",
                                          "die:x@1s",
                                          "die:1@x",
                                          "die:1@-1s",
                                          "late:1@1s",
                                          "freeze:1@1s",
                                          "join:1",
                                          "join:4@1s",
                                          "join:3@1s+1s",
                                          "freeze:1@1s+",
                                          "freeze:1@1s+x",
                                          "burn:1@1s",
                                          ":1@1s",
                                          "die:1@1s;",
                                          "die:-1@1s",
                                          "die:1@1s die:1",
                                          "freeze:1@1s+-1s",
                                          "@+:",
                                          "die:99999999999999999999@1s"};
    at_fault                 faults[AT_FAULTS_MAX];
    size_t                   count;
    for (size_t i = 0; i < COUNT(invalid); i++) {
        at_fail fail = {0};
        if (at_faults_parse(invalid[i], 3, faults, &count, &fail) != AT_ERR_USAGE)
            fail_msg("'%s' was accepted", invalid[i]);
        assert_true(fail.text[0] != '\0');
    }
}

static void too_many_and_too_long_faults_are_refused(void **state)
{
    (void)state;
    static char text[(AT_FAULTS_MAX + 1) * 10 + 1];
    at_fault    faults[AT_FAULTS_MAX];
    size_t      count;
    for (int i = 0; i <= AT_FAULTS_MAX; i++) memcpy(text + 9 * i, "die:1@1s,", 9);
    assert_int_equal(at_faults_parse(text, 1, faults, &count, NULL), AT_ERR_USAGE);
    text[strlen(text) - 9] = '\0';
    assert_int_equal(at_faults_parse(text, 1, faults, &count, NULL), AT_OK);
    assert_int_equal(count, AT_FAULTS_MAX);
    memset(text, 'd', 300);
    text[300] = '\0';
    assert_int_equal(at_faults_parse(text, 1, faults, &count, NULL), AT_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_latency_and_bandwidth_limit_a_message_arrives_at_once),
        cmocka_unit_test(a_message_takes_latency_plus_transfer_time),
        cmocka_unit_test(messages_pass_the_hubs_link_one_by_one),
        cmocka_unit_test(the_two_directions_are_independent),
        cmocka_unit_test(a_message_delay_does_not_occupy_the_link),
        cmocka_unit_test(faults_are_parsed_and_sorted_by_time),
        cmocka_unit_test(a_worker_joins_only_while_it_is_away),
        cmocka_unit_test(who_joined_before_a_checkpoint_and_lives_is_known),
        cmocka_unit_test(an_empty_text_has_no_faults),
        cmocka_unit_test(every_invalid_fault_is_refused),
        cmocka_unit_test(too_many_and_too_long_faults_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

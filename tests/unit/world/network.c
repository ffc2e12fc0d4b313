/* When simulated messages arrive, by formulas. Bandwidth is 100 bytes per second and a message has
 * 200 bytes, so a transfer takes 2 s. */
#include "world/sim/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 200, WORKERS = 10 };

static at_plan          plan_;
static at_world_context context_;

static at_sim_net open_net(at_link_options links, const char *mix)
{
    at_fail         fail = {0};
    at_sim_net      net;
    at_plan_options o = {.strategy = "fmb", .workers = WORKERS, .batch = 8, .mix = mix};
    if (at_plan_resolve(&o, &plan_, &fail)) fail_msg("%s", fail.text);
    context_ = (at_world_context){
        .plan = &plan_, .bandwidth = 100, .latency = AT_SEC(1), .links = links, .seed = 3};
    if (at_sim_net_check(&context_, &fail)) fail_msg("%s", fail.text);
    if (at_sim_net_init(&net, &context_, &fail)) fail_msg("%s", fail.text);
    return net;
}

static void check_down(at_sim_net *net, at_ns now, const int *seconds, at_node count)
{
    for (at_node w = 1; w <= count; w++)
        assert_int_equal(at_sim_net_down(net, now, w, BYTES), AT_SEC(seconds[w - 1]));
}

static void one_copy_for_all_uses_the_hubs_link_once(void **state)
{
    (void)state;
    at_sim_net net = open_net((at_link_options){.broadcast = "all"}, NULL);
    check_down(&net, 0, (int[]){3, 3, 3, 3}, 4);
    assert_int_equal(net.out_free, AT_SEC(2));
    check_down(&net, AT_SEC(1), (int[]){5, 5}, 2); /* the next broadcast waits for the link */
    at_sim_net_deinit(&net);
}

static void copies_that_share_a_link_arrive_together(void **state)
{
    (void)state;
    at_sim_net net =
        open_net((at_link_options){.broadcast = "share", .worker_bandwidth = "100,100,20"}, NULL);
    at_sim_net_expect(&net, 0, 3);
    check_down(&net, 0, (int[]){7, 7, 11}, 3); /* the third one's own link takes 10 s */
    assert_int_equal(net.out_free, AT_SEC(6));
    at_sim_net_expect(&net, 0, 2); /* after them, at the same moment */
    check_down(&net, 0, (int[]){11, 11}, 2);
    check_down(&net, AT_SEC(20), (int[]){23}, 1); /* nobody said how many: one */
    at_sim_net_deinit(&net);
}

static void in_a_tree_the_number_of_owners_doubles(void **state)
{
    (void)state;
    at_sim_net net = open_net((at_link_options){.broadcast = "tree"}, NULL);
    /* Turn 1: worker 1; turn 2: workers 2 and 3; turn 3: 4 to 7; turn 4: the rest. Each turn takes
     * 2 s, each hop 1 s more: one hop to 1, 2, 4 and 8, two to 3, 5, 6, 9 and 10, three to 7. */
    check_down(&net, 0, (int[]){3, 5, 6, 7, 8, 8, 9, 9, 10, 10}, WORKERS);
    assert_int_equal(net.out_free, AT_SEC(8)); /* the hub itself has sent four copies */
    at_sim_net_deinit(&net);
}

static void a_tree_adds_gradients_up_in_as_many_turns_as_it_has_levels(void **state)
{
    (void)state;
    at_sim_net net = open_net((at_link_options){.broadcast = "tree", .reduce = "tree"}, NULL);
    net.latency = 0;
    for (at_node w = 1; w <= WORKERS; w++) at_sim_net_down(&net, 0, w, BYTES);
    for (at_node w = 1; w < WORKERS; w++) /* the last one completes the sum */
        assert_int_equal(at_sim_net_up(&net, AT_SEC(20), w, BYTES), AT_SEC(20));
    assert_int_equal(at_sim_net_up(&net, AT_SEC(20), WORKERS, BYTES), AT_SEC(20 + 4 * 2));
    at_sim_net_deinit(&net);
}

/* When all others have been added up already, its gradient passes one hop per level only. */
static void a_late_gradient_passes_its_own_branch_of_the_tree(void **state)
{
    (void)state;
    const int hops[] = {1, 1, 2, 1, 2, 2, 3, 1, 2, 2};
    for (at_node late = 1; late <= WORKERS; late++) {
        at_sim_net net = open_net((at_link_options){.reduce = "tree"}, NULL);
        for (at_node w = 1; w <= WORKERS; w++) at_sim_net_down(&net, 0, w, BYTES);
        for (at_node w = 1; w <= WORKERS; w++)
            if (w != late) at_sim_net_up(&net, AT_SEC(50), w, BYTES);
        at_ns arrives = at_sim_net_up(&net, AT_SEC(99), late, BYTES);
        /* A parent takes its children in turn, so those after it wait; at most all of them. */
        assert_true(arrives >= AT_SEC(99 + 3 * hops[late - 1]));
        assert_true(arrives <= AT_SEC(99 + 4 * 2 + 3 * hops[late - 1]));
        at_sim_net_deinit(&net);
    }
}

static void a_worker_that_left_does_not_hold_the_next_reduction(void **state)
{
    (void)state;
    at_sim_net net = open_net((at_link_options){.broadcast = "all", .reduce = "tree"}, NULL);
    for (at_node w = 1; w <= 4; w++) at_sim_net_down(&net, 0, w, BYTES);
    for (at_node w = 1; w <= 3; w++) /* worker 4 dies */
        assert_int_equal(at_sim_net_up(&net, AT_SEC(10), w, BYTES), AT_SEC(11));
    for (at_node w = 1; w <= 3; w++) at_sim_net_down(&net, AT_SEC(20), w, BYTES);
    assert_int_equal(at_sim_net_up(&net, AT_SEC(30), 4, BYTES), AT_SEC(31)); /* not part of it */
    for (at_node w = 1; w <= 2; w++) at_sim_net_up(&net, AT_SEC(30), w, BYTES);
    assert_true(at_sim_net_up(&net, AT_SEC(30), 3, BYTES) > AT_SEC(33));
    at_sim_net_deinit(&net);
}

static void the_slower_link_of_a_path_counts_and_lists_repeat(void **state)
{
    (void)state;
    at_link_options links = {.worker_bandwidth = "1000,20", .worker_latency = "0s,5s"};
    at_sim_net      net = open_net(links, NULL);
    assert_int_equal(at_sim_net_down(&net, 0, 1, BYTES), AT_SEC(2 + 1));
    assert_int_equal(at_sim_net_down(&net, 0, 2, BYTES), AT_SEC(2 + 10 + 6)); /* its link: 10 s */
    assert_int_equal(at_sim_net_down(&net, 0, 3, BYTES), AT_SEC(4 + 2 + 1));  /* as worker 1 */
    assert_int_equal(at_sim_net_up(&net, 0, 4, BYTES), AT_SEC(6 + 10));       /* as worker 2 */
    at_sim_net_deinit(&net);
    net = open_net((at_link_options){.worker_bandwidth = "20"}, NULL);
    net.latency = 0;
    assert_int_equal(at_sim_net_up(&net, 0, 1, BYTES), AT_SEC(10));
    assert_int_equal(at_sim_net_up(&net, 0, 2, BYTES), AT_SEC(10)); /* at the same time */
    assert_int_equal(net.in_free, AT_SEC(4)); /* a slow sender does not occupy the hub's link */
    at_sim_net_deinit(&net);
}

static void an_all_reduce_takes_what_ring_and_tree_take(void **state)
{
    (void)state;
    at_sim_net net = open_net((at_link_options){0}, "replicated");
    assert_int_equal(net.allreduce, AT_ALLREDUCE_RING);
    assert_int_equal(at_sim_net_allreduce(&net, 1, BYTES), 0);
    assert_int_equal(at_sim_net_allreduce(&net, 2, BYTES), 2 * AT_MS(2000));
    assert_int_equal(at_sim_net_allreduce(&net, 10, BYTES), 18 * AT_MS(1200));
    assert_int_equal(at_sim_net_up(&net, AT_SEC(7), 1, BYTES), AT_SEC(7)); /* there is no hub */
    at_sim_net_deinit(&net);
    net = open_net((at_link_options){.allreduce = "tree", .worker_latency = "0s,2s"}, "replicated");
    /* A hop takes 2 s and 3 s of latency. Three hops up; down, node 0 sends 3 copies at the same
     * time, node 1 then 2, node 3 then 1. */
    assert_int_equal(at_sim_net_allreduce(&net, 8, BYTES), AT_SEC(3 * 5 + (6 + 3) + (4 + 3) + 5));
    assert_int_equal(at_sim_net_allreduce(&net, 9, BYTES), AT_SEC(4 * 5 + (8 + 3) + (4 + 3) + 5));
    assert_int_equal(at_sim_net_allreduce(&net, 3, BYTES), AT_SEC(2 * 5 + (4 + 3)));
    assert_int_equal(at_sim_net_allreduce(&net, 2, BYTES), AT_SEC(5 + 5));
    at_sim_net_deinit(&net);
}

static void a_worker_sends_to_its_neighbours_in_turn(void **state)
{
    (void)state;
    at_link_options links = {.worker_latency = "0s,2s", .worker_bandwidth = "100,50"};
    at_sim_net      net = open_net(links, "gossip:ring,2");
    assert_int_equal(at_sim_net_gossip(&net, 1, 0, BYTES), 0);
    assert_int_equal(at_sim_net_gossip(&net, 1, 3, BYTES), AT_SEC(3 * 2 + 1));
    assert_int_equal(at_sim_net_gossip(&net, 2, 3, BYTES), AT_SEC(3 * 4 + 1 + 2));
    at_sim_net_deinit(&net);
}

typedef struct refusal {
    at_link_options links;
    const char     *strategy, *mix, *expected;
} refusal;

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    const refusal cases[] = {
        {{.broadcast = "every"}, "fmb", NULL, "every"},
        {{.reduce = "ring"}, "fmb", NULL, "ring"},
        {{.reduce = "tree"}, "async", NULL, "--reduce tree needs"},
        {{.reduce = "tree"}, "backup", NULL, "--reduce tree needs"},
        {{.allreduce = "ring"}, "fmb", NULL, "needs --mix replicated"},
        {{.allreduce = "none"}, "fmb", "replicated", "none"},
        {{.broadcast = "tree"}, "fmb", "replicated", "are about a hub"},
        {{.reduce = "tree"}, "fmb", "gossip:ring,2", "--mix gossip:ring,2"},
        {{.worker_bandwidth = "1e8,fast"}, "fmb", NULL, "'fast'"},
        {{.worker_bandwidth = "1e8,,1e8"}, "fmb", NULL, "''"},
        {{.worker_bandwidth = "0"}, "fmb", NULL, "'0'"},
        {{.worker_bandwidth = "nan"}, "fmb", NULL, "'nan'"},
        {{.worker_latency = "1ms,-1ms"}, "fmb", NULL, "'-1ms'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_fail         fail = {0};
        at_plan_options o = {
            .strategy = cases[i].strategy, .workers = 4, .batch = 8, .mix = cases[i].mix};
        if (at_plan_resolve(&o, &plan_, &fail)) fail_msg("%s", fail.text);
        context_ = (at_world_context){.plan = &plan_, .links = cases[i].links};
        assert_int_equal(at_sim_net_check(&context_, &fail), AT_ERR_USAGE);
        if (!strstr(fail.text, cases[i].expected)) fail_msg("case %zu: %s", i, fail.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_copy_for_all_uses_the_hubs_link_once),
        cmocka_unit_test(copies_that_share_a_link_arrive_together),
        cmocka_unit_test(in_a_tree_the_number_of_owners_doubles),
        cmocka_unit_test(a_tree_adds_gradients_up_in_as_many_turns_as_it_has_levels),
        cmocka_unit_test(a_late_gradient_passes_its_own_branch_of_the_tree),
        cmocka_unit_test(a_worker_that_left_does_not_hold_the_next_reduction),
        cmocka_unit_test(the_slower_link_of_a_path_counts_and_lists_repeat),
        cmocka_unit_test(an_all_reduce_takes_what_ring_and_tree_take),
        cmocka_unit_test(a_worker_sends_to_its_neighbours_in_turn),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Gossip nodes: averaging is a power of the matrix, and every form of the update is its formula. */
#include "world/core/gossip_node.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

enum { PARAMS = 1500, NODES = 10 }; /* more than one block */
static const double LR = 0.25;

typedef struct rig {
    at_learning     learning;
    at_graph        graph;
    at_gossip_power power;
    at_gossip_node  node[NODES];
    float          *w[NODES], *message[NODES], *gradient[NODES];
    double          w0[NODES][PARAMS]; /* at the start, and mean gradients, in double */
    double          g[NODES][PARAMS];
    uint32_t        samples[NODES];
    at_gossip_step  step;
} rig;

static rig *set_up(const char *graph, uint32_t rounds, at_mix_form form, bool equal,
                   const char *optim)
{
    rig   *r = calloc(1, sizeof *r);
    at_rng rng = at_rng_stream(5, 0, AT_RNG_PURPOSE_TEST, 0);
    assert_int_equal(at_schedule_parse("const", LR, 100, 0, &r->learning.rate[0].schedule, NULL),
                     AT_OK);
    r->learning.optim = at_optim_find(optim);
    r->learning.trained = PARAMS;
    r->step = (at_gossip_step){.form = form, .equal = equal, .step = 1, .lr_factor = 1};
    assert_int_equal(at_graph_init(&r->graph, graph, NODES, AT_GRAPH_METROPOLIS, 7, NULL), AT_OK);
    assert_int_equal(at_gossip_power_init(&r->power, NODES, NULL), AT_OK);
    at_gossip_power_set(&r->power, &r->graph, rounds);
    for (int i = 0; i < NODES; i++) {
        r->samples[i] = 1 + (uint32_t)at_rng_below(&rng, 60);
        r->w[i] = aligned_alloc(64, 6400);
        r->message[i] = aligned_alloc(64, 6400);
        r->gradient[i] = aligned_alloc(64, 6400);
        for (int p = 0; p < PARAMS; p++) {
            r->w0[i][p] = r->w[i][p] = (float)at_rng_normal(&rng);
            r->gradient[i][p] = (float)at_rng_normal(&rng) * (float)r->samples[i];
            r->g[i][p] = (double)r->gradient[i][p] / r->samples[i];
        }
        assert_int_equal(at_gossip_node_init(&r->node[i], form, &r->learning, r->w[i],
                                             r->message[i], PARAMS, NULL),
                         AT_OK);
    }
    return r;
}

static void tear_down(rig *r)
{
    for (int i = 0; i < NODES; i++) {
        at_gossip_node_deinit(&r->node[i]);
        free(r->w[i]);
        free(r->message[i]);
        free(r->gradient[i]);
    }
    at_gossip_power_deinit(&r->power);
    at_graph_deinit(&r->graph);
    free(r);
}

static void run_step(rig *r)
{
    for (int i = 0; i < NODES; i++)
        at_gossip_begin(&r->node[i], &r->step, r->samples[i] ? r->gradient[i] : NULL,
                        r->samples[i]);
    at_gossip_power_mix(&r->power, r->node, PARAMS);
    for (int i = 0; i < NODES; i++) assert_true(at_gossip_end(&r->node[i], &r->step) == LR);
}

/* P^rounds of one number per node. */
static void mix(const rig *r, uint32_t rounds, const double *from, double *to)
{
    double scratch[NODES];
    at_graph_mix(&r->graph, rounds, from, to, scratch);
}

static double weight(const rig *r, int i)
{
    return r->step.equal ? 1 : r->samples[i];
}

/* What node i should have in parameter p after one step of plain SGD, by the definition. */
static void expect(const rig *r, uint32_t rounds, int p, double *w)
{
    double value[NODES], count[NODES], mixed[NODES], total[NODES];
    for (int i = 0; i < NODES; i++) {
        double stepped = r->w0[i][p] - LR * r->g[i][p];
        double x = r->step.form == AT_MIX_PWG  ? stepped
                   : r->step.form == AT_MIX_PW ? r->w0[i][p]
                                               : r->g[i][p];
        count[i] = weight(r, i);
        value[i] = count[i] * x;
    }
    mix(r, rounds, value, mixed);
    mix(r, rounds, count, total);
    for (int i = 0; i < NODES; i++) {
        double mean = mixed[i] / total[i];
        double share = r->step.equal ? 1 : r->samples[i] / total[i];
        w[i] = r->step.form == AT_MIX_PWG  ? mean
               : r->step.form == AT_MIX_PW ? mean - LR * share * r->g[i][p]
                                           : r->w0[i][p] - LR * mean;
    }
}

static void every_form_is_its_formula_on_every_graph(void **state)
{
    (void)state;
    static const char *const graphs[] = {"complete",    "ring",        "star",    "torus",
                                         "exponential", "amb-iclr-10", "random:3"};
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++)
        for (int form = AT_MIX_PG; form <= AT_MIX_DA; form++)
            for (int equal = 0; equal <= 1; equal++) {
                uint32_t rounds = 1 + (uint32_t)(g + (size_t)form) % 6;
                rig     *r = set_up(graphs[g], rounds, (at_mix_form)form, equal, "sgd");
                double   w[NODES];
                run_step(r);
                for (int p = 0; p < PARAMS; p += 7) {
                    expect(r, rounds, p, w);
                    for (int i = 0; i < NODES; i++)
                        assert_true(fabs(r->w[i][p] - w[i]) <= 1e-6 * (1 + fabs(w[i])));
                }
                tear_down(r);
            }
}

static void one_round_of_all_pairs_is_the_central_step(void **state)
{
    (void)state;
    rig   *r = set_up("complete", 1, AT_MIX_PG, false, "sgd");
    double samples = 0;
    for (int i = 0; i < NODES; i++) samples += r->samples[i];
    run_step(r);
    for (int p = 0; p < PARAMS; p++) {
        double sum = 0;
        for (int i = 0; i < NODES; i++) sum += r->gradient[i][p];
        for (int i = 0; i < NODES; i++)
            assert_true(fabs(r->w[i][p] - (r->w0[i][p] - LR * sum / samples)) < 1e-6);
    }
    tear_down(r);
}

static void rounds_one_by_one_give_the_power(void **state)
{
    (void)state;
    rig   *r = set_up("amb-iclr-10", 5, AT_MIX_PG, false, "sgd");
    float *now[NODES], *next[NODES];
    double count[NODES], counted[NODES];
    for (int i = 0; i < NODES; i++) {
        at_gossip_begin(&r->node[i], &r->step, r->gradient[i], r->samples[i]);
        now[i] = malloc(PARAMS * sizeof(float));
        next[i] = malloc(PARAMS * sizeof(float));
        memcpy(now[i], r->message[i], PARAMS * sizeof(float));
        count[i] = r->node[i].count;
    }
    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < NODES; i++) {
            at_gossip_part parts[NODES] = {{now[i], count[i], at_graph_own_weight(&r->graph, i)}};
            uint32_t       n = 1;
            for (uint32_t k = r->graph.first[i]; k < r->graph.first[i + 1]; k++) {
                uint32_t j = r->graph.neighbour[k];
                parts[n++] = (at_gossip_part){now[j], count[j], at_graph_weight(&r->graph, i, j)};
            }
            counted[i] = at_gossip_average(next[i], PARAMS, parts, n);
        }
        for (int i = 0; i < NODES; i++) {
            float *kept = now[i];
            now[i] = next[i];
            next[i] = kept;
            count[i] = counted[i];
        }
    }
    at_gossip_power_mix(&r->power, r->node, PARAMS);
    for (int i = 0; i < NODES; i++) {
        assert_true(fabs(r->node[i].count - count[i]) <= 1e-6 * count[i]);
        for (int p = 0; p < PARAMS; p++)
            assert_true(fabsf(r->message[i][p] - now[i][p]) <= 1e-5f * (1 + fabsf(now[i][p])));
        free(now[i]);
        free(next[i]);
    }
    tear_down(r);
}

static void a_node_without_samples_takes_what_the_others_found(void **state)
{
    (void)state;
    rig *r = set_up("complete", 1, AT_MIX_PWG, false, "sgd");
    for (int i = 0; i < NODES; i++)
        if (i != 3) r->samples[i] = 0;
    run_step(r);
    for (int i = 0; i < NODES; i++) /* only node 3 has any weight */
        for (int p = 0; p < PARAMS; p++)
            assert_true(fabs(r->w[i][p] - (r->w0[3][p] - LR * r->g[3][p])) < 1e-5);
    tear_down(r);
    r = set_up("ring", 1, AT_MIX_PWG, false, "sgd");
    memset(r->samples, 0, sizeof r->samples);
    run_step(r);
    for (int i = 0; i < NODES; i++) /* nobody has: nothing happens */
        for (int p = 0; p < PARAMS; p++) assert_true(r->w[i][p] == (float)r->w0[i][p]);
    tear_down(r);
}

static void optimizers_with_state_belong_to_their_nodes(void **state)
{
    (void)state;
    rig *r = set_up("ring", 1, AT_MIX_PG, false, "momentum");
    run_step(r);
    r->step.step = 2;
    run_step(r);
    for (int i = 0; i < NODES; i++)
        for (int p = 0; p < PARAMS; p += 11) assert_true(r->node[i].updater.state[0][p] != 0);
    assert_true(r->node[0].updater.state[0][0] != r->node[5].updater.state[0][0]);
    tear_down(r);
}

/* Half of 10 steps, whatever the number of samples. */
static void a_schedule_may_count_steps_in_every_form(void **state)
{
    (void)state;
    for (int form = AT_MIX_PG; form <= AT_MIX_DA; form++) {
        rig         *r = set_up("complete", 1, (at_mix_form)form, false, "sgd");
        at_schedule *schedule = &r->learning.rate[0].schedule;
        assert_int_equal(at_schedule_parse("linear:0,steps", LR, 100, 0, schedule, NULL), AT_OK);
        assert_int_equal(at_schedule_set_steps(schedule, 10, NULL), AT_OK);
        r->step.step = 6;
        r->step.samples_used = 12345;
        for (int i = 0; i < NODES; i++)
            at_gossip_begin(&r->node[i], &r->step, r->gradient[i], r->samples[i]);
        at_gossip_power_mix(&r->power, r->node, PARAMS);
        for (int i = 0; i < NODES; i++)
            assert_true(fabs(at_gossip_end(&r->node[i], &r->step) - LR / 2) < 1e-9);
        tear_down(r);
    }
}

static void the_mean_and_the_disagreement(void **state)
{
    (void)state;
    float        a[2] = {1, 2}, b[2] = {3, 6}, c[2] = {100, 100}, mean[2];
    const float *w[3] = {a, b, c};
    bool         present[3] = {true, true, false};
    double       apart = at_gossip_mean(mean, w, present, 3, 2);
    assert_true(mean[0] == 2 && mean[1] == 4);
    assert_true(fabs(apart - sqrt(5)) < 1e-12); /* both are (1, 2) away */
}

static void too_many_simulated_nodes_are_refused(void **state)
{
    (void)state;
    at_gossip_power power;
    at_fail         fail = {0};
    assert_int_equal(at_gossip_power_init(&power, AT_GOSSIP_POWER_NODES_MAX + 1, &fail),
                     AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "limited to"));
}

/* Four on a ring: in 10 s everybody makes as many rounds as fit; with one slow sender its
 * neighbours wait for it, and theirs wait for them. */
static void rounds_follow_from_the_time_of_messages(void **state)
{
    (void)state;
    at_graph graph;
    uint32_t rounds[4];
    at_ns    scratch[12], equal[4] = {AT_SEC(3), AT_SEC(3), AT_SEC(3), AT_SEC(3)};
    at_ns    slow[4] = {AT_SEC(1), AT_SEC(1), AT_SEC(4), AT_SEC(1)};
    assert_int_equal(at_graph_init(&graph, "ring", 4, AT_GRAPH_METROPOLIS, 1, NULL), AT_OK);
    assert_int_equal(at_gossip_rounds_in_time(&graph, equal, AT_SEC(10), rounds, scratch),
                     AT_SEC(9));
    for (int i = 0; i < 4; i++) assert_int_equal(rounds[i], 3);
    assert_int_equal(at_gossip_rounds_in_time(&graph, equal, AT_SEC(1), rounds, scratch),
                     AT_SEC(3));
    for (int i = 0; i < 4; i++) assert_int_equal(rounds[i], 1); /* at least one */
    at_gossip_rounds_in_time(&graph, slow, AT_SEC(10), rounds, scratch);
    assert_true(rounds[0] > rounds[2] && rounds[2] <= 2);
    at_graph_set_present(&graph, 2, false);
    at_gossip_rounds_in_time(&graph, slow, AT_SEC(10), rounds, scratch);
    assert_int_equal(rounds[0], 10);
    assert_int_equal(rounds[2], 1);
    at_graph_deinit(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_its_formula_on_every_graph),
        cmocka_unit_test(one_round_of_all_pairs_is_the_central_step),
        cmocka_unit_test(rounds_one_by_one_give_the_power),
        cmocka_unit_test(a_node_without_samples_takes_what_the_others_found),
        cmocka_unit_test(optimizers_with_state_belong_to_their_nodes),
        cmocka_unit_test(a_schedule_may_count_steps_in_every_form),
        cmocka_unit_test(the_mean_and_the_disagreement),
        cmocka_unit_test(too_many_simulated_nodes_are_refused),
        cmocka_unit_test(rounds_follow_from_the_time_of_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

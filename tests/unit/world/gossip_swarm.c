/* Random runs of averaging with deaths and joins: workers die between steps and in the middle of
 * them, come back, and stop after different numbers of rounds. Whatever happens,
 *
 *   - weights are not negative, and those of a node sum to 1;
 *   - sums and counts over all nodes stay what they are in every round without a death;
 *   - no value leaves the range that the values had, so the disagreement never grows.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "world/core/gossip_node.h"

enum { RUNS = 400, STEPS = 12, NODES_MAX = 12, PARAMS = 3, ROUNDS_MAX = 8 };

typedef struct swarm {
    at_rng   rng;
    at_graph graph;
    float    message[NODES_MAX][PARAMS];
    double   count[NODES_MAX];
    uint32_t rounds[NODES_MAX]; /* that a node makes in this step */
    bool     dead[NODES_MAX];   /* it died in this step */
} swarm;

static const char *const graphs[] = {"complete", "ring", "star", "exponential", "random:3"};

static uint32_t below(swarm *s, uint32_t limit)
{
    return (uint32_t)at_rng_below(&s->rng, limit);
}

static bool takes_part(const swarm *s, uint32_t node, uint32_t round)
{
    return s->graph.present[node] && !s->dead[node] && s->rounds[node] >= round;
}

/* The vectors that a node averages in a round, as a rank lists them. */
static uint32_t list_parts(const swarm *s, uint32_t me, uint32_t round, at_gossip_part *part)
{
    uint32_t count = 1;
    double   sum = 0;
    part[0] = (at_gossip_part){s->message[me], s->count[me], at_graph_own_weight(&s->graph, me)};
    for (uint32_t k = s->graph.first[me]; k < s->graph.first[me + 1]; k++) {
        uint32_t other = s->graph.neighbour[k];
        if (!s->graph.present[other]) continue;
        double weight = at_graph_weight(&s->graph, me, other);
        if (takes_part(s, other, round))
            part[count++] = (at_gossip_part){s->message[other], s->count[other], weight};
        else
            part[0].weight += weight;
    }
    for (uint32_t k = 0; k < count; k++) {
        assert_true(part[k].weight > -1e-12);
        sum += part[k].weight;
    }
    assert_true(fabs(sum - 1) < 1e-12);
    return count;
}

/* Smallest and largest value of a parameter over the nodes that are there. */
static void range_of(const swarm *s, int p, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (uint32_t i = 0; i < s->graph.nodes; i++) {
        if (!s->graph.present[i] || s->dead[i] || !(s->count[i] > 0)) continue;
        *low = fmin(*low, s->message[i][p] / s->count[i]);
        *high = fmax(*high, s->message[i][p] / s->count[i]);
    }
}

static double total(const swarm *s, int p)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->graph.nodes; i++)
        if (s->graph.present[i] && !s->dead[i]) sum += p < 0 ? s->count[i] : s->message[i][p];
    return sum;
}

static void run_round(swarm *s, uint32_t round)
{
    float          next[NODES_MAX][PARAMS];
    double         next_count[NODES_MAX];
    at_gossip_part part[NODES_MAX + 1];
    for (uint32_t i = 0; i < s->graph.nodes; i++) {
        if (!takes_part(s, i, round)) continue;
        uint32_t count = list_parts(s, i, round, part);
        next_count[i] = at_gossip_average(next[i], PARAMS, part, count);
    }
    for (uint32_t i = 0; i < s->graph.nodes; i++) {
        if (!takes_part(s, i, round)) continue;
        memcpy(s->message[i], next[i], sizeof next[i]);
        s->count[i] = next_count[i];
    }
}

/* One of those that average dies now and then; its neighbours go on without it. */
static void maybe_die(swarm *s)
{
    uint32_t node = below(s, s->graph.nodes), left = 0;
    for (uint32_t i = 0; i < s->graph.nodes; i++) left += s->graph.present[i] && !s->dead[i];
    if (left > 1 && s->graph.present[node] && below(s, 6) == 0) s->dead[node] = true;
}

static void run_step(swarm *s)
{
    for (uint32_t i = 0; i < s->graph.nodes; i++) {
        s->dead[i] = false;
        s->rounds[i] = 1 + below(s, ROUNDS_MAX);
        s->count[i] = below(s, 20); /* 0: it joined late */
        for (int p = 0; p < PARAMS; p++)
            s->message[i][p] = (float)(s->count[i] * at_rng_normal(&s->rng));
    }
    for (uint32_t round = 1; round <= ROUNDS_MAX; round++) {
        double low[PARAMS], high[PARAMS], sum[PARAMS + 1];
        maybe_die(s);
        for (int p = 0; p < PARAMS; p++) range_of(s, p, &low[p], &high[p]);
        for (int p = -1; p < PARAMS; p++) sum[p + 1] = total(s, p);
        run_round(s, round);
        for (int p = -1; p < PARAMS; p++)
            assert_true(fabs(total(s, p) - sum[p + 1]) < 1e-4 * (1 + fabs(sum[p + 1])));
        for (int p = 0; p < PARAMS; p++) {
            double low_now, high_now, slack = 1e-4 * (1 + fabs(low[p]) + fabs(high[p]));
            range_of(s, p, &low_now, &high_now);
            if (low_now > high_now) continue; /* nobody has a sample */
            assert_true(low_now >= low[p] - slack && high_now <= high[p] + slack);
        }
    }
}

/* The dead leave the graph, and somebody may come back. */
static void change_members(swarm *s)
{
    uint32_t node = below(s, s->graph.nodes);
    for (uint32_t i = 0; i < s->graph.nodes; i++)
        if (s->dead[i]) at_graph_set_present(&s->graph, i, false);
    if (below(s, 2) == 0) at_graph_set_present(&s->graph, node, true);
}

static void mass_is_conserved_and_disagreement_never_grows(void **state)
{
    (void)state;
    for (uint32_t run = 0; run < RUNS; run++) {
        swarm           s = {.rng = at_rng_stream(run, 0, AT_RNG_PURPOSE_TEST, 1)};
        const char     *graph = graphs[below(&s, sizeof graphs / sizeof *graphs)];
        at_graph_matrix matrix = below(&s, 2) ? AT_GRAPH_METROPOLIS : AT_GRAPH_LAPLACIAN;
        uint32_t        nodes = 2 + below(&s, NODES_MAX - 1);
        assert_int_equal(at_graph_init(&s.graph, graph, nodes, matrix, run, NULL), AT_OK);
        for (int step = 0; step < STEPS; step++) {
            run_step(&s);
            change_members(&s);
        }
        at_graph_deinit(&s.graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mass_is_conserved_and_disagreement_never_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

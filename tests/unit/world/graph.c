/* Graphs for gossip: shapes, weights that conserve the mean, and how fast averaging settles. */
#include "world/core/graph.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"

static at_graph build(const char *name, uint32_t nodes, at_graph_matrix matrix)
{
    at_graph graph;
    at_fail  fail = {0};
    at_err   err = at_graph_init(&graph, name, nodes, matrix, 7, &fail);
    if (err) fail_msg("%s: %s", name, fail.text);
    return graph;
}

static void refuse(const char *name, uint32_t nodes, at_err expected, const char *says)
{
    at_graph graph;
    at_fail  fail = {0};
    assert_int_equal(at_graph_init(&graph, name, nodes, AT_GRAPH_METROPOLIS, 7, &fail), expected);
    if (!strstr(fail.text, says)) fail_msg("%s: `%s` does not say `%s`", name, fail.text, says);
    assert_null(graph.first);
}

static const struct shape {
    const char *name;
    uint32_t    nodes, edges;
} shapes[] = {{"complete", 5, 10},     {"ring", 7, 7},          {"ring", 2, 1},
              {"ring", 1, 0},          {"star", 6, 5},          {"torus", 12, 24},
              {"torus", 4, 4},         {"hypercube", 16, 32},   {"exponential", 9, 27},
              {"exponential", 10, 30}, {"amb-iclr-10", 10, 16}, {"random:2", 40, 40}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void graphs_have_their_edges_both_ways(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        at_graph graph = build(shapes[s].name, shapes[s].nodes, AT_GRAPH_METROPOLIS);
        assert_int_equal(graph.first[graph.nodes], 2 * shapes[s].edges);
        assert_true(at_graph_connected(&graph));
        for (uint32_t i = 0; i < graph.nodes; i++)
            for (uint32_t k = graph.first[i]; k < graph.first[i + 1]; k++) {
                uint32_t j = graph.neighbour[k], found = 0;
                for (uint32_t m = graph.first[j]; m < graph.first[j + 1]; m++)
                    found += graph.neighbour[m] == i;
                assert_int_equal(found, 1);
                if (k > graph.first[i]) assert_true(graph.neighbour[k - 1] < j);
            }
        at_graph_deinit(&graph);
    }
}

/* P^rounds by plain matrix products, as the definition says. */
static void mix_by_definition(const at_graph *graph, uint32_t rounds, const double *from,
                              double *to)
{
    uint32_t n = graph->nodes;
    double  *next = calloc(n, sizeof *next);
    memcpy(to, from, n * sizeof *to);
    for (uint32_t r = 0; r < rounds; r++) {
        for (uint32_t i = 0; i < n; i++) {
            double others = 0;
            next[i] = 0;
            for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++) {
                uint32_t j = graph->neighbour[k];
                uint32_t di = graph->first[i + 1] - graph->first[i];
                uint32_t dj = graph->first[j + 1] - graph->first[j];
                double   weight = 1.0 / (1 + (di > dj ? di : dj));
                next[i] += weight * to[j];
                others += weight;
            }
            next[i] += (1 - others) * to[i];
        }
        memcpy(to, next, n * sizeof *to);
    }
    free(next);
}

static void mixing_is_a_power_of_the_matrix_and_keeps_the_mean(void **state)
{
    (void)state;
    double from[40], to[40], expected[40], scratch[40];
    at_rng rng = at_rng_stream(3, 0, AT_RNG_PURPOSE_TEST, 0);
    for (int s = 0; s < SHAPES; s++) {
        at_graph graph = build(shapes[s].name, shapes[s].nodes, AT_GRAPH_METROPOLIS);
        double   before = 0, after = 0;
        for (uint32_t i = 0; i < graph.nodes; i++) before += from[i] = at_rng_normal(&rng);
        for (uint32_t rounds = 0; rounds < 20; rounds += 5) {
            at_graph_mix(&graph, rounds, from, to, scratch);
            mix_by_definition(&graph, rounds, from, expected);
            for (uint32_t i = 0; i < graph.nodes; i++)
                assert_true(fabs(to[i] - expected[i]) < 1e-12);
        }
        for (uint32_t i = 0; i < graph.nodes; i++) after += to[i];
        assert_true(fabs(after - before) < 1e-9);
        at_graph_deinit(&graph);
    }
}

static void nodes_with_fewer_rounds_are_left_out_and_the_sum_stays(void **state)
{
    (void)state;
    double   from[40], to[40], expected[40], scratch[40];
    uint32_t rounds[40];
    at_rng   rng = at_rng_stream(4, 0, AT_RNG_PURPOSE_TEST, 0);
    for (int s = 0; s < SHAPES; s++) {
        at_graph graph = build(shapes[s].name, shapes[s].nodes, AT_GRAPH_METROPOLIS);
        double   before = 0, after = 0;
        for (uint32_t i = 0; i < graph.nodes; i++) before += from[i] = at_rng_normal(&rng);
        for (uint32_t i = 0; i < graph.nodes; i++) rounds[i] = 7;
        at_graph_mix_unequal(&graph, rounds, from, to, scratch);
        mix_by_definition(&graph, 7, from, expected);
        for (uint32_t i = 0; i < graph.nodes; i++) assert_true(fabs(to[i] - expected[i]) < 1e-12);
        for (uint32_t i = 0; i < graph.nodes; i++) rounds[i] = 1 + (uint32_t)at_rng_below(&rng, 9);
        at_graph_mix_unequal(&graph, rounds, from, to, scratch);
        for (uint32_t i = 0; i < graph.nodes; i++) after += to[i];
        assert_true(fabs(after - before) < 1e-9);
        for (uint32_t i = 0; i < graph.nodes; i++) from[i] = 1;
        at_graph_mix_unequal(&graph, rounds, from, to, scratch); /* rows sum to 1 */
        for (uint32_t i = 0; i < graph.nodes; i++) assert_true(fabs(to[i] - 1) < 1e-12);
        at_graph_deinit(&graph);
    }
}

static double eigenvalue(const char *name, uint32_t nodes, at_graph_matrix matrix)
{
    at_graph graph = build(name, nodes, matrix);
    double   value = at_graph_second_eigenvalue(&graph);
    at_graph_deinit(&graph);
    return value;
}

static void eigenvalues_are_the_known_ones(void **state)
{
    (void)state;
    /* published: 0.888 and 0.901 */
    assert_true(fabs(eigenvalue("amb-iclr-10", 10, AT_GRAPH_METROPOLIS) - 0.888) < 5e-4);
    assert_true(fabs(eigenvalue("amb-iclr-10", 10, AT_GRAPH_LAPLACIAN) - 0.901) < 5e-4);
    assert_true(eigenvalue("complete", 8, AT_GRAPH_METROPOLIS) < 1e-9);
    double ring = (1 + 2 * cos(2 * acos(-1) / 100)) / 3;
    assert_true(fabs(eigenvalue("ring", 100, AT_GRAPH_METROPOLIS) - ring) < 1e-6);
    /* a hypercube of dimension d: 1 - 2/(d+1), and -(d-1)/(d+1), which is as large */
    assert_true(fabs(eigenvalue("hypercube", 16, AT_GRAPH_METROPOLIS) - 0.6) < 1e-9);
    assert_true(eigenvalue("ring", 1, AT_GRAPH_METROPOLIS) == 0);
}

static void disagreement_decays_as_the_eigenvalue_says(void **state)
{
    (void)state;
    enum { N = 10 };
    double   from[N] = {1}, at10[N], at20[N], scratch[N], d10 = 0, d20 = 0;
    at_graph graph = build("amb-iclr-10", N, AT_GRAPH_METROPOLIS);
    double   value = at_graph_second_eigenvalue(&graph);
    at_graph_mix(&graph, 10, from, at10, scratch);
    at_graph_mix(&graph, 20, from, at20, scratch);
    for (int i = 0; i < N; i++) {
        d10 += (at10[i] - 0.1) * (at10[i] - 0.1);
        d20 += (at20[i] - 0.1) * (at20[i] - 0.1);
    }
    assert_true(sqrt(d20 / d10) <= pow(value, 10) * 1.0001);
    assert_true(sqrt(d20 / d10) >= pow(value, 10) * 0.5);
    at_graph_deinit(&graph);
}

static void who_is_absent_keeps_its_value_and_the_others_their_mean(void **state)
{
    (void)state;
    double   from[10] = {1, 2, 3, 4, 100, 6, 7, 8, 9, 10}, to[10], scratch[10];
    at_graph graph = build("amb-iclr-10", 10, AT_GRAPH_METROPOLIS);
    at_graph_set_present(&graph, 4, false);
    at_graph_mix(&graph, 400, from, to, scratch);
    for (int i = 0; i < 10; i++) assert_true(fabs(to[i] - (i == 4 ? 100 : 50.0 / 9)) < 1e-9);
    at_graph_set_present(&graph, 5, false); /* node 8 hangs on 9 alone now */
    assert_true(at_graph_connected(&graph));
    at_graph_set_present(&graph, 9, false);
    assert_false(at_graph_connected(&graph)); /* 8 is alone */
    assert_true(at_graph_second_eigenvalue(&graph) == 1);
    at_graph_set_present(&graph, 9, true);
    at_graph_set_present(&graph, 5, true);
    at_graph_set_present(&graph, 4, true);
    assert_true(fabs(at_graph_second_eigenvalue(&graph) - 0.888) < 5e-4);
    at_graph_deinit(&graph);
}

static void a_random_graph_is_connected_and_comes_from_the_seed(void **state)
{
    (void)state;
    for (uint32_t n = 2; n < 60; n += 3)
        for (int d = 2; d <= 5; d++) {
            char name[20];
            snprintf(name, sizeof name, "random:%d", d);
            at_graph a = build(name, n, AT_GRAPH_METROPOLIS), b;
            assert_true(at_graph_connected(&a));
            for (uint32_t i = 0; i < n; i++) assert_true(a.degree[i] <= (uint32_t)d);
            b = build(name, n, AT_GRAPH_METROPOLIS);
            assert_memory_equal(a.neighbour, b.neighbour, a.first[n] * sizeof *a.neighbour);
            at_graph_deinit(&a);
            at_graph_deinit(&b);
        }
}

enum { PATH_SIZE = 40 };

static void write_bytes(char *path, const void *bytes, size_t size)
{
    snprintf(path, PATH_SIZE, "/tmp/anytime-graph-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static void write_file(char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static void edges_come_from_a_file(void **state)
{
    (void)state;
    char path[PATH_SIZE], name[60];
    write_file(path, "# a path of four\n0 1\n\n2,1 # commas, too\n2\t3\n2 3\n");
    snprintf(name, sizeof name, "file:%s", path);
    at_graph graph = build(name, 4, AT_GRAPH_LAPLACIAN);
    assert_int_equal(graph.first[4], 6);
    assert_true(at_graph_connected(&graph));
    at_graph_deinit(&graph);
    refuse(name, 3, AT_ERR_FORMAT, ":5: expected two nodes from 0 to 2");
    unlink(path);
    static const char *const bad[] = {"0\n", "0 1 2\n", "0 -1\n", "a b\n",
                                      "0 99999999999999999999\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(path, bad[i]);
        snprintf(name, sizeof name, "file:%s", path);
        refuse(name, 4, AT_ERR_FORMAT, ":1: expected two nodes");
        unlink(path);
    }
    refuse(name, 4, AT_ERR_MISSING, "anytime-graph");
}

static void edges_after_a_zero_byte_are_not_ignored(void **state)
{
    (void)state;
    static const char zero[] = "0 1\n1 2\n\0 2 3\n";
    char              path[PATH_SIZE], name[60];
    write_bytes(path, zero, sizeof zero - 1);
    snprintf(name, sizeof name, "file:%s", path);
    refuse(name, 4, AT_ERR_FORMAT, "not a text file");
    unlink(path);
}

static void wrong_graphs_are_refused_with_a_sentence(void **state)
{
    (void)state;
    refuse("rong", 4, AT_ERR_USAGE, "rong");
    refuse("ring:3", 4, AT_ERR_USAGE, "ring:3");
    refuse("torus", 7, AT_ERR_USAGE, "not a product");
    refuse("hypercube", 12, AT_ERR_USAGE, "not a power of two");
    refuse("amb-iclr-10", 9, AT_ERR_USAGE, "10 nodes");
    refuse("random", 9, AT_ERR_USAGE, "number of neighbors");
    refuse("random:1", 9, AT_ERR_USAGE, "number of neighbors");
    refuse("file", 9, AT_ERR_USAGE, "path");
    refuse("complete", 60000, AT_ERR_USAGE, "too many edges");
    refuse("ring", 70000, AT_ERR_USAGE, "limited to");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_have_their_edges_both_ways),
        cmocka_unit_test(mixing_is_a_power_of_the_matrix_and_keeps_the_mean),
        cmocka_unit_test(nodes_with_fewer_rounds_are_left_out_and_the_sum_stays),
        cmocka_unit_test(eigenvalues_are_the_known_ones),
        cmocka_unit_test(disagreement_decays_as_the_eigenvalue_says),
        cmocka_unit_test(who_is_absent_keeps_its_value_and_the_others_their_mean),
        cmocka_unit_test(a_random_graph_is_connected_and_comes_from_the_seed),
        cmocka_unit_test(edges_come_from_a_file),
        cmocka_unit_test(edges_after_a_zero_byte_are_not_ignored),
        cmocka_unit_test(wrong_graphs_are_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

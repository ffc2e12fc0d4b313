/* Fuzz target: any text as the name of a gossip graph, and after a zero byte the file of edges,
 * which the name calls `@`. The first byte is the number of workers and how the graph weighs. What
 * is accepted mixes: weights are symmetric, from 0 to 1, and sum up to 1. */
#include "world/core/graph.h"

#include <math.h>
#include <string.h>

#include "../folder.h"

enum { NODES_MAX = 32, NAME_MAX = 100 };

static const double SLACK = 1e-12;

static void check_node(const at_graph *graph, uint32_t i)
{
    double own = at_graph_own_weight(graph, i), sum = own;
    assert(own > -SLACK && own <= 1);
    for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++) {
        uint32_t j = graph->neighbour[k];
        assert(j < graph->nodes && j != i && (k == graph->first[i] || graph->neighbour[k - 1] < j));
        if (!graph->present[i] || !graph->present[j]) continue;
        double weight = at_graph_weight(graph, i, j);
        assert(weight > 0 && weight <= 1 && weight == at_graph_weight(graph, j, i));
        sum += weight;
    }
    assert(fabs(sum - 1) < SLACK);
}

static void check(const at_graph *graph)
{
    for (uint32_t i = 0; i < graph->nodes; i++) check_node(graph, i);
    double second = at_graph_second_eigenvalue(graph);
    assert(second >= 0 && second <= 1);
    assert(at_graph_connected(graph) || second == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char     name[NAME_MAX + 1] = "", full[NAME_MAX + 256];
    at_graph graph;
    at_fail  fail = {0};
    if (size < 1) return 0;
    const uint8_t  *text = data + 1, *end = memchr(text, 0, size - 1);
    size_t          length = end ? (size_t)(end - text) : size - 1;
    at_graph_matrix matrix = data[0] & 0x80 ? AT_GRAPH_LAPLACIAN : AT_GRAPH_METROPOLIS;
    if (length > NAME_MAX) return 0;
    memcpy(name, text, length);
    fuzz_put_path(
        full, sizeof full, name,
        fuzz_file("edges", text + length + (end != NULL), end ? size - length - 2 : 0, NULL, 0));
    at_err err = at_graph_init(&graph, full, 1 + data[0] % NODES_MAX, matrix, 7, &fail);
    assert(!err == !fail.text[0]);
    if (err) return 0;
    check(&graph);
    at_graph_set_present(&graph, graph.nodes / 2, false);
    check(&graph);
    at_graph_deinit(&graph);
    return 0;
}

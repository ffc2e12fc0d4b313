/* Graphs for gossip: construction, weights and the second eigenvalue. */
#include "world/core/graph.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"

/* ---- a list of edges ------------------------------------------------------------------------- */

typedef struct edge {
    uint32_t a, b; /* a < b */
} edge;

typedef struct edges {
    edge    *at;
    size_t   count, room;
    uint32_t nodes;
    bool     failed; /* out of memory, or too many */
} edges;

/* An edge from a node to itself, or one that is there already, changes nothing in the end. */
static void add(edges *list, uint32_t a, uint32_t b)
{
    assert(a < list->nodes && b < list->nodes);
    if (a == b || list->failed) return;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        edge  *grown = room <= 2 * (size_t)AT_GRAPH_EDGES_MAX
                           ? realloc(list->at, room * sizeof *list->at)
                           : NULL;
        list->failed = !grown;
        if (!grown) return;
        list->at = grown;
        list->room = room;
    }
    list->at[list->count++] = a < b ? (edge){a, b} : (edge){b, a};
}

static int compare_edges(const void *left, const void *right)
{
    const edge *l = left, *r = right;
    if (l->a != r->a) return l->a < r->a ? -1 : 1;
    return l->b < r->b ? -1 : l->b > r->b;
}

static void sort_and_unite(edges *list)
{
    size_t kept = 0;
    if (list->count > 0) qsort(list->at, list->count, sizeof *list->at, compare_edges);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || compare_edges(&list->at[kept - 1], &list->at[i]) != 0)
            list->at[kept++] = list->at[i];
    list->count = kept;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

typedef at_err (*build_edges)(edges *list, const char *number, uint64_t seed, at_fail *fail);

static at_err complete(edges *list, const char *number, uint64_t seed, at_fail *fail)
{
    (void)number, (void)seed;
    if ((uint64_t)list->nodes * (list->nodes - 1) / 2 > AT_GRAPH_EDGES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, "use `exponential` or `random:8`",
                           "a complete graph of %u workers has too many edges", list->nodes);
    for (uint32_t a = 0; a < list->nodes; a++)
        for (uint32_t b = a + 1; b < list->nodes; b++) add(list, a, b);
    return AT_OK;
}

static at_err ring(edges *list, const char *number, uint64_t seed, at_fail *fail)
{
    (void)number, (void)seed, (void)fail;
    for (uint32_t a = 0; a < list->nodes; a++) add(list, a, (a + 1) % list->nodes);
    return AT_OK;
}

static at_err star(edges *list, const char *number, uint64_t seed, at_fail *fail)
{
    (void)number, (void)seed, (void)fail;
    for (uint32_t a = 1; a < list->nodes; a++) add(list, 0, a);
    return AT_OK;
}

/* As square as the number of nodes permits. */
static at_err torus(edges *list, const char *number, uint64_t seed, at_fail *fail)
{
    uint32_t n = list->nodes, rows = (uint32_t)sqrt((double)n);
    (void)number, (void)seed;
    while (rows > 1 && n % rows != 0) rows--;
    if (rows < 2)
        return at_fail_set(fail, AT_ERR_USAGE, "use `ring`, or another number of workers",
                           "%u workers cannot form a torus, because %u is not a product", n, n);
    uint32_t columns = n / rows;
    for (uint32_t a = 0; a < n; a++) {
        uint32_t row = a / columns, column = a % columns;
        add(list, a, row * columns + (column + 1) % columns);
        add(list, a, (row + 1) % rows * columns + column);
    }
    return AT_OK;
}

static at_err hypercube(edges *list, const char *number, uint64_t seed, at_fail *fail)
{
    uint32_t n = list->nodes;
    (void)number, (void)seed;
    if ((n & (n - 1)) != 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use `exponential`, or 2, 4, 8, 16 .. workers",
                           "%u workers cannot form a hypercube, because %u is not a power of two",
                           n, n);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t bit = 1; bit < n; bit *= 2) add(list, a, a ^ bit);
    return AT_OK;
}

static at_err exponential(edges *list, const char *number, uint64_t seed, at_fail *fail)
{
    (void)number, (void)seed, (void)fail;
    for (uint32_t a = 0; a < list->nodes; a++)
        for (uint32_t far = 1; far < list->nodes; far *= 2) add(list, a, (a + far) % list->nodes);
    return AT_OK;
}

static void shuffle(uint32_t *order, uint32_t n, at_rng *rng)
{
    assert(n > 0);
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t j = (uint32_t)at_rng_below(rng, i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Random rings through all nodes (so it is connected), and pairs if D is odd. Where two of them
 * share an edge, a node has fewer than D neighbors. */
static at_err random_graph(edges *list, const char *number, uint64_t seed, at_fail *fail)
{
    int64_t  wanted = 0;
    uint32_t n = list->nodes;
    if (!number || !at_text_whole(number, &wanted) || wanted < 2 || wanted > 1000)
        return at_fail_set(fail, AT_ERR_USAGE, "for example random:4",
                           "`random` needs a number of neighbors from 2 to 1000, not `%s`",
                           number ? number : "");
    uint32_t *order = malloc(n * sizeof *order);
    at_rng    rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_NETWORK, (uint64_t)wanted);
    if (!order) return at_fail_memory(fail);
    for (int64_t left = wanted; left > 0; left -= 2) {
        shuffle(order, n, &rng);
        uint32_t stride = left == 1 ? 2 : 1; /* an odd one left: pairs */
        for (uint32_t i = 0; i + (stride - 1) < n; i += stride)
            add(list, order[i], order[(i + 1) % n]);
    }
    free(order);
    return AT_OK;
}

static at_err amb_iclr_10(edges *list, const char *number, uint64_t seed, at_fail *fail)
{
    static const edge published[] = {{0, 1}, {0, 5}, {0, 9}, {1, 2}, {1, 3}, {1, 6},
                                     {1, 7}, {1, 9}, {2, 3}, {3, 5}, {3, 7}, {4, 5},
                                     {5, 8}, {5, 9}, {6, 7}, {8, 9}};
    (void)number, (void)seed;
    if (list->nodes != 10)
        return at_fail_set(fail, AT_ERR_USAGE, "use --workers 10, or another graph",
                           "the graph amb-iclr-10 has 10 nodes, and there are %u workers",
                           list->nodes);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        add(list, published[i].a, published[i].b);
    return AT_OK;
}

/* One line of a file of edges; blank lines and comments are skipped. */
static at_err read_edge(edges *list, const char *path, unsigned line, char *text, at_fail *fail)
{
    char   *comment = strchr(text, '#'), *rest = NULL;
    int64_t a = -1, b = -1;
    if (comment) *comment = '\0';
    char *first = strtok_r(text, " \t\r,", &rest);
    if (!first) return AT_OK;
    char *second = strtok_r(NULL, " \t\r,", &rest);
    bool  two = second && !strtok_r(NULL, " \t\r,", &rest) && at_text_whole(first, &a) &&
               at_text_whole(second, &b);
    if (two && a >= 0 && b >= 0 && a < list->nodes && b < list->nodes) {
        add(list, (uint32_t)a, (uint32_t)b);
        return AT_OK;
    }
    return at_fail_set(fail, AT_ERR_FORMAT, "nodes are counted from 0, for example: 0 1",
                       "%s:%u: expected two nodes from 0 to %u", path, line, list->nodes - 1);
}

static at_err from_file(edges *list, const char *path, uint64_t seed, at_fail *fail)
{
    char  *text;
    at_err err = AT_OK;
    (void)seed;
    if (!path || !*path)
        return at_fail_set(fail, AT_ERR_USAGE, "for example file:edges.txt",
                           "`file` needs the path of a list of edges");
    AT_TRY(at_file_read_text(path, (size_t)AT_GRAPH_EDGES_MAX * 16, &text, fail));
    unsigned line = 1;
    for (char *at = text; at && !err; line++) {
        char *end = strchr(at, '\n');
        if (end) *end = '\0';
        err = read_edge(list, path, line, at, fail);
        at = end ? end + 1 : NULL;
    }
    free(text);
    return err;
}

static const struct kind {
    const char *name;
    build_edges build;
    bool        takes_more; /* after a colon */
} kinds[] = {{"complete", complete, false},   {"ring", ring, false},
             {"torus", torus, false},         {"star", star, false},
             {"hypercube", hypercube, false}, {"exponential", exponential, false},
             {"random", random_graph, true},  {"amb-iclr-10", amb_iclr_10, false},
             {"file", from_file, true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *find_kind(const char *name, const char **more)
{
    const char *colon = strchr(name, ':');
    size_t      length = colon ? (size_t)(colon - name) : strlen(name);
    *more = colon ? colon + 1 : NULL;
    for (int i = 0; i < KINDS; i++)
        if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, name, length) == 0 &&
            (!colon || kinds[i].takes_more))
            return &kinds[i];
    return NULL;
}

/* ---- construction ---------------------------------------------------------------------------- */

static void count_degrees(at_graph *graph)
{
    graph->degree_max = 0;
    for (uint32_t i = 0; i < graph->nodes; i++) {
        graph->degree[i] = 0;
        for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++)
            graph->degree[i] += graph->present[graph->neighbour[k]];
        if (graph->present[i] && graph->degree[i] > graph->degree_max)
            graph->degree_max = graph->degree[i];
    }
}

/* Edges are sorted, so both passes below list the neighbors of each node in increasing order. */
static at_err fill(at_graph *graph, const edges *list, at_fail *fail)
{
    uint32_t n = list->nodes;
    graph->first = calloc((size_t)n + 1, sizeof *graph->first);
    graph->neighbour = calloc(2 * list->count + 1, sizeof *graph->neighbour);
    graph->present = malloc(n * sizeof *graph->present);
    graph->degree = calloc(n, sizeof *graph->degree);
    uint32_t *next = calloc(n, sizeof *next);
    if (!graph->first || !graph->neighbour || !graph->present || !graph->degree || !next) {
        free(next);
        return at_fail_memory(fail);
    }
    for (size_t i = 0; i < list->count; i++) {
        graph->first[list->at[i].a + 1]++;
        graph->first[list->at[i].b + 1]++;
    }
    for (uint32_t i = 0; i < n; i++) graph->first[i + 1] += graph->first[i];
    memcpy(next, graph->first, n * sizeof *next);
    for (size_t i = 0; i < list->count; i++)
        graph->neighbour[next[list->at[i].b]++] = list->at[i].a;
    for (size_t i = 0; i < list->count; i++)
        graph->neighbour[next[list->at[i].a]++] = list->at[i].b;
    free(next);
    for (uint32_t i = 0; i < n; i++) graph->present[i] = true;
    count_degrees(graph);
    return AT_OK;
}

at_err at_graph_init(at_graph *graph, const char *name, uint32_t nodes, at_graph_matrix matrix,
                     uint64_t seed, at_fail *fail)
{
    const char        *more;
    const struct kind *kind = find_kind(name, &more);
    edges              list = {.nodes = nodes};
    assert(nodes >= 1);
    *graph = (at_graph){.nodes = nodes, .matrix = matrix};
    if (!kind) {
        const char *names[KINDS];
        for (int i = 0; i < KINDS; i++) names[i] = kinds[i].name;
        return at_text_unknown("graph", name, names, KINDS, fail);
    }
    if (nodes > AT_GRAPH_NODES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, "use fewer workers",
                           "gossip is limited to %d workers", AT_GRAPH_NODES_MAX);
    at_err err = kind->build(&list, more, seed, fail);
    sort_and_unite(&list);
    if (!err && (list.failed || list.count > AT_GRAPH_EDGES_MAX))
        err = at_fail_set(fail, AT_ERR_FAILED, "use a graph with fewer edges",
                          "the graph %s of %u workers is too large", name, nodes);
    if (!err) err = fill(graph, &list, fail);
    free(list.at);
    if (err) at_graph_deinit(graph);
    return err;
}

void at_graph_deinit(at_graph *graph)
{
    free(graph->first);
    free(graph->neighbour);
    free(graph->present);
    free(graph->degree);
    *graph = (at_graph){0};
}

void at_graph_set_present(at_graph *graph, uint32_t node, bool present)
{
    assert(node < graph->nodes);
    if (graph->present[node] == present) return;
    graph->present[node] = present;
    count_degrees(graph);
}

/* ---- weights --------------------------------------------------------------------------------- */

double at_graph_weight(const at_graph *graph, uint32_t i, uint32_t j)
{
    assert(i != j && graph->present[i] && graph->present[j]);
    if (graph->matrix == AT_GRAPH_LAPLACIAN) return 1.0 / (1.0 + graph->degree_max);
    uint32_t larger = graph->degree[i] > graph->degree[j] ? graph->degree[i] : graph->degree[j];
    return 1.0 / (1.0 + larger);
}

double at_graph_own_weight(const at_graph *graph, uint32_t i)
{
    double rest = 1;
    assert(i < graph->nodes);
    if (!graph->present[i]) return 1;
    for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++)
        if (graph->present[graph->neighbour[k]])
            rest -= at_graph_weight(graph, i, graph->neighbour[k]);
    return rest;
}

/* to = P from */
static void multiply(const at_graph *graph, const double *from, double *to)
{
    for (uint32_t i = 0; i < graph->nodes; i++) {
        double sum = at_graph_own_weight(graph, i) * from[i];
        for (uint32_t k = graph->first[i]; graph->present[i] && k < graph->first[i + 1]; k++) {
            uint32_t j = graph->neighbour[k];
            if (graph->present[j]) sum += at_graph_weight(graph, i, j) * from[j];
        }
        to[i] = sum;
    }
}

void at_graph_mix(const at_graph *graph, uint32_t rounds, const double *from, double *to,
                  double *scratch)
{
    size_t bytes = graph->nodes * sizeof *to;
    assert(from != to && to != scratch && from != scratch);
    memcpy(to, from, bytes);
    for (uint32_t r = 0; r < rounds; r++) {
        memcpy(scratch, to, bytes);
        multiply(graph, scratch, to);
    }
}

/* to = P from, without the nodes that make fewer than `round` rounds. */
static void multiply_some(const at_graph *graph, const uint32_t *rounds, uint32_t round,
                          const double *from, double *to)
{
    for (uint32_t i = 0; i < graph->nodes; i++) {
        to[i] = from[i];
        if (!graph->present[i] || rounds[i] < round) continue;
        for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++) {
            uint32_t j = graph->neighbour[k];
            if (graph->present[j] && rounds[j] >= round)
                to[i] += at_graph_weight(graph, i, j) * (from[j] - from[i]);
        }
    }
}

void at_graph_mix_unequal(const at_graph *graph, const uint32_t *rounds, const double *from,
                          double *to, double *scratch)
{
    size_t   bytes = graph->nodes * sizeof *to;
    uint32_t most = 0;
    assert(from != to && to != scratch && from != scratch);
    for (uint32_t i = 0; i < graph->nodes; i++)
        if (graph->present[i] && rounds[i] > most) most = rounds[i];
    memcpy(to, from, bytes);
    for (uint32_t r = 1; r <= most; r++) {
        memcpy(scratch, to, bytes);
        multiply_some(graph, rounds, r, scratch, to);
    }
}

/* ---- second eigenvalue ----------------------------------------------------------------------- */

static uint32_t count_present(const at_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->nodes; i++) count += graph->present[i];
    return count;
}

bool at_graph_connected(const at_graph *graph)
{
    uint32_t *queue = malloc(graph->nodes * sizeof *queue), head = 0, tail = 0;
    bool     *seen = calloc(graph->nodes, sizeof *seen);
    assert(graph->nodes > 0);
    for (uint32_t i = 0; queue && seen && i < graph->nodes && tail == 0; i++)
        if (graph->present[i]) seen[queue[tail++] = i] = true;
    while (head < tail) {
        uint32_t i = queue[head++];
        for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++) {
            uint32_t j = graph->neighbour[k];
            if (graph->present[j] && !seen[j]) seen[queue[tail++] = j] = true;
        }
    }
    bool connected = queue && seen && tail == count_present(graph);
    free(queue);
    free(seen);
    return connected;
}

/* Removes the mean over present nodes and scales to length 1; absent nodes are zero. */
static double normalize(const at_graph *graph, double *x, uint32_t count)
{
    double mean = 0, norm2 = 0;
    for (uint32_t i = 0; i < graph->nodes; i++) mean += graph->present[i] ? x[i] : 0;
    mean /= count;
    for (uint32_t i = 0; i < graph->nodes; i++) {
        x[i] = graph->present[i] ? x[i] - mean : 0;
        norm2 += x[i] * x[i];
    }
    double norm = sqrt(norm2);
    for (uint32_t i = 0; norm > 0 && i < graph->nodes; i++) x[i] /= norm;
    return norm;
}

/* Power iteration on P, without the eigenvector of ones. Two products at a time, because the
 * largest two may be equal but for the sign. */
static double iterate(const at_graph *graph, double *x, double *y, uint32_t count)
{
    enum { TIMES_MAX = 20000 };
    at_rng rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_NETWORK, 0);
    double square = 0;
    for (uint32_t i = 0; i < graph->nodes; i++) x[i] = at_rng_uniform(&rng) - 0.5;
    normalize(graph, x, count);
    for (int t = 0; t < TIMES_MAX; t++) {
        multiply(graph, x, y);
        multiply(graph, y, x);
        double next = normalize(graph, x, count);
        if (next < 1e-24) return 0;
        bool settled = fabs(next - square) <= 1e-13 * next;
        square = next;
        if (settled && t > 20) break;
    }
    return sqrt(square);
}

double at_graph_second_eigenvalue(const at_graph *graph)
{
    uint32_t count = count_present(graph);
    if (count < 2) return 0;
    if (!at_graph_connected(graph)) return 1;
    double *x = malloc(graph->nodes * sizeof *x), *y = malloc(graph->nodes * sizeof *y);
    double  value = x && y ? iterate(graph, x, y, count) : -1;
    free(x);
    free(y);
    assert(value <= 1 + 1e-9);
    return value < 1 ? value : 1;
}

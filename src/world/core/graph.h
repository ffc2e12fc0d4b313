/* graph.h - who is whose neighbor under `mix gossip`, and the matrix that averages.
 *
 * Workers are the nodes 0 .. n-1 of an undirected graph. In a round of averaging a node replaces
 * its value by a weighted mean of its own and its neighbors' values, x <- P x. P is symmetric,
 * and its rows sum to 1, so the mean over all nodes stays what it is while the values approach
 * it: per round, the distance shrinks at least by the factor at_graph_second_eigenvalue.
 *
 *     complete      all pairs                   torus         a grid without edges
 *     ring          two neighbors               hypercube     2^d nodes
 *     star          node 0 in the middle        exponential   at distances 1, 2, 4, 8 ..
 *     random:D      D neighbors, by the seed    amb-iclr-10   the graph of the AMB paper, 10 nodes
 *     file:PATH     a line "A B" per edge, nodes counted from 0
 */
#ifndef AT_WORLD_CORE_GRAPH_H
#define AT_WORLD_CORE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "step/mixing.h"

enum { AT_GRAPH_NODES_MAX = 65536, AT_GRAPH_EDGES_MAX = 16 * 1024 * 1024 };

typedef struct at_graph {
    uint32_t        nodes;
    at_graph_matrix matrix;
    uint32_t       *first;     /* nodes + 1 of them: neighbour[first[i] .. first[i+1]-1] are i's */
    uint32_t       *neighbour; /* in increasing order */
    bool           *present;   /* absent nodes keep their value and nobody hears them */
    uint32_t       *degree;    /* number of present neighbors */
    uint32_t        degree_max;
} at_graph;

/* Builds the graph called `name` (see above) with all nodes present. AT_ERR_USAGE: no such graph,
 * or none with this many nodes; file: also the errors of reading it. */
at_err at_graph_init(at_graph *graph, const char *name, uint32_t nodes, at_graph_matrix matrix,
                     uint64_t seed, at_fail *fail);
void   at_graph_deinit(at_graph *graph); /* accepts a zeroed one */

/* Removes a node, or brings it back. P changes for it and all around it. */
void at_graph_set_present(at_graph *graph, uint32_t node, bool present);

/* P_ij of two present neighbors, and P_ii of any node. */
double at_graph_weight(const at_graph *graph, uint32_t i, uint32_t j);
double at_graph_own_weight(const at_graph *graph, uint32_t i);

/* True if every present node can be reached from every other. */
bool at_graph_connected(const at_graph *graph);

/* The second largest absolute eigenvalue of P over the present nodes; 1 if they are not connected,
 * 0 if there are fewer than two. Negative: not enough memory. */
double at_graph_second_eigenvalue(const at_graph *graph);

/* to = P^rounds * from, for one number per node. `scratch` has room for one more; the three vectors
 * do not overlap. Absent nodes keep their numbers. */
void at_graph_mix(const at_graph *graph, uint32_t rounds, const double *from, double *to,
                  double *scratch);

/* The same where node i makes rounds[i] rounds only. After its last one it keeps its number, and
 * its neighbors go on without it: the weight between them returns to each one's own number. So
 * the weights of every round are symmetric, and the sum over all nodes never changes. */
void at_graph_mix_unequal(const at_graph *graph, const uint32_t *rounds, const double *from,
                          double *to, double *scratch);

#endif

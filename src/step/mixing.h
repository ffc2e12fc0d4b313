/* mixing.h - the settings of `mix gossip`. */
#ifndef AT_STEP_MIXING_H
#define AT_STEP_MIXING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* What is averaged, and when a node makes its step; see world/core/gossip_node.h. */
typedef enum at_mix_form { AT_MIX_PG, AT_MIX_PWG, AT_MIX_PW, AT_MIX_DA } at_mix_form;

/* How the weights of the averaging matrix P are chosen. */
typedef enum at_graph_matrix {
    AT_GRAPH_METROPOLIS, /* P_ij = 1 / (1 + the larger of both degrees) */
    AT_GRAPH_LAPLACIAN   /* P_ij = 1 / (1 + the largest degree) */
} at_graph_matrix;

enum { AT_MIX_ROUNDS_MAX = 10000 };

typedef struct at_mixing {
    const char     *graph;  /* its name, see world/core/graph.h */
    uint32_t        rounds; /* of averaging per step; 0: as many as fit into `time` */
    at_ns           time;
    at_mix_form     form;
    bool            equal; /* weights; false: proportional to samples */
    at_graph_matrix matrix;
} at_mixing;

#endif

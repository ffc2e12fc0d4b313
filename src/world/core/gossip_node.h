/* gossip_node.h - a node of `mix gossip`: a worker that owns its parameters and averages with its
 * neighbors.
 *
 *     gradient ─► at_gossip_begin ─► message ─► rounds of averaging ─► at_gossip_end ─► parameters
 *
 * A message is a vector and a number. Both are averaged with the same weights, and the vector is
 * divided by the number at the end (ratio consensus). Under proportional weights the number starts
 * as the samples of the node's round and the vector as a sum over them, so that every sample counts
 * the same without anybody knowing the total. Under equal weights the number is 1.
 *
 *   pg    the gradients are averaged, then every node makes its step:     w <- w - lr P(g)
 *   pwg   every node makes its step, then the parameters are averaged:    w <- P(w - lr g)
 *   pw    the parameters are averaged, then every node makes its step:    w <- P(w) - lr c g
 *   da    dual averaging: sums of gradients are averaged:    z <- P(z + g),  w <- w0 - lr z
 *
 * In pw, c is the node's share: its samples over the average that reached it (1 if equal).
 */
#ifndef AT_WORLD_CORE_GOSSIP_NODE_H
#define AT_WORLD_CORE_GOSSIP_NODE_H

#include "base/err.h"
#include "step/mixing.h"
#include "world/core/graph.h"
#include "world/core/update.h"

/* One step, the same for all nodes. */
typedef struct at_gossip_step {
    at_mix_form form;
    bool        equal;        /* weights; false: proportional to samples */
    uint64_t    step;         /* 1 for the first */
    uint64_t    samples_used; /* by all nodes before this step; input of learning-rate schedules */
    double      lr_factor;
} at_gossip_step;

typedef struct at_gossip_node {
    size_t     params;
    float     *w;       /* the node's parameters; borrowed */
    float     *message; /* borrowed; holds what travels between begin and end */
    double     count;   /* travels with it */
    double     samples; /* of this node's round */
    float     *memory;  /* all below */
    float     *mean;    /* the node's own mean gradient */
    float     *dual;    /* da: z and the parameters at the start; else NULL */
    float     *start;
    at_updater updater; /* the node's optimizer */
} at_gossip_node;

/* `w` holds the initial parameters. `learning`, `w` and `message` (`params` floats each) are
 * borrowed. */
at_err at_gossip_node_init(at_gossip_node *node, at_mix_form form, const at_learning *learning,
                           float *w, float *message, size_t params, at_fail *fail);
void   at_gossip_node_deinit(at_gossip_node *node); /* accepts a zeroed one */

/* Makes the message of this node from its round: `gradient` is a sum over `samples` samples. A node
 * without samples (it joined late, or its gradient was dropped) still averages with the others. */
void at_gossip_begin(at_gossip_node *node, const at_gossip_step *step, const float *gradient,
                     uint32_t samples);

/* Takes in the averaged message. Returns the learning rate. */
double at_gossip_end(at_gossip_node *node, const at_gossip_step *step);

/* The learning rate of a step, for those who make none. */
double at_gossip_rate(const at_learning *learning, const at_gossip_step *step);

/* The message of this node, or of a neighbor, in one round of averaging. */
typedef struct at_gossip_part {
    const float *message;
    double       count, weight;
} at_gossip_part;

/* One round of averaging for one node: to = sum of weight * message. Returns the same sum of the
 * counts. */
double at_gossip_average(float *to, size_t params, const at_gossip_part *parts, uint32_t count);

/* ---- all nodes in one process ------------------------------------------------------------------
 *
 * Instead of averaging `rounds` times, the messages of all nodes are multiplied by P^rounds, block
 * by block, in place. */

typedef struct at_gossip_power {
    uint32_t nodes;
    float   *weight;  /* P^rounds, row by row */
    float   *block;   /* scratch, with the next */
    double  *vectors; /* three */
} at_gossip_power;

enum { AT_GOSSIP_POWER_NODES_MAX = 4096 };

/* AT_ERR_USAGE: too many nodes. */
at_err at_gossip_power_init(at_gossip_power *power, uint32_t nodes, at_fail *fail);
void   at_gossip_power_deinit(at_gossip_power *power); /* accepts a zeroed one */

/* Computes P^rounds for the nodes that are present; again whenever that changes. */
void at_gossip_power_set(at_gossip_power *power, const at_graph *graph, uint32_t rounds);

/* The same for nodes that make different numbers of rounds, see at_graph_mix_unequal. */
void at_gossip_power_set_unequal(at_gossip_power *power, const at_graph *graph,
                                 const uint32_t *rounds);

/* When averaging lasts for `time`: the rounds that each node makes, if it needs sends[i] to send
 * its message to all its neighbors. A round of a node ends when the messages of its neighbors
 * are there. A round is its last if another one like the one before would not end in time. Returns
 * when the last one ends. `scratch` has room for 3 times as many as there are nodes.
 */
at_ns at_gossip_rounds_in_time(const at_graph *graph, const at_ns *sends, at_ns time,
                               uint32_t *rounds, at_ns *scratch);

/* Multiplies all messages and counts. */
void at_gossip_power_mix(at_gossip_power *power, at_gossip_node *nodes, size_t params);

/* ---- looking at all of them ------------------------------------------------------------------ */

/* mean[i] = mean over the present nodes of w[i]. Returns the disagreement: the root mean square
 * over nodes of the distance of w from that mean. */
double at_gossip_mean(float *mean, const float *const *w, const bool *present, uint32_t nodes,
                      size_t params);

#endif

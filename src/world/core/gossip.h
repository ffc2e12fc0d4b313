/* gossip.h - `mix gossip` where one process reaches the parameters of all workers.
 *
 * Every worker has its own parameters (gossip_node.h). When the hub closes a step, each node makes
 * its message, all messages are averaged in one pass with P^rounds, and the mean over the workers
 * becomes the hub's vector, which is evaluated, saved and hashed. Strategies with gossip wait for
 * all workers, so nobody computes while parameters change.
 *
 * When averaging lasts for a time, rounds are made one by one until it is over, or in virtual time
 * as many by each worker as the simulated network lets it make.
 *
 * A worker that joins starts from the mean, unless a checkpoint has its own parameters. One that
 * is lost leaves the graph: from the next step on, P is that of the workers that are left.
 */
#ifndef AT_WORLD_CORE_GOSSIP_H
#define AT_WORLD_CORE_GOSSIP_H

#include "step/plan.h"
#include "world/core/gossip_node.h"
#include "world/core/world.h"

typedef struct at_gossip {
    const at_world_context *context;
    at_graph                graph;
    at_gossip_power         power; /* unused when only time is simulated */
    at_gossip_node         *node;  /* the same */
    float                  *messages;
    const float           **w;
    float                  *mean;     /* the hub's vector; borrowed */
    bool                   *averaged; /* which nodes were in the last step; at the end all leave */
    bool                    changed;  /* who is present has changed since P^rounds was computed */
    double                  disagreement;
    /* In virtual time, when averaging lasts for a time: how long a node needs to send its message
     * to its neighbors. To be set after init. */
    void *self;
    at_ns (*sends)(void *self, uint32_t node);
    uint32_t *rounds; /* of each node, with the time of all: */
    at_ns     lasts;
    /* Resumed: */
    bool *restored;  /* the node has its own vectors, and has not joined yet */
    char  note[200]; /* why the nodes do not; "": they do, or nothing was resumed */
} at_gossip;

/* `mean` holds the initial parameters. `vectors` has room for plan->workers_max vectors of `stride`
 * floats (at least task->params, a multiple of 16), the workers' parameters, in memory that they
 * can read; NULL when only time is simulated. Nobody is present. */
at_err at_gossip_init(at_gossip *gossip, const at_world_context *context, float *mean,
                      float *vectors, size_t stride, at_fail *fail);
void   at_gossip_deinit(at_gossip *gossip); /* accepts a zeroed one */

/* What a checkpoint holds of each node: its parameters, the state of its optimizer and, for dual
 * averaging, its sum of gradients and where it began. `vectors` is how many there are, 0 for plans
 * without gossip; `vector` copies one of them. at_gossip_init reads them from context->resume; if
 * it has none, or those of another number of workers, all nodes begin with the mean. */
uint32_t at_gossip_vectors(const at_plan *plan, const at_learning *learning);
void     at_gossip_vector(const at_gossip *gossip, uint32_t node, uint32_t which, float *to);

/* A worker has joined, or is gone. */
void at_gossip_join(at_gossip *gossip, at_node worker);
void at_gossip_lose(at_gossip *gossip, at_node worker);

/* AT_ACT_APPLY. Returns the learning rate. */
double at_gossip_apply(at_gossip *gossip, const at_action *action, const at_gradients *gradients);

/* Adds to a score of the mean model how far apart the workers are and, when this process can
 * compute (`scores`), the worst worker's score, and the losses of the workers and of their mean on
 * the same training samples: the first ones that each worker draws. */
void at_gossip_score(const at_gossip *gossip, at_score *score, bool scores);

/* The graph in one sentence, for the user: its second eigenvalue and what that means. */
void at_gossip_describe(const at_gossip *gossip, char *text, size_t size);

#endif

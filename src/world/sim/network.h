/* network.h - the simulated network: when does a message arrive?
 *
 *   each       messages pass the hub's link one after another, first come first served
 *   broadcast  parameters sent to many workers at the same moment: copies share the link, as over
 *              TCP; one copy serves all of them; or workers that have them pass them on (a binomial
 *              tree)
 *   reduce     gradients are added up on their way to the hub (the same tree, backwards)
 *   allreduce  no hub: workers exchange gradients among themselves, around a ring or along a tree
 *   gossip     no hub: a worker sends its parameters to each of its neighbors
 *
 * A transfer takes bytes / bandwidth on each link it passes, and the links of a path work at the
 * same time, so the slowest one counts.
 */
#ifndef AT_WORLD_SIM_NETWORK_H
#define AT_WORLD_SIM_NETWORK_H

#include "world/core/world.h"

typedef enum at_broadcast {
    AT_BROADCAST_EACH,
    AT_BROADCAST_SHARE,
    AT_BROADCAST_ALL,
    AT_BROADCAST_TREE
} at_broadcast;
typedef enum at_reduce { AT_REDUCE_EACH, AT_REDUCE_TREE } at_reduce;
typedef enum at_allreduce { AT_ALLREDUCE_NONE, AT_ALLREDUCE_RING, AT_ALLREDUCE_TREE } at_allreduce;

/* A value per worker: as many as there are, then from the first one again. */
typedef struct at_per_worker {
    double *value; /* bytes per second, or nanoseconds */
    size_t  count; /* 0: not given */
} at_per_worker;

typedef struct at_sim_net {
    at_ns         latency;
    double        bandwidth;   /* of the hub's link in bytes per second, 0: unlimited */
    double        delay_sigma; /* --comm-delay: adds |N(0,1)| * sigma seconds to every message */
    at_per_worker worker_bandwidth, worker_latency; /* the latter in addition to `latency` */
    at_broadcast  broadcast;
    at_reduce     reduce;
    at_allreduce  allreduce;
    uint64_t      seed, messages;
    at_ns         in_free, out_free; /* when the hub's link is free again, per direction */
    /* The last broadcast: when it was sent, when its transfer began, messages so far, and how many
     * there will be (AT_BROADCAST_SHARE only). */
    at_ns    sent, began;
    uint32_t receivers, copies;
    /* The reduction of the gradients that were computed from it. */
    uint32_t  reports, workers;
    uint32_t *rank;  /* by worker - 1: its place in the tree, 1 .. receivers; 0: contributes not */
    at_ns    *ready; /* by rank: when its gradient was complete; 0 is the hub */
} at_sim_net;

/* AT_ERR_USAGE for link options that are not valid, or not for this plan. */
at_err at_sim_net_check(const at_world_context *context, at_fail *fail);

/* A network as the options describe it. */
at_err at_sim_net_init(at_sim_net *net, const at_world_context *context, at_fail *fail);
void   at_sim_net_deinit(at_sim_net *net); /* accepts a zeroed one */

/* Arrival of a message of `bytes` that a worker sends now, at the hub. */
at_ns at_sim_net_up(at_sim_net *net, at_ns now, at_node worker, double bytes);

/* The hub is about to send so many messages with contents, all of them now. Copies that share a
 * link arrive together, so how many there are has to be known before the first one; in other
 * networks this has no effect. */
void at_sim_net_expect(at_sim_net *net, at_ns now, uint32_t copies);

/* Arrival of a message of `bytes` that the hub sends now, at a worker. Messages with contents that
 * are sent at the same moment are one broadcast. */
at_ns at_sim_net_down(at_sim_net *net, at_ns now, at_node worker, double bytes);

/* Duration of an all-reduce of `bytes` among so many workers, once all of them are ready. */
at_ns at_sim_net_allreduce(const at_sim_net *net, uint32_t workers, double bytes);

/* How long a worker needs to send `bytes` to each of its neighbors in turn. */
at_ns at_sim_net_gossip(const at_sim_net *net, at_node worker, uint32_t neighbours, double bytes);

#endif

/* mpi_gossip_hub.h - `mix gossip` over MPI, on the side of the hub. Internal to world/.
 *
 * The hub sees no gradients. When it closes a step it tells every worker with whom to average
 * (MIX), and continues at once: the next orders follow, and a worker starts its round when it has
 * averaged. Only when the hub needs a model, for an evaluation, a checkpoint, a late joiner or the
 * end, does it collect the workers' parameters, one after the other in one buffer, and keeps their
 * mean and how far apart they are. Workers that die meanwhile are left out.
 */
#ifndef AT_WORLD_MPI_MPI_GOSSIP_HUB_H
#define AT_WORLD_MPI_MPI_GOSSIP_HUB_H

#include "world/core/gossip.h"
#include "world/mpi/mpi_comm.h"

struct at_mpi_hub;

typedef struct at_mpi_gossip_hub {
    at_gossip      gossip; /* who is there, for the host; it has no nodes */
    at_mpi_calls  *calls;
    unsigned char *messages; /* of MIX: two per worker */
    size_t         message_size;
    bool          *present;
    unsigned char *inbox; /* one vector with its head */
    size_t         inbox_size;
    double        *sum;
    uint64_t       version; /* of the mean in the hub's vector */
    /* Whom everybody has to be told about: */
    at_node  *gone;
    uint32_t  gone_count;
    uint32_t *told;  /* to each worker, how many of them */
    uint64_t *asked; /* of each worker: parameters of this version */
} at_mpi_gossip_hub;

/* Reserves memory; nothing to do unless the plan's workers own their parameters. Before MPI. */
at_err at_mpi_gossip_hub_open(struct at_mpi_hub *hub, at_fail *fail);

/* Releases what MPI does not use; accepts a zeroed one. */
void at_mpi_gossip_hub_close(at_mpi_gossip_hub *gossip);

/* Operations for the host, see at_world_ops. `self` is the at_mpi_hub. */
double at_mpi_gossip_hub_mix(void *self, const at_action *apply);
bool   at_mpi_gossip_hub_collect(void *self);

/* A worker is lost: the others are told, by this and later calls of `tell`. */
void at_mpi_gossip_hub_lose(struct at_mpi_hub *hub, at_node worker);
void at_mpi_gossip_hub_tell(struct at_mpi_hub *hub);

#endif

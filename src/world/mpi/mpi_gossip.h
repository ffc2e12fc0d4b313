/* mpi_gossip.h - `mix gossip` over MPI, on the side of a worker. Internal to world/.
 *
 * A worker owns its parameters. When the hub has closed a step it sends MIX to all, and every
 * worker exchanges vectors with its neighbors in the graph, and with nobody else:
 *
 *     MIX ─► at_gossip_begin ─► send to all neighbors, receive from all, average ─► ..
 *         ─► at_gossip_end ─► the parameters of the next version
 *
 * Nothing here waits: at_mpi_gossip_poll starts and ends calls. Before a worker waits for round r
 * it has sent its own vector of round r, so no circle of workers waits for each other; and the
 * hub, which detects deaths, says GONE to all. The weight of a neighbor that is gone returns to
 * the worker's own vector: rows still sum to 1, vector and count are still averaged with the same
 * weights, and the averaging continues. From the next step on the graph is without it.
 *
 * When averaging lasts for a time, every worker decides for itself when to stop, and says in the
 * message of its last round that it is the last. After that round both ends of an edge leave it
 * out, so that in every round the weights are symmetric: no sample is counted twice or lost.
 *
 * Sums are in order of the workers' numbers: the same bits whatever arrives first.
 */
#ifndef AT_WORLD_MPI_MPI_GOSSIP_H
#define AT_WORLD_MPI_MPI_GOSSIP_H

#include "message/message.h"
#include "world/core/world.h"

typedef struct at_mpi_gossip at_mpi_gossip;

/* The state of worker `id`; NULL if the plan's workers have no parameters of their own. Starts no
 * MPI call. The context is borrowed. */
at_err at_mpi_gossip_new(const at_world_context *context, at_node id, at_mpi_gossip **gossip,
                         at_fail *fail);

/* Releases it, but for memory that MPI may still use; accepts NULL. */
void at_mpi_gossip_free(at_mpi_gossip *gossip);

/* The worker's parameters become these, which the hub has sent. Fails while it averages. */
at_err at_mpi_gossip_adopt(at_mpi_gossip *gossip, const float *params, uint64_t version,
                           at_fail *fail);

/* A MIX message of `size` bytes has arrived: begins to average. `gradient` is the sum over
 * `samples` samples of the worker's last round, and MUST stay as it is until `version` grows. */
at_err at_mpi_gossip_mix(at_mpi_gossip *gossip, const at_hub_message *message, const void *bytes,
                         size_t size, const float *gradient, uint32_t samples, at_fail *fail);

/* A worker is gone: it is not waited for any more. */
void at_mpi_gossip_gone(at_mpi_gossip *gossip, at_node worker);

/* The hub wants the parameters of this version; they are sent as soon as they are there. */
at_err at_mpi_gossip_collect(at_mpi_gossip *gossip, uint64_t version, at_fail *fail);

/* Advances messages and averages what has arrived. *news: the parameters have become those of the
 * next version. */
at_err at_mpi_gossip_poll(at_mpi_gossip *gossip, bool *news, at_fail *fail);

/* True while the parameters of the next version are not there yet: messages of neighbors may be
 * missing. */
bool at_mpi_gossip_averages(const at_mpi_gossip *gossip);

/* The parameters, their version (AT_VERSION_NONE: none yet), and the version that they have when
 * the averaging under way is over. */
const float *at_mpi_gossip_params(const at_mpi_gossip *gossip);
uint64_t     at_mpi_gossip_version(const at_mpi_gossip *gossip);
uint64_t     at_mpi_gossip_version_next(const at_mpi_gossip *gossip);

#endif

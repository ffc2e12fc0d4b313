/* mpi_slices.h - several hubs in the MPI world, each with a slice of the vectors. Internal to
 * world/.
 *
 *     worker ──slice 0 of its gradient──► rank 0 (hub 0) ──slice 0 of the new parameters──► all
 *            ──slice 1 of its gradient──► rank 1 (hub 1) ──slice 1 of the new parameters──► all
 *
 * A hub sums its slice in worker order, so the result is the same as with one hub, bit for bit.
 * After a step every rank has all parameters. The optimizer state of a slice exists only on its hub
 * and is sent to rank 0 for a checkpoint.
 */
#ifndef AT_WORLD_MPI_MPI_SLICES_H
#define AT_WORLD_MPI_MPI_SLICES_H

#include "world/core/update.h"
#include "world/mpi/mpi_ranks.h"

typedef struct at_mpi_slices {
    uint32_t      hubs, workers; /* ranks 0 .. hubs-1 are hubs, the rest workers */
    at_mpi_ranks *ranks;
    at_updater   *updater;
    const float  *gradient; /* of a worker */
    float       **inbox;    /* of a hub: one vector per worker, of which only the slice is used */
    bool          torn;     /* a rank was lost during the broadcast of parameters */
} at_mpi_slices;

/* Number of user calls to reserve in at_mpi_ranks_open. */
uint32_t at_mpi_slices_calls(uint32_t hubs, uint32_t ranks);

/* Ranks, updater and gradient are borrowed; the updater will run its slices on the hubs. */
at_err at_mpi_slices_open(at_mpi_slices *slices, at_mpi_ranks *ranks, uint32_t hubs,
                          at_updater *updater, const float *gradient, at_fail *fail);

/* Starts to send and receive the slices of this round's gradients, which at_mpi_ranks_take_turns
 * completes. */
void at_mpi_slices_send(at_mpi_slices *slices);

/* The gradient of a worker; valid in the slice of this rank. */
const float *at_mpi_slices_gradient(const at_mpi_slices *slices, at_node worker);

/* Rank 0: collects the optimizer state of all slices. False: a rank is gone. */
bool at_mpi_slices_fetch(at_mpi_slices *slices);

#endif

/* mpi_slices.h - several hubs among ranks that decide alike: each keeps a slice of the vectors.
 * Internal to world/.
 *
 *     worker ──slice 0 of its gradient──► rank 0 (hub 0) ──slice 0 of the new parameters──► all
 *            ──slice 1 of its gradient──► rank 1 (hub 1) ──slice 1 of the new parameters──► all
 *
 * A hub sums its slice in the order of workers, so the bits are those of one hub. Everybody has all
 * parameters after a step; the optimiser's state of a slice is only where the slice is, and comes
 * to rank 0 when it saves.
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
    float       **inbox;    /* of a hub: one vector a worker, of which only the slice is used */
    bool          torn;     /* a rank was lost while parameters were under way */
} at_mpi_slices;

/* How many calls the ranks need for it. */
uint32_t at_mpi_slices_calls(uint32_t hubs, uint32_t ranks);

/* Ranks, updater and gradient are borrowed; the updater is helped from now on. */
at_err at_mpi_slices_open(at_mpi_slices *slices, at_mpi_ranks *ranks, uint32_t hubs,
                          at_updater *updater, const float *gradient, at_fail *fail);

/* Begins to move the slices of this round's gradients; they are there when turns were taken. */
void at_mpi_slices_send(at_mpi_slices *slices);

/* Where the gradient of a worker lies, as far as this rank has it. */
const float *at_mpi_slices_gradient(const at_mpi_slices *slices, at_node worker);

/* Rank 0: brings the optimiser's state of all slices together. False: a rank is gone. */
bool at_mpi_slices_fetch(at_mpi_slices *slices);

#endif

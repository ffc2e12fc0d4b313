/* mpi_allreduce.h - the MPI world in which every rank runs a hub: --mix replicated and sliced.
 * Internal to world/. */
#ifndef AT_WORLD_MPI_MPI_ALLREDUCE_H
#define AT_WORLD_MPI_MPI_ALLREDUCE_H

#include "world/core/world.h"
#include "world/process/launcher.h"

/* Runs this rank. */
at_err at_mpi_allreduce_run(const at_world_context *context, const at_launcher *launcher,
                            at_outcome *outcome, at_fail *fail);

/* True when at_mpi_allreduce_run was admitted by rank 0. Otherwise it ends as a hub or worker that
 * failed before training. */
bool at_mpi_allreduce_admitted(void);

/* Ends such a rank; true when all ranks can end MPI together. */
bool at_mpi_allreduce_end(const at_fail *fail);

#endif

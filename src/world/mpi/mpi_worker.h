/* mpi_worker.h - a worker rank of the MPI world. Internal to world/. */
#ifndef AT_WORLD_MPI_MPI_WORKER_H
#define AT_WORLD_MPI_MPI_WORKER_H

#include "world/core/world.h"
#include "world/process/launcher.h"

/* Runs a worker until the hub tells it to leave. */
at_err at_mpi_worker_run(const at_world_context *context, const at_launcher *launcher,
                         at_fail *fail);

/* Waits for the hub's BYE, after reporting *fail to it. True: all ranks can end MPI together. */
bool at_mpi_worker_end(const at_launcher *launcher, const at_fail *fail);

#endif

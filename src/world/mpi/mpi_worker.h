/* mpi_worker.h - a worker rank of the MPI world. Internal to world/. */
#ifndef AT_WORLD_MPI_MPI_WORKER_H
#define AT_WORLD_MPI_MPI_WORKER_H

#include "message/message.h"
#include "world/core/world.h"
#include "world/process/launcher.h"

/* Runs a worker until the hub tells it to leave. */
at_err at_mpi_worker_run(const at_world_context *context, const at_launcher *launcher,
                         at_fail *fail);

/* For ranks of worlds without a hub of their own: says HELLO to rank 0, whatever its topology, and
 * waits to be admitted. Fails when the job is refused or rank 0 is gone; at_mpi_worker_end then has
 * the rest. */
at_err at_mpi_worker_ask(const at_launcher *launcher, const at_worker_note *hello, at_fail *fail);

/* Waits for the hub's BYE, after reporting *fail to it; *err is why the run failed according to the
 * hub. True: all ranks can end MPI together. */
bool at_mpi_worker_end(const at_launcher *launcher, const at_fail *fail, at_err *err);

#endif

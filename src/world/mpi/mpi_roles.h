/* mpi_roles.h - what a rank of the MPI world can be. Internal to world/. */
#ifndef AT_WORLD_MPI_MPI_ROLES_H
#define AT_WORLD_MPI_MPI_ROLES_H

#include "message/message.h"
#include "world/core/world.h"
#include "world/process/launcher.h"

/* Rank 0: runs the hub. Starts MPI after all that forks. */
at_err at_mpi_hub_run(const at_world_context *context, const at_launcher *launcher,
                      at_outcome *outcome, at_fail *fail);

/* The hub's end: tells all ranks how to end. True: they end MPI together. */
bool at_mpi_hub_end(const at_launcher *launcher, const at_fail *fail);

/* The other ranks: run a worker. */
at_err at_mpi_worker_run(const at_world_context *context, const at_launcher *launcher,
                         at_fail *fail);

/* A worker's end: waits to be told how. */
bool at_mpi_worker_end(const at_launcher *launcher, const at_fail *fail);

/* Memory for messages, of which `likely` bytes are written to now: otherwise the first steps would
 * pay for that. NULL: not enough. */
void *at_mpi_room(size_t size, size_t likely);

/* The name of this machine, in letters that can stand anywhere. */
void at_mpi_host(char name[AT_HOST_NAME_SIZE]);

/* All ranks, where each runs a hub of its own: all-reduce, and several hubs. */
at_err at_mpi_allreduce_run(const at_world_context *context, const at_launcher *launcher,
                            at_outcome *outcome, at_fail *fail);

/* Did this process run so, and its end: true when all ranks can end MPI together. */
bool at_mpi_allreduce_ran(void);
bool at_mpi_allreduce_end(const at_fail *fail);

/* A hash over what all ranks must have alike: program, model, data and layout. */
uint64_t at_job_fingerprint(const at_world_context *context);

#endif

/* mpi_replicated_hub.h - a rank with its own copy of the hub; all copies decide alike. Internal to
 * world/.
 *
 *     mpi_replicated_hub.c   start and end
 *     mpi_allreduce.c        the loop
 *
 *     --mix replicated       all ranks are workers, and each makes the whole update
 *     --mix sliced:H         ranks 0 .. H-1 make the update, each a slice; the others are workers
 */
#ifndef AT_WORLD_MPI_MPI_REPLICATED_HUB_H
#define AT_WORLD_MPI_MPI_REPLICATED_HUB_H

#include "world/core/driver.h"
#include "world/core/host.h"
#include "world/mpi/mpi_ranks.h"
#include "world/mpi/mpi_slices.h"

typedef struct at_mpi_replica {
    at_inplace              place; /* the worker's side; its round owes the others a turn */
    const at_world_context *context;
    const at_launcher      *launcher;
    uint32_t                hubs; /* 0: all-reduce */
    uint32_t                workers;
    at_node                 id; /* as a worker; 0: this rank is a hub */
    at_host                 host;
    at_updater              updater;
    at_evaluator           *evaluator; /* of rank 0 */
    at_bell                *bell;      /* shared with it */
    at_mpi_ranks            ranks;
    at_mpi_slices           slices; /* with hubs */
    float                  *params, *gradient;
    at_local_steps         *local; /* NULL: it reports gradients, or is a hub */
    _Atomic uint64_t        drawn;
    bool                    admitted; /* all ranks agree, and all of them start */
    bool                    over;     /* there are no more turns */
    at_ns                   now;      /* agreed on by all ranks */
    at_ns                   waited;   /* for the other ranks in the last turn */
    at_evaluation           evaluation;
    bool                    has_evaluation;
    bool                    stopping;
    at_fail                 differ; /* set when the ranks are no longer identical */
} at_mpi_replica;

/* Builds the replica without MPI: everything that forks must start before MPI does. */
at_err at_mpi_replica_open(at_mpi_replica *replica, const at_world_ops *ops, at_fail *fail);

/* Starts MPI and connects to the other ranks. Fails on all of them when one cannot take part, or
 * when they differ; nothing was trained then. */
at_err at_mpi_replica_meet(at_mpi_replica *replica, at_fail *fail);

/* Fills in the outcome, after FINISH. */
at_err at_mpi_replica_hand_over(at_mpi_replica *replica, at_outcome *outcome, at_fail *fail);

/* Releases everything that MPI does not use; the rest stays until the process ends. */
void at_mpi_replica_close(at_mpi_replica *replica);

/* The rank of a worker, and its last turn. */
uint32_t               at_mpi_replica_rank(const at_mpi_replica *replica, at_node worker);
const at_turn_message *at_mpi_replica_turn(const at_mpi_replica *replica, at_node worker);

/* Samples drawn by a worker, as far as known on this rank: what it said, which may be wrong, but at
 * least those that were counted. */
uint64_t at_mpi_replica_drawn(const at_mpi_replica *replica, at_node worker);

#endif

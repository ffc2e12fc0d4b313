/* mpi_replicated_hub.h - one of the ranks that decide alike. Internal to world/.
 *
 *     mpi_equal.c       what it is made of, and what it leaves behind
 *     mpi_allreduce.c   how it lives: turn after turn
 *
 *     --topology allreduce   all ranks are workers, and each makes the whole update
 *     --hubs H               ranks 0 .. H-1 make the update, each a slice; the others are workers
 */
#ifndef AT_WORLD_MPI_MPI_REPLICATED_HUB_H
#define AT_WORLD_MPI_MPI_REPLICATED_HUB_H

#include "world/core/host.h"
#include "world/mpi/mpi_ranks.h"
#include "world/mpi/mpi_slices.h"

typedef struct at_mpi_replica {
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
    _Atomic uint64_t        drawn;
    at_order                order;
    bool                    ordered;  /* `order` was not taken yet */
    bool                    in_round; /* this rank owes the others a turn */
    bool                    over;     /* there are no more turns */
    at_ns                   now;      /* agreed */
    at_ns                   waited;   /* for the others, in the last turn */
    at_evaluation           evaluation;
    bool                    has_verdict;
    bool                    stopping;
    at_fail                 differ; /* ranks are not the same any more */
} at_mpi_replica;

/* Builds it, all but for meeting the others. Everything that forks comes before MPI. */
at_err at_mpi_replica_open(at_mpi_replica *equal, const at_world_ops *link, at_fail *fail);

/* Starts MPI and meets the others, with what has gone wrong until here in *fail. */
at_err at_mpi_replica_meet(at_mpi_replica *equal, at_fail *fail);

/* What it leaves behind, after FINISH. */
at_err at_mpi_replica_hand_over(at_mpi_replica *equal, at_outcome *outcome, at_fail *fail);

/* Releases all that MPI does not use; the rest stays until the process ends. */
void at_mpi_replica_close(at_mpi_replica *equal);

/* The rank of a worker, and what it said last. */
uint32_t           at_mpi_replica_rank(const at_mpi_replica *equal, at_node worker);
const at_mpi_turn *at_mpi_replica_turn(const at_mpi_replica *equal, at_node worker);

/* How much a worker has drawn, as far as it is known here. */
uint64_t at_mpi_replica_drawn(const at_mpi_replica *equal, at_node worker);

#endif

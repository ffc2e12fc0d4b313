/* world.h - a world runs a plan: it has the clock, moves messages and does the float work.
 *
 *   local   one process a worker, shared memory, futex doorbells        local.c, local_worker.c
 *   solo    --workers 0: the same machines in one loop of one process   solo.c
 *   sim     virtual time, any number of workers in one process          sim.c, sim_worker.c
 *   mpi     ranks of a launcher, on any number of machines              mpi_hub.c, mpi_worker.c
 *
 * A world needs an at_world_context and leaves its story in the recorder. It returns when the
 * hub has said FINISH and nothing of it is left behind.
 */
#ifndef AT_WORLD_CORE_WORLD_H
#define AT_WORLD_CORE_WORLD_H

#include "base/err.h"
#include "pace/pace.h"
#include "record/record.h"
#include "step/hub.h"
#include "task/task.h"
#include "world/core/update.h"

/* Something that happens to a worker in virtual time. */
typedef enum at_fault_kind {
    AT_FAULT_DIE,    /* and comes back after `lasts`, if workers are replaced */
    AT_FAULT_FREEZE, /* stands still for `lasts` */
    AT_FAULT_LATE    /* its next report takes `lasts` longer */
} at_fault_kind;
typedef struct at_fault {
    at_ns         at;
    at_node       worker;
    at_fault_kind kind;
    at_ns         lasts;
} at_fault;

struct at_saver;
struct at_checkpoint;

/* Everything a world needs; borrowed for the run. */
typedef struct at_world_context {
    const at_plan     *plan;
    const at_task     *task;
    const at_pace     *pace;
    const at_learning *learning;
    at_recorder       *recorder;
    uint64_t           seed;
    at_ns              sample_time; /* padding of computation, 0: none; in sim what it costs */
    uint32_t           cores;
    bool               respawn;
    uint32_t           hubs;                 /* processes that share the updates; 0 and 1: one */
    double             comm_delay;           /* sigma of the comm straggler in seconds, 0: none */
    struct at_saver   *saver;                /* NULL: no checkpoints are written */
    const struct at_checkpoint *resume;      /* NULL: the run begins at step 0 */
    at_ns                       usage_every; /* how often to look what processes take, 0: never */
    /* Virtual time only. */
    at_ns           latency;
    double          bandwidth; /* bytes a second, 0: unlimited */
    const at_fault *faults;    /* in order of time */
    size_t          fault_count;
} at_world_context;

/* A round that went away with its machine; `samples` as far as its worker had told. */
typedef struct at_lost_round {
    at_node  worker;
    uint64_t round, samples;
} at_lost_round;

/* What a world hands back beside the record. */
typedef struct at_outcome {
    float         *params; /* final parameters, to be freed by the caller */
    size_t         floats; /* how many there are; 0 when only time was simulated */
    uint64_t       version;
    uint64_t       trace; /* hash over what was applied and dropped */
    at_end         end;
    uint64_t      *drawn;                  /* by each worker, counted by itself; to be freed */
    at_target_hit  target[AT_TARGETS_MAX]; /* times since the first order */
    char           engine[32];             /* what computed, as the workers told */
    at_lost_round *lost;                   /* to be freed */
    size_t         lost_count;
} at_outcome;

/* Releases what the outcome holds; accepts a zeroed one. */
void at_outcome_deinit(at_outcome *outcome);

/* Runs in real time with worker processes. */
at_err at_world_local(const at_world_context *context, at_outcome *outcome, at_fail *fail);

/* Runs in virtual time. context->sample_time MUST be above 0. */
at_err at_world_sim(const at_world_context *context, at_outcome *outcome, at_fail *fail);

/* Runs in this process, one loop, no worker processes. plan->workers MUST be 1. */
at_err at_world_solo(const at_world_context *context, at_outcome *outcome, at_fail *fail);

struct at_launcher;

/* Runs as a rank of a launcher, see mpi_world.h: rank 0 as the hub, the others as workers, whose
 * outcome stays as it is. plan->workers MUST be one less than the ranks. */
at_err at_world_mpi(const at_world_context *context, const struct at_launcher *launcher,
                    at_outcome *outcome, at_fail *fail);

#endif

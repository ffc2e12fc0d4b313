/* world.h - a world runs a plan: it provides the clock, moves messages and does the arithmetic.
 *
 *   local   one process per worker, shared memory, futex doorbells      local.c, local_worker.c
 *   solo    --workers 0: hub and worker in one loop of one process      solo.c
 *   sim     virtual time, any number of workers in one process          sim.c, sim_worker.c
 *   mpi     ranks of a launcher, on any number of machines              mpi_hub.c, mpi_worker.c
 *
 * A world takes an at_world_context and records the run through its recorder. It returns after the
 * hub's FINISH, when all its processes have ended and its memory is released.
 */
#ifndef AT_WORLD_CORE_WORLD_H
#define AT_WORLD_CORE_WORLD_H

#include "base/err.h"
#include "pace/pace.h"
#include "record/record.h"
#include "step/hub.h"
#include "task/task.h"
#include "world/core/update.h"

/* A fault injected into a worker in virtual time. */
typedef enum at_fault_kind {
    AT_FAULT_DIE,    /* dies; replaced after `lasts`, if workers are replaced */
    AT_FAULT_FREEZE, /* is stopped for `lasts` */
    AT_FAULT_LATE,   /* its next report takes `lasts` longer */
    AT_FAULT_JOIN    /* joins, unless it is present */
} at_fault_kind;
typedef struct at_fault {
    at_ns         at;
    at_node       worker;
    at_fault_kind kind;
    at_ns         lasts;
} at_fault;

struct at_saver;
struct at_checkpoint;

/* Input of a world; borrowed for the run. */
typedef struct at_world_context {
    const at_plan     *plan;
    const at_task     *task;
    const at_pace     *pace;
    const at_learning *learning;
    at_recorder       *recorder;
    uint64_t           seed;
    at_ns              sample_time; /* pad computation to this, 0: no; in sim: cost of a sample */
    uint32_t           cores;
    bool               respawn;
    uint32_t           hubs;                 /* processes that share the updates; 0 and 1: one */
    double             comm_delay;           /* sigma of message delays in seconds, 0: none */
    struct at_saver   *saver;                /* NULL: write no checkpoints */
    const struct at_checkpoint *resume;      /* NULL: start at step 0 */
    at_ns                       usage_every; /* resource sampling interval, 0: never */
    /* Virtual time only. */
    at_ns           latency;
    double          bandwidth; /* bytes per second, 0: unlimited */
    const at_fault *faults;    /* in order of time */
    size_t          fault_count;
} at_world_context;

/* A round lost with its machine; `samples` as last reported by its worker. */
typedef struct at_lost_round {
    at_node  worker;
    uint64_t round, samples;
} at_lost_round;

/* Results of a world; the caller frees the three arrays. */
typedef struct at_outcome {
    float         *params; /* final parameters */
    size_t         floats; /* their number; 0 when only time was simulated */
    uint64_t       version;
    uint64_t       trace; /* hash over what was applied and dropped */
    at_end         end;
    uint64_t      *drawn;                  /* samples drawn by each worker, as it counted them */
    at_target_hit  target[AT_TARGETS_MAX]; /* times since the first order */
    char           engine[32];             /* engine of the workers */
    at_lost_round *lost;
    size_t         lost_count;
} at_outcome;

/* Runs in real time with worker processes. */
at_err at_world_local(const at_world_context *context, at_outcome *outcome, at_fail *fail);

/* Runs in virtual time. context->sample_time MUST be above 0. */
at_err at_world_sim(const at_world_context *context, at_outcome *outcome, at_fail *fail);

/* Runs hub and worker in one loop of this process. plan->workers MUST be 1. */
at_err at_world_solo(const at_world_context *context, at_outcome *outcome, at_fail *fail);

struct at_launcher;

/* Runs as one rank of a launcher, see mpi_world.h: rank 0 as the hub, the others as workers, which
 * leave *outcome unchanged. plan->workers MUST be one less than the number of ranks. */
at_err at_world_mpi(const at_world_context *context, const struct at_launcher *launcher,
                    at_outcome *outcome, at_fail *fail);

#endif

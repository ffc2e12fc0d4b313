/* world.h - a world runs a plan: it provides the clock, moves messages and does the arithmetic.
 *
 *   local   one process per worker, shared memory, futex doorbells      world/local/local.c
 *   solo    --workers 0: hub and worker in one loop of one process      world/local/solo.c
 *   sim     virtual time, any number of workers in one process          world/sim/sim.c
 *   mpi     ranks of a launcher, on any number of machines              world/mpi/mpi_row.c
 *   seat    programs with their own loop, shared memory or a network    world/seat/seat_world.c
 *   net     `anytime hub` and `anytime work`, on any number of machines  world/net/net_world.c
 *
 * A world is a row of a table: its name, what it can do, what it refuses and how it runs. Nothing
 * outside its folder asks which one it is. A new world is a folder and a line in worlds.c.
 */
#ifndef AT_WORLD_CORE_WORLD_H
#define AT_WORLD_CORE_WORLD_H

#include "base/err.h"
#include "base/placement.h"
#include "message/compress.h"
#include "pace/pace.h"
#include "pace/round_size.h"
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

/* How simulated messages travel: texts of options; NULL: the default. */
typedef struct at_link_options {
    const char *broadcast, *reduce, *allreduce;
    const char *worker_bandwidth, *worker_latency;
} at_link_options;

struct at_saver;
struct at_checkpoint;
struct at_launcher;
struct at_seat_hub;
struct at_net_join;

/* Input of a world; borrowed for the run. */
typedef struct at_world_context {
    const at_plan     *plan;
    const at_task     *task;
    const at_pace     *pace;
    at_round_size      round_size; /* law by which sizes of rounds are drawn */
    const at_learning *learning;
    at_recorder       *recorder;
    uint64_t           seed;
    at_ns              sample_time; /* pad computation to this, 0: no; in sim: cost of a sample */
    uint32_t           cores;
    bool               respawn;
    at_bind            bind;                  /* which cores workers may use */
    double             comm_delay;            /* sigma of message delays in seconds, 0: none */
    at_compress        compress;              /* of parameters and gradients in messages */
    struct at_saver   *saver;                 /* NULL: write no checkpoints */
    const struct at_checkpoint *resume;       /* NULL: start at step 0 */
    const struct at_launcher   *launcher;     /* what started the ranks; NULL: nothing did */
    at_ns                       usage_every;  /* resource sampling interval, 0: never */
    struct at_seat_hub         *seats;        /* seats only: who has connected so far */
    const struct at_net_join   *joins;        /* this process is a worker of a hub elsewhere */
    const at_pace_options      *pace_options; /* what `pace` was made from, to make it elsewhere */
    /* Virtual time only. */
    at_ns           latency;
    double          bandwidth; /* bytes per second, 0: unlimited */
    at_link_options links;
    at_ns           micro_cost; /* of a micro-batch besides its samples */
    double          jitter;     /* relative standard deviation of a micro-batch's time */
    const at_fault *faults;     /* in order of time */
    size_t          fault_count;
} at_world_context;

/* A round lost with its machine; `samples` as last reported by its worker. */
typedef struct at_lost_round {
    at_node  worker;
    uint64_t round, samples;
} at_lost_round;

/* Bytes of the parameters and gradients that a hub has sent and received, after compression; those
 * that pass through shared memory count, too. */
typedef struct at_traffic {
    uint64_t to_workers, to_hub;
} at_traffic;

/* Results of a world; the caller frees the four arrays. */
typedef struct at_outcome {
    float         *params; /* final parameters */
    size_t         floats; /* their number; 0 when only time was simulated */
    uint64_t       version;
    uint64_t       trace;       /* hash over what was applied and dropped */
    at_ns          first_order; /* of this process, by at_clock_now; AT_NEVER: none */
    uint64_t       evaluations_skipped;
    bool           switched;    /* to plan->then .. */
    uint64_t       switched_at; /* .. after this step */
    at_end         end;
    at_traffic     traffic;
    at_traffic    *exchanged;              /* with each worker since this process began, or NULL */
    uint64_t      *drawn;                  /* samples drawn by each worker, as it counted them */
    at_target_hit  target[AT_TARGETS_MAX]; /* times since the first order */
    char           engine[32];             /* engine of the workers */
    char           last_lost[160];         /* "worker 2 exited with 3"; "": none was lost */
    char           nonfinite[400];         /* the last report that was not finite; "": none */
    at_lost_round *lost;
    size_t         lost_count;
} at_outcome;

typedef struct at_world {
    const char *name;           /* as in --world and result.json */
    const char *called;         /* in sentences: "--world mpi", "a simulation" */
    bool        runs_programs;  /* resumed by `anytime run` with a command */
    bool        virtual_time;   /* time is simulated: the machine's clock says nothing */
    bool        one_process;    /* no several hubs, no all-reduce */
    bool        has_messages;   /* that --comm-delay can hold back */
    bool        sends_vectors;  /* parameters and gradients are messages: --compress works */
    bool        admits_workers; /* beyond --workers, while the run goes on */
    bool        steps_locally;  /* its workers compute here, so they can make local steps */
    bool        shares_memory;  /* workers can change the parameters themselves */
    bool        binds_workers;  /* --bind places its workers on cores */
    bool        has_hub;        /* false: --workers counts 0 */
    bool        owns_params;    /* its workers can have parameters of their own (gossip) .. */
    bool        reaches_params; /* .. which one process can reach: checkpoints have them */
    /* AT_ERR_USAGE with a sentence for what only this world refuses. Optional. */
    at_err (*check)(const at_world_context *context, at_fail *fail);
    /* Does this process record, print and save? Optional: yes. */
    bool (*records)(const at_world_context *context);
    /* Workers that compute on this machine. Optional: all. */
    uint32_t (*workers_here)(const at_world_context *context);
    /* Cores that its processes may use. Optional: those this process may use. */
    uint32_t (*cores)(void);
    /* Runs the plan and records it through the recorder. Returns after the hub's FINISH, when all
     * its processes have ended and its memory is released. */
    at_err (*run)(const at_world_context *context, at_outcome *outcome, at_fail *fail);
} at_world;

extern const at_world at_world_local, at_world_solo, at_world_sim, at_world_mpi, at_world_seat,
    at_world_net;

/* All rows; NULL ends them. */
extern const at_world *const at_worlds[];

/* The row that --world NAME and the number of workers ask for. AT_ERR_USAGE: there is none. */
at_err at_world_find(const char *name, bool without_hub, const at_world **world, at_fail *fail);

#endif

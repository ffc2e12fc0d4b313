/* run.h - one training run, from options to result.json.
 *
 *     plan, task ─► at_run ─► world ─► recorder ─► sinks; result
 *
 * The common entry point of the command line and of the public library.
 */
#ifndef AT_WORLD_CORE_RUN_H
#define AT_WORLD_CORE_RUN_H

#include <jansson.h>
#include <stdio.h>

#include "record/sinks/sinks.h"
#include "world/core/world.h"
#include "world/process/launcher.h"

/* How much is written to the run folder (--record). */
#define AT_RECORDING_MAP(X) X(FULL, "full") X(STEPS, "steps") X(NONE, "none")
typedef enum at_recording {
#define X(id, text) AT_RECORDING_##id,
    AT_RECORDING_MAP(X)
#undef X
        AT_RECORDING_COUNT
} at_recording;
extern const char *const at_recording_name[AT_RECORDING_COUNT];

#define AT_RECORD_LIMIT     1000000000u
#define AT_RECORD_UNLIMITED UINT64_MAX

typedef struct at_run_options {
    at_plan            plan; /* resolved */
    at_plan            then; /* that of plan.then, if any */
    const at_task     *task;
    const at_world    *world;
    const at_launcher *launcher;    /* of the ranks; NULL: not started by a launcher */
    const char        *optimizer;   /* NULL: see at_run_optimizer */
    double             lr;          /* 0: the optimizer's default */
    const char        *lr_schedule; /* NULL: const */
    double             weight_decay;
    double             clip; /* largest norm of a step's mean gradient; 0: no limit */
    const char        *straggler, *straggler_scale; /* NULL: none, 1 */
    at_round_size      round_size;                  /* law by which sizes of rounds are drawn */
    at_ns              sample_time;                 /* 0: not padded */
    at_ns              latency;                     /* simulation only, with bandwidth and faults */
    double             bandwidth, comm_delay;
    at_link_options    links;
    const char        *compress; /* of messages; NULL: none */
    at_ns              micro_cost;
    double             jitter;
    const char        *faults;
    double             trace_scale; /* of the times of traces; 0: 1 */
    const at_pace     *pace;        /* instead of `straggler`; borrowed; NULL: as that says */
    double             epochs;      /* 0: no such limit */
    int64_t            eval_every;  /* steps; 0: at the end only; -1: once per epoch */
    uint64_t           seed;
    bool               respawn;
    at_bind            bind;        /* which cores workers may use */
    FILE              *classic;     /* gets the lines of the published programs; NULL: none */
    at_ns              started;     /* the program, by at_clock_now; 0: unknown */
    bool               skips_hints; /* notes about strategies with nothing to do (hints.h) */
    float      *params_final;     /* receives the final parameters, task->plain floats; optional */
    const char *folder;           /* NULL: nothing is written */
    const char *checkpoint_every; /* "100" steps, "60s", "0": at the start and the end, "none";
                                        NULL: 60s, in simulation 0 */
    const struct at_checkpoint *resume; /* NULL: start at step 0 */
    at_recording                recording;
    uint64_t record_limit; /* bytes of tables and logs, see record/log/thinner.h; 0: the default */
    at_ns    resources;    /* resource sampling interval, 0: never; used only if recorded */
    at_console_options  console;
    const char         *command; /* as typed */
    json_t             *options; /* all resolved options, for the result; borrowed, may be NULL */
    struct at_seat_hub *seats;   /* of programs with their own loop; NULL: there are none */
    const struct at_net_join *joins; /* this process is a worker of that hub; NULL: it is not */
} at_run_options;

/* The optimizer of a run: the one given, or the default of its strategy. */
const char *at_run_optimizer(const at_run_options *options);

/* What is known before a run starts. */
typedef struct at_run_preview {
    at_limits limits; /* with epochs as samples */
    double    memory; /* bytes on this machine, besides the data, about */
    uint32_t  cores;
} at_run_preview;

/* Checks the options as at_run does, and says what the run would need. */
at_err at_run_preview_make(const at_run_options *options, at_run_preview *preview, at_fail *fail);

/* Runs. *result is the content of result.json, owned by the caller; NULL when training did not
 * start. It is also set after AT_ERR_STOPPED (ended by a signal), and after AT_ERR_FAILED and
 * AT_ERR_IO when training had started. AT_ERR_IO: a file could not be written; *fail names the
 * first. */
at_err at_run(const at_run_options *options, json_t **result, at_fail *fail);

/* Measures the time of one sample on this machine, in a child process so that this one loads no
 * engine. */
at_err at_run_measure(const at_task *task, uint32_t micro_batch, at_ns *sample_time, at_fail *fail);

#endif

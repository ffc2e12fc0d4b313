/* run.h - one training run from settings to result.json.
 *
 *     plan, task ─► at_run ─► world ─► recorder ─► sinks; result
 *
 * The one entry for the command line and for the public library.
 */
#ifndef AT_WORLD_CORE_RUN_H
#define AT_WORLD_CORE_RUN_H

#include <jansson.h>

#include "record/sinks/sinks.h"
#include "world/core/world.h"
#include "world/process/launcher.h"

/* How much is written into the run's folder. */
#define AT_KEEP_MAP(X) X(FULL, "full") X(STEPS, "steps") X(NONE, "none")
typedef enum at_keep {
#define X(id, text) AT_KEEP_##id,
    AT_KEEP_MAP(X)
#undef X
        AT_KEEP_COUNT
} at_keep;
extern const char *const at_keep_name[AT_KEEP_COUNT];

typedef struct at_run_options {
    at_plan            plan; /* resolved; its workers are 1 when `solo` */
    const at_task     *task;
    bool               solo;        /* --workers 0 */
    uint32_t           hubs;        /* that share the updates; 0 and 1: one */
    const char        *optimizer;   /* NULL: sgd */
    double             lr;          /* 0: the optimiser's own default */
    const char        *lr_schedule; /* NULL: const */
    double             weight_decay;
    const char        *straggler, *straggler_scale; /* NULL: none, 1 */
    at_ns              sample_time;                 /* 0: not padded */
    bool               virtual_time;                /* --world sim */
    const at_launcher *launcher; /* --world mpi: who started the ranks; NULL: nobody */
    at_ns              latency;  /* the three of virtual time only */
    double             bandwidth, comm_delay;
    const char        *faults;
    double             epochs;     /* 0: no such limit */
    int64_t            eval_every; /* steps; 0: at the end only; -1: once an epoch */
    uint64_t           seed;
    bool               respawn;
    float             *params_final; /* optional, task->plain floats: where the parameters go */
    const char        *folder;       /* NULL: nothing is written */
    const char *checkpoint_every;    /* "100" steps, "60s", "0": at the start and the end, "none";
                                            NULL: 60s, and 0 in virtual time */
    const struct at_checkpoint *resume; /* where to go on; NULL: begin at step 0 */
    at_keep                     keep;
    at_ns              resources; /* how often to look what processes take, 0: never; what is not
                                     kept is not looked at */
    at_console_options console;
    const char        *command; /* as typed */
    json_t            *options; /* echo of every resolved option; borrowed, may be NULL */
} at_run_options;

/* Runs. *result (also after AT_ERR_STOPPED, and after AT_ERR_FAILED and AT_ERR_IO when training had
 * begun) is what result.json holds, owned by the caller; NULL when the run never began.
 * AT_ERR_STOPPED: ended by a signal. AT_ERR_IO: a file of the folder is missing, the first of which
 * *fail tells. */
at_err at_run(const at_run_options *options, json_t **result, at_fail *fail);

/* Time one sample takes on this machine, measured in a child so that this process stays free of
 * engines. */
at_err at_run_measure(const at_task *task, uint32_t micro_batch, at_ns *sample_time, at_fail *fail);

#endif

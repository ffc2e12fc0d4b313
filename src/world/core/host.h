/* host.h - runs a hub: feeds it events, performs its actions, records both.
 *
 * Worlds differ in how orders reach workers, how a worker is ended and where gradients are stored;
 * they provide these operations as an at_world_ops. All other actions of a hub are performed here,
 * for every world.
 */
#ifndef AT_WORLD_CORE_HOST_H
#define AT_WORLD_CORE_HOST_H

#include "base/arena.h"
#include "record/record.h"
#include "step/hub.h"
#include "world/core/gossip.h"
#include "world/core/nonfinite.h"
#include "world/core/update.h"
#include "world/core/world.h"
#include "world/process/evaluator.h"
#include "world/process/saver.h"

/* Operations that a world provides to its hub. */
typedef struct at_world_ops {
    void *self;
    /* Sends an order to a worker, at the latest when flush is called. */
    void (*send)(void *self, at_node worker, const at_order *order);
    /* Called after all orders of one event; optional. */
    void (*flush)(void *self);
    /* Ends a worker for good; a LOST event MUST follow. */
    void (*evict)(void *self, at_node worker);
    /* Called before and after a change of the parameters; `version` is the new one. Optional. */
    void (*change)(void *self);
    void (*publish)(void *self, uint64_t version);
    /* Where each worker has its parameters in its own process (gossip): makes the workers average
     * instead of applying; returns the learning rate. Optional. */
    double (*mix)(void *self, const at_action *apply);
    /* The same: brings the mean of the workers' parameters into the hub's vector. False: nobody is
     * there who has them. Optional. */
    bool (*collect)(void *self);
    /* Adds the world's own state to a snapshot that is about to be saved. Optional. */
    void (*describe)(void *self, at_snapshot *snapshot);
    /* Names what is saved beside the snapshot where that is not only the updater's, which the input
     * has already. False: it is not there yet, and at_host_save follows. Optional. */
    bool (*vectors)(void *self, at_saver_input *input);
    /* Scores the parameters immediately, for worlds in which evaluation takes no time and which
     * have no evaluator. Optional. */
    void (*score)(void *self, at_score *score);
    /* Fetches an evaluation in worlds whose several hubs must all get it at the same point.
     * Optional: by default the evaluator is asked. */
    bool (*evaluation)(void *self, at_evaluation *evaluation);
    at_gradients gradients;
    bool         virtual_time; /* the machine's clock is unrelated to the time of the run */
} at_world_ops;

/* Details of an event that only the world has, for the record. */
typedef struct at_about {
    int64_t     pid;
    const char *text;
    uint64_t    count;
    bool        final;
} at_about;

/* Sampling of resource usage. */
typedef struct at_usage_sampling {
    at_ns    every; /* interval; 0: off */
    at_ns    due;   /* time of the next sample; AT_NEVER: off */
    int64_t *pid;   /* of each worker; 0: none on this machine */
} at_usage_sampling;

typedef struct at_host {
    const at_hub     *hub;     /* read-only: events are the only way to change it */
    at_hub           *machine; /* the same hub, for the host alone */
    at_arena          arena;
    at_out            out;
    at_recorder      *recorder;
    at_updater       *updater;
    at_evaluator     *evaluator; /* may be NULL */
    at_saver         *saver;     /* may be NULL */
    at_gossip        *gossip;    /* NULL: the hub's are the only parameters; set before START */
    at_world_ops      ops;
    at_ns             timer[AT_TIMER_COUNT]; /* AT_NEVER: none */
    at_ns             started;
    at_ns             took;   /* duration of the last APPLY, see at_record */
    bool              scored; /* `evaluation` is still to be delivered to the hub */
    at_evaluation     evaluation;
    bool              finished;
    at_usage_sampling sampling;
    at_ns             stopped;        /* how long this process has been stopped, see at_host_now */
    at_ns             seen;           /* the machine's clock when it was last read for that */
    at_ns             leases_from;    /* none ends earlier: the hub was busy with a checkpoint */
    char              last_lost[160]; /* see at_outcome */
    at_traffic        traffic;        /* counted by the world with at_host_count_.. */
    at_traffic       *exchanged;      /* the same with each worker; NULL: too many of them */
    uint64_t         *version_read;   /* in shared memory, by each worker; 1 + version, 0: none */
    char              nonfinite[AT_NONFINITE_TEXT]; /* the last report that was not finite */
    uint64_t          nonfinite_count;              /* of such reports */
    const at_task    *task;                         /* NULL: not known */
    char             *last_state; /* of the last checkpoint, which waits for its vectors */
} at_host;

/* Creates the hub. Plan, recorder, updater and evaluator are borrowed. */
at_err at_host_init(at_host *host, const at_plan *plan, at_recorder *recorder, at_updater *updater,
                    at_evaluator *evaluator, const at_world_ops *ops, at_fail *fail);
void   at_host_deinit(at_host *host); /* accepts a zeroed one */

/* ---- start: at step 0, or from a checkpoint ---------------------------------------------------
 *
 * A world calls the first when it has memory for the parameters and the second when host and
 * updater exist; workers then start at at_resume_drawn. */

/* Writes the initial parameters: the task's, or those of context->resume. */
at_err at_resume_params(const at_world_context *context, float *params, at_fail *fail);

/* Sets the host's saver, and restores hub and optimizer from context->resume. */
at_err at_resume_host(const at_world_context *context, at_host *host, at_fail *fail);

/* The position in its sample sequence at which a worker continues. */
uint64_t at_resume_drawn(const at_host *host, at_node worker);

/* ---- time --------------------------------------------------------------------------------------
 *
 * While a hub is stopped (Ctrl-Z, SIGSTOP, a frozen container) it hears nothing, and usually its
 * workers are stopped, too. So that time is no part of the run: it counts neither for leases nor
 * for --seconds. Worlds in real time read their clock and wait here. */

/* The machine's clock less the time that this process was stopped. */
at_ns at_host_now(at_host *host);

/* at_bell_wait for this host, until the time `until` of at_host_now. Waking up long after that
 * means that the process was stopped. */
void at_host_wait(at_host *host, at_bell *bell, uint32_t heard, uint32_t rings, at_ns until,
                  at_ns spin_ns);

/* ---- events and timers ----------------------------------------------------------------------- */

/* Processes one event and all actions that follow from it. `about` may be NULL. */
void at_host_event(at_host *host, const at_event *event, const at_about *about);

/* Delivers the evaluations and timers that are due at `now`. */
void at_host_poll(at_host *host, at_ns now);

/* Writes a checkpoint that `vectors` has put off: of the present state or, when the run has ended,
 * of that at its end. Does nothing when its vectors are still not there. */
void at_host_save(at_host *host, at_ns now);

/* Reaps the evaluator if it has ended, and tells the user; to be called after SIGCHLD. */
void at_host_reap(at_host *host, at_ns now);

/* Time of the next timer; AT_NEVER: none is set. */
at_ns at_host_due(const at_host *host);

/* ---- traffic --------------------------------------------------------------------------------- */

/* Parameters were sent to a worker, or a gradient came from it. */
void at_host_count_sent(at_host *host, at_node worker, uint64_t bytes);
void at_host_count_received(at_host *host, at_node worker, uint64_t bytes);

/* The same for a report in shared memory: its gradient, and the parameters it was computed with if
 * the worker had not read them before. */
void at_host_count_shared(at_host *host, at_node worker, const at_work *work);

/* ---- record ---------------------------------------------------------------------------------- */

/* Samples and records the resource usage of this process, the evaluator and the workers set with
 * at_host_process at the interval `every` (0: never). To be called between init and START. */
at_err at_host_watch(at_host *host, at_ns every, at_fail *fail);

/* Sets the process of a worker on this machine; 0: it has ended. */
void at_host_process(at_host *host, at_node worker, int64_t pid);

/* Records a usage measured elsewhere, unless sampling is off. */
void at_host_usage(at_host *host, at_node node, const at_usage *usage, at_ns now);

/* Records the state of the connection to a worker on another machine. */
void at_host_link(at_host *host, at_node worker, const at_link_stats *link, at_ns now);

/* Records a message for the user. */
void at_host_say(at_host *host, at_ns now, const char *text);

/* ---- end ------------------------------------------------------------------------------------- */

/* Fills in what the hub contributes to the outcome and zeroes the rest. */
void at_host_outcome(const at_host *host, at_outcome *outcome);

/* After FINISH: scores the final parameters; the time for it does not count as training. */
void at_host_final_score(at_host *host);

#endif

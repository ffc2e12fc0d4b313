/* event.h - inputs (events) and outputs (actions) of the hub's state machine; the worker's are in
 * worker.h.
 *
 *            event (with now)                        actions
 *   world ───────────────────────► at_hub_step ─────────────────────► world
 *   (clock, messages, floats)      no I/O, no clock, no malloc       carries them out
 *
 * Everything a rule depends on arrives in an event, so a run can be replayed from its events. State
 * machines hold handles and counts; the floats stay in the world. Deadlines are local to a node: no
 * absolute time is sent from one node to another.
 */
#ifndef AT_STEP_EVENT_H
#define AT_STEP_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

/* A node: 0 is the hub, 1 .. workers are workers. */
typedef uint32_t at_node;

enum {
    AT_WORKERS_MAX = 1000000,
    AT_PIECES_MAX = 1 << 20 /* LIMIT: gradients in one step */
};

/* Hub to worker: compute one round, or leave. */
typedef struct at_order {
    uint64_t round;       /* number of earlier rounds of this worker, over all incarnations */
    uint64_t version;     /* parameters to start from; a newer version may be used instead */
    uint64_t position;    /* first sample in the common order, or AT_POSITION_OWN */
    uint64_t used;        /* samples used in the run so far; schedules of local steps need it */
    at_ns    time_limit;  /* length of the round; AT_NEVER: only samples_max limits it */
    uint32_t samples_max; /* >= 1 */
    bool     again;       /* start further rounds without another order */
    bool     pause;       /* finish the current round, then wait for an order */
    bool     leave;       /* stop and exit; all other fields are unused */
    bool     then;        /* of the plan that follows the first one, see switch.h */
} at_order;

#define AT_POSITION_OWN UINT64_MAX
#define AT_VERSION_NONE UINT64_MAX

/* The result of one round. Times are durations measured by the worker. */
typedef struct at_work {
    uint64_t round;
    uint64_t version;   /* of the parameters the first micro-batch used */
    uint32_t samples;   /* drawn and summed into the gradient */
    bool     abandoned; /* the gradient is invalid, but the samples were drawn */
    bool     capped;    /* ended because samples_max was reached */
    bool     overslept; /* the induced sleep used up the time; one micro-batch was done anyway */
    /* 1 + index of the first number of the gradient that is not finite (sparse: 1 + the feature);
     * 0: all of them are, or nobody has looked. The loss may not be finite either way. */
    uint64_t nonfinite;
    double   loss_sum;
    at_ns    compute_ns;   /* without the induced sleep */
    at_ns    sleep_ns;     /* induced */
    at_ns    overshoot_ns; /* end minus deadline; 0 without a time limit */
    at_ns    idle_ns;      /* from the end of the previous send to the start of this round */
    at_ns    install_ns;   /* copying parameters in; part of idle_ns */
    at_ns    send_ns;      /* sending the previous round's gradient */
} at_work;

/* Worker to hub: a gradient, the SUM over work.samples samples. */
typedef struct at_report {
    at_work  work;
    uint32_t incarnation; /* which process of this worker; the hub ignores reports of dead ones */
    uint32_t slot;        /* gradient slot, a handle for the world */
    uint64_t sequence;    /* 1, 2, .. per worker, over all incarnations */
    bool     again;       /* the worker starts its next round without an order */
} at_report;

/* One gradient of a step, as listed by APPLY. */
typedef struct at_piece {
    at_node  worker;
    uint32_t slot;
    uint32_t samples;
    uint32_t incarnation;
    uint64_t sequence;
    uint64_t version;
    double   weight; /* 1 except under stale rule `scale`; never part of the divisor */
} at_piece;

/* Metrics of an evaluation, and the samples that they are about: X(id, name, set). Names are part
 * of result.json; the event log depends on the order. Those of the workers' own models exist only
 * under gossip; the training samples are then the same at every evaluation. */
#define AT_METRIC_MAP(X)                                                                       \
    X(ACCURACY, "accuracy", "test")                                                            \
    X(LOSS, "loss", "test")                                                                    \
    X(AUC, "auc", "test")                                                                      \
    X(TOP5, "top5", "test")                                                                    \
    X(R2, "r2", "test")                         /* coefficient of determination, regression */ \
    X(WORST_ACCURACY, "worst_accuracy", "test") /* of the workers' own models */               \
    X(WORST_LOSS, "worst_loss", "test")                                                        \
    X(DISAGREEMENT, "disagreement", "test")      /* of the workers' parameters */              \
    X(WORKERS_LOSS, "workers_loss", "test")      /* mean of the workers' own models */         \
    X(TRAIN_LOSS, "train_loss", "train")         /* mean over the workers' own models */       \
    X(TRAIN_LOSS_MIN, "train_loss_min", "train") /* of the best and of the worst of them */    \
    X(TRAIN_LOSS_MAX, "train_loss_max", "train")                                               \
    X(TRAIN_LOSS_MODEL, "train_loss_model", "train") /* of the mean model */
typedef enum at_metric {
#define X(id, text, set) AT_METRIC_##id,
    AT_METRIC_MAP(X)
#undef X
        AT_METRIC_COUNT
} at_metric;
extern const char *const at_metric_name[AT_METRIC_COUNT];

typedef enum at_timer {
    AT_TIMER_LEASE,  /* a lease may have expired */
    AT_TIMER_NOTICE, /* the step has been open for unusually long */
    AT_TIMER_PERIOD, /* gather rule `every` */
    AT_TIMER_SAVE,   /* a checkpoint is due by time, or was requested */
    AT_TIMER_JOIN,   /* workers have had --join-timeout to join */
    AT_TIMER_COUNT
} at_timer;

typedef enum at_event_kind {
    AT_EV_START,     /* the run begins */
    AT_EV_JOINED,    /* a worker is ready for orders */
    AT_EV_LOST,      /* a worker is gone, or an expected one will not join */
    AT_EV_MESSAGE,   /* a report arrived */
    AT_EV_APPLIED,   /* the update is complete */
    AT_EV_EVALUATED, /* a snapshot was evaluated */
    AT_EV_TIMER,     /* a timer has expired */
    AT_EV_STOP       /* the user ends the run */
} at_event_kind;

typedef struct at_event {
    at_event_kind kind;
    at_node       worker; /* JOINED, LOST, MESSAGE */
    at_ns         now;
    union {
        struct {
            uint32_t incarnation;
        } joined;
        struct {
            uint64_t drawn;   /* samples counted by this worker itself, over all incarnations */
            bool     returns; /* a replacement will join */
            bool     left;    /* it has left of its own accord (seats) */
        } lost;
        at_report report; /* MESSAGE */
        struct {
            /* Computed only for size rules that need them, else 0. Under stale rule `scale` the
             * step's gradient is weighted, its pieces are not. */
            double norm2_step;  /* squared norm of the step's mean gradient */
            double norm2_piece; /* mean over pieces of the squared norm of their mean gradients */
        } applied;
        struct {
            uint64_t step;
            at_ns    at;                     /* when the snapshot was taken */
            double   value[AT_METRIC_COUNT]; /* NAN: not defined for this task */
        } evaluated;
        at_timer timer;
    } as;
} at_event;

typedef enum at_action_kind {
    AT_ACT_SEND,     /* an order to one worker */
    AT_ACT_TIMER,    /* set a timer to `at` (AT_NEVER: cancel it) */
    AT_ACT_ADD,      /* add this gradient to the open step now */
    AT_ACT_APPLY,    /* update the parameters and publish them */
    AT_ACT_DROP,     /* these samples were drawn but will not be used */
    AT_ACT_EVALUATE, /* copy the parameters and evaluate them while training continues */
    AT_ACT_SAVE,     /* write a checkpoint of the last closed step (snapshot.h) */
    AT_ACT_EVICT,    /* terminate this worker; LOST follows */
    AT_ACT_NOTICE,   /* tell the user which worker the step waits for */
    AT_ACT_FINISH    /* the machine has finished */
} at_action_kind;

/* Why samples were dropped, and why a run ended; names are part of result.json. */
#define AT_DROP_MAP(X)        \
    X(STALE, "stale")         \
    X(ABANDONED, "abandoned") \
    X(LOST, "lost")           \
    X(STOPPED, "stopped")     \
    X(NONFINITE, "nonfinite")
typedef enum at_drop {
#define X(id, text) AT_DROP_##id,
    AT_DROP_MAP(X)
#undef X
        AT_DROP_COUNT
} at_drop;
extern const char *const at_drop_name[AT_DROP_COUNT];

#define AT_END_MAP(X)         \
    X(RUNNING, "running")     \
    X(STEPS, "steps")         \
    X(SAMPLES, "samples")     \
    X(EPOCHS, "epochs")       \
    X(SECONDS, "seconds")     \
    X(TARGET, "target")       \
    X(SIGNAL, "signal")       \
    X(FEW, "too few workers") \
    X(WORKERS, "no workers")  \
    X(DIVERGED, "diverged")   \
    X(LOST, "rank lost")      \
    X(LEFT, "workers left")
typedef enum at_end {
#define X(id, text) AT_END_##id,
    AT_END_MAP(X)
#undef X
        AT_END_COUNT
} at_end;
extern const char *const at_end_name[AT_END_COUNT];

typedef struct at_action {
    at_action_kind kind;
    at_node        worker; /* SEND, DROP, EVICT, NOTICE */
    union {
        at_order order;
        struct {
            at_timer timer;
            at_ns    at;
        } timer;
        at_piece add;
        struct {
            uint64_t        step;         /* 1 for the first update; also the new version */
            uint64_t        samples;      /* the divisor */
            uint64_t        samples_used; /* before this step; input of learning-rate schedules */
            const at_piece *pieces;       /* valid until the next hub step */
            uint32_t        count;
            bool            folded; /* the pieces were already added with ADD */
            double          loss_sum;
            at_ns  wait_ns;   /* from the first order, or the previous close, to this close */
            double lr_factor; /* factor on the learning rate; 1 unless --lr-scale */
        } apply;
        struct {
            uint64_t sequence, samples, version;
            at_drop  why;
        } drop;
        struct {
            uint64_t step;
        } evaluate;
        struct {
            uint64_t step;
            bool     last; /* no further step will be applied */
            const struct at_snapshot
                *snapshot; /* valid until the next hub step; NULL in the event log */
        } save;
        struct {
            bool outdated; /* not for its silence; not in the event log, where LOST says why */
        } evict;
        struct {
            at_ns    waited;
            uint64_t step;
        } notice;
        struct {
            at_end why;
        } finish;
    } as;
} at_action;

/* The actions of one call, in order. The world owns the memory and empties it before each call. */
typedef struct at_out {
    at_action *actions;
    size_t     count, size;
} at_out;

/* Upper bound on the actions of one call in a run with this many workers. */
size_t at_out_size(uint32_t workers);

/* The next action, zeroed but for its kind. */
at_action *at_out_push(at_out *out, at_action_kind kind);

#endif

/* worker.h - the worker's state machine, at the grain of a micro-batch.
 *
 *     feed new events ─► at_worker_step ─► perform the action it returns ─► feed its completion
 *
 *     waiting ──ORDER──► INSTALL ─► SLEEP ─► MICRO, MICRO, .. ─► SEND ──SENT──► waiting
 *                           ▲                                              │
 *                           └───── self-starting: the next round ──────────┘
 *
 * The caller owns the clock, the floats and the transport: worker processes and MPI ranks
 * (world/core/driver.h), virtual time (world/sim), tests. Newer parameters, orders and LEAVE take
 * effect between micro-batches, never within one. The amounts of an order (samples, time limit)
 * apply from the next round; LEAVE affects the current round, as newer parameters do under the
 * rules `abandon` and `refresh`.
 *
 * In virtual time a machine can be run ahead to the end of its round and put back again.
 */
#ifndef AT_STEP_WORKER_H
#define AT_STEP_WORKER_H

#include "step/cut.h"
#include "step/event.h"
#include "step/plan.h"

typedef enum at_worker_event_kind {
    AT_WORKER_ORDER,      /* an order arrived */
    AT_WORKER_LEAVE,      /* ordered to leave */
    AT_WORKER_NEWER,      /* newer parameters than the installed ones are available */
    AT_WORKER_INSTALLED,  /* INSTALL is done */
    AT_WORKER_AWAKE,      /* SLEEP is over */
    AT_WORKER_MICRO_DONE, /* MICRO is done */
    AT_WORKER_SENT        /* SEND is done: the report was handed over */
} at_worker_event_kind;

typedef struct at_worker_event {
    at_worker_event_kind kind;
    at_ns                now;
    at_order             order;   /* ORDER */
    uint64_t             version; /* INSTALLED, NEWER: of the parameters */
    uint32_t             samples; /* MICRO_DONE: really computed; a loader may give other numbers */
    at_ns                took;    /* MICRO_DONE: its duration, for predictions; 0: cut short */
} at_worker_event;

typedef enum at_worker_action_kind {
    AT_WORKER_WAIT,    /* nothing to begin: wait for an event */
    AT_WORKER_INSTALL, /* take the newest parameters */
    AT_WORKER_SLEEP,   /* induced by the straggler model; part of the round */
    AT_WORKER_MICRO,   /* compute one micro-batch */
    AT_WORKER_ABANDON, /* end the current micro-batch early if possible, then MICRO_DONE */
    AT_WORKER_SEND,    /* hand the report over */
    AT_WORKER_FINISH   /* the worker ends */
} at_worker_action_kind;

typedef struct at_worker_action {
    at_worker_action_kind kind;
    uint32_t              samples;  /* MICRO */
    uint64_t              position; /* MICRO: in the common order, or AT_POSITION_OWN */
    bool                  first;    /* MICRO: of its round */
    at_report             report;   /* SEND, else undefined; loss, idle, install and send times are
                                       the caller's */
} at_worker_action;

typedef enum at_worker_state {
    AT_WORKER_WAITING,    /* for an order */
    AT_WORKER_ORDERED,    /* a round is about to begin */
    AT_WORKER_INSTALLING, /* parameters, at the round's start or in the middle (refresh) */
    AT_WORKER_STARTING,   /* parameters are installed */
    AT_WORKER_SLEEPING,   /* counts towards the time limit */
    AT_WORKER_READY,      /* between two micro-batches */
    AT_WORKER_COMPUTING,  /* a micro-batch is being computed */
    AT_WORKER_REPORTING,  /* the round is over */
    AT_WORKER_SENDING,
    AT_WORKER_DONE
} at_worker_state;

typedef struct at_worker {
    const at_plan  *plan;
    at_worker_state state;
    at_node         id;
    uint32_t        incarnation;
    uint32_t        slots;     /* gradient slots it may write in turn */
    at_order        order;     /* the newest one: amounts of the next round */
    uint64_t        sequence;  /* of the last report */
    bool            ordered;   /* the next order came before the report was handed over */
    bool            continues; /* the report being sent announces a round without an order */
    bool            leaving;   /* ordered to leave while busy */
    bool            has_begun; /* a round, in this process */
    /* The current round. */
    uint64_t version;           /* of the installed parameters */
    bool     newer;             /* newer ones are available */
    bool     abandon;           /* its gradient is invalid */
    bool     abandon_returned;  /* as an action */
    uint32_t micro;             /* samples of the current micro-batch */
    bool     last;              /* the round ends with the current micro-batch */
    uint64_t position;          /* of its first sample in the common order, or AT_POSITION_OWN */
    at_ns    deadline;          /* AT_NEVER: none */
    at_ns    begun, awake, end; /* start of the sleep, start of computing, end of the last part */
    at_work  work;
    at_cut   cut; /* its speed estimate is kept between rounds */
} at_worker;

/* Initializes a worker in the caller's memory. `sequence` is that of its last counted report, by an
 * earlier incarnation or before the run was resumed; 0: none. */
void at_worker_init(at_worker *worker, const at_plan *plan, at_node id, uint32_t incarnation,
                    uint32_t slots, uint64_t sequence);

/* Takes one event. */
void at_worker_feed(at_worker *worker, const at_worker_event *event);

/* Returns the next action. Every action but WAIT is returned once and counts as begun. */
at_worker_action at_worker_step(at_worker *worker);

/* Changes the size of the round under way from what was ordered (--straggler-batch). Between the
 * SLEEP action and its AWAKE event only. */
void at_worker_resize(at_worker *worker, uint32_t samples);

/* True from the order to the end of the last micro-batch. */
bool at_worker_in_round(const at_worker *worker);

/* Between two micro-batches: true if the round has another one. */
bool at_worker_has_more(const at_worker *worker);

/* During a micro-batch, just begun: if it is expected to be the last one of its round, makes it the
 * last, however long it takes, and returns true. Only LEAVE can then keep its gradient from being
 * reported, unless newer parameters may interrupt rounds. */
bool at_worker_decide_end(at_worker *worker);

/* Back to the start of the sleep of the current round, with the speed estimate of that moment.
 * Orders that came meanwhile stay. Not after LEAVE or an abandoned round. */
void at_worker_rewind(at_worker *worker, double sample_ns);

/* The round's clock stood still for this long: moves its times. */
void at_worker_shift(at_worker *worker, at_ns by);

/* The slot that the current round writes its gradient to. */
uint32_t at_worker_slot(const at_worker *worker);

#endif

/* worker.h - the worker's state machine: install, compute, send, wait.
 *
 *     order ─► INSTALL, COMPUTE ─► COMPUTED ─► SEND ─► SENT ─► wait for the next order,
 *                   ▲                                    │     or, when self-starting,
 *                   └────────────────────────────────────┘     begin the next round at once
 *
 * One computation at a time, at most one report outstanding.
 */
#ifndef AT_STEP_WORKER_H
#define AT_STEP_WORKER_H

#include "step/event.h"
#include "step/plan.h"

typedef enum at_worker_state {
    AT_WORKER_WAITING,
    AT_WORKER_COMPUTING,
    AT_WORKER_SENDING,
    AT_WORKER_DONE
} at_worker_state;

typedef struct at_worker {
    const at_plan  *plan;
    at_worker_state state;
    at_node         id;
    uint32_t        incarnation;
    uint32_t        slots;    /* gradient slots it may write in turn */
    at_order        order;    /* the newest one */
    uint64_t        sequence; /* of the last report */
    bool            ordered;  /* the next order came before the report was handed over */
    bool            goes_on;  /* as the report under way says: the next round needs no order */
    bool            leaving;  /* told to leave while busy */
} at_worker;

/* A worker in the caller's memory. `sequence` is that of the last report that counted, of an
 * earlier incarnation or before the run was resumed; 0: there was none. */
void at_worker_init(at_worker *worker, const at_plan *plan, at_node id, uint32_t incarnation,
                    uint32_t slots, uint64_t sequence);

/* One event in, at most three actions out. */
void at_worker_step(at_worker *worker, const at_event *event, at_out *out);

/* The slot the running computation writes its gradient to. */
uint32_t at_worker_slot(const at_worker *worker);

#endif

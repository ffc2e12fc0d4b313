/* worker_loop.h - a worker process in real time: it runs worker.c, computes, and talks through a
 * port.
 *
 *     port ──orders, parameters──► node ──events──► worker.c ──actions──► node ──reports──► port
 *
 * Worlds differ in how orders, parameters and reports move; that is the at_transport they fill.
 * All that a worker does in real time is done here, once for all of them.
 */
#ifndef AT_WORLD_CORE_WORKER_LOOP_H
#define AT_WORLD_CORE_WORKER_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "step/event.h"
#include "world/core/world.h"

/* A worker's side of the way to its hub. */
typedef struct at_transport {
    void *self;
    /* Moves messages along; called between micro-batches. Optional: they move by themselves. */
    void (*poll)(void *self);
    /* A count that grows with news. It is asked for before looking, so that `wait` cannot miss what
     * came in between. */
    uint32_t (*heard)(void *self);
    /* Sleeps until there is news that came after `heard`, or until the time given (AT_NEVER: no
     * end). May return early for no reason. */
    void (*wait)(void *self, uint32_t heard, at_ns until);
    /* Was this worker told to leave? */
    bool (*leaves)(void *self);
    /* The newest order, once. Parameters of its version are at hand by then. */
    bool (*take_order)(void *self, at_order *order);
    /* Version of the newest parameters at hand. */
    uint64_t (*newest)(void *self);
    /* Puts the newest parameters aside, where nobody changes them; returns their version. What is
     * installed MUST stay as it is, unless the world has no message delays. */
    uint64_t (*fetch)(void *self);
    /* Where the parameters that were put aside last are; valid until the next `install`. */
    const float *(*install)(void *self);
    /* Where the gradient of a slot is computed. It is free to be written to. */
    float *(*gradient)(void *self, uint32_t slot);
    /* Hands a report over, with the gradient of its slot. Waits for the one before to be taken. */
    void (*send)(void *self, const at_report *report);
} at_transport;

/* What a node is made of. */
typedef struct at_worker_loop_start {
    const at_world_context *context;
    at_transport            port;
    at_node                 id;
    uint32_t                incarnation;
    uint32_t                slots;    /* of gradients */
    uint64_t                sequence; /* of its last report that counted, see at_worker_init */
    /* Its side of the ledger; goes on from what is there. */
    _Atomic uint64_t *drawn;
    /* Sparse tasks, see at_computer. */
    const _Atomic uint64_t *params_lock;
    float                  *shared;
} at_worker_loop_start;

/* Works until it is told to leave. The task MUST be open. */
void at_worker_loop_run(const at_worker_loop_start *start);

#endif

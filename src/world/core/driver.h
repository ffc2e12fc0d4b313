/* driver.h - the loop of a worker in real time.
 *
 *     at_driver_next ─► a micro-batch to compute ─► at_driver_done ─► at_driver_next ..
 *
 * The driver runs the state machine (step/worker.h): it polls the transport, feeds every event that
 * came, steps, and does one action. Orders, parameters, sleeps, padding and reports are its
 * business; whoever calls it owns the loop and computes. Worlds differ in how orders, parameters
 * and reports move: that is the at_transport they provide.
 */
#ifndef AT_WORLD_CORE_DRIVER_H
#define AT_WORLD_CORE_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "step/worker.h"
#include "world/core/world.h"

/* A worker's side of the connection to its hub. No function but `wait` blocks. */
typedef struct at_transport {
    void *self;
    /* A count that grows with news; moves messages along. It is asked for before looking, so that
     * `wait` cannot miss what came in between. */
    uint32_t (*heard)(void *self);
    /* Sleeps until there is news that came after `heard`, or until the time given (AT_NEVER: no
     * end). May return early for no reason. */
    void (*wait)(void *self, uint32_t heard, at_ns until);
    /* Was this worker told to leave? */
    bool (*leaves)(void *self);
    /* The newest order, once. Parameters of its version are available by then. */
    bool (*take_order)(void *self, at_order *order);
    /* Version of the newest parameters available. */
    uint64_t (*newest)(void *self);
    /* Puts the newest parameters aside, where nobody changes them; returns their version. What is
     * installed MUST stay as it is, unless the world has no message delays. */
    uint64_t (*fetch)(void *self);
    /* Where the parameters that were put aside last are; valid until the next `install`. */
    const float *(*install)(void *self);
    /* Where the gradient of a slot is computed. It is free to be written to: no order is handed out
     * and no report accepted before that holds for the next round's slot. */
    float *(*gradient)(void *self, uint32_t slot);
    /* Hands a report over, with the gradient of its slot; false: the one before was not taken
     * yet. */
    bool (*send)(void *self, const at_report *report);
} at_transport;

/* What a driver is made of; borrowed for its life. */
typedef struct at_driver_options {
    const at_world_context *context;
    at_transport            transport;
    at_node                 id;
    uint32_t                incarnation;
    uint32_t                slots;    /* of gradients */
    uint64_t                sequence; /* of its last report that counted, see at_worker_init */
    _Atomic uint64_t       *drawn;    /* its side of the ledger, counted on from what is there */
    /* Sparse tasks: guards the parameters, which are read in place; NULL: nobody writes. */
    const _Atomic uint64_t *params_lock;
} at_driver_options;

typedef struct at_driver {
    at_driver_options options;
    at_worker         machine;
    const float      *params;  /* installed */
    uint64_t          version; /* of the installed ones */
    /* Messages that induced delays hold back. */
    bool     order_held;
    at_order order;
    at_ns    order_due;
    uint64_t params_version;
    at_ns    params_due; /* AT_NEVER: none are on their way */
    uint64_t messages;
    /* What is under way. */
    bool      sleeping, computing, padding, sending;
    at_ns     until; /* end of the sleep or the padding */
    at_ns     spent; /* in gradients of this round, without padding */
    uint32_t  micro; /* samples of the micro-batch under way, as drawn */
    uint32_t  done;  /* samples of this round that were computed */
    float    *gradient;
    double    loss_sum;
    at_report report;
    /* For the report. */
    at_ns idle_since, idle_ns, install_ns, send_since, send_ns;
} at_driver;

/* One micro-batch. */
typedef struct at_micro {
    at_point point;
    at_draw  draw;
    bool     first; /* of its round: overwrite the gradient; otherwise add to it */
    float   *gradient;
} at_micro;

/* A driver in the caller's memory, which needs no closing. */
void at_driver_init(at_driver *driver, const at_driver_options *options);

/* Waits until there is a micro-batch to compute; its samples are counted as drawn by then. False:
 * the worker was told to leave, and its last report was handed over. */
bool at_driver_next(at_driver *driver, at_micro *micro);

/* The micro-batch was computed, with so many samples (those asked for, unless a loader gave another
 * number); `loss_sum` is the sum over them. */
void at_driver_done(at_driver *driver, uint32_t samples, double loss_sum);

/* Computes what the driver asks for until it ends. The task MUST be open. `shared` are parameters
 * that workers change themselves (hogwild); NULL: they report gradients. */
void at_driver_run(at_driver *driver, float *shared);

#endif

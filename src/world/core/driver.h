/* driver.h - the loop of a worker in real time.
 *
 *     at_driver_next ─► a micro-batch to compute ─► at_driver_done ─► at_driver_next ..
 *
 * The driver runs the state machine (step/worker.h): it polls the transport, feeds new events,
 * steps the machine and performs its action. It handles orders, parameters, sleeps, padding and
 * reports; the caller owns the loop and computes. Each world provides an at_transport, which moves
 * orders, parameters and reports.
 */
#ifndef AT_WORLD_CORE_DRIVER_H
#define AT_WORLD_CORE_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "step/worker.h"
#include "world/core/local_steps.h"
#include "world/core/world.h"

/* A worker's side of the connection to its hub. No function but `wait` blocks. */
typedef struct at_transport {
    void *self;
    /* Advances messages and returns a count that grows with every arrival. Called before the other
     * functions are polled, so that `wait` cannot miss an arrival in between. */
    uint32_t (*heard)(void *self);
    /* Sleeps until something arrives after `heard` was taken, at most until `until` (AT_NEVER: no
     * limit). May return early. */
    void (*wait)(void *self, uint32_t heard, at_ns until);
    /* True if this worker was ordered to leave. */
    bool (*leaves)(void *self);
    /* Returns each newest order once. Parameters of its version are available by then. */
    bool (*take_order)(void *self, at_order *order);
    /* Version of the newest parameters available. */
    uint64_t (*newest)(void *self);
    /* Saves the newest parameters where they are not overwritten; returns their version. The
     * installed ones MUST stay unchanged, unless the world has no message delays. */
    uint64_t (*fetch)(void *self);
    /* Returns the parameters saved last; valid until the next `install`. */
    const float *(*install)(void *self);
    /* Memory of a gradient slot. It may be written: no order is returned and no report accepted
     * before the slot of the next round is free. */
    float *(*gradient)(void *self, uint32_t slot);
    /* Sends a report with the gradient of its slot; false: the previous one is still pending. */
    bool (*send)(void *self, const at_report *report);
    /* Optional, for worlds with one slot. From `from` to the end of the trained part the round's
     * gradient is final: the round ends with the micro-batch that is being computed, and that part
     * may be sent. Called after each layer; whatever else is under way makes progress. */
    void (*final)(void *self, size_t from);
    /* True when a signal ended the last `wait`. Only at_driver_turn asks. */
    bool (*interrupted)(void *self);
} at_transport;

/* A worker whose hub runs in the same process: an order is an assignment, parameters are read and
 * gradients written in place. It MUST be the first member of what `self` points to. */
typedef struct at_inplace {
    const at_hub *hub;
    float        *params, *gradient;
    at_order      order;
    bool          ordered;  /* `order` was not taken yet */
    bool          leaving;  /* the last order was to leave */
    bool          in_round; /* the last order taken is not reported yet */
} at_inplace;

/* Takes the hub's order to this worker. */
void at_inplace_order(at_inplace *place, const at_order *order);

/* A transport over it; the world sets `heard`, `wait`, `leaves` and `send`. */
at_transport at_inplace_transport(at_inplace *place);

/* Borrowed while the driver exists. */
typedef struct at_driver_options {
    const at_world_context *context;
    at_transport            transport;
    at_node                 id;
    uint32_t                incarnation;
    uint32_t                slots;    /* of gradients */
    uint64_t                sequence; /* of its last counted report, see at_worker_init */
    _Atomic uint64_t       *drawn;    /* samples drawn, continued from its current value */
    uint64_t                redrawn;  /* of those, drawn once more: see at_member */
    /* Sparse tasks: guards the parameters, which are read in place; NULL: they do not change. */
    const _Atomic uint64_t *params_lock;
    at_local_steps         *local; /* its local steps; NULL: it reports gradients */
    bool asks_to_report; /* a complete round is reported by at_driver_report, not by itself */
} at_driver_options;

typedef struct at_driver {
    at_driver_options options;
    at_worker         machine;
    const float      *params;  /* installed */
    uint64_t          version; /* of the installed ones */
    /* Messages held back by induced delays. */
    bool     order_held;
    at_order order;
    at_ns    order_due;
    uint64_t params_version;
    at_ns    params_due; /* AT_NEVER: none are on their way */
    uint64_t messages;
    /* Current activity. */
    bool      sleeping, computing, padding, sending;
    bool      looks; /* for numbers that are not finite in its gradients */
    at_ns     until; /* end of the sleep or the padding */
    at_ns     spent; /* in gradients of this round, without padding */
    uint32_t  micro; /* samples of the current micro-batch, as drawn */
    uint32_t  done;  /* samples of this round that were computed */
    float    *gradient;
    bool      early;      /* the current micro-batch is the last, and the transport is told of it */
    size_t    final_from; /* the gradient is final from here, as told to the transport */
    uint64_t  bad;        /* place in that part that is not finite, see at_nonfinite_look_part */
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

/* Initializes a driver in the caller's memory; there is nothing to release. */
void at_driver_init(at_driver *driver, const at_driver_options *options);

/* Waits until there is a micro-batch to compute; its samples are counted as drawn by then. False:
 * the worker was ordered to leave, and its last report was sent. */
bool at_driver_next(at_driver *driver, at_micro *micro);

/* ---- for callers that must not wait for long (seats) ---- */

typedef enum at_driver_status {
    AT_DRIVER_MICRO,      /* a micro-batch to compute, as at_driver_next */
    AT_DRIVER_ROUND_OVER, /* with asks_to_report: call at_driver_report */
    AT_DRIVER_ABANDONED,  /* with asks_to_report: the round was given up and reported as such */
    AT_DRIVER_FINISHED,   /* the worker was ordered to leave, and its last report was sent */
    AT_DRIVER_WAITING     /* nothing until `until`, or a signal came */
} at_driver_status;

/* at_driver_next that waits until `until` at most. */
at_driver_status at_driver_turn(at_driver *driver, at_micro *micro, at_ns until);

/* After ROUND_OVER: sends the report. If the transport does not take it yet, later turns do. */
void at_driver_report(at_driver *driver);

/* The current micro-batch, if any, is never computed: its samples were not drawn. Only before the
 * worker ends. */
void at_driver_return_micro(at_driver *driver);

/* The round's clock stood still for this long. */
void at_driver_shift(at_driver *driver, at_ns by);

/* The micro-batch was computed with `samples` samples (as requested, unless a loader returned
 * another number); `loss_sum` is the sum over them. */
void at_driver_done(at_driver *driver, uint32_t samples, double loss_sum);

/* Computes micro-batches until the worker leaves. The task MUST be open. `shared`: parameters that
 * workers update directly (hogwild); NULL: they report gradients. */
void at_driver_run(at_driver *driver, float *shared);

#endif

/* compute.h - the float side of a worker: one round, micro-batch by micro-batch.
 *
 *     round clock starts ─► induced sleep ─► micro-batch, micro-batch, .. ─► the cut ─► at_work
 *
 * The sleep happens inside the round clock, so it eats a timed worker's budget. Samples are counted
 * in the worker's own `drawn` before they are computed. With sample_time each micro-batch is padded
 * by sleeping, so that more workers than cores behave like machines of their own.
 */
#ifndef AT_WORLD_CORE_COMPUTE_H
#define AT_WORLD_CORE_COMPUTE_H

#include <stdatomic.h>

#include "pace/pace.h"
#include "step/cut.h"
#include "step/plan.h"
#include "step/worker.h"
#include "task/task.h"

/* What the world lends to a computation. */
typedef struct at_ground {
    void *self;
    /* Between micro-batches: news may have come. True: the computation is void, stop now. */
    bool (*interrupted)(void *self);
    /* Sleeps until the time given, or until there is news. */
    void (*sleep)(void *self, at_ns until);
    /* The installed parameters and their version; they change only inside `interrupted`. */
    const float *(*params)(void *self, uint64_t *version);
} at_ground;

typedef struct at_computer {
    const at_plan *plan;
    const at_task *task;
    const at_pace *pace;
    at_node        id;
    at_ns          sample_time; /* 0: not padded */
    at_ground      ground;
    /* Sparse tasks: guards the parameters, which are read where they are; NULL: nobody writes. */
    const _Atomic uint64_t *params_lock;
    float            *shared; /* hogwild: the parameters that everybody changes; NULL: gradients */
    _Atomic uint64_t *drawn;  /* the worker's side of the ledger */
    at_cut            cut;
} at_computer;

/* Computes one round into gradient (task->slot_floats floats; overwritten). */
at_work at_compute_round(at_computer *computer, const at_order *order, at_ns deadline,
                         float *gradient);

/* One order through the machine of a worker that lives in one loop with its hub: the report, or
 * false when it was told to leave. */
bool at_compute_order(at_worker *machine, at_computer *computer, const at_order *order,
                      float *gradient, at_report *report);

#endif

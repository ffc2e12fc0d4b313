/* cut.h - should the worker start another micro-batch?
 *
 * A timed round ends at micro-batch granularity. The published rule starts another whenever time
 * is left, and so is always late, by half a micro-batch on average. The default here predicts how
 * long the next one takes and stops when stopping now is nearer to the deadline than stopping after
 * it. At least one micro-batch is always done: a worker that overslept still says something.
 */
#ifndef AT_STEP_CUT_H
#define AT_STEP_CUT_H

#include "step/event.h"

/* One round, seen as a sequence of micro-batches. */
typedef struct at_cut {
    uint32_t samples_max, micro_batch;
    uint32_t done;      /* samples so far */
    bool     after;     /* the published rule */
    at_ns    deadline;  /* AT_NEVER: none */
    double   sample_ns; /* prediction, learnt over the rounds; 0 = nothing known yet */
} at_cut;

/* Begins a round; what was learnt about speed is kept. */
void at_cut_begin(at_cut *cut, const at_order *order, at_ns deadline, uint32_t micro_batch,
                  bool after);

/* Size of the next micro-batch, 0 when the round ends now. */
uint32_t at_cut_next(const at_cut *cut, at_ns now);

/* Counts a micro-batch of `samples` that took `took`; 0: it was cut short and teaches nothing. */
void at_cut_done(at_cut *cut, uint32_t samples, at_ns took);

#endif

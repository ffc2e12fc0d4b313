/* cut.h - decides whether a worker starts another micro-batch in its round.
 *
 * A timed round ends at micro-batch granularity. The published rule starts another whenever time
 * is left, and so is always late, by half a micro-batch on average. The default here predicts how
 * long the next one takes and stops when stopping now is nearer to the deadline than stopping after
 * it. At least one micro-batch is always done: even a worker that overslept contributes.
 */
#ifndef AT_STEP_CUT_H
#define AT_STEP_CUT_H

#include "step/event.h"

/* One round, seen as a sequence of micro-batches. */
typedef struct at_cut {
    uint32_t samples_max, micro_batch;
    uint32_t done;      /* samples so far */
    bool     after;     /* the published rule */
    bool     own;       /* the size of a micro-batch is not ours to choose: see at_cut_own */
    at_ns    deadline;  /* AT_NEVER: none */
    double   sample_ns; /* predicted from earlier rounds; 0: unknown */
} at_cut;

/* Begins a round; keeps the prediction of earlier rounds. */
void at_cut_begin(at_cut *cut, const at_order *order, at_ns deadline, uint32_t micro_batch,
                  bool after);

/* Back to the start of the round, with the prediction of that moment. */
void at_cut_rewind(at_cut *cut, double sample_ns);

/* From here on the caller decides how large a micro-batch is, and the next one is expected to be
 * like the last. The round ends when another like that would pass samples_max. */
void at_cut_own(at_cut *cut);

/* Size of the next micro-batch, 0 when the round ends now. */
uint32_t at_cut_next(const at_cut *cut, at_ns now);

/* True if the micro-batch of `samples` that begins now is the last one of its round: certainly so
 * without a deadline; with one, by a prediction with a quarter of a micro-batch to spare. */
bool at_cut_is_last(const at_cut *cut, uint32_t samples, at_ns now);

/* Records a micro-batch of `samples` that took `took`; 0: cut short, not used for predictions. */
void at_cut_done(at_cut *cut, uint32_t samples, at_ns took);

#endif

/* local_steps.h - a worker that makes local steps (work rule `local`).
 *
 *     at_local_steps_begin ─► at_local_steps_micro, .. ─► at_local_steps_end ─► the report
 *
 * From the parameters that a round begins on, the worker makes steps of its own with the inner
 * optimizer, one per plan->local_batch samples. It reports the change of the parameters times its
 * weight (at_plan_change_weight), and the hub divides the sum over the workers by the sum of the
 * weights (update.h).
 *
 * The state of the inner optimizer stays with the worker from round to round. It is not part of
 * checkpoints: a resumed run, or the replacement of a dead worker, starts with a fresh one.
 */
#ifndef AT_WORLD_CORE_LOCAL_STEPS_H
#define AT_WORLD_CORE_LOCAL_STEPS_H

#include "world/core/world.h"

typedef struct at_local_steps at_local_steps;

/* The state of one worker; NULL if the plan's workers report gradients, or have no floats. The
 * context is borrowed. */
at_err at_local_steps_new(const at_world_context *context, at_local_steps **local, at_fail *fail);
void   at_local_steps_free(at_local_steps *local); /* accepts NULL */

/* The state becomes that of a new worker. */
void at_local_steps_restart(at_local_steps *local);

/* Begins a round. `params` MUST stay as they are until its end; `change` (as many floats) holds the
 * worker's own parameters until then. `used`: samples used in the run so far, by all workers. */
void at_local_steps_begin(at_local_steps *local, const float *params, float *change, uint64_t used);

/* Computes one micro-batch and, when the samples of a local step are complete, makes the step.
 * Returns the sum of losses. */
double at_local_steps_micro(at_local_steps *local, const at_draw *draw);

/* Ends the round: `change` becomes what is reported. A step that the round has cut short is made
 * with the samples that there are. */
void at_local_steps_end(at_local_steps *local);

#endif

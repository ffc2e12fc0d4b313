/* past_params.h - parameters of past versions, for stale rules that correct old gradients.
 *
 * Before every step the parameters are copied into a ring of as many versions as the rule asks for.
 * A gradient that was computed on one of them is corrected by the rule (at_stale_rule.correct) when
 * it arrives; one of the newest version is used as it is. A resumed run starts with an empty ring:
 * there are no gradients of versions before it.
 */
#ifndef AT_WORLD_CORE_PAST_PARAMS_H
#define AT_WORLD_CORE_PAST_PARAMS_H

#include "base/err.h"
#include "step/plan.h"

typedef struct at_past_params {
    const at_plan *plan; /* NULL: the rule needs none of this */
    size_t         params, stride;
    size_t         trained; /* floats before the running statistics, which are not corrected */
    uint32_t       versions;
    uint64_t       newest; /* version; 0 before the first step */
    float         *memory; /* the ring */
    float         *corrected;
} at_past_params;

/* Does nothing unless the plan's stale rule corrects gradients. `plan` is borrowed. */
at_err at_past_params_init(at_past_params *past, const at_plan *plan, size_t params, size_t trained,
                           at_fail *fail);
void   at_past_params_deinit(at_past_params *past); /* accepts a zeroed one */

/* Step `step` is about to be applied to `w`. */
void at_past_params_keep(at_past_params *past, const float *w, uint64_t step);

/* The gradient of a piece, corrected if it is old; then valid until the next call. `w` are the
 * newest parameters. */
const float *at_past_params_correct(const at_past_params *past, const at_piece *piece,
                                    const float *gradient, const float *w);

#endif

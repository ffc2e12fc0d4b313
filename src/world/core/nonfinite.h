/* nonfinite.h - finds numbers that are not finite in gradients, and says where they are. */
#ifndef AT_WORLD_CORE_NONFINITE_H
#define AT_WORLD_CORE_NONFINITE_H

#include "step/plan.h"
#include "task/task.h"

/* Sets work->nonfinite of a round whose gradient is complete. Does nothing under the policy
 * `ignore`, and for rounds without a gradient. */
void at_nonfinite_look(const at_task *task, const at_plan *plan, const float *gradient,
                       at_work *work);

/* For the worker itself: the same. A gradient that is not finite is cleared, so that it spoils no
 * sum that is made before the hub has decided (all-reduce). */
void at_nonfinite_look_and_clear(const at_task *task, const at_plan *plan, float *gradient,
                                 at_work *work);

/* For a part of a gradient that is complete, floats first .. first+count-1: sets *place (one more
 * than the index, 0: none) to the first that is not finite, unless an earlier one is known. */
void at_nonfinite_look_part(const at_plan *plan, const float *gradient, size_t first, size_t count,
                            uint64_t *place);

/* True if this report has anything that is not finite. */
bool at_nonfinite_any(const at_work *work);

enum { AT_NONFINITE_TEXT = 400 };

/* Says what is wrong with a report for step `step`: "worker 2, step 7: its gradient is not finite
 * (in dense1.weight)". */
void at_nonfinite_describe(const at_task *task, at_node worker, uint64_t step, const at_work *work,
                           char text[AT_NONFINITE_TEXT]);

#endif

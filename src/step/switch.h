/* switch.h - the rest of a run under another strategy: --switch 'STRATEGY[:ARGS]@CONDITION'.
 *
 * A plan with `then` is followed by that plan from the first closed step on at which the condition
 * holds: all workers finish their rounds as they do before a checkpoint, and the next orders come
 * from the second plan. Orders say which of the two they belong to, so a worker needs no other
 * message. Both plans share everything but rules; worlds reserve what either of them needs
 * (the end of plan.h).
 */
#ifndef AT_STEP_SWITCH_H
#define AT_STEP_SWITCH_H

#include "step/hub.h"

enum { AT_SWITCH_TEXT_SIZE = 32 };

/* Reads "STRATEGY[:ARGS]@CONDITION" into *then and links it: plan->then = then. `options` are those
 * that made *plan. AT_ERR_USAGE, with the reason, when it cannot be read or the two do not fit. */
at_err at_switch_resolve(const at_plan_options *options, const char *text, at_plan *plan,
                         at_plan *then, at_fail *fail);

/* Reads a condition, "epoch=2", into the plan. */
at_err at_switch_read_condition(const char *text, at_plan *plan, at_fail *fail);

/* Writes the condition in the form in which it is read. */
const char *at_switch_condition(const at_plan *plan, char *buffer, size_t size);

/* Refuses a plan that cannot be followed by its `then`. */
at_err at_switch_check(const at_plan *plan, at_fail *fail);

/* Gives plan->then, which *then is, all settings of the plan that are not those of rules. To be
 * called after the last change of the plan. */
void at_switch_share(const at_plan *plan, at_plan *then);

/* Does the condition hold after a step that closed now with this mean loss? */
bool at_switch_due(const at_hub *hub, double loss, at_ns now);

#endif

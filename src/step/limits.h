/* limits.h - when a run has reached what it was asked for: steps, samples, time, targets. */
#ifndef AT_STEP_LIMITS_H
#define AT_STEP_LIMITS_H

#include "step/hub.h"

/* The limit that has been reached; AT_END_RUNNING: none. Targets are not looked at. */
at_end at_limits_reached(const at_hub *hub, at_ns now);

/* Time since the first order. */
at_ns at_hub_elapsed(const at_hub *hub, at_ns at);

/* Whether there are targets and all of them have been reached. */
bool at_limits_targets_hit(const at_hub *hub);

/* Notes the targets that this evaluation reaches for the first time. Returns whether all are. */
bool at_limits_evaluated(at_hub *hub, const at_event *evaluated);

#endif

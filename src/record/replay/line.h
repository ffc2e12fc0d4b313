/* line.h - an event or an action as one line for people.
 *
 *     MESSAGE worker 3, process 1, report 12: round 11 on version 40, 32 samples, ..
 *     APPLY step 41: 96 samples of 3 gradients, 1280 used before, loss 52.1, open for 12.3ms
 *
 * All numbers that a replay may find different are in it; times are those of the run's own clock.
 */
#ifndef AT_RECORD_REPLAY_LINE_H
#define AT_RECORD_REPLAY_LINE_H

#include "base/text.h"
#include "step/event.h"

/* "MESSAGE", "START", .. */
const char *at_line_event_name(at_event_kind kind);

/* Adds the line without a line end. `started` is the `now` of START: times count from there. */
void at_line_event(at_text *out, const at_event *event, at_ns started);
void at_line_action(at_text *out, const at_action *action, at_ns started);

/* One gradient of a step. */
void at_line_piece(at_text *out, const at_piece *piece);

#endif

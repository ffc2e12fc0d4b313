/* event_text.h - an event or an action as one line of text for people.
 *
 *     MESSAGE worker 3, process 1, report 12: round 11 on version 40, 32 samples, ..
 *     APPLY step 41: 96 samples of 3 gradients, 1280 used before, loss 52.1, open for 12.3ms
 *
 * The line contains every number in which recording and replay may differ. Times are in seconds
 * since `started`, the `now` of START.
 */
#ifndef AT_RECORD_REPLAY_EVENT_TEXT_H
#define AT_RECORD_REPLAY_EVENT_TEXT_H

#include "base/text.h"
#include "step/event.h"

/* Each appends without a line end. */
void at_event_text(at_text *out, const at_event *event, at_ns started);
void at_action_text(at_text *out, const at_action *action, at_ns started);
void at_piece_text(at_text *out, const at_piece *piece); /* one gradient of a step */

#endif

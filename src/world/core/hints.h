/* hints.h - notes for runs in which the strategy has nothing to do.
 *
 * Such settings are allowed, but a user who compares strategies would draw the wrong conclusion
 * from them. Each note is one sentence that says what happens and what to change.
 */
#ifndef AT_WORLD_CORE_HINTS_H
#define AT_WORLD_CORE_HINTS_H

#include "record/tally.h"
#include "world/core/run.h"

/* Takes a note. */
typedef void at_hint_say(void *self, const char *text);

/* What is known before the run: rounds that cannot end early, equal workers. */
void at_hints_before(const at_run_options *options, const at_plan *plan, at_hint_say *say,
                     void *self);

/* What only the run shows: a size rule that changed nothing. */
void at_hints_after(const at_plan *plan, const at_tally *tally, at_hint_say *say, void *self);

#endif

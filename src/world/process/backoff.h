/* backoff.h - polling with growing pauses, for events that cannot wake the waiter.
 *
 * At first a pause only yields the core, because even the shortest sleep may outlast a step. Later
 * pauses last an eighth of the time waited so far, up to 500 us: an event is noticed soon after it
 * happens, and a long wait costs next to no processor time. Pauses need a timer slack of 1 ns
 * (PR_SET_TIMERSLACK).
 */
#ifndef AT_WORLD_PROCESS_BACKOFF_H
#define AT_WORLD_PROCESS_BACKOFF_H

#include "base/time.h"

typedef struct at_backoff {
    at_ns since;   /* when the wait began; 0: not waiting */
    at_ns spin_ns; /* poll without a pause for this long; for idle cores only */
} at_backoff;

/* Pauses once, at most until `until`. */
void at_backoff_nap(at_backoff *backoff, at_ns until);

/* Ends the wait: the next pause is short again. */
void at_backoff_end(at_backoff *backoff);

#endif

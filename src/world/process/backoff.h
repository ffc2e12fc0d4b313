/* backoff.h - waiting for something that cannot wake us, without spinning.
 *
 * Whoever waits looks, dozes, and looks again. At first it only lets others go first, because a nap
 * takes longer than a short step. Then naps grow with the time that was waited: what is waited for
 * is noticed at most an eighth of that later, and somebody who has waited for long costs next to
 * nothing. Naps need a timer slack of 1 ns (PR_SET_TIMERSLACK).
 */
#ifndef AT_WORLD_PROCESS_BACKOFF_H
#define AT_WORLD_PROCESS_BACKOFF_H

#include "base/time.h"

typedef struct at_backoff {
    at_ns since;   /* when the waiting began; 0: we do not wait */
    at_ns spin_ns; /* how long to look again at once; only while there are idle cores */
} at_backoff;

/* One nap, at most until `until`. */
void at_backoff_nap(at_backoff *backoff, at_ns until);

/* There was something: the next nap is short again. */
void at_backoff_end(at_backoff *backoff);

#endif

/* doze.h - waiting for something that cannot wake us, without spinning.
 *
 * Whoever waits looks, dozes, and looks again. At first it only lets others go first, because a nap
 * takes longer than a short step. Then naps grow with the time that was waited: what is waited for
 * is noticed at most an eighth of that later, and somebody who has waited for long costs next to
 * nothing. Naps need a timer slack of 1 ns (PR_SET_TIMERSLACK).
 */
#ifndef AT_WORLD_DOZE_H
#define AT_WORLD_DOZE_H

#include "base/time.h"

typedef struct at_doze {
    at_ns since;   /* when the waiting began; 0: we do not wait */
    at_ns spin_ns; /* how long to look again at once; only while there are idle cores */
} at_doze;

/* One nap, at most until `until`. */
void at_doze_nap(at_doze *doze, at_ns until);

/* There was something: the next nap is short again. */
void at_doze_end(at_doze *doze);

#endif

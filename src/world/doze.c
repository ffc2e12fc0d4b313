#include "world/doze.h"

#include <assert.h>
#include <sched.h>

#include "base/clock.h"

static const at_ns YIELD = AT_US(100);
static const at_ns NAP_MIN = AT_US(50);
static const at_ns NAP_MAX = AT_US(500);
enum { NAP_SHARE = 8 }; /* of the time waited */

void at_doze_nap(at_doze *doze, at_ns until)
{
    at_ns now = at_clock_now();
    if (doze->since == 0) doze->since = now;
    at_ns waited = now - doze->since;
    assert(waited >= 0);
    if (waited < doze->spin_ns) return;
    if (waited < YIELD) {
        sched_yield();
        return;
    }
    at_ns nap = waited / NAP_SHARE;
    if (nap < NAP_MIN) nap = NAP_MIN;
    if (nap > NAP_MAX) nap = NAP_MAX;
    at_clock_sleep_until(now + nap < until ? now + nap : until);
}

void at_doze_end(at_doze *doze)
{
    doze->since = 0;
}

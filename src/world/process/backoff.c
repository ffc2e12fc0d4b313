#include "world/process/backoff.h"

#include <assert.h>
#include <sched.h>

#include "base/clock.h"

static const at_ns YIELD = AT_US(100);
static const at_ns NAP_MIN = AT_US(50);
static const at_ns NAP_MAX = AT_US(500);
enum { NAP_FRACTION = 8 }; /* a nap lasts this fraction of the time waited */

void at_backoff_nap(at_backoff *backoff, at_ns until)
{
    at_ns now = at_clock_now();
    if (backoff->since == 0) backoff->since = now;
    at_ns waited = now - backoff->since;
    assert(waited >= 0);
    if (waited < backoff->spin_ns) return;
    if (waited < YIELD) {
        sched_yield();
        return;
    }
    at_ns nap = waited / NAP_FRACTION;
    if (nap < NAP_MIN) nap = NAP_MIN;
    if (nap > NAP_MAX) nap = NAP_MAX;
    at_clock_sleep_until(now + nap < until ? now + nap : until);
}

void at_backoff_end(at_backoff *backoff)
{
    assert(backoff->since >= 0);
    backoff->since = 0;
}

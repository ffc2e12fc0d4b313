#include "world/pulse.h"

#include <assert.h>

static const at_ns MOMENT = AT_MS(100);
static const at_ns PATIENCE_FIRST = AT_SEC(60); /* engines load, caches fill */
static const at_ns PATIENCE_MIN = AT_SEC(2);
enum { PATIENCE_FACTOR = 10 };

at_ns at_ear_now(at_ear *ear, at_ns now)
{
    at_ns gap = ear->last > 0 ? now - ear->last : 0;
    assert(gap >= 0);
    ear->listened += gap < MOMENT ? gap : MOMENT;
    ear->last = now;
    return ear->listened;
}

void at_pulse_init(at_pulse *pulse, at_ns listened)
{
    *pulse = (at_pulse){.heard = listened};
}

void at_pulse_beat(at_pulse *pulse, at_ns listened, bool settles)
{
    at_ns gap = listened - pulse->heard;
    assert(gap >= 0);
    if (gap > pulse->gap_max) pulse->gap_max = gap;
    pulse->heard = listened;
    pulse->settled = pulse->settled || settles;
}

at_ns at_pulse_patience(const at_pulse *pulse)
{
    at_ns learnt = PATIENCE_FACTOR * pulse->gap_max;
    at_ns least = pulse->settled ? PATIENCE_MIN : PATIENCE_FIRST;
    return learnt > least ? learnt : least;
}

bool at_pulse_is_gone(const at_pulse *pulse, at_ns listened)
{
    return listened - pulse->heard > at_pulse_patience(pulse);
}

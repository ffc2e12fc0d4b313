#include "world/process/failure_detector.h"

#include <assert.h>

static const at_ns MOMENT = AT_MS(100);
static const at_ns PATIENCE_FIRST = AT_SEC(60); /* engines load, caches fill */
static const at_ns PATIENCE_MIN = AT_SEC(2);
enum { PATIENCE_FACTOR = 10 };

at_ns at_listening_clock_now(at_listening_clock *ear, at_ns now)
{
    at_ns gap = ear->last > 0 ? now - ear->last : 0;
    assert(gap >= 0);
    ear->listened += gap < MOMENT ? gap : MOMENT;
    ear->last = now;
    return ear->listened;
}

void at_failure_detector_init(at_failure_detector *detector, at_ns listened)
{
    *detector = (at_failure_detector){.heard = listened};
}

void at_failure_detector_beat(at_failure_detector *detector, at_ns listened, bool settles)
{
    at_ns gap = listened - detector->heard;
    assert(gap >= 0);
    if (gap > detector->gap_max) detector->gap_max = gap;
    detector->heard = listened;
    detector->settled = detector->settled || settles;
}

at_ns at_failure_detector_patience(const at_failure_detector *detector)
{
    at_ns learnt = PATIENCE_FACTOR * detector->gap_max;
    at_ns least = detector->settled ? PATIENCE_MIN : PATIENCE_FIRST;
    return learnt > least ? learnt : least;
}

bool at_failure_detector_is_gone(const at_failure_detector *detector, at_ns listened)
{
    return listened - detector->heard > at_failure_detector_patience(detector);
}

#include "world/process/failure_detector.h"

#include <assert.h>

static const at_ns GAP_MAX = AT_MS(100);
static const at_ns PATIENCE_FIRST = AT_SEC(60); /* the engine loads, caches warm up */
static const at_ns PATIENCE_MIN = AT_SEC(30);
enum { PATIENCE_FACTOR = 10 };

at_ns at_listening_clock_now(at_listening_clock *clock, at_ns now)
{
    at_ns gap = clock->last > 0 ? now - clock->last : 0;
    assert(gap >= 0);
    clock->listened += gap < GAP_MAX ? gap : GAP_MAX;
    clock->last = now;
    return clock->listened;
}

void at_failure_detector_init(at_failure_detector *detector, at_ns listened, at_ns lease)
{
    assert(lease >= 0);
    *detector = (at_failure_detector){.heard = listened, .lease = lease};
}

void at_failure_detector_beat(at_failure_detector *detector, at_ns listened, bool finished_work)
{
    at_ns gap = listened - detector->heard;
    assert(gap >= 0);
    if (gap > detector->gap_max) detector->gap_max = gap;
    detector->heard = listened;
    detector->finished_work = detector->finished_work || finished_work;
}

/* The silence tolerated now. */
static at_ns patience(const at_failure_detector *detector)
{
    at_ns adapted = PATIENCE_FACTOR * detector->gap_max;
    at_ns least = detector->finished_work ? PATIENCE_MIN : PATIENCE_FIRST;
    assert(detector->gap_max >= 0);
    if (detector->lease > 0) adapted = detector->lease;
    if (detector->lease > 0 && detector->finished_work) return detector->lease;
    return adapted > least ? adapted : least;
}

bool at_failure_detector_is_gone(const at_failure_detector *detector, at_ns listened)
{
    assert(listened >= detector->heard);
    return listened - detector->heard > patience(detector);
}

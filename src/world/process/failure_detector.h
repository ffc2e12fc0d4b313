/* failure_detector.h - suspects a process of being dead after an unusually long silence.
 *
 * MPI does not report the death of a process; the only sign is that no message arrives. The
 * tolerated silence adapts, because the time between messages depends on how long a micro-batch
 * takes: ten times the longest silence so far, and at least half a minute, because machines pause
 * (a file system that stalls, a debugger, a suspended virtual machine). A process that has not
 * finished any work yet is granted a minute, because its silences do not count yet. With --lease
 * the user sets the tolerated silence.
 *
 * Silence counts only while this process is able to receive: at_listening_clock does not advance
 * while this process itself is stopped or busy.
 */
#ifndef AT_WORLD_PROCESS_FAILURE_DETECTOR_H
#define AT_WORLD_PROCESS_FAILURE_DETECTOR_H

#include <stdbool.h>

#include "base/time.h"

/* Time spent listening. */
typedef struct at_listening_clock {
    at_ns listened;
    at_ns last; /* real time of the last reading; 0: never read */
} at_listening_clock;

/* Reads the clock. After a gap of more than 100 ms since the last reading this process did not
 * listen; such a gap counts as 100 ms. */
at_ns at_listening_clock_now(at_listening_clock *clock, at_ns now);

/* State for one process. All times are those of an at_listening_clock. */
typedef struct at_failure_detector {
    at_ns heard;         /* when it was last heard from */
    at_ns gap_max;       /* longest silence that ended with a message */
    bool  finished_work; /* it has finished a piece of work */
    at_ns lease;         /* tolerated silence; 0: adapts */
} at_failure_detector;

/* Starts observing the process. `lease` is the silence to tolerate, 0: it adapts. */
void at_failure_detector_init(at_failure_detector *detector, at_ns listened, at_ns lease);

/* Records a message. `finished_work`: it delivered finished work. */
void at_failure_detector_beat(at_failure_detector *detector, at_ns listened, bool finished_work);

/* True when the silence has exceeded the tolerated one. */
bool at_failure_detector_is_gone(const at_failure_detector *detector, at_ns listened);

#endif

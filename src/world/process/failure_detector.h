/* failure_detector.h - is somebody still there? A deadline that is learnt from how often it was
 * heard.
 *
 * MPI never tells that a process died, so silence is all there is. How much silence is too much
 * depends on how long a micro-batch takes, which nobody can know before: a process is given up when
 * it was silent for ten times its longest silence so far, and for some seconds at least. Before it
 * has finished anything, longest silences say nothing yet, and patience is long.
 *
 * Silence only counts while we listen: `at_listening_clock` is a clock that stands still while
 * this process itself was stopped or busy.
 */
#ifndef AT_WORLD_PROCESS_FAILURE_DETECTOR_H
#define AT_WORLD_PROCESS_FAILURE_DETECTOR_H

#include <stdbool.h>

#include "base/time.h"

/* The time we listened. */
typedef struct at_listening_clock {
    at_ns listened;
    at_ns last; /* when it was read last, on the real clock; 0: never */
} at_listening_clock;

/* Reads it. A gap of more than a moment since the last reading was time in which we did not
 * listen, and counts as a moment. */
at_ns at_listening_clock_now(at_listening_clock *ear, at_ns now);

/* What is known about somebody. All times are those of an ear. */
typedef struct at_failure_detector {
    at_ns heard;   /* when it was heard last */
    at_ns gap_max; /* longest silence that it came back from */
    bool  settled; /* it has finished something */
} at_failure_detector;

/* It begins to be listened to. */
void at_failure_detector_init(at_failure_detector *detector, at_ns listened);

/* It was heard. `settles`: with something it had finished. */
void at_failure_detector_beat(at_failure_detector *detector, at_ns listened, bool settles);

/* How long it may be silent. */
at_ns at_failure_detector_patience(const at_failure_detector *detector);

/* Was it silent for too long? */
bool at_failure_detector_is_gone(const at_failure_detector *detector, at_ns listened);

#endif

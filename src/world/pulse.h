/* pulse.h - is somebody still there? A deadline that is learnt from how often it was heard.
 *
 * MPI never tells that a process died, so silence is all there is. How much silence is too much
 * depends on how long a micro-batch takes, which nobody can know before: a process is given up when
 * it was silent for ten times its longest silence so far, and for some seconds at least. Before it
 * has finished anything, longest silences say nothing yet, and patience is long.
 *
 * Silence only counts while we listen: `at_ear` is a clock that stands still while this process
 * itself was stopped or busy.
 */
#ifndef AT_WORLD_PULSE_H
#define AT_WORLD_PULSE_H

#include <stdbool.h>

#include "base/time.h"

/* The time we listened. */
typedef struct at_ear {
    at_ns listened;
    at_ns last; /* when it was read last, on the real clock; 0: never */
} at_ear;

/* Reads it. A gap of more than a moment since the last reading was time in which we did not
 * listen, and counts as a moment. */
at_ns at_ear_now(at_ear *ear, at_ns now);

/* What is known about somebody. All times are those of an ear. */
typedef struct at_pulse {
    at_ns heard;   /* when it was heard last */
    at_ns gap_max; /* longest silence that it came back from */
    bool  settled; /* it has finished something */
} at_pulse;

/* It begins to be listened to. */
void at_pulse_init(at_pulse *pulse, at_ns listened);

/* It was heard. `settles`: with something it had finished. */
void at_pulse_beat(at_pulse *pulse, at_ns listened, bool settles);

/* How long it may be silent. */
at_ns at_pulse_patience(const at_pulse *pulse);

/* Was it silent for too long? */
bool at_pulse_is_gone(const at_pulse *pulse, at_ns listened);

#endif

/* replay.h - does a recorded run come out again?
 *
 *     events.bin ──event──► fresh hub ──wanted action──┐
 *          └─────────────────recorded action───────────┴──► equal?
 *
 * The hub is a pure state machine: its plan stands at the head of the log, everything else it
 * decides on arrives as a field of an event. So the events of a run, fed to a fresh hub, must give
 * the recorded actions, in order and to the last bit. If they do not, the log was changed, the
 * machine was, or some decision hangs on something that is not in an event.
 */
#ifndef AT_RECORD_REPLAY_REPLAY_H
#define AT_RECORD_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

enum { AT_REPLAY_LINE = 512 };

/* The first place at which record and replay part. */
typedef struct at_difference {
    bool     found;
    char     log[32]; /* name of the log: events.bin, events-2.bin, .. */
    uint64_t event;   /* 1 for the first one of the log */
    uint64_t action;  /* 1 for the first one of the event; 0: the event itself cannot be */
    at_ns    at;      /* of the event, since START */
    char     line[AT_REPLAY_LINE];     /* the event */
    char     recorded[AT_REPLAY_LINE]; /* the recorded action */
    char     wanted[AT_REPLAY_LINE];   /* the one that the fresh hub wants */
} at_difference;

/* What was replayed. Events and actions of several logs add up; all else is the last one's, which
 * goes on from the checkpoint of an earlier one. */
typedef struct at_replay {
    uint32_t      logs;
    uint64_t      events, actions, steps;
    uint64_t      samples_used, samples_dropped;
    uint64_t      trace;    /* the hash that result.json shows */
    bool          complete; /* the (last) log reaches to the run's end */
    bool          compared; /* with result.json */
    at_difference difference;
} at_replay;

/* Replays one log and adds to *replay, up to the first difference. A log that was cut agrees when
 * what is left of it does. AT_ERR_MISSING when there is no such file, AT_ERR_FORMAT when it is
 * malformed. */
at_err at_replay_log(const char *path, at_replay *replay, at_fail *fail);

/* Replays all logs of a run's folder. When the last one is complete and there is a result.json, its
 * totals must be the replay's: AT_ERR_FAILED when they are not. */
at_err at_replay_run(const char *folder, at_replay *replay, at_fail *fail);

#endif

/* replay.h - replays a recorded run and compares the decisions of the hub.
 *
 *     events.bin ──event──► fresh hub ──replayed action──┐
 *          └─────────────────recorded action─────────────┴──► equal?
 *
 * The hub is a pure state machine: its plan stands at the head of the log, and every other input
 * arrives as a field of an event. So the events of a run, fed to a fresh hub, must give the
 * recorded actions, in order and to the last bit. If they do not, the log or the hub was changed,
 * or a decision depends on something that is not in an event.
 */
#ifndef AT_RECORD_REPLAY_REPLAY_H
#define AT_RECORD_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"
#include "record/log/eventlog.h"

enum { AT_REPLAY_LINE = 512 };

/* The first difference between recording and replay. */
typedef struct at_difference {
    bool     found;
    char     log[AT_EVENTLOG_NAME_SIZE]; /* name of the log: events.bin, events-2.bin, .. */
    uint64_t event;                      /* 1 for the first event of the log */
    uint64_t action; /* 1 for the first action of the event; 0: the event itself is impossible */
    at_ns    at;     /* of the event, since START */
    char     line[AT_REPLAY_LINE];     /* the event */
    char     recorded[AT_REPLAY_LINE]; /* the action in the log */
    char     replayed[AT_REPLAY_LINE]; /* the action of the fresh hub */
} at_difference;

/* The result of a replay. Events and actions are summed over all logs; the rest is that of the last
 * log, which continues from a checkpoint of the one before. */
typedef struct at_replay {
    uint32_t      logs;
    uint64_t      events, actions, steps;
    uint64_t      samples_used, samples_dropped;
    uint64_t      trace;    /* trace_hash of result.json */
    bool          complete; /* the (last) log contains the end of the run */
    bool          compared; /* with result.json */
    bool          thinned;  /* a log leaves out records; it was replayed up to there */
    at_difference difference;
} at_replay;

/* Replays all logs of a run folder up to the first difference. A truncated log agrees when its
 * records do. When the last log is complete and result.json exists, their totals are compared:
 * AT_ERR_FAILED when they differ. AT_ERR_MISSING when the folder has no log, AT_ERR_FORMAT when a
 * log is malformed. */
at_err at_replay_run(const char *folder, at_replay *replay, at_fail *fail);

#endif

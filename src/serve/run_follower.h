/* run_follower.h - a run that is watched: what its folder tells, now and as it grows.
 *
 *     waiting ──folder──► starting ──events.bin──► running ──FINISH──► ended
 *                            │                        ▲                  │
 *                            │                        └──events-2.bin────┘   (resumed)
 *                            └──a run without a log──► unrecorded
 *
 * A log that is damaged makes it `broken`; what stands before the damage is still shown. A run that
 * was killed stays `running`, in silence: its folder cannot tell the difference.
 */
#ifndef AT_SERVE_RUN_FOLLOWER_H
#define AT_SERVE_RUN_FOLLOWER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/time.h"
#include "report/summary/run_summary.h"

#define AT_RUN_FOLLOWER_MAP(X)  \
    X(WAITING, "waiting")       \
    X(STARTING, "starting")     \
    X(UNRECORDED, "unrecorded") \
    X(RUNNING, "running")       \
    X(ENDED, "ended")           \
    X(BROKEN, "broken")
typedef enum at_run_follower_state {
#define X(id, text) AT_RUN_FOLLOWER_##id,
    AT_RUN_FOLLOWER_MAP(X)
#undef X
        AT_RUN_FOLLOWER_STATES
} at_run_follower_state;
extern const char *const at_run_follower_state_name[AT_RUN_FOLLOWER_STATES];

typedef struct at_run_follower at_run_follower;

/* A tail of this folder, which need not exist yet. NULL when there is no memory. */
at_run_follower *at_run_follower_new(const char *folder);
void             at_run_follower_free(at_run_follower *tail); /* accepts NULL */

/* Takes in what is new, but not for long; true when there may be more at once. `now` is the
 * monotonic time. */
bool at_run_follower_poll(at_run_follower *tail, at_ns now);

/* Where it stands, and a sentence about that for people. Both change only in a poll. */
at_run_follower_state at_run_follower_state_of(const at_run_follower *tail);
const char           *at_run_follower_message(const at_run_follower *tail);

/* The folder's last part, by which people know the run. */
const char *at_run_follower_label(const at_run_follower *tail);
const char *at_run_follower_folder(const at_run_follower *tail);

/* Grows whenever there is something new to tell. */
uint64_t at_run_follower_revision(const at_run_follower *tail);

/* When something new was last heard of, monotonic; 0: never. */
at_ns at_run_follower_changed_at(const at_run_follower *tail);

/* The summary so far, borrowed until the next poll; NULL: there is none yet. It may be told
 * anew, and then its edition is another: serials of an older edition mean nothing. */
at_run_summary *at_run_follower_summary(const at_run_follower *tail);
uint64_t        at_run_follower_edition(const at_run_follower *tail);

/* result.json, borrowed until the next poll; NULL before the run has ended. */
const json_t *at_run_follower_result(const at_run_follower *tail);

#endif

/* run_follower.h - follows the folder of a run that may still be growing.
 *
 *     waiting ──folder──► starting ──events.bin──► running ──FINISH──► ended
 *                            │                        ▲                  │
 *                            │                        └──events-2.bin────┘   (resumed)
 *                            └──a run without a log──► unrecorded
 *
 * A damaged log makes it `broken`; the records before the damage are still shown. A run that was
 * killed stays `running` without new data: its folder does not show the difference.
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

/* Follows a folder, which need not exist yet. NULL when out of memory. */
at_run_follower *at_run_follower_new(const char *folder);
void             at_run_follower_free(at_run_follower *follower); /* accepts NULL */

/* Reads new data, but only for a short time; true when there may be more. `now` is the monotonic
 * time. */
bool at_run_follower_poll(at_run_follower *follower, at_ns now);

/* The state, and a sentence about it. Both change only in a poll. */
at_run_follower_state at_run_follower_state_of(const at_run_follower *follower);
const char           *at_run_follower_message(const at_run_follower *follower);

/* The last component of the folder's path, which labels the run. */
const char *at_run_follower_label(const at_run_follower *follower);
const char *at_run_follower_folder(const at_run_follower *follower);

/* Increases with every change. */
uint64_t at_run_follower_revision(const at_run_follower *follower);

/* Monotonic time of the newest data; 0: none yet. */
at_ns at_run_follower_changed_at(const at_run_follower *follower);

/* The summary so far, borrowed until the next poll; NULL: none yet. It may be rebuilt from the
 * start; then its edition changes, and serials of older editions are meaningless. */
at_run_summary *at_run_follower_summary(const at_run_follower *follower);
uint64_t        at_run_follower_edition(const at_run_follower *follower);

/* result.json, borrowed until the next poll; NULL before the run has ended. */
const json_t *at_run_follower_result(const at_run_follower *follower);

#endif

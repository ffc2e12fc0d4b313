/* tail.h - a run that is watched: what its folder tells, now and as it grows.
 *
 *     waiting ──folder──► starting ──events.bin──► running ──FINISH──► ended
 *                            │                        ▲                  │
 *                            │                        └──events-2.bin────┘   (resumed)
 *                            └──a run without a log──► unrecorded
 *
 * A log that is damaged makes it `broken`; what stands before the damage is still shown. A run that
 * was killed stays `running`, in silence: its folder cannot tell the difference.
 */
#ifndef AT_SERVE_TAIL_H
#define AT_SERVE_TAIL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/time.h"
#include "report/story.h"

#define AT_TAIL_MAP(X)          \
    X(WAITING, "waiting")       \
    X(STARTING, "starting")     \
    X(UNRECORDED, "unrecorded") \
    X(RUNNING, "running")       \
    X(ENDED, "ended")           \
    X(BROKEN, "broken")
typedef enum at_tail_state {
#define X(id, text) AT_TAIL_##id,
    AT_TAIL_MAP(X)
#undef X
        AT_TAIL_STATES
} at_tail_state;
extern const char *const at_tail_state_name[AT_TAIL_STATES];

typedef struct at_tail at_tail;

/* A tail of this folder, which need not exist yet. NULL when there is no memory. */
at_tail *at_tail_new(const char *folder);
void     at_tail_free(at_tail *tail); /* accepts NULL */

/* Takes in what is new, but not for long; true when there may be more at once. `now` is the
 * monotonic time. */
bool at_tail_poll(at_tail *tail, at_ns now);

/* Where it stands, and a sentence about that for people. Both change only in a poll. */
at_tail_state at_tail_state_of(const at_tail *tail);
const char   *at_tail_word(const at_tail *tail);

/* The folder's last part, by which people know the run. */
const char *at_tail_label(const at_tail *tail);
const char *at_tail_folder(const at_tail *tail);

/* Grows whenever there is something new to tell. */
uint64_t at_tail_number(const at_tail *tail);

/* When something new was last heard of, monotonic; 0: never. */
at_ns at_tail_heard(const at_tail *tail);

/* The story so far, borrowed until the next poll; NULL: there is none yet. It may be told anew, and
 * then its edition is another: serials of an older edition mean nothing. */
at_story *at_tail_story(const at_tail *tail);
uint64_t  at_tail_edition(const at_tail *tail);

/* result.json, borrowed until the next poll; NULL before the run has ended. */
const json_t *at_tail_result(const at_tail *tail);

#endif

/* feed.h - a run that is watched: what its folder tells, now and as it grows.
 *
 *     waiting ──folder──► starting ──events.bin──► running ──FINISH──► ended
 *                            │                        ▲                  │
 *                            │                        └──events-2.bin────┘   (resumed)
 *                            └──a run without a log──► unrecorded
 *
 * A log that is damaged makes it `broken`; what stands before the damage is still shown. A run that
 * was killed stays `running`, in silence: its folder cannot tell the difference.
 */
#ifndef AT_SERVE_FEED_H
#define AT_SERVE_FEED_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/time.h"
#include "report/story.h"

#define AT_FEED_MAP(X)          \
    X(WAITING, "waiting")       \
    X(STARTING, "starting")     \
    X(UNRECORDED, "unrecorded") \
    X(RUNNING, "running")       \
    X(ENDED, "ended")           \
    X(BROKEN, "broken")
typedef enum at_feed_state {
#define X(id, text) AT_FEED_##id,
    AT_FEED_MAP(X)
#undef X
        AT_FEED_STATES
} at_feed_state;
extern const char *const at_feed_state_name[AT_FEED_STATES];

typedef struct at_feed at_feed;

/* A feed of this folder, which need not exist yet. NULL when there is no memory. */
at_feed *at_feed_new(const char *folder);
void     at_feed_free(at_feed *feed); /* accepts NULL */

/* Takes in what is new, but not for long; true when there may be more at once. `now` is the
 * monotonic time. */
bool at_feed_poll(at_feed *feed, at_ns now);

/* Where it stands, and a sentence about that for people. Both change only in a poll. */
at_feed_state at_feed_state_of(const at_feed *feed);
const char   *at_feed_word(const at_feed *feed);

/* The folder's last part, by which people know the run. */
const char *at_feed_label(const at_feed *feed);
const char *at_feed_folder(const at_feed *feed);

/* Grows whenever there is something new to tell. */
uint64_t at_feed_number(const at_feed *feed);

/* When something new was last heard of, monotonic; 0: never. */
at_ns at_feed_heard(const at_feed *feed);

/* The story so far, borrowed until the next poll; NULL: there is none yet. It may be told anew, and
 * then its edition is another: serials of an older edition mean nothing. */
at_story *at_feed_story(const at_feed *feed);
uint64_t  at_feed_edition(const at_feed *feed);

/* result.json, borrowed until the next poll; NULL before the run has ended. */
const json_t *at_feed_result(const at_feed *feed);

#endif

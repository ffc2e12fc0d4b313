/* progress.h - how far a run is, toward the limit that will end it first.
 *
 * Follows the APPLY records: step, samples, speed of the last seconds. Time is the records' own;
 * only the time left is told in the time of whoever asks.
 */
#ifndef AT_RECORD_PROGRESS_H
#define AT_RECORD_PROGRESS_H

#include "base/text.h"
#include "record/record.h"
#include "record/tally.h"

/* A point of the run to measure speed from. */
typedef struct at_run_progress_mark {
    at_ns    at;
    uint64_t samples;
} at_run_progress_mark;

typedef struct at_run_progress {
    const at_run_info   *info;
    const at_tally      *tally; /* of the same stream, one record ahead or not */
    uint64_t             step, samples;
    double               began;   /* fraction at the start: a resumed run does not begin at 0 */
    at_run_progress_mark mark[2]; /* two to four seconds ago, and newer */
    bool                 going;   /* a step was closed */
} at_run_progress;

/* Which limit is nearest. */
typedef enum at_goal {
    AT_GOAL_NONE,
    AT_GOAL_STEPS,
    AT_GOAL_SAMPLES,
    AT_GOAL_TIME,
    AT_GOAL_TARGETS
} at_goal;

/* Follows one record; the tally MUST have seen it before. */
void at_run_progress_put(at_run_progress *progress, const at_record *record);

/* The nearest limit, and how much of the way is done: 0 .. 1, NAN when nobody can know. */
at_goal at_run_progress_goal(const at_run_progress *progress, double *fraction);

/* Used samples per second over the last few seconds, 0 when unknown. */
double at_run_progress_speed(const at_run_progress *progress);

/* Writes "step 412/2000  21%  4201 samples/s  loss 0.412  accuracy 0.846  left 12s", as many of
 * these as fit in `columns`. `elapsed` is the time since the start as the reader feels it. */
void at_run_progress_show(const at_run_progress *progress, at_ns elapsed, int columns,
                          at_text *text);

#endif

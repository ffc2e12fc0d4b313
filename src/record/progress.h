/* progress.h - progress of a run toward the limit that will end it first.
 *
 * Follows the APPLY records: step, samples, recent speed. Times are those of the records; only the
 * time left is in the time of the caller.
 */
#ifndef AT_RECORD_PROGRESS_H
#define AT_RECORD_PROGRESS_H

#include "base/text.h"
#include "record/record.h"
#include "record/tally.h"

/* A point of the run to measure speed from. */
typedef struct at_run_progress_mark {
    at_ns    at;
    uint64_t samples, step;
} at_run_progress_mark;

typedef struct at_run_progress {
    const at_run_info   *info;
    const at_tally      *tally; /* of the same records, not of those before a run was resumed */
    uint64_t             step, samples;
    double               began;   /* fraction at the start: not 0 for a resumed run */
    at_run_progress_mark mark[2]; /* two to four seconds ago, and a newer one */
    double               lr;      /* of the last step; 0: unknown */
    bool                 stepped; /* at least one step is done */
    bool                 reached; /* the run has ended because all targets were reached */
} at_run_progress;

/* The limit that is nearest. */
typedef enum at_goal {
    AT_GOAL_NONE,
    AT_GOAL_STEPS,
    AT_GOAL_SAMPLES,
    AT_GOAL_TIME,
    AT_GOAL_TARGETS
} at_goal;

/* Follows one record; the tally MUST have seen it already. */
void at_run_progress_put(at_run_progress *progress, const at_record *record);

/* The nearest limit, and the fraction done: 0 .. 1, NAN when unknown. */
at_goal at_run_progress_goal(const at_run_progress *progress, double *fraction);

/* Writes "step 412/2000  21%  elapsed 3s  ETA 12s  loss 0.412  accuracy 0.846  4201 samples/s
 * 61.0ms/step  lr 0.1" in one line, as many parts as fit in `columns`. `elapsed` is the caller's
 * time since the start, or since the run was resumed. */
void at_run_progress_show(const at_run_progress *progress, at_ns elapsed, int columns,
                          at_text *text);

#endif

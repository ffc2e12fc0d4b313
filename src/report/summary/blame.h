/* blame.h - who kept the others waiting, and whose work came to nothing; inside the report layer
 * only. docs/guide/report.md has the definitions for users.
 *
 * waited   Seconds of the run. Behind a barrier, time goes to waste from the moment when half of
 *          the workers are done until the step closes; each moment of it is shared out among those
 *          who are not done yet. With a bound on staleness, a worker that may not go on waits for
 *          the one whose report lets it go; that one is blamed for the wait, divided by how many
 *          others there are, so that both mean the same. Who waits for nobody blames nobody.
 * wasted   Seconds of the worker itself: rounds that were dropped as stale, abandoned or lost.
 */
#ifndef AT_REPORT_SUMMARY_BLAME_H
#define AT_REPORT_SUMMARY_BLAME_H

#include <stdint.h>

#include "record/record.h"

typedef struct at_blamed {
    double waited, wasted; /* seconds */
} at_blamed;

typedef struct at_blame at_blame;

/* NULL when there is no memory; `plan` is kept. */
at_blame *at_blame_new(const at_plan *plan);
void      at_blame_free(at_blame *blame); /* accepts NULL */

/* What happened, in the order of the records. */
void at_blame_join(at_blame *blame, at_node worker);
void at_blame_lost(at_blame *blame, at_node worker, at_ns at, bool returns);
void at_blame_order(at_blame *blame, at_node worker, at_ns at);

/* The round ended at `end` after `busy` of work; the hub read the report at `at`. */
void at_blame_report(at_blame *blame, at_node worker, const at_report *report, at_ns end,
                     at_ns busy, at_ns at);

/* A round was dropped; `since` is when a round that was never reported may have begun. */
void at_blame_drop(at_blame *blame, const at_action *drop, at_ns since, at_ns at);

/* A step was closed. */
void at_blame_close(at_blame *blame, at_ns at);

/* The sums so far of worker 1 .. */
at_blamed at_blame_of(const at_blame *blame, at_node worker);

#endif

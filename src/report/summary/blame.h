/* blame.h - attributes waiting time and wasted work to workers; inside the report layer only.
 * docs/guide/report.md has the definitions for users.
 *
 * waited   Seconds of the run. Behind a barrier, time is lost from the moment when half of the
 *          workers are done until the step closes; every instant of it is divided equally among the
 *          workers that are not done yet. With a bound on staleness, a worker that may not continue
 *          waits for the worker whose report releases it; that worker is blamed for the wait,
 *          divided by the number of other workers, so that both mean the same. Strategies in which
 *          no worker waits cause no blame.
 * wasted   Seconds of the worker itself: rounds dropped as stale, abandoned or lost.
 */
#ifndef AT_REPORT_SUMMARY_BLAME_H
#define AT_REPORT_SUMMARY_BLAME_H

#include <stdint.h>

#include "record/record.h"

typedef struct at_blame_totals {
    double waited, wasted; /* seconds */
} at_blame_totals;

typedef struct at_blame at_blame;

/* NULL when out of memory; `plan` is borrowed. */
at_blame *at_blame_new(const at_plan *plan);
void      at_blame_free(at_blame *blame); /* accepts NULL */

/* Events, in the order of the records. */
void at_blame_join(at_blame *blame, at_node worker);
void at_blame_lost(at_blame *blame, at_node worker, at_ns at, bool returns);
void at_blame_order(at_blame *blame, at_node worker, at_ns at);

/* The round ended at `end` after `busy` of work; the hub read the report at `at`. */
void at_blame_report(at_blame *blame, at_node worker, const at_report *report, at_ns end,
                     at_ns busy, at_ns at);

/* A round was dropped; an unreported round can have begun at `since` at the earliest. */
void at_blame_drop(at_blame *blame, const at_action *drop, at_ns since, at_ns at);

/* A step was closed. */
void at_blame_close(at_blame *blame, at_ns at);

/* Records were left out: whatever was going on is forgotten. */
void at_blame_skip(at_blame *blame);

/* The totals so far of a worker (1 ..). */
at_blame_totals at_blame_of(const at_blame *blame, at_node worker);

#endif

/* run_summary.h - what happened in a run, in bounded memory: the data of a page.
 *
 *     event log, whole or growing ─► at_run_summary_put, record by record ─► at_run_summary_json
 * ─► page.js
 *
 * A summary never grows with the length of its run. Curves keep the smallest, the largest and the
 * mean of what they thin out; a worker's time is kept as shares of equal stretches of the run; past
 * a thousand workers neighbours share a row; of the log the newest lines stay.
 *
 *     at_run_summary *summary;
 *     err = at_run_summary_new(at_eventlog_info(log), NULL, &summary, &fail);
 *     for each record: at_run_summary_put(summary, record);
 *     json_t *all = at_run_summary_json(summary, 0);
 *     ... more records ...
 *     json_t *news = at_run_summary_json(summary, json_integer_value(json_object_get(all,
 * "serial")));
 *     at_run_summary_free(summary);
 *
 * docs/guide/report.md defines the numbers, src/report/page/story.js how a client merges the news.
 */
#ifndef AT_REPORT_SUMMARY_RUN_SUMMARY_H
#define AT_REPORT_SUMMARY_RUN_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "record/record.h"
#include "record/tally.h"

typedef struct at_run_summary at_run_summary;

/* How much is kept; 0 means the default. */
typedef struct at_run_summary_options {
    uint32_t points;  /* of each curve, 1000 */
    uint32_t cells;   /* of the timeline, all rows together, 2^18 */
    uint32_t lines;   /* of the log, 500 */
    uint32_t workers; /* room for at least so many: a run may be resumed with more */
} at_run_summary_options;

/* An empty summary of the run that `info` tells of: the text at the head of its event log.
 * `options` may be NULL. AT_ERR_FORMAT when the text is not one. */
at_err at_run_summary_new(const char *info, const at_run_summary_options *options,
                          at_run_summary **summary, at_fail *fail);
void   at_run_summary_free(at_run_summary *summary); /* accepts NULL */

/* Takes one record in. It MUST be one that at_eventlog_next lets pass. */
void at_run_summary_put(at_run_summary *summary, const at_record *record);

/* The run was resumed, and what comes now is its next log (events-2.bin, ..), which has `info` at
 * its head: time goes on from where it was, steps that are told again replace the earlier ones.
 * False when it has more workers than there is room for: then start over with options.workers. */
bool at_run_summary_resume(at_run_summary *summary, const char *info);

/* Reads a whole run from its folder: its event logs, or where it has none (--record steps) what its
 * tables tell. AT_ERR_MISSING when there is neither. */
at_err at_run_summary_read(const char *folder, const at_run_summary_options *options,
                           at_run_summary **summary, at_fail *fail);

/* The summary as one object. With `since` (the `serial` of an earlier answer; 0: from the start)
 * only what has changed after it. Dump it with AT_RUN_SUMMARY_JSON_FLAGS: seven digits are
 * enough for a page. NULL when there is no memory. */
json_t *at_run_summary_json(at_run_summary *summary, uint64_t since);
#define AT_RUN_SUMMARY_JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(7))

/* Grows with everything that is taken in. */
uint64_t at_run_summary_serial(const at_run_summary *summary);

/* The totals so far, borrowed until the summary is freed. */
const at_tally *at_run_summary_tally(const at_run_summary *summary);

#endif

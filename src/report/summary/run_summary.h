/* run_summary.h - a run condensed to bounded memory: the data behind the report page.
 *
 *     event log, complete or growing
 *       ─► at_run_summary_put, one record at a time ─► at_run_summary_json ─► run_data.js
 *
 * A summary does not grow with the length of its run. Curves are downsampled to points that keep
 * minimum, maximum and mean; the timeline stores, per time interval, the share of each activity;
 * beyond a thousand workers neighbors share a row; only the newest event lines are kept.
 *
 *     at_run_summary *summary;
 *     err = at_run_summary_new(at_eventlog_info(log), NULL, &summary, &fail);
 *     for each record: at_run_summary_put(summary, record);
 *     json_t *all = at_run_summary_json(summary, 0);
 *     uint64_t serial = json_integer_value(json_object_get(all, "serial"));
 *     ... more records ...
 *     json_t *update = at_run_summary_json(summary, serial);
 *     at_run_summary_free(summary);
 *
 * docs/guide/report.md defines the numbers; src/report/page/run_data.js merges updates on the
 * client.
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

/* Capacities; 0 means the default. */
typedef struct at_run_summary_options {
    uint32_t points;  /* per curve, 1000 */
    uint32_t cells;   /* of the whole timeline, 2^18 */
    uint32_t lines;   /* event lines, 500 */
    uint32_t workers; /* minimum capacity: a run may be resumed with more workers */
} at_run_summary_options;

/* Creates an empty summary; `info` is the header text of the run's event log. `options` may be
 * NULL. AT_ERR_FORMAT when the text is not such a header. */
at_err at_run_summary_new(const char *info, const at_run_summary_options *options,
                          at_run_summary **summary, at_fail *fail);
void   at_run_summary_free(at_run_summary *summary); /* accepts NULL */

/* Adds one record, which MUST have been validated by at_eventlog_next. */
void at_run_summary_put(at_run_summary *summary, const at_record *record);

/* Continues with the next log of a resumed run (events-2.bin, ..), whose header is `info`. Its time
 * is appended to the time so far; steps that occur again replace the earlier ones. False when it
 * has more workers than the summary has room for: then start over with options.workers. */
bool at_run_summary_resume(at_run_summary *summary, const char *info);

/* Reads a whole run from its folder: from its event logs or, when it has none (--record steps) or
 * they cannot be read, from its CSV files. AT_ERR_MISSING when it has neither. */
at_err at_run_summary_read(const char *folder, const at_run_summary_options *options,
                           at_run_summary **summary, at_fail *fail);

enum { AT_RUN_SUMMARY_NOTE = 512 };

/* A sentence about what at_run_summary_read had to leave out: a log that is torn, or that cannot be
 * read; "": nothing. */
const char *at_run_summary_note(const at_run_summary *summary);

/* The summary as one object; with `since` (the `serial` of an earlier result; 0: from the start)
 * only what has changed after it. Dump it with AT_RUN_SUMMARY_JSON_FLAGS: seven digits are enough
 * for a page. NULL when out of memory. */
json_t *at_run_summary_json(at_run_summary *summary, uint64_t since);
#define AT_RUN_SUMMARY_JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(7))

/* The totals so far, borrowed until the summary is freed. */
const at_tally *at_run_summary_tally(const at_run_summary *summary);

#endif

/* runinfo.h - the description of a run as JSON text, and its plan read back.
 *
 * The text stands at the head of an event log, so that a log can be replayed and reported without
 * any other file. Rules are stored by name and numbers exactly: the plan read back equals the plan
 * written.
 */
#ifndef AT_RECORD_RUNINFO_H
#define AT_RECORD_RUNINFO_H

#include "record/record.h"

/* One JSON object, to be freed by the caller; NULL when there is no memory. */
char *at_run_info_text(const at_run_info *info);

/* The plan in such a text, and in *then the one that follows it (plan->then), if any: *plan MUST
 * not be moved. AT_ERR_FORMAT when it is malformed or names an unknown rule. */
at_err at_run_info_plan(const char *text, at_plan *plan, at_plan *then, at_fail *fail);

/* The snapshot from which the run was resumed, to be released with free(); NULL: it started at
 * step 0. */
at_err at_run_info_snapshot(const char *text, at_snapshot **snapshot, at_fail *fail);

/* The number of workers, 1 .. AT_WORKERS_MAX; 0 when it is missing or invalid. */
uint32_t at_run_info_workers(const char *text);

#endif

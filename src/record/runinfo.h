/* runinfo.h - a run's info as JSON text, and the plan back from it.
 *
 * The text stands at the head of an event log, so that a log can be replayed and reported without
 * anything beside it. Rules are named, numbers are kept as they are: the plan that is read equals
 * the plan that was written.
 */
#ifndef AT_RECORD_RUNINFO_H
#define AT_RECORD_RUNINFO_H

#include "record/record.h"

/* One JSON object, to be freed by the caller; NULL when there is no memory. */
char *at_run_info_text(const at_run_info *info);

/* The plan of such a text. AT_ERR_FORMAT when it is not one, or names a rule we do not know. */
at_err at_run_info_plan(const char *text, at_plan *plan, at_fail *fail);

/* Where the run was resumed, in new memory, to be given to free(); NULL: it began at step 0. */
at_err at_run_info_snapshot(const char *text, at_snapshot **snapshot, at_fail *fail);

/* Only the number of workers, 1 .. AT_WORKERS_MAX; 0 when the text does not tell it. */
uint32_t at_run_info_workers(const char *text);

#endif

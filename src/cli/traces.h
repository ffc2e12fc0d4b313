/* traces.h - timelines of runs, as files beside other results. */
#ifndef AT_CLI_TRACES_H
#define AT_CLI_TRACES_H

#include "cli/options/options.h"

/* After a run that was recorded in full: FOLDER/trace.json, when the run is small enough for a
 * browser. */
at_err at_traces_leave(const at_settings *settings, const char *folder, const json_t *result,
                       at_fail *fail);

/* For a report: the timeline of a run, as far as --trace-events and --trace-from let it be; what is
 * missing is told on stderr. A run without an event log has none. */
at_err at_traces_report(const at_settings *settings, const char *run, const char *path,
                        at_fail *fail);

#endif

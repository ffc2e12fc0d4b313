/* traces.h - timelines of runs, as files beside other results. */
#ifndef AT_CLI_TRACES_H
#define AT_CLI_TRACES_H

#include "cli/options.h"

/* After a run that was recorded in full: FOLDER/trace.json, when the run is small enough for a
 * browser. */
at_err at_traces_leave(const at_settings *settings, const char *folder, at_fail *fail);

/* For a report: OUT/trace-LABEL.json of a run (`label` NULL: OUT/trace.json), as far as
 * --trace-events and --trace-from let it be; what is missing is told on stderr. A run without an
 * event log has none, and *name is then empty. */
at_err at_traces_report(const at_settings *settings, const char *run, const char *out,
                        const char *label, char *name, size_t size, at_fail *fail);

#endif

/* sinks.h - the renderings there are. Each opens to an at_sink for at_recorder_add. */
#ifndef AT_RECORD_SINKS_SINKS_H
#define AT_RECORD_SINKS_SINKS_H

#include <stdbool.h>
#include <stdio.h>

#include "record/record.h"

/* events.bin: every event and action, compact, for replay and reports (see eventlog.h). */
at_err at_sink_eventlog(const at_run_info *info, at_sink *sink, at_fail *fail);

/* master_stats.csv and collect_stats.csv with the published columns. `rounds`: worker_stats.csv
 * too, one line per report. With info->usage resource_stats.csv, one line per USAGE record. */
at_err at_sink_csv(const at_run_info *info, bool rounds, at_sink *sink, at_fail *fail);

/* tensorboard/hub/, tensorboard/worker-01/, ..: files that TensorBoard reads, new ones for each
 * part of a run that is resumed. */
at_err at_sink_tensorboard(const at_run_info *info, at_sink *sink, at_fail *fail);

/* workers.json: pids and states, rewritten atomically at every join and loss. */
at_err at_sink_workers(const at_run_info *info, at_sink *sink, at_fail *fail);

/* How the console looks. */
typedef struct at_console_options {
    FILE *file;           /* stderr */
    bool  terminal;       /* redraw in place; otherwise plain lines now and then */
    bool  colour;         /* NO_COLOR is unset and TERM is not dumb */
    bool  quiet;          /* only sentences that matter: losses, waiting, warnings */
    bool  ascii;          /* LC_ALL, LC_CTYPE or LANG do not name UTF-8 */
    int   width;          /* columns, where the window does not tell */
    at_ns (*clock)(void); /* when to redraw and how long it still takes; NULL: by the records' own
                             time, which in a simulation may run a thousand times faster */
} at_console_options;

/* Fills the options from the environment: isatty, NO_COLOR, TERM, the locale, COLUMNS or the
 * window's size; the clock is the real one. */
at_console_options at_console_detect(FILE *file, bool quiet);

/* Progress bar, step, samples/s, loss, accuracy, time left, a short bar per worker that shows
 * compute, sleep and idle; plain lines when not on a terminal. */
at_err at_sink_console(const at_run_info *info, const at_console_options *options, at_sink *sink,
                       at_fail *fail);

#endif

/* sinks.h - the sinks for the record stream. Each is opened to an at_sink for at_recorder_add. */
#ifndef AT_RECORD_SINKS_SINKS_H
#define AT_RECORD_SINKS_SINKS_H

#include <stdbool.h>
#include <stdio.h>

#include "record/record.h"
#include "record/tally.h"

/* events.bin: every event and action, compact, for replay and reports (see eventlog.h). */
at_err at_sink_eventlog(const at_run_info *info, at_sink *sink, at_fail *fail);

/* master_stats.csv and collect_stats.csv with the published columns; with `rounds` also
 * worker_stats.csv, one line per report; with info->usage also resource_stats.csv, one line per
 * USAGE record; with info->links also link_stats.csv, one line per LINK record. */
at_err at_sink_csv(const at_run_info *info, bool rounds, at_sink *sink, at_fail *fail);

/* tensorboard/hub/, tensorboard/worker-01/, ..: event files for TensorBoard, new ones each time the
 * run is resumed. */
at_err at_sink_tensorboard(const at_run_info *info, at_sink *sink, at_fail *fail);

/* workers.json: pid and state of every worker, replaced atomically when one changes. */
at_err at_sink_workers(const at_run_info *info, at_sink *sink, at_fail *fail);

/* Appearance of the console output. */
typedef struct at_console_options {
    FILE *file;            /* stderr */
    bool  terminal;        /* redraw in place; otherwise a plain line from time to time */
    bool  color;           /* NO_COLOR is unset and TERM is not dumb */
    bool  quiet;           /* print only losses, long waits and warnings */
    bool  ascii;           /* neither LC_ALL, LC_CTYPE nor LANG selects UTF-8 */
    int   width;           /* columns, used when the window size is unknown */
    at_ns (*clock)(void);  /* paces redrawing and the ETA; NULL: the time of the records, which in a
                             simulation may run a thousand times faster */
    const at_tally *tally; /* totals of the same records, counted by a sink before the console;
                              NULL: it counts for itself */
} at_console_options;

/* Options for this stream: from isatty, NO_COLOR, TERM, the locale, COLUMNS or the window size. The
 * clock is the real one. */
at_console_options at_console_detect(FILE *file, bool quiet);

/* Whether neither LC_ALL, LC_CTYPE nor LANG (the first that is set decides) selects UTF-8. */
bool at_console_is_ascii(void);

/* On a terminal: progress bar, step, samples/s, loss, accuracy, ETA and a bar per worker with its
 * shares of compute, sleep and idle time. Elsewhere: plain lines. */
at_err at_sink_console(const at_run_info *info, const at_console_options *options, at_sink *sink,
                       at_fail *fail);

/* A line per report and per step, as the published programs print them (classic.c). */
at_err at_sink_classic(FILE *file, at_sink *sink, at_fail *fail);

#endif

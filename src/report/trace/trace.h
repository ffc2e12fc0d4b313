/* trace.h - exports a run as a timeline for Perfetto (ui.perfetto.dev) and chrome://tracing.
 *
 *     events.bin, events-2.bin, .. ─► at_trace_write ─► trace.json
 *
 * It has one row for the hub (gather, apply), one for the evaluator, and one per worker (wait,
 * install, sleep, compute, send). An arrow leads from each gradient to the step that used it;
 * dropped gradients are marked with the reason. docs/guide/trace.md explains how to read it.
 *
 * The log contains only times of the hub's clock; workers report durations. Rounds are placed so
 * that they agree with the times at which the hub sent orders and read reports (trace_rounds.h);
 * the remaining uncertainty is written to the file.
 */
#ifndef AT_REPORT_TRACE_TRACE_H
#define AT_REPORT_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

enum {
    AT_TRACE_EVENTS = 200000,      /* default limit of `report`: about 25 MB */
    AT_TRACE_EVENTS_SMALL = 100000 /* default limit of a run: a longer one writes no trace */
};

typedef struct at_trace_options {
    uint64_t events_max; /* 0: AT_TRACE_EVENTS */
    at_ns    from;       /* events that ended before this time of the run are left out */
    bool     whole;      /* write nothing rather than a part */
} at_trace_options;

typedef struct at_trace_counts {
    uint64_t written, omitted; /* events */
    at_ns    cut_at;           /* end of the written part; AT_NEVER: complete */
} at_trace_counts;

/* Writes the timeline of the run in folder `run` to `path`. AT_ERR_MISSING when the run has no
 * event log (it needs --record full). A damaged log gives a trace of the part before the damage,
 * and AT_ERR_FORMAT. With `whole`, nothing is written when the trace exceeds the limit, which is
 * not an error. `counts` may be NULL. */
at_err at_trace_write(const char *run, const char *path, const at_trace_options *options,
                      at_trace_counts *counts, at_fail *fail);

#endif

/* trace.h - a run as one timeline, for Perfetto (ui.perfetto.dev) and chrome://tracing.
 *
 *     events.bin, events-2.bin, .. ─► at_trace_write ─► trace.json
 *
 * A row for the hub (gather, apply), one for the evaluator, and one a worker (wait, install, sleep,
 * compute, send). An arrow leads from each gradient to the step that used it; one that was dropped
 * is marked, with the reason. docs/guide/trace.md tells how to read it.
 *
 * No clock but the hub's is in the log: workers report durations. A round is placed so that its
 * report reaches the hub when the hub says it did; how long that took on the way is estimated (see
 * trace_row.h) and the estimate stands in the file with its uncertainty.
 */
#ifndef AT_REPORT_TRACE_TRACE_H
#define AT_REPORT_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

enum {
    AT_TRACE_EVENTS = 200000,      /* of a report, by default: about 25 MB */
    AT_TRACE_EVENTS_SMALL = 100000 /* a run of more does not leave a trace by itself */
};

typedef struct at_trace_options {
    uint64_t events_max; /* 0: AT_TRACE_EVENTS */
    at_ns    from;       /* what ended before this time of the run is left out */
    bool     whole;      /* rather nothing than a part */
} at_trace_options;

/* What came of it. */
typedef struct at_trace_told {
    uint64_t written, omitted; /* events */
    at_ns    cut_at;           /* where it ends, AT_NEVER: nothing is missing */
} at_trace_told;

/* Writes the timeline of the run in folder `run` to `path`. AT_ERR_MISSING when the run has no
 * event log (--record full leaves one). A damaged log gives a trace of what stands before the
 * damage, and AT_ERR_FORMAT. With `whole` nothing is written when not all of it fits, and that is
 * no failure. `told` may be NULL. */
at_err at_trace_write(const char *run, const char *path, const at_trace_options *options,
                      at_trace_told *told, at_fail *fail);

#endif

/* trace_rounds.h - the worker rows of a trace.
 *
 * round_times.h places a round in time when its report is read; its slices are written when it is
 * known whether its gradient is used or dropped. The rounds of a worker are connected by durations
 * that it measured itself, so only the offset of the whole row is uncertain: every ordered round
 * must fit between its order and its report,
 *
 *     order sent │ .. │ install, sleep, compute │ .. │ report read          hub's clock
 *
 * and the smallest slack of all rounds is the uncertainty of the row.
 */
#ifndef AT_REPORT_TRACE_TRACE_ROUNDS_H
#define AT_REPORT_TRACE_TRACE_ROUNDS_H

#include "record/record.h"
#include "report/trace/trace_writer.h"

typedef struct at_trace_rounds at_trace_rounds;

/* Rows of `workers` workers as threads of `process`; arrows end in row `hub`. NULL when out of
 * memory. */
at_trace_rounds *at_trace_rounds_new(at_trace_writer *out, uint32_t workers, uint32_t process,
                                     at_trace_row hub);
void             at_trace_rounds_free(at_trace_rounds *rounds); /* accepts NULL */

/* Handles records about workers; `at` is the record's time in the trace. */
at_err at_trace_rounds_put(at_trace_rounds *rounds, const at_record *record, at_ns at,
                           at_fail *fail);

/* An APPLY action begins at `at` in the trace and uses its gradients. */
void at_trace_rounds_used(at_trace_rounds *rounds, const at_action *apply, at_ns at);

/* The log has ended: writes the rounds that are still pending. */
void at_trace_rounds_end(at_trace_rounds *rounds);

/* The uncertainty of this worker's row; false when no round allows an estimate. */
bool at_trace_rounds_uncertainty(const at_trace_rounds *rounds, at_node worker, at_ns *uncertainty);

#endif

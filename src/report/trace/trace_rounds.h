/* trace_rounds.h - the rows of the workers in a trace.
 *
 * Where a round lies in time is told by placing.h when its report is read; its slices are written
 * when it is decided what becomes of its gradient. A worker's rounds hang together by the durations
 * that it measured itself, so all that is uncertain is where the whole row lies: every round with
 * an order must fit between order and report,
 *
 *     order sent │ .. │ install, sleep, compute │ .. │ report read          the hub's clock
 *
 * and the smallest rest that is left in any of them is how far the row can be off.
 */
#ifndef AT_REPORT_TRACE_TRACE_ROUNDS_H
#define AT_REPORT_TRACE_TRACE_ROUNDS_H

#include "record/record.h"
#include "report/trace/trace_writer.h"

typedef struct at_trace_rounds at_trace_rounds;

/* Rows of `workers` workers as threads of `process`; arrows end in row `hub`. NULL when there is no
 * memory. */
at_trace_rounds *at_trace_rounds_new(at_trace_writer *out, uint32_t workers, uint32_t process,
                                     at_trace_row hub);
void             at_trace_rounds_free(at_trace_rounds *rounds); /* accepts NULL */

/* Takes in what happens to workers; `at` is the record's time in the trace. */
at_err at_trace_rounds_put(at_trace_rounds *rounds, const at_record *record, at_ns at,
                           at_fail *fail);

/* The update of an APPLY record begins at `at` in the trace: its gradients were used. */
void at_trace_rounds_used(at_trace_rounds *rounds, const at_action *apply, at_ns at);

/* A log has ended: writes what was still waiting for news. */
void at_trace_rounds_end(at_trace_rounds *rounds);

/* How far this worker's row can be off; false when there was nothing to estimate it from. */
bool at_trace_rounds_uncertainty(const at_trace_rounds *rounds, at_node worker, at_ns *uncertainty);

#endif

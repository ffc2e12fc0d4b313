/* round_times.h - when a worker did what, on the hub's clock; inside the report layer only.
 *
 * A report tells how long its worker waited, slept and computed, but not when: no absolute time
 * crosses between nodes, and the hub may look at a report long after it came, namely when the last
 * one that it needs is there. So a worker's rounds are laid end to end,
 *
 *     end of the round before ─► send ─► idle ─► sleep ─► compute ─► end of this one
 *
 * and moved where that contradicts the hub: no round ends after its report was read, and none
 * begins before its order was given. A first round begins with its order; that of a worker that
 * starts by itself, and gets no other order, ends when its report is read.
 */
#ifndef AT_REPORT_SUMMARY_ROUND_TIMES_H
#define AT_REPORT_SUMMARY_ROUND_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* One round; times since the start of the run. */
typedef struct at_round_span {
    at_ns sending; /* the round before ended and its gradient was handed over .. */
    at_ns sent;    /* .. until here; then it waited */
    at_ns begin, awake, end;
} at_round_span;

typedef struct at_round_times at_round_times;

/* NULL when there is no memory. */
at_round_times *at_round_times_new(uint32_t workers);
void            at_round_times_free(at_round_times *placing); /* accepts NULL */

/* The hub gave an order to work. */
void at_round_times_order(at_round_times *placing, at_node worker, const at_order *order, at_ns at);

/* A new process of this worker: its rounds have nothing to do with those before. */
void at_round_times_join(at_round_times *placing, at_node worker, at_ns at);

/* The hub read a report at `at`: where does the round belong? */
at_round_span at_round_times_report(at_round_times *placing, at_node worker, const at_work *work,
                                    at_ns at);

/* Since when the worker's present round, of which nothing is known yet, may be under way. */
at_ns at_round_times_open(const at_round_times *placing, at_node worker);

#endif

/* round_times.h - the rounds of the workers placed on the hub's clock; inside the report layer
 * only.
 *
 * A report contains how long its worker waited, slept and computed, but not when: no absolute time
 * is exchanged between nodes, and the hub may read a report long after it arrived, namely when the
 * last one that it needs is there. So the rounds of a worker are laid end to end,
 *
 *     end of the previous round ─► send ─► idle ─► sleep ─► compute ─► end of this round
 *
 * and moved where that contradicts the hub: no round ends after its report was read, and none
 * begins before its order was given. The first round begins with its order; for a worker that
 * starts rounds by itself it ends when its report is read.
 */
#ifndef AT_REPORT_SUMMARY_ROUND_TIMES_H
#define AT_REPORT_SUMMARY_ROUND_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* One round; times since the start of the run, in this order. */
typedef struct at_round_span {
    at_ns send_begin, send_end; /* the previous round's gradient is sent; then the worker waits */
    at_ns begin, sleep_end, end;
} at_round_span;

typedef struct at_round_times at_round_times;

/* NULL when out of memory. */
at_round_times *at_round_times_new(uint32_t workers);
void            at_round_times_free(at_round_times *times); /* accepts NULL */

/* The hub gave an order to work. */
void at_round_times_order(at_round_times *times, at_node worker, const at_order *order, at_ns at);

/* A new process of this worker started; its rounds are independent of earlier ones. */
void at_round_times_join(at_round_times *times, at_node worker, at_ns at);

/* The hub read a report at `at`; returns when its round took place. */
at_round_span at_round_times_report(at_round_times *times, at_node worker, const at_work *work,
                                    at_ns at);

/* The earliest time at which the worker's current, unreported round can have begun. */
at_ns at_round_times_open(const at_round_times *times, at_node worker);

#endif

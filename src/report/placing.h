/* placing.h - when a worker did what, on the hub's clock; inside the report layer only.
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
#ifndef AT_REPORT_PLACING_H
#define AT_REPORT_PLACING_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* One round; times since the start of the run. */
typedef struct at_placed {
    at_ns sending; /* the round before ended and its gradient was handed over .. */
    at_ns sent;    /* .. until here; then it waited */
    at_ns begin, awake, end;
} at_placed;

typedef struct at_placing at_placing;

/* NULL when there is no memory. */
at_placing *at_placing_new(uint32_t workers);
void        at_placing_free(at_placing *placing); /* accepts NULL */

/* The hub gave an order to work. */
void at_placing_order(at_placing *placing, at_node worker, const at_order *order, at_ns at);

/* A new process of this worker: its rounds have nothing to do with those before. */
void at_placing_join(at_placing *placing, at_node worker, at_ns at);

/* The hub read a report at `at`: where does the round belong? */
at_placed at_placing_report(at_placing *placing, at_node worker, const at_work *work, at_ns at);

/* Since when the worker's present round, of which nothing is known yet, may be under way. */
at_ns at_placing_open(const at_placing *placing, at_node worker);

#endif

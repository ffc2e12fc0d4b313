/* lease.h - the hub's lease and notice timers. Internal to step/.
 *
 * A worker that owes a report has a lease. When it expires, the worker is evicted. A step that
 * stays open for unusually long causes a notice that names a worker it waits for.
 */
#ifndef AT_STEP_LEASE_H
#define AT_STEP_LEASE_H

#include "step/hub.h"

/* Rounds in a row with older parameters than those sent, after which a worker is evicted. */
enum { AT_OUTDATED_MAX = 8 };

/* Adapts leases to a round that ended now, and makes sure that nobody who began with it has a lease
 * much longer than this round suggests. */
void at_lease_observe(at_hub *hub, at_ns began, at_ns now, at_out *out);

/* Counts rounds in a row in which a worker has used older parameters than it was sent, and evicts
 * it when they are too many. A round that gave something (`outdated` false) begins a new count. */
void at_lease_count_outdated(at_hub *hub, at_member *member, bool outdated, at_out *out);

/* A member got an order: makes sure that a lease timer runs. */
void at_lease_start(at_hub *hub, at_ns now, at_out *out);

/* A new step was opened: restarts the wait for a notice. */
void at_lease_step_opened(at_hub *hub, at_ns now);

/* On the lease timer: evicts workers that are overdue and sets the next timer. */
void at_lease_on_timer(at_hub *hub, at_ns now, at_out *out);

/* On the notice timer: emits NOTICE if the step is late, and sets the next timer. */
void at_lease_on_notice(at_hub *hub, at_ns now, at_out *out);

#endif

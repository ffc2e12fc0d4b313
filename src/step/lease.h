/* lease.h - the hub's lease and notice timers. Internal to step/.
 *
 * A worker that owes a report has a lease. When it expires, the worker is evicted. A step that
 * stays open for unusually long causes a notice that names a worker it waits for.
 */
#ifndef AT_STEP_LEASE_H
#define AT_STEP_LEASE_H

#include "step/hub.h"

/* Adapts the lease to a round that took `duration` from order to report. */
void at_lease_observe(at_hub *hub, at_ns duration);

/* A member got an order: makes sure that a lease timer runs. */
void at_lease_start(at_hub *hub, at_ns now, at_out *out);

/* A new step was opened: restarts the wait for a notice. */
void at_lease_step_opened(at_hub *hub, at_ns now);

/* On the lease timer: evicts workers that are overdue and sets the next timer. */
void at_lease_on_timer(at_hub *hub, at_ns now, at_out *out);

/* On the notice timer: emits NOTICE if the step is late, and sets the next timer. */
void at_lease_on_notice(at_hub *hub, at_ns now, at_out *out);

#endif

/* lease.h - the hub's patience: leases that end, and notices to people. Internal to step/. */
#ifndef AT_STEP_LEASE_H
#define AT_STEP_LEASE_H

#include "step/hub.h"

/* Learns from a round that took `turn` from order to report. */
void at_lease_round(at_hub *hub, at_ns turn);

/* A member was given something to do: makes sure that a lease timer runs. */
void at_lease_member(at_hub *hub, at_ns now, at_out *out);

/* A new step was opened: notices start over. */
void at_lease_open(at_hub *hub, at_ns now);

/* The lease timer has come: evicts whoever is overdue and asks for the next time. */
void at_lease_expired(at_hub *hub, at_ns now, at_out *out);

/* The notice timer has come: tells whom an unusually long step waits for. */
void at_lease_notice(at_hub *hub, at_ns now, at_out *out);

#endif

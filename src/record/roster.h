/* roster.h - pid, incarnation and state of every worker, derived from the records.
 *
 *     starting, not joined ──JOINED──► working ──ordered to leave, or FINISH──► finished
 *                              ▲          ├──LOST──► lost ──────┐
 *                              │          └──EVICT─► evicted ───┤
 *                              └────────────JOINED──────────────┘
 *
 * A process that ends after it was ordered to leave or was evicted does not count as lost.
 */
#ifndef AT_RECORD_ROSTER_H
#define AT_RECORD_ROSTER_H

#include "record/record.h"

typedef struct at_worker_status {
    int64_t     pid;         /* 0: no process, or not started yet */
    uint32_t    incarnation; /* 0: never joined */
    const char *state;       /* one of the texts below; compared by address */
} at_worker_status;

extern const char at_state_absent[], at_state_starting[], at_state_working[], at_state_finished[],
    at_state_lost[], at_state_evicted[];

/* The first `expected` workers (--workers) are `starting`; ids beyond are `not joined`. */
void at_roster_init(at_worker_status *roster, uint32_t workers, uint32_t expected);

/* Follows one record; true when the status of a worker changed. */
bool at_roster_put(at_worker_status *roster, uint32_t workers, const at_record *record);

#endif

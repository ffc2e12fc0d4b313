/* roster.h - who is there: pid, incarnation and state of every worker, as the records tell it.
 *
 *     starting ──JOINED──► working ──told to leave, or FINISH──► finished
 *                  ▲          ├──LOST──► lost ──────┐
 *                  │          └──EVICT─► evicted ───┤
 *                  └────────────JOINED──────────────┘
 *
 * A process that ends after it was told to leave, or was evicted, was not lost.
 */
#ifndef AT_RECORD_ROSTER_H
#define AT_RECORD_ROSTER_H

#include "record/record.h"

typedef struct at_place {
    int64_t     pid;         /* 0: not a process, or not there yet */
    uint32_t    incarnation; /* 0: never joined */
    const char *state;       /* one of the texts below, never another with the same letters */
    char        host[64];    /* where it runs; empty: on this machine */
} at_place;

extern const char at_state_starting[], at_state_working[], at_state_finished[], at_state_lost[],
    at_state_evicted[];

/* Nobody is there yet. */
void at_roster_init(at_place *place, uint32_t workers);

/* Follows one record; true when a place changed. */
bool at_roster_put(at_place *place, uint32_t workers, const at_record *record);

#endif

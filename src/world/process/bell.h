/* bell.h - waiting that costs nothing: a counter in shared memory that can be slept on.
 *
 * Whoever has news increments the counter. Whoever waits remembers the counter, looks for news, and
 * sleeps only while the counter still has that value: no news can be missed in between. Signal
 * handlers ring the same bell, so one wait covers messages, deaths, Ctrl-C and timers.
 *
 *     uint32_t heard = at_bell_heard(&bell);
 *     look for news
 *     if there was none: at_bell_wait(&bell, heard, ...)
 *
 * A waiter that needs n more rings before it can do anything says so (`wake_at`); the ones before
 * only count. One sleeper may also be picked out of many by a mask.
 */
#ifndef AT_WORLD_PROCESS_BELL_H
#define AT_WORLD_PROCESS_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

typedef struct at_bell {
    _Atomic uint32_t rings;
    _Atomic uint32_t wake_at; /* sleepers want to be woken when rings has come so far */
    _Atomic uint32_t ringer;  /* core of the last one who rang, from 1 on; 0: nobody yet */
} at_bell;

#define AT_BELL_ALL UINT32_MAX

enum { AT_BELL_RINGS_MAX = 4096 }; /* nobody waits for more rings at once */

/* The counter now. */
uint32_t at_bell_heard(at_bell *bell);

/* One ring that wakes the waiter if it was the last one it waits for. */
void at_bell_ring(at_bell *bell);

/* A ring that wakes the sleepers of `mask` in any case. Safe in a signal handler. */
void at_bell_ring_loud(at_bell *bell, uint32_t mask);

/* Sleeps until `rings` more rings than `heard` have come, a loud ring of one's mask, a signal, or
 * the time `until` (AT_NEVER: no end). Spins for spin_ns first, unless the last one who rang did so
 * from this core. May return early for no reason. */
void at_bell_wait(at_bell *bell, uint32_t heard, uint32_t rings, uint32_t mask, at_ns until,
                  at_ns spin_ns);

/* The mask of one node among many; nodes that share a bit wake each other, harmlessly. */
static inline uint32_t at_bell_mask(uint32_t node)
{
    return 1u << (node % 32);
}

#endif

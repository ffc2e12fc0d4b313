/* bell.h - a doorbell between processes: an event counter in shared memory, waited on by futex.
 *
 * The sender of an event increments the counter (rings). The waiter reads the counter, checks for
 * events, and sleeps only while the counter still has that value, so no event is missed in between.
 * Signal handlers ring the same bell: one wait covers messages, deaths, Ctrl-C and timers.
 *
 *     uint32_t heard = at_bell_heard(&bell);
 *     check for events
 *     if there are none: at_bell_wait(&bell, heard, ...)
 *
 * A waiter that needs n more rings before it can proceed sets `wake_at`; earlier rings are counted
 * but do not wake it. A mask selects which of several waiters to wake.
 */
#ifndef AT_WORLD_PROCESS_BELL_H
#define AT_WORLD_PROCESS_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

typedef struct at_bell {
    _Atomic uint32_t rings;
    _Atomic uint32_t wake_at;  /* wake the waiter once `rings` reaches this */
    _Atomic uint32_t ringer;   /* core of the last ring, counted from 1; 0: unknown */
    _Atomic uint32_t sleepers; /* waiters in the kernel, and those that were killed there */
} at_bell;

#define AT_BELL_ALL UINT32_MAX

enum { AT_BELL_RINGS_MAX = 4096 }; /* most rings that one wait may ask for */

/* The current count. */
uint32_t at_bell_heard(at_bell *bell);

/* Rings; wakes the waiter if this is the last ring it waits for. */
void at_bell_ring(at_bell *bell);

/* Rings and wakes the waiters of `mask`, however many rings they wait for. Async-signal-safe.
 * Neither way of ringing needs a system call while nobody sleeps. */
void at_bell_ring_loud(at_bell *bell, uint32_t mask);

/* Sleeps until the count is `heard` + `rings`, a loud ring matches `mask`, a signal arrives, or the
 * time is `until` (AT_NEVER: no timeout). Spins for spin_ns first, unless the last ring came from
 * this core. Spurious wake-ups are possible. True: a signal ended the sleep. */
bool at_bell_wait(at_bell *bell, uint32_t heard, uint32_t rings, uint32_t mask, at_ns until,
                  at_ns spin_ns);

/* The mask of one node. Nodes that share a bit wake each other, which is harmless. */
static inline uint32_t at_bell_mask(uint32_t node)
{
    return 1u << (node % 32);
}

#endif

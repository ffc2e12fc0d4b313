/* update_pool.h - one update computed by several processes, each on its slice of the vectors.
 *
 *     hub: writes the operation of the step to the updater's shared memory
 *       │ assigns a slice to each member, rings once
 *       ├───────────────► member 1: at_update_pool_work, block by block ──┐ each rings
 *       ├───────────────► member 2: at_update_pool_work, block by block ──┤ when done
 *       │ computes its own slice, if it takes part                        │
 *     at_update_pool_run returns when every float is done ◄───────────────┘
 *
 * A member saves each block in its journal before changing it. When it dies half-way, the hub
 * restores the block and finishes the slice itself, so the result does not depend on who survived.
 * A member that makes no progress is killed first; it never writes at the same time as the hub. A
 * hub that takes part also does the slices that no member has begun when its own is done.
 */
#ifndef AT_WORLD_PROCESS_UPDATE_POOL_H
#define AT_WORLD_PROCESS_UPDATE_POOL_H

#include "base/err.h"
#include "world/core/update.h"
#include "world/process/bell.h"

typedef struct at_update_pool at_update_pool;

/* What the pool needs from its world. */
typedef struct at_update_pool_world {
    void *self;
    /* True when the member has ended and cannot write any more; it need not have been reaped. */
    bool (*is_gone)(void *self, uint32_t member);
    /* Kills the member; is_gone MUST become true soon. */
    void (*end)(void *self, uint32_t member);
} at_update_pool_world;

typedef struct at_update_pool_options {
    const at_updater    *updater; /* initialized by at_updater_init_shared */
    uint32_t             members; /* maximum; they are numbered 1 .. members */
    at_bell             *hub_bell;
    at_bell             *member_bell; /* where members wait with their at_bell_mask; NULL: own */
    at_update_pool_world world;
    at_ns                spin_ns; /* before the hub sleeps */
} at_update_pool_options;

/* To be called before members are forked. Updater and bells are borrowed. */
at_err at_update_pool_open(const at_update_pool_options *options, at_update_pool **pool,
                           at_fail *fail);
void   at_update_pool_close(at_update_pool *pool); /* accepts NULL */

/* Hub: runs the current ADD or APPLY on these members, and on the caller if it `joins`. Small
 * vectors use fewer members, because waking one takes time. Members MUST be waiting at their bell
 * or gone. */
void at_update_pool_run(at_update_pool *pool, const uint32_t *members, uint32_t count, bool joins);

/* Member: computes the slice assigned to it; false when none was. */
bool at_update_pool_work(at_update_pool *pool, uint32_t member);

/* The bell that members wait at. */
at_bell *at_update_pool_bell(at_update_pool *pool);

#endif

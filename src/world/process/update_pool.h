/* update_pool.h - one update done by several processes, each its slice of the vectors.
 *
 *     hub: what the step does to each float is in the updater's shared room
 *       │ a slice to each member, one ring
 *       ├───────────────► member 1: at_update_pool_work, block by block ──┐
 *       ├───────────────► member 2: at_update_pool_work, block by block ──┤ each rings when it
 * is done
 *       │ its own slice, if it takes part                          │
 *     at_update_pool_run returns when every float is done ◄───────────────┘
 *
 * A member saves each block in its journal before it changes it. When it dies in the middle, the
 * hub puts the block back and does the rest of the slice by itself, so the bits do not depend on
 * who lived. A member that stands still is ended first; nobody ever writes beside the hub.
 */
#ifndef AT_WORLD_PROCESS_UPDATE_POOL_H
#define AT_WORLD_PROCESS_UPDATE_POOL_H

#include "base/err.h"
#include "world/core/update.h"
#include "world/process/bell.h"

typedef struct at_update_pool at_update_pool;

/* What the crew asks its world about a member. */
typedef struct at_update_pool_world {
    void *self;
    /* Has it ended, so that it will not write any more? It need not have been reaped. */
    bool (*is_gone)(void *self, uint32_t member);
    /* Ends it at once; is_gone MUST become true soon. */
    void (*end)(void *self, uint32_t member);
} at_update_pool_world;

typedef struct at_update_pool_options {
    const at_updater    *updater; /* with a shared room */
    uint32_t             members; /* most of them; they are 1 .. members */
    at_bell             *hub_bell;
    at_bell             *member_bell; /* where members wait, by their at_bell_mask; NULL: own one */
    at_update_pool_world world;
    at_ns                spin_ns; /* before the hub sleeps */
} at_update_pool_options;

/* Before members are forked. Updater and bells are borrowed. */
at_err at_update_pool_open(const at_update_pool_options *options, at_update_pool **crew,
                           at_fail *fail);
void   at_update_pool_close(at_update_pool *crew); /* accepts NULL */

/* Hub: has the ADD or APPLY under way done by these members, and by the caller if it `joins` them.
 * Small vectors are not worth waking everybody for: then fewer of them take part. Members MUST be
 * idle at their bell or gone. */
void at_update_pool_run(at_update_pool *crew, const uint32_t *members, uint32_t count, bool joins);

/* Member: does the slice it was given, if it was. True when there was one. */
bool at_update_pool_work(at_update_pool *crew, uint32_t member);

/* The bell that members wait at. */
at_bell *at_update_pool_bell(at_update_pool *crew);

#endif

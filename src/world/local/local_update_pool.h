/* local_update_pool.h - who does the slices of an update in the local world. Internal to world/.
 *
 *   --topology allreduce   the workers whose gradients make the step
 *   --hubs H               the hub and H-1 processes of its kind, which know nothing but slices
 */
#ifndef AT_WORLD_LOCAL_LOCAL_UPDATE_POOL_H
#define AT_WORLD_LOCAL_LOCAL_UPDATE_POOL_H

#include <sys/types.h>

#include "world/local/local.h"
#include "world/process/update_pool.h"

typedef struct at_local_update_pool at_local_update_pool;

/* What it needs of the local world; all borrowed. */
typedef struct at_local_update_pool_options {
    const at_world_context *context;
    const at_local_map     *map;
    at_updater             *updater; /* with a shared room */
    at_ns                   spin_ns;
    void                   *self;
    /* The process of this worker, 0 when there is none. */
    pid_t (*pid_of)(void *self, at_node worker, uint32_t *incarnation);
    /* Ends a worker's process. */
    void (*evict)(void *self, at_node worker);
} at_local_update_pool_options;

/* Does this run have a crew? */
bool at_local_update_pool_wanted(const at_world_context *context);

/* Starts the other hubs, and lets the updater be helped from now on. */
at_err at_local_update_pool_open(const at_local_update_pool_options *options,
                                 at_local_update_pool **crew, at_fail *fail);
void at_local_update_pool_close(at_local_update_pool *crew); /* ends the other hubs; accepts NULL */

/* What workers forked from now on belong to; NULL: they have no part in updates. */
at_update_pool *at_local_update_pool_of_workers(const at_local_update_pool *crew);

/* Did one of the other hubs end? Its number, once; 0: none. Accepts NULL. */
uint32_t at_local_update_pool_reap(at_local_update_pool *crew);

#endif

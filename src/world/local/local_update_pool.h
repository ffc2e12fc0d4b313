/* local_update_pool.h - the update pool of the local world. Internal to world/. Its members are
 *
 *   --mix replicated       the workers whose gradients make the step
 *   --mix sliced:H         H-1 additional hub processes, which only compute slices
 *   --mix central          the hub, and workers that wait for it, as many as there are cores: where
 *                          a step waits for all workers and the vectors are large
 */
#ifndef AT_WORLD_LOCAL_LOCAL_UPDATE_POOL_H
#define AT_WORLD_LOCAL_LOCAL_UPDATE_POOL_H

#include <sys/types.h>

#include "world/local/local.h"
#include "world/process/update_pool.h"

typedef struct at_local_update_pool at_local_update_pool;

/* What it needs from the local world; all borrowed. */
typedef struct at_local_update_pool_options {
    const at_world_context *context;
    const at_local_map     *map;
    at_updater             *updater; /* initialized by at_updater_init_shared */
    at_ns                   spin_ns;
    void                   *self;
    /* The process of a worker; 0 when there is none. */
    pid_t (*pid_of)(void *self, at_node worker, uint32_t *incarnation);
    /* Kills a worker's process. */
    void (*evict)(void *self, at_node worker);
} at_local_update_pool_options;

/* True when this run uses an update pool. */
bool at_local_update_pool_wanted(const at_world_context *context);

/* Starts the other hubs, and makes the updater use the pool. */
at_err at_local_update_pool_open(const at_local_update_pool_options *options,
                                 at_local_update_pool **pool, at_fail *fail);
void at_local_update_pool_close(at_local_update_pool *pool); /* ends the other hubs; accepts NULL */

/* The pool that workers are members of; NULL: they take no part in updates. */
at_update_pool *at_local_update_pool_of_workers(const at_local_update_pool *pool);

/* Reaps one of the other hubs if it has ended; returns its number, 0: none. Accepts NULL. */
uint32_t at_local_update_pool_reap(at_local_update_pool *pool);

#endif

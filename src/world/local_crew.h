/* local_crew.h - who does the slices of an update in the local world. Internal to world/.
 *
 *   --topology allreduce   the workers whose gradients make the step
 *   --hubs H               the hub and H-1 processes of its kind, which know nothing but slices
 */
#ifndef AT_WORLD_LOCAL_CREW_H
#define AT_WORLD_LOCAL_CREW_H

#include <sys/types.h>

#include "world/crew.h"
#include "world/local.h"

typedef struct at_local_crew at_local_crew;

/* What it needs of the local world; all borrowed. */
typedef struct at_local_crew_options {
    const at_scene     *scene;
    const at_local_map *map;
    at_updater         *updater; /* with a shared room */
    at_ns               spin_ns;
    void               *self;
    /* The process of this worker, 0 when there is none. */
    pid_t (*pid_of)(void *self, at_node worker, uint32_t *incarnation);
    /* Ends a worker's process. */
    void (*evict)(void *self, at_node worker);
} at_local_crew_options;

/* Does this run have a crew? */
bool at_local_crew_wanted(const at_scene *scene);

/* Starts the other hubs, and lets the updater be helped from now on. */
at_err at_local_crew_open(const at_local_crew_options *options, at_local_crew **crew,
                          at_fail *fail);
void   at_local_crew_close(at_local_crew *crew); /* ends the other hubs; accepts NULL */

/* What workers forked from now on belong to; NULL: they have no part in updates. */
at_crew *at_local_crew_of_workers(const at_local_crew *crew);

/* Did one of the other hubs end? Its number, once; 0: none. Accepts NULL. */
uint32_t at_local_crew_reap(at_local_crew *crew);

#endif

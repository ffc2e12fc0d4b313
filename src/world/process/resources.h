/* resources.h - looks now and then what the processes of a run have taken. Internal to world/.
 *
 *     at_resources_init ─► at_resources_name, when a process comes or goes ─► at_resources_look
 *
 * Only processes of this machine can be looked at; others tell about themselves (at_host_usage).
 */
#ifndef AT_WORLD_PROCESS_RESOURCES_H
#define AT_WORLD_PROCESS_RESOURCES_H

#include "base/err.h"
#include "record/record.h"

typedef struct at_resources {
    at_ns    every; /* 0: nobody looks */
    at_ns    due;   /* when to look next, AT_NEVER when nobody does */
    uint32_t workers;
    int64_t *pid; /* of each worker, 0: none that can be seen from here */
} at_resources;

/* Looks every so often, beginning at once. `every` 0: never, and nothing costs anything. */
at_err at_resources_init(at_resources *resources, at_ns every, uint32_t workers, at_fail *fail);
void   at_resources_deinit(at_resources *resources); /* accepts a zeroed one */

/* This worker is now the process `pid`; 0: it is gone. */
void at_resources_name(at_resources *resources, at_node worker, int64_t pid);

/* Reads what this process, the evaluator (0: none) and all workers have taken and records it.
 * `at` is the time since START. */
void at_resources_look(at_resources *resources, const at_recorder *recorder, int64_t evaluator,
                       at_ns at, uint64_t version);

#endif

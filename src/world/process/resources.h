/* resources.h - samples the resource usage of the processes of a run. Internal to world/.
 *
 *     at_resources_init ─► at_resources_name when a process starts or ends ─► at_resources_sample
 *
 * Covers the processes of this machine; remote ones report their own usage (at_host_usage).
 */
#ifndef AT_WORLD_PROCESS_RESOURCES_H
#define AT_WORLD_PROCESS_RESOURCES_H

#include "base/err.h"
#include "record/record.h"

typedef struct at_resources {
    at_ns    every; /* sampling interval; 0: off */
    at_ns    due;   /* time of the next sample; AT_NEVER: off */
    uint32_t workers;
    int64_t *pid; /* of each worker; 0: none on this machine */
} at_resources;

/* Samples at the interval `every`, starting at once; 0: never. */
at_err at_resources_init(at_resources *resources, at_ns every, uint32_t workers, at_fail *fail);
void   at_resources_deinit(at_resources *resources); /* accepts a zeroed one */

/* Sets the process of a worker; 0: it has ended. */
void at_resources_name(at_resources *resources, at_node worker, int64_t pid);

/* Records the usage of this process, of the evaluator (0: none) and of all workers. `at` is the
 * time since START. */
void at_resources_sample(at_resources *resources, const at_recorder *recorder, int64_t evaluator,
                         at_ns at, uint64_t version);

#endif

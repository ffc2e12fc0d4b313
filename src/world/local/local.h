/* local.h - what hub and workers of the local world share. Internal to world/.
 *
 *   one mapping:  head │ slot 1 .. n │ parameters │ gradients: 2 a worker
 *
 * Each word has one writer. A report is published by a counter after it is complete, so a worker
 * killed in the middle of writing leaves something that is never read. Gradients are written by the
 * worker and read by the hub where they are: no copies. Parameters are copied out by workers under
 * a sequence lock.
 */
#ifndef AT_WORLD_LOCAL_LOCAL_H
#define AT_WORLD_LOCAL_LOCAL_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/err.h"
#include "step/event.h"
#include "world/core/world.h"
#include "world/process/bell.h"
#include "world/process/update_pool.h"

enum { AT_LOCAL_GRADIENTS = 2 }; /* a worker fills one while the hub reads the other */

/* One worker's corner, on cache lines of its own. */
typedef struct at_local_slot {
    _Alignas(64) _Atomic uint64_t drawn; /* by the worker: samples, all incarnations */
    _Atomic uint64_t sent;               /* by the worker: reports of this incarnation */
    at_report        report[AT_LOCAL_GRADIENTS];
    char             engine[32];
    _Alignas(64) _Atomic uint64_t taken; /* by the hub: reports it has read */
    _Atomic uint64_t order_lock;         /* by the hub: odd while it writes the order */
    at_order         order;
    _Atomic bool     leave;
} at_local_slot;

typedef struct at_local_head {
    _Alignas(64) at_bell hub_bell;             /* rung for the hub */
    _Alignas(64) at_bell cast_bell;            /* rung for workers */
    _Alignas(64) _Atomic uint64_t params_lock; /* by the hub: odd while it writes */
    _Atomic uint64_t version;
} at_local_head;

/* The mapping, seen from either side. */
typedef struct at_local_map {
    at_local_head *head;
    at_local_slot *slot; /* slot[i] belongs to worker i+1 */
    float         *params;
    float         *gradient; /* AT_LOCAL_GRADIENTS a worker */
    size_t         params_count;
    size_t         stride, slot_stride; /* floats of parameters and of a gradient, rounded up to
                                         * whole cache lines */
    size_t         size;
} at_local_map;

/* Makes the mapping for so many workers, parameters and floats of a gradient. Memory is taken as it
 * is written to. */
at_err at_local_map_open(at_local_map *map, uint32_t workers, size_t params, size_t slot_floats,
                         at_fail *fail);
void   at_local_map_close(at_local_map *map); /* accepts a zeroed one */

/* Where a worker's gradient lies. */
float *at_local_gradient(const at_local_map *map, at_node worker, uint32_t slot);

/* How a worker process is started; borrowed, it lives in the hub's memory before the fork. */
typedef struct at_local_worker_start {
    const at_world_context *context;
    const at_local_map     *map;
    at_node                 id;
    uint32_t                incarnation;
    uint64_t                sequence; /* of its last report that counted */
    at_ns                   spin_ns;
    int                     core; /* to stay on; -1: any */
    at_update_pool         *crew; /* it does slices for; NULL: none */
} at_local_worker_start;

/* The worker process: returns its exit code. */
int at_local_worker_main(void *start);

#endif

/* local.h - memory shared by the hub and the workers of the local world. Internal to world/.
 *
 *   one mapping:  head │ slot 1 .. n │ parameters │ gradients: 2 per worker │ own parameters
 *
 * Each field has one writer. A report is published by a counter after it is complete, so what a
 * worker killed while writing leaves behind is never read. The hub reads gradients where the worker
 * wrote them, without a copy. Workers copy the parameters under a sequence lock.
 */
#ifndef AT_WORLD_LOCAL_LOCAL_H
#define AT_WORLD_LOCAL_LOCAL_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/err.h"
#include "step/event.h"
#include "world/core/world.h"
#include "world/process/bell.h"
#include "world/process/update_pool.h"

enum { AT_LOCAL_GRADIENTS = 2 }; /* a worker fills one while the hub reads the other */

/* One worker's entry, on separate cache lines. */
typedef struct at_local_slot {
    /* Written by the worker. */
    _Alignas(64) _Atomic uint64_t drawn; /* samples, all incarnations */
    _Atomic uint64_t sent;               /* reports of this incarnation */
    at_report        report[AT_LOCAL_GRADIENTS];
    char             engine[32];
    /* Written by the hub. */
    _Alignas(64) _Atomic uint64_t taken; /* reports that the hub has read */
    _Atomic uint64_t order_lock;         /* odd while the order is being written */
    at_order         order;
    _Atomic bool     leave;
} at_local_slot;

typedef struct at_local_head {
    _Alignas(64) at_bell hub_bell;             /* the hub waits here */
    _Alignas(64) at_bell cast_bell;            /* workers wait here */
    _Alignas(64) _Atomic uint64_t params_lock; /* odd while the hub writes the parameters */
    _Atomic uint64_t version;
} at_local_head;

/* The mapping; the same for hub and workers. */
typedef struct at_local_map {
    at_local_head *head;
    at_local_slot *slot; /* slot[i] is that of worker i+1 */
    float         *params;
    float         *gradient; /* AT_LOCAL_GRADIENTS per worker */
    float         *own;      /* under gossip: parameters of each worker; else NULL */
    size_t         params_count;
    size_t         stride, slot_stride; /* floats of parameters and of a gradient, rounded up to
                                         * whole cache lines */
    size_t         size;
} at_local_map;

/* ---- sequence locks: one writer, readers that read again ---------------------------------------
 *
 *   writer   lock = odd (relaxed); release fence; write data; lock = even (release)
 *   reader   before = lock (acquire); read data; acquire fence; again if lock (relaxed) != before
 *
 * Why it is right in the C11 memory model. A reader that sees the even value synchronizes with the
 * release store and so sees all data written before it. A reader that sees any datum of the next
 * change has its acquire fence after that read, and the writer its release fence before that write:
 * the fences synchronize, so the second read of the lock finds the odd value or a later one, and
 * the reader reads again. Without the writer's fence a datum could become visible before the odd
 * value, even though an atomic addition made it odd: its acquire part orders what follows after the
 * load, not after the store. When members of an update pool write, at_update_pool_work has the
 * fence.
 *
 * The data are plain floats, so a read that is thrown away races with the writer; compilers and
 * processors that we build for give it some value, and it is not used. */

/* Writer: the data are about to change. */
static inline void at_local_write_begin(_Atomic uint64_t *lock)
{
    uint64_t value = atomic_load_explicit(lock, memory_order_relaxed);
    assert(value % 2 == 0);
    atomic_store_explicit(lock, value + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

/* Writer: the data are complete. */
static inline void at_local_write_end(_Atomic uint64_t *lock)
{
    uint64_t value = atomic_load_explicit(lock, memory_order_relaxed);
    assert(value % 2 == 1);
    atomic_store_explicit(lock, value + 1, memory_order_release);
}

/* Address of a worker's gradient. */
float *at_local_gradient(const at_local_map *map, at_node worker, uint32_t slot);

/* Arguments of a worker process; borrowed from the hub's memory before the fork. */
typedef struct at_local_worker_start {
    const at_world_context *context;
    const at_local_map     *map;
    at_node                 id;
    uint32_t                incarnation;
    uint64_t                sequence; /* of its last accepted report */
    uint64_t                redrawn;  /* samples that are drawn again, see at_member */
    at_ns                   spin_ns;
    int                     core; /* to be pinned to; -1: none */
    at_update_pool         *pool; /* update pool that it is a member of; NULL: none */
} at_local_worker_start;

/* Main function of a worker process; returns its exit code. *fail says why it could not start. */
int at_local_worker_main(void *start, at_fail *fail);

#endif

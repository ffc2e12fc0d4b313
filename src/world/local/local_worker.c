/* The worker process of the local world: a transport over shared memory and bells. */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/placement.h"
#include "world/core/driver.h"
#include "world/local/local.h"

typedef struct worker {
    const at_local_map *map;
    at_local_slot      *slot;
    at_node             id;
    float              *params; /* installed copy; NULL: none is made, see copy_params */
    float              *aside;  /* a newer one; NULL: there are no delays, so the copy may change */
    uint64_t            order_seen; /* order_lock value of the newest order we took */
    at_ns               spin_ns;
    at_local_steps     *local; /* its local steps; NULL: it reports gradients */
    at_update_pool     *pool;  /* it works on slices of updates while it waits; NULL: none */
} worker;

/* ---- waiting ------------------------------------------------------------------------------- */

static uint32_t heard(void *self)
{
    worker *w = self;
    assert(w->map->head);
    return at_bell_heard(&w->map->head->cast_bell);
}

/* Spinning is for the end of a step, not for sleeps whose end is known. */
static void wait(void *self, uint32_t heard_before, at_ns until)
{
    worker *w = self;
    assert(w->id >= 1);
    if (w->pool && at_update_pool_work(w->pool, w->id)) return;
    at_bell_wait(&w->map->head->cast_bell, heard_before, 1, at_bell_mask(w->id), until,
                 until == AT_NEVER ? w->spin_ns : 0);
}

/* ---- shared words -------------------------------------------------------------------------- */

static bool leaves(void *self)
{
    worker *w = self;
    assert(w->slot);
    return atomic_load_explicit(&w->slot->leave, memory_order_acquire);
}

static bool take_order(void *self, at_order *order)
{
    worker *w = self;
    assert(w->order_seen % 2 == 0); /* only complete orders are taken */
    for (;;) {
        uint64_t before = atomic_load_explicit(&w->slot->order_lock, memory_order_acquire);
        if (before == w->order_seen) return false;
        if (before % 2 == 0) {
            *order = w->slot->order;
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(&w->slot->order_lock, memory_order_relaxed) == before) {
                w->order_seen = before;
                return true;
            }
        }
        sched_yield();
    }
}

static uint64_t newest(void *self)
{
    worker *w = self;
    assert(w->map->head);
    return atomic_load_explicit(&w->map->head->version, memory_order_relaxed);
}

/* Copies the newest parameters. The hub writes them for microseconds at a time; if it does so while
 * we read, we read again. Without a place for a copy only their version is noted: sparse tasks read
 * parameters where they are, and so do all where a step waits for every worker, because then the
 * hub never writes while somebody computes. */
static uint64_t copy_params(const worker *w, float *to)
{
    const at_local_head *head = w->map->head;
    assert(head);
    for (;;) {
        uint64_t before = atomic_load_explicit(&head->params_lock, memory_order_acquire);
        if (before % 2 == 0) {
            uint64_t version = atomic_load_explicit(&head->version, memory_order_relaxed);
            if (to) memcpy(to, w->map->params, w->map->params_count * sizeof(float));
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(&head->params_lock, memory_order_relaxed) == before)
                return version;
        }
        sched_yield();
    }
}

static uint64_t fetch(void *self)
{
    worker *w = self;
    assert(!w->aside || w->params);
    return copy_params(w, w->aside ? w->aside : w->params);
}

static const float *install(void *self)
{
    worker *w = self;
    assert(!w->aside || w->params);
    if (w->aside) {
        float *before = w->params;
        w->params = w->aside;
        w->aside = before;
    }
    const float *shared = w->map->own ? w->map->own + (w->id - 1) * w->map->stride : w->map->params;
    return w->params ? w->params : shared;
}

/* ---- reports ------------------------------------------------------------------------------- */

static float *gradient(void *self, uint32_t slot)
{
    worker *w = self;
    assert(slot < AT_LOCAL_GRADIENTS);
    return at_local_gradient(w->map, w->id, slot);
}

/* At most one report outstanding: the one before must have been read, which also means that its
 * gradient slot is free again. A worker that leaves does not wait for that. */
static bool send_report(void *self, const at_report *report)
{
    worker  *w = self;
    uint64_t sent = atomic_load_explicit(&w->slot->sent, memory_order_relaxed);
    assert(report->sequence > 0);
    if (atomic_load(&w->slot->taken) < sent && !atomic_load(&w->slot->leave)) return false;
    w->slot->report[sent % AT_LOCAL_GRADIENTS] = *report;
    atomic_store(&w->slot->sent, sent + 1);
    at_bell_ring(&w->map->head->hub_bell);
    return true;
}

/* ---- life ---------------------------------------------------------------------------------- */

static at_err new_vector(const at_local_map *map, float **vector, at_fail *fail)
{
    assert(map->stride > 0);
    *vector = aligned_alloc(64, map->stride * sizeof(float));
    return *vector ? AT_OK : at_fail_memory(fail);
}

static at_err open_worker(worker *w, const at_local_worker_start *start, at_fail *fail)
{
    const at_world_context *context = start->context;
    const at_plan          *plan = context->plan;
    assert(start->id <= plan->workers_max);
    *w = (worker){.map = start->map,
                  .slot = &start->map->slot[start->id - 1],
                  .id = start->id,
                  .spin_ns = start->spin_ns,
                  .pool = start->pool};
    bool in_place = context->task->sparse || at_plan_reads_in_place(plan);
    if (!in_place) AT_TRY(new_vector(start->map, &w->params, fail));
    if (!in_place && context->comm_delay > 0) AT_TRY(new_vector(start->map, &w->aside, fail));
    AT_TRY(at_local_steps_new(context, &w->local, fail));
    AT_TRY(context->task->open(context->task->self, start->id, fail));
    snprintf(w->slot->engine, sizeof w->slot->engine, "%s",
             context->task->engine(context->task->self));
    return AT_OK;
}

int at_local_worker_main(void *self, at_fail *fail)
{
    const at_local_worker_start *start = self;
    const at_world_context      *context = start->context;
    worker                       w;
    assert(start->id >= 1);
    at_placement_bind(context->bind, start->id - 1); /* first, so that its memory is near */
    if (open_worker(&w, start, fail)) return (int)fail->err;
    /* Behind a barrier the hub has read a gradient before the next one is begun. */
    uint32_t          slots = at_plan_has_one_slot(context->plan) ? 1 : AT_LOCAL_GRADIENTS;
    at_driver_options options = {.context = context,
                                 .transport = {.self = &w,
                                               .heard = heard,
                                               .wait = wait,
                                               .leaves = leaves,
                                               .take_order = take_order,
                                               .newest = newest,
                                               .fetch = fetch,
                                               .install = install,
                                               .gradient = gradient,
                                               .send = send_report},
                                 .id = start->id,
                                 .incarnation = start->incarnation,
                                 .slots = slots,
                                 .sequence = start->sequence,
                                 .local = w.local,
                                 .drawn = &w.slot->drawn,
                                 .redrawn = start->redrawn};
    if (context->task->sparse) options.params_lock = &start->map->head->params_lock;
    if (start->core >= 0) at_machine_pin(start->core);
    at_driver driver;
    at_driver_init(&driver, &options);
    at_driver_run(&driver, context->learning->updates_in_place ? start->map->params : NULL);
    at_local_steps_free(w.local);
    free(w.params);
    free(w.aside);
    return 0;
}

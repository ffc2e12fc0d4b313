/* The worker process of the local world: it runs worker.c, computes, and waits at the cast bell. */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pace/message.h"
#include "step/worker.h"
#include "world/compute.h"
#include "world/local.h"

typedef struct worker {
    const at_local_map *map;
    at_local_slot      *slot;
    at_worker           machine;
    at_computer         computer;
    float              *params;  /* installed copy; NULL: none is made, see copy_params */
    uint64_t            version; /* of the copy */
    float              *coming;  /* a newer copy that a slow network has not brought yet */
    uint64_t            coming_version;
    at_ns               coming_due; /* AT_NEVER: none is on its way */
    double              delay_sigma;
    uint64_t            seed, messages;
    uint64_t            order_seen; /* order_lock value of the newest order we took */
    bool                leave_seen;
    bool                abandon; /* the running computation is void */
    bool                done;
    bool                follows; /* the last action led to an event: */
    at_event            next;
    at_ns               spin_ns;
    at_ns               idle_since;
    at_ns               send_ns, install_ns;
} worker;

static void deliver(worker *w, const at_event *event);

/* ---- shared words ------------------------------------------------------------------------- */

/* Copies the newest parameters. The hub writes them for microseconds at a time; if it does so while
 * we read, we read again. Without a place for a copy only their version is noted: sparse tasks read
 * parameters where they are, and so do all where a step waits for every worker, because then the
 * hub never writes while somebody computes. */
static uint64_t copy_params(const worker *w, float *to)
{
    const at_local_head *head = w->map->head;
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

static at_ns draw_delay(worker *w)
{
    return at_message_delay(w->delay_sigma, w->seed, w->machine.id, 2 * w->messages++ + 1);
}

/* With a slow network the parameters of a worker that starts by itself are a message of their own:
 * the copy is made when they are there to be had, and may be used when its time has come. One is
 * under way at a time. Other workers get them with their orders, which are late instead. */
static uint64_t newest_brought(worker *w)
{
    uint64_t newest = atomic_load_explicit(&w->map->head->version, memory_order_relaxed);
    bool     apart = w->machine.plan->release->self_starting && w->version != AT_VERSION_NONE;
    if (w->delay_sigma == 0 || !apart) return newest;
    if (w->coming_due == AT_NEVER && newest != w->version) {
        w->coming_version = copy_params(w, w->coming);
        w->coming_due = at_clock_now() + draw_delay(w);
    }
    return w->coming_due <= at_clock_now() ? w->coming_version : w->version;
}

/* Takes the newest parameters that are here, unless they are the ones we have. */
static void install(worker *w)
{
    w->install_ns = 0;
    if (newest_brought(w) == w->version) return;
    at_ns begin = at_clock_now();
    if (w->coming_due != AT_NEVER) {
        float *swap = w->params;
        w->params = w->coming;
        w->coming = swap;
        w->version = w->coming_version;
        w->coming_due = AT_NEVER;
    } else {
        w->version = copy_params(w, w->params);
    }
    w->install_ns = at_clock_now() - begin;
}

static bool new_order(worker *w, at_order *order)
{
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

/* An order that a slow network has not brought yet. */
static void await_delay(const worker *w, at_ns until)
{
    at_bell *bell = &w->map->head->cast_bell;
    while (at_clock_now() < until) {
        uint32_t heard = at_bell_heard(bell);
        if (atomic_load(&w->slot->leave)) return;
        at_bell_wait(bell, heard, 1, at_bell_mask(w->machine.id), until, 0);
    }
}

static bool news_of_orders(worker *w)
{
    at_event event = {.kind = AT_EV_MESSAGE, .now = at_clock_now()};
    if (!w->leave_seen && atomic_load(&w->slot->leave)) {
        w->leave_seen = true;
        event.as.order.leave = true;
        deliver(w, &event);
        return true;
    }
    if (!new_order(w, &event.as.order)) return false;
    if (w->delay_sigma > 0) {
        await_delay(w, event.now + draw_delay(w));
        event.now = at_clock_now();
    }
    deliver(w, &event);
    return true;
}

/* ---- the ground under a computation ------------------------------------------------------- */

static bool interrupted(void *self)
{
    worker *w = self;
    if (atomic_load_explicit(&w->slot->leave, memory_order_relaxed)) news_of_orders(w);
    if (w->machine.plan->newer->choice == AT_NEWER_FINISH) return w->abandon;
    uint64_t newest = newest_brought(w);
    if (newest != w->version) {
        at_event event = {.kind = AT_EV_NEWER, .now = at_clock_now(), .as.newer.version = newest};
        deliver(w, &event);
    }
    return w->abandon;
}

static void sleep_on_ground(void *self, at_ns until)
{
    worker  *w = self;
    uint32_t heard = at_bell_heard(&w->map->head->cast_bell);
    if (atomic_load(&w->slot->leave)) return;
    at_bell_wait(&w->map->head->cast_bell, heard, 1, at_bell_mask(w->machine.id), until, 0);
}

static const float *installed(void *self, uint64_t *version)
{
    worker *w = self;
    *version = w->version;
    return w->params ? w->params : w->map->params;
}

/* ---- actions --------------------------------------------------------------------------------- */

static void compute(worker *w, const at_action *action)
{
    at_ns begin = at_clock_now();
    w->abandon = false;
    float   *gradient = at_local_gradient(w->map, w->machine.id, at_worker_slot(&w->machine));
    at_event event = {.kind = AT_EV_COMPUTED};
    at_ns    idle = begin - w->idle_since, install_ns = w->install_ns;
    event.as.work = at_compute_round(&w->computer, &action->as.compute.order,
                                     action->as.compute.deadline, gradient);
    event.as.work.idle_ns = idle;
    event.as.work.install_ns = install_ns;
    event.as.work.send_ns = w->send_ns;
    event.now = at_clock_now();
    w->next = event;
    w->follows = true;
}

/* At most one report outstanding: the one before must have been read, which also means that its
 * gradient slot is ours again. */
static void await_taken(worker *w, uint64_t sent)
{
    at_bell *bell = &w->map->head->cast_bell;
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        if (atomic_load(&w->slot->taken) >= sent || atomic_load(&w->slot->leave)) return;
        at_bell_wait(bell, heard, 1, at_bell_mask(w->machine.id), AT_NEVER, w->spin_ns);
    }
}

static void send_report(worker *w, const at_report *report)
{
    at_ns    begin = at_clock_now();
    uint64_t sent = atomic_load_explicit(&w->slot->sent, memory_order_relaxed);
    await_taken(w, sent);
    w->slot->report[sent % AT_LOCAL_GRADIENTS] = *report;
    atomic_store(&w->slot->sent, sent + 1);
    at_bell_ring(&w->map->head->hub_bell);
    w->idle_since = at_clock_now();
    w->send_ns = w->idle_since - begin;
    w->next = (at_event){.kind = AT_EV_SENT, .now = w->idle_since};
    w->follows = true;
}

static void perform(worker *w, const at_action *action)
{
    switch (action->kind) {
    case AT_ACT_INSTALL: install(w); break;
    case AT_ACT_COMPUTE: compute(w, action); break;
    case AT_ACT_ABANDON: w->abandon = true; break;
    case AT_ACT_SEND: send_report(w, &action->as.report); break;
    case AT_ACT_FINISH: w->done = true; break;
    case AT_ACT_TIMER:
    case AT_ACT_ADD:
    case AT_ACT_APPLY:
    case AT_ACT_DROP:
    case AT_ACT_EVALUATE:
    case AT_ACT_SAVE:
    case AT_ACT_EVICT:
    case AT_ACT_NOTICE: assert(!"an action of the hub"); break;
    }
}

/* An event leads to actions, the last of which may lead to the next event, and so on until the
 * worker waits. Also called from inside a computation, for news that may end it. */
static void deliver(worker *w, const at_event *event)
{
    at_event now = *event;
    do {
        at_action actions[4];
        at_out    out = {.actions = actions, .size = 4};
        at_worker_step(&w->machine, &now, &out);
        w->follows = false;
        for (size_t i = 0; i < out.count; i++) perform(w, &actions[i]);
        now = w->next;
    } while (w->follows);
}

static at_err open_worker(worker *w, const at_local_worker_start *start, at_fail *fail)
{
    const at_scene *scene = start->scene;
    *w = (worker){.map = start->map,
                  .slot = &start->map->slot[start->id - 1],
                  .spin_ns = start->spin_ns,
                  .version = AT_VERSION_NONE,
                  .coming_due = AT_NEVER,
                  .delay_sigma = scene->comm_delay,
                  .seed = scene->seed};
    /* Behind a barrier the hub has read a gradient before the next one is begun. */
    uint32_t slots = scene->plan->release->holds ? 1 : AT_LOCAL_GRADIENTS;
    at_worker_init(&w->machine, scene->plan, start->id, start->incarnation, slots,
                   start->sequence);
    w->computer = (at_computer){.plan = scene->plan,
                                .task = scene->task,
                                .pace = scene->pace,
                                .id = start->id,
                                .sample_time = scene->sample_time,
                                .ground = {w, interrupted, sleep_on_ground, installed},
                                .drawn = &w->slot->drawn};
    if (scene->task->sparse) {
        w->computer.params_lock = &start->map->head->params_lock;
        if (scene->learning->hogwild) w->computer.shared = start->map->params;
    } else if (!scene->plan->release->holds || !scene->plan->gather->waits_for_all) {
        w->params = aligned_alloc(64, start->map->stride * sizeof(float));
        w->coming = aligned_alloc(64, start->map->stride * sizeof(float));
        if (!w->params || !w->coming)
            return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    }
    AT_TRY(scene->task->open(scene->task->self, start->id, fail));
    snprintf(w->slot->engine, sizeof w->slot->engine, "%s", scene->task->engine(scene->task->self));
    return AT_OK;
}

int at_local_worker_main(void *self)
{
    worker  w;
    at_fail fail = {0};
    if (open_worker(&w, self, &fail)) return fail.err;
    at_bell *bell = &w.map->head->cast_bell;
    w.idle_since = at_clock_now();
    while (!w.done) {
        uint32_t heard = at_bell_heard(bell);
        if (!news_of_orders(&w))
            at_bell_wait(bell, heard, 1, at_bell_mask(w.machine.id), AT_NEVER, w.spin_ns);
    }
    free(w.params);
    free(w.coming);
    return 0;
}

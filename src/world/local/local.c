/* The local world, hub side: one process per worker, shared memory, one bell to wait at.
 *
 *     hub: read reports ─► reap children ─► signals ─► evaluations, timers ─► sleep
 *
 * The hub sleeps until it has the reports it needs, a child ends, a signal arrives or a timer
 * expires. It has no threads and loads no engine, so it can fork a replacement at any time.
 */
#include "world/local/local.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/machine.h"
#include "base/text.h"
#include "pace/pace.h"
#include "world/core/host.h"
#include "world/local/local_update_pool.h"
#include "world/process/child.h"
#include "world/process/signals.h"
#include "world/process/supervisor.h"

/* In a row without a report, until the run goes on without the worker. It is tried again later:
 * something outside may have killed it, or memory was short. */
enum { DEATHS_MAX = 5 };
static const at_ns SPIN = AT_US(50);

typedef struct process {
    at_ns                 restart_at; /* when to start a replacement; AT_NEVER: none is wanted */
    bool                  given_up;   /* the hub does not expect it, but it may join again */
    bool                  evicted;
    bool                  failed;     /* its last process said why it could not start */
    at_ns                 report_due; /* arrival of its report with --comm-delay; AT_NEVER: none */
    uint64_t              messages;
    at_local_worker_start start;
} process;

typedef struct local {
    const at_world_context *context;
    at_local_map            map;
    at_host                 host;
    at_updater              updater;
    at_evaluator           *evaluator;
    at_gossip               gossip;     /* used where workers have their own parameters */
    at_local_update_pool   *pool;       /* NULL: the hub updates alone */
    at_supervisor          *supervisor; /* its child i is worker i+1 */
    process                *process;    /* plan->workers_max */
    uint32_t                cast_mask;  /* workers to wake */
    at_ns                   spin_ns;
    int                     core;       /* shared by hub and worker; -1: not shared */
    bool                    sums_early; /* gradients are added up while others still compute */
    bool                    stopping;
    bool                    refused;      /* the last fork failed, and the user knows */
    bool                    reported;     /* some worker has */
    at_ns                   restart_next; /* the earliest of the workers' restart_at */
    at_fail                 heard;        /* why the last worker that said it could not start */
    bool                    heard_said;   /* .. and the user knows */
    at_fail                 failure;      /* why none of them can start; AT_OK: some can */
} local;

/* ---- shared memory --------------------------------------------------------------------------- */

enum { LINE_FLOATS = 16 }; /* floats in a cache line */

static size_t whole_lines(size_t floats)
{
    assert(floats <= SIZE_MAX - LINE_FLOATS);
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

/* Pages are allocated when first written. */
static at_err open_map(at_local_map *map, uint32_t workers, size_t params, size_t slot_floats,
                       bool owned, at_fail *fail)
{
    assert(workers >= 1);
    assert(params >= 1 && slot_floats >= 1);
    size_t stride = whole_lines(params), slot_stride = whole_lines(slot_floats);
    size_t floats, own, bytes, head = sizeof(at_local_head) + workers * sizeof(at_local_slot);
    if (!at_size_product(slot_stride, (size_t)workers * AT_LOCAL_GRADIENTS, &floats) ||
        !at_size_product(stride, owned ? workers + 1u : 1, &own) || floats > SIZE_MAX - own ||
        !at_size_product(floats + own, sizeof(float), &bytes) || bytes > SIZE_MAX / 2)
        return at_fail_set(fail, AT_ERR_FAILED, "use fewer workers or a smaller model",
                           "%u workers with %zu parameters do not fit into memory", workers,
                           params);
    char *memory = at_child_share(head + bytes, fail);
    if (!memory) return fail->err;
    float *vector = (float *)(void *)(memory + head);
    *map = (at_local_map){.head = (at_local_head *)(void *)memory,
                          .slot = (at_local_slot *)(void *)(memory + sizeof(at_local_head)),
                          .params = vector,
                          .gradient = vector + stride,
                          .own = owned ? vector + stride + floats : NULL,
                          .params_count = params,
                          .stride = stride,
                          .slot_stride = slot_stride,
                          .size = head + bytes};
    return AT_OK;
}

float *at_local_gradient(const at_local_map *map, at_node worker, uint32_t slot)
{
    assert(worker >= 1);
    assert(slot < AT_LOCAL_GRADIENTS);
    size_t index = (size_t)(worker - 1) * AT_LOCAL_GRADIENTS + slot;
    return map->gradient + index * map->slot_stride;
}

/* ---- operations for the host ----------------------------------------------------------------- */

static void send_order(void *self, at_node worker, const at_order *order)
{
    local         *l = self;
    at_local_slot *slot = &l->map.slot[worker - 1];
    assert(worker >= 1 && worker <= l->context->plan->workers_max);
    if (order->leave) {
        atomic_store(&slot->leave, true);
    } else {
        at_local_write_begin(&slot->order_lock);
        slot->order = *order;
        at_local_write_end(&slot->order_lock);
    }
    l->cast_mask |= at_bell_mask(worker);
}

static void flush(void *self)
{
    local *l = self;
    assert(l->map.head);
    if (l->cast_mask) at_bell_ring_loud(&l->map.head->cast_bell, l->cast_mask);
    l->cast_mask = 0;
}

static pid_t pid_of_worker(const local *l, at_node worker)
{
    assert(worker >= 1);
    return at_supervisor_pid(l->supervisor, worker - 1);
}

static void evict(void *self, at_node worker)
{
    local   *l = self;
    process *p = &l->process[worker - 1];
    assert(worker >= 1 && worker <= l->context->plan->workers_max);
    if (pid_of_worker(l, worker) == 0) return; /* it has just died; its LOST event follows */
    p->evicted = true;
    at_supervisor_kill(l->supervisor, worker - 1);
}

static void change(void *self)
{
    local *l = self;
    assert(l->map.head);
    at_local_write_begin(&l->map.head->params_lock);
}

/* Workers that end their round for newer parameters may be asleep: in an induced delay, or padding.
 * They are woken by the next flush. */
static void publish(void *self, uint64_t version)
{
    local        *l = self;
    const at_hub *hub = l->host.hub;
    assert(version > 0);
    atomic_store(&l->map.head->version, version);
    at_local_write_end(&l->map.head->params_lock);
    for (uint32_t i = 0; at_plan_interrupts(hub->plan) && i < hub->plan->workers_max; i++)
        if (hub->member[i].state == AT_MEMBER_WORKING) l->cast_mask |= at_bell_mask(i + 1);
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    local *l = self;
    assert(l->map.gradient);
    return at_local_gradient(&l->map, worker, slot);
}

static pid_t pid_of(void *self, at_node worker, uint32_t *incarnation)
{
    local *l = self;
    assert(worker >= 1 && worker <= l->context->plan->workers_max);
    *incarnation = l->process[worker - 1].start.incarnation;
    return pid_of_worker(l, worker);
}

/* ---- workers --------------------------------------------------------------------------------- */

static at_err start_worker(local *l, at_node id, at_fail *fail)
{
    process       *p = &l->process[id - 1];
    at_local_slot *slot = &l->map.slot[id - 1];
    assert(pid_of_worker(l, id) == 0);
    /* Only `drawn` is kept: the replacement continues the sample sequence of the lost worker, or
     * repeats the samples of a round that is done again. */
    atomic_store(&slot->sent, 0);
    atomic_store(&slot->taken, 0);
    atomic_store(&slot->order_lock, 0);
    p->evicted = false;
    p->given_up = false;
    p->restart_at = AT_NEVER;
    p->report_due = AT_NEVER;
    p->start = (at_local_worker_start){.context = l->context,
                                       .map = &l->map,
                                       .id = id,
                                       .incarnation = p->start.incarnation + 1,
                                       .sequence = l->host.hub->member[id - 1].sequence,
                                       .redrawn = l->host.hub->member[id - 1].redrawn,
                                       .spin_ns = l->spin_ns,
                                       .core = l->core,
                                       .pool = at_local_update_pool_of_workers(l->pool)};
    at_err err = at_supervisor_start(l->supervisor, id - 1, at_local_worker_main, &p->start, fail);
    if (err) {
        p->start.incarnation--; /* there was no such process */
        return err;
    }
    l->refused = false;
    pid_t pid = pid_of_worker(l, id);
    at_host_process(&l->host, id, pid);
    at_event event = {.kind = AT_EV_JOINED, .worker = id, .now = at_host_now(&l->host)};
    event.as.joined.incarnation = p->start.incarnation;
    at_host_event(&l->host, &event, &(at_about){.pid = pid});
    return AT_OK;
}

static void deliver(local *l, at_node id, const at_report *report)
{
    at_event event = {.kind = AT_EV_MESSAGE, .worker = id, .now = at_host_now(&l->host)};
    assert(report);
    event.as.report = *report;
    l->reported = true;
    l->process[id - 1].failed = false;
    at_supervisor_well(l->supervisor, id - 1);
    at_host_count_shared(&l->host, id, &report->work);
    if (!l->host.finished) at_host_event(&l->host, &event, NULL);
}

/* With --comm-delay: has this worker's report arrived by now? A worker has at most one report in
 * transit and computes its next gradient elsewhere, so the report can stay where it is. */
static bool has_arrived(local *l, at_node id)
{
    process *p = &l->process[id - 1];
    double   sigma = l->context->comm_delay;
    assert(sigma >= 0);
    if (sigma == 0 || l->host.hub->end != AT_END_RUNNING) return true;
    if (p->report_due == AT_NEVER)
        p->report_due =
            at_host_now(&l->host) + at_comm_delay(sigma, l->context->seed, id, 2 * p->messages++);
    if (at_host_now(&l->host) < p->report_due) return false;
    p->report_due = AT_NEVER;
    return true;
}

/* `taken` tells the worker that it may overwrite the gradient. A gradient that the hub holds until
 * the step is safe until the worker's next order, so its report is marked as taken at once. One
 * that is added on arrival is marked after that, and the worker, which may be waiting, is woken. */
static void read_reports(local *l, at_node id, bool dead)
{
    at_local_slot *slot = &l->map.slot[id - 1];
    uint64_t       taken = atomic_load_explicit(&slot->taken, memory_order_relaxed);
    bool           holds = at_plan_sums_in_order(l->host.hub->plan);
    assert(id >= 1 && id <= l->context->plan->workers_max);
    while (taken < atomic_load(&slot->sent)) {
        const at_report *report = &slot->report[taken % AT_LOCAL_GRADIENTS];
        if (!dead && !has_arrived(l, id)) return;
        taken++;
        if (holds) atomic_store(&slot->taken, taken);
        deliver(l, id, report);
        if (holds) continue;
        atomic_store(&slot->taken, taken);
        l->cast_mask |= at_bell_mask(id);
        flush(l);
    }
}

/* ---- deaths and replacements ---------------------------------------------------------------- */

/* Tells the user why a worker could not start: once, however many workers fail for that reason. */
static void say_why(local *l)
{
    char text[sizeof l->heard.text + sizeof l->heard.hint + 40];
    assert(l->heard.err == AT_OK || l->heard.text[0]);
    if (!l->heard.err || l->heard_said) return;
    l->heard_said = true;
    snprintf(text, sizeof text, "a worker could not start: %s%s%s%s", l->heard.text,
             l->heard.hint[0] ? " (" : "", l->heard.hint, l->heard.hint[0] ? ")" : "");
    at_host_say(&l->host, at_host_now(&l->host), text);
}

static void hear_why(local *l, process *p, const at_fail *fail)
{
    assert(fail->err != AT_OK);
    p->failed = true;
    if (strcmp(l->heard.text, fail->text) == 0) return;
    say_why(l); /* of another worker, if that is still to be said */
    l->heard = *fail;
    l->heard_said = false;
}

/* True when every worker has said that it cannot start: trying again will not help. */
static bool nobody_can_start(const local *l)
{
    assert(l->process);
    for (uint32_t i = 0; i < l->context->plan->workers_max; i++)
        if (!l->process[i].failed) return false;
    return !l->reported;
}

static at_ns ready_at(const local *l, at_node id)
{
    assert(id >= 1);
    return at_supervisor_ready_at(l->supervisor, id - 1) - l->host.stopped;
}

static void tell_lost(local *l, at_node id, bool returns, const char *text)
{
    at_event event = {.kind = AT_EV_LOST, .worker = id, .now = at_host_now(&l->host)};
    process *p = &l->process[id - 1];
    assert(pid_of_worker(l, id) == 0);
    event.as.lost.drawn = atomic_load(&l->map.slot[id - 1].drawn);
    event.as.lost.returns = returns;
    p->restart_at = returns ? ready_at(l, id) : AT_NEVER;
    if (p->restart_at < l->restart_next) l->restart_next = p->restart_at;
    at_host_event(&l->host, &event, &(at_about){.text = text});
}

/* The hub no longer expects this worker. If the run goes on, it may join again later. */
static void give_up(local *l, at_node id, const char *text)
{
    process *p = &l->process[id - 1];
    tell_lost(l, id, false, text);
    if (l->host.finished || l->host.hub->end != AT_END_RUNNING || nobody_can_start(l)) return;
    p->given_up = true;
    p->restart_at = at_supervisor_retry_at(l->supervisor, id - 1, DEATHS_MAX) - l->host.stopped;
    if (p->restart_at < l->restart_next) l->restart_next = p->restart_at;
}

/* Gives up all workers that still wait for a replacement; the run ends with the reason. */
static void fail_start(local *l)
{
    assert(nobody_can_start(l));
    l->failure = l->heard;
    for (uint32_t i = 0; i < l->context->plan->workers_max && !l->host.finished; i++)
        if (l->process[i].restart_at != AT_NEVER) tell_lost(l, i + 1, false, "could not start");
}

static void say_given_up(local *l, at_node id)
{
    char say[128], pause[32];
    if (at_supervisor_failures(l->supervisor, id - 1) > DEATHS_MAX) return; /* said before */
    at_ns wait = l->process[id - 1].restart_at - at_host_now(&l->host);
    snprintf(say, sizeof say,
             "worker %u died %d times in a row: the run continues without it and tries again in %s",
             id, DEATHS_MAX, at_text_show_duration(pause, sizeof pause, wait));
    at_host_say(&l->host, at_host_now(&l->host), say);
}

static void lost(local *l, const at_death *death)
{
    at_node  id = death->child + 1;
    process *p = &l->process[id - 1];
    char     how[64];
    assert(id <= l->context->plan->workers_max);
    if (death->fail.err) hear_why(l, p, &death->fail);
    bool        running = l->host.hub->end == AT_END_RUNNING;
    bool        tries = at_supervisor_failures(l->supervisor, id - 1) < DEATHS_MAX;
    bool        returns = running && l->context->respawn && tries && !nobody_can_start(l);
    const char *text = p->evicted        ? at_hub_evicted_text(l->host.hub, id)
                       : death->fail.err ? "could not start"
                                         : at_child_status(death->status, how, sizeof how);
    if (running && l->context->respawn && !tries)
        give_up(l, id, text);
    else
        tell_lost(l, id, returns, text);
    if (running && nobody_can_start(l)) fail_start(l);
    if (p->restart_at != AT_NEVER && p->given_up) say_given_up(l, id);
}

static void start_replacement(local *l, at_node id)
{
    at_fail fail = {0};
    assert(l->process[id - 1].restart_at != AT_NEVER);
    say_why(l);
    l->process[id - 1].restart_at = AT_NEVER;
    if (!l->host.hub->member[id - 1].expected && !l->process[id - 1].given_up)
        return; /* its time to join is over */
    if (!start_worker(l, id, &fail)) return;
    if (at_supervisor_failures(l->supervisor, id - 1) >= DEATHS_MAX) {
        char why[sizeof fail.text + 80];
        snprintf(why, sizeof why, "is not replaced: %s", fail.text);
        give_up(l, id, why);
        return;
    }
    l->process[id - 1].restart_at = ready_at(l, id);
    if (l->refused) return;
    l->refused = true;
    char text[sizeof fail.text + 80];
    snprintf(text, sizeof text, "worker %u is not replaced yet: %s", id, fail.text);
    at_host_say(&l->host, at_host_now(&l->host), text);
}

static void start_replacements(local *l, at_ns now)
{
    assert(l->process);
    if (now < l->restart_next) return;
    l->restart_next = AT_NEVER;
    for (uint32_t i = 0; i < l->context->plan->workers_max; i++) {
        process *p = &l->process[i];
        bool     running = l->host.hub->end == AT_END_RUNNING;
        if (running && p->restart_at <= now) start_replacement(l, i + 1);
        if (p->restart_at < l->restart_next) l->restart_next = p->restart_at;
    }
    if (l->host.hub->end != AT_END_RUNNING) l->restart_next = AT_NEVER;
}

/* The kernel's totals of an ended process; samples of a running one lag behind. */
static void record_final_usage(local *l, const at_death *death)
{
    at_usage usage;
    assert(death->pid > 0);
    at_usage_ended(death->pid, &death->rusage, &usage);
    at_host_process(&l->host, death->child + 1, 0);
    at_host_usage(&l->host, death->child + 1, &usage, at_host_now(&l->host));
}

static void reap(local *l)
{
    at_death death;
    assert(l->supervisor);
    while (!l->host.finished && at_supervisor_reap(l->supervisor, &death)) {
        record_final_usage(l, &death);
        read_reports(l, death.child + 1, true); /* those that it finished before it died count */
        lost(l, &death);
    }
    at_host_reap(&l->host, at_host_now(&l->host));
    for (uint32_t hub; (hub = at_local_update_pool_reap(l->pool)) > 0;) {
        char say[96];
        snprintf(say, sizeof say, "hub %u died: the other hubs take over its slice", hub);
        at_host_say(&l->host, at_host_now(&l->host), say);
    }
}

/* ---- loop ------------------------------------------------------------------------------------ */

static at_ns next_arrival(const local *l)
{
    at_ns next = AT_NEVER;
    assert(l->process);
    for (uint32_t i = 0; l->context->comm_delay > 0 && i < l->context->plan->workers_max; i++)
        if (pid_of_worker(l, i + 1) > 0 && l->process[i].report_due < next)
            next = l->process[i].report_due;
    return next;
}

static at_ns next_due(const local *l)
{
    at_ns due = at_host_due(&l->host), arrival = next_arrival(l);
    assert(!l->host.finished);
    if (arrival < due) due = arrival;
    return l->restart_next < due ? l->restart_next : due;
}

/* To be called before deaths are processed: a signal to the whole group may end workers, too, and
 * no worker is replaced once a stop was requested. */
static void stop(local *l)
{
    at_event event = {.kind = AT_EV_STOP, .now = at_host_now(&l->host)};
    assert(!l->stopping);
    l->stopping = true;
    if (!l->host.finished) at_host_event(&l->host, &event, NULL);
}

/* The lowest id that no worker has and none is going to take; 0: there is none. */
static at_node vacant_id(const local *l)
{
    assert(l->process);
    for (at_node id = 1; id <= l->context->plan->workers_max; id++) {
        const at_member *member = &l->host.hub->member[id - 1];
        bool             away = member->state == AT_MEMBER_AWAY && !member->expected;
        if (away && pid_of_worker(l, id) == 0) return id;
    }
    return 0;
}

/* SIGUSR2 asks for another worker, up to --workers-max. */
static void admit_workers(local *l)
{
    assert(!l->host.finished);
    for (unsigned wanted = at_signals_joins(); wanted > 0; wanted--) {
        at_node id = vacant_id(l);
        at_fail fail = {0};
        char    text[sizeof fail.text + 80];
        if (l->host.hub->end != AT_END_RUNNING) return;
        if (id > 0 && !start_worker(l, id, &fail)) continue;
        snprintf(text, sizeof text, "no worker can join: %s",
                 id > 0 ? fail.text : "all --workers-max are there");
        at_host_say(&l->host, at_host_now(&l->host), text);
    }
}

/* Sums of large vectors begin before the last gradient is there, in worker order: as far as the
 * first workers have reported. Two gradients are summed by the update itself. */
static bool sums_early(const at_world_context *context)
{
    enum { FLOATS_MIN = 1 << 18 };
    const at_task *task = context->task;
    assert(context->cores >= 1);
    return !task->sparse && task->params >= FLOATS_MIN && context->plan->workers_max > 2 &&
           context->cores > 1 && !context->plan->mix->owned_by_workers;
}

static void sum_early(local *l)
{
    const at_hub *hub = l->host.hub;
    uint32_t      count = 0;
    assert(!hub->applying);
    if (!l->sums_early || !at_plan_sums_in_order(hub->plan)) return;
    while (count < hub->plan->workers_max && hub->member[count].pieces_held > 0) count++;
    at_updater_sum_early(&l->updater, hub->piece, count, &(at_gradients){l, gradient_at});
}

/* How many reports the hub sleeps for. To sum early it wakes as soon as fewer workers compute than
 * there are cores. */
static uint32_t wake_after(const local *l, at_ns now)
{
    uint32_t rings = at_hub_wake_after(l->host.hub, now), spare = l->context->cores - 1;
    assert(rings >= 1);
    if (l->context->comm_delay > 0) return 1;
    if (!l->sums_early) return rings;
    return rings > spare ? rings - spare : 1;
}

static void loop(local *l)
{
    at_bell *bell = &l->map.head->hub_bell;
    assert(l->host.hub->present > 0 || l->host.finished);
    while (!l->host.finished) {
        uint32_t heard = at_bell_heard(bell);
        for (uint32_t i = 1; i <= l->context->plan->workers_max; i++) read_reports(l, i, false);
        if (at_signals_stop() && !l->stopping) stop(l);
        if (at_signals_child()) reap(l);
        at_ns now = at_host_now(&l->host);
        if (!l->host.finished) start_replacements(l, now);
        if (!l->host.finished) admit_workers(l);
        now = at_host_now(&l->host); /* starting workers takes a moment, and they joined in it */
        if (!l->host.finished) at_host_poll(&l->host, now);
        flush(l);
        if (l->host.finished) break;
        sum_early(l);
        at_host_wait(&l->host, bell, heard, wake_after(l, now), next_due(l), l->spin_ns);
    }
}

/* ---- start and end --------------------------------------------------------------------------- */

static at_err open_updater(local *l, at_fail *fail)
{
    const at_world_context *context = l->context;
    size_t                  params = context->task->params;
    uint32_t                pieces_max = l->host.hub->pieces_max;
    assert(l->map.params && !l->pool);
    if (!at_local_update_pool_wanted(context))
        return at_updater_init(&l->updater, context->learning, l->map.params, params, pieces_max,
                               fail);
    AT_TRY(at_updater_init_shared(&l->updater, context->learning, l->map.params, params, pieces_max,
                                  fail));
    at_local_update_pool_options pool = {.context = context,
                                         .map = &l->map,
                                         .updater = &l->updater,
                                         .spin_ns = l->spin_ns,
                                         .self = l,
                                         .pid_of = pid_of,
                                         .evict = evict};
    return at_local_update_pool_open(&pool, &l->pool, fail);
}

/* A hub and one worker that wait for each other never compute at the same time. On one core the
 * vectors they exchange stay in its cache; moving them between two cores takes longer than
 * computing with them. Small vectors move fast: there, waking another core is cheaper than a
 * context switch. */
static bool takes_turns(const at_world_context *context, uint32_t hubs)
{
    assert(hubs >= 1);
    enum { BYTES_MIN = 128 << 10 };
    const at_plan *plan = context->plan;
    return plan->workers_max == 1 && hubs == 1 && at_plan_reads_in_place(plan) &&
           context->bind == AT_BIND_NONE && context->task->threads == 1 && !context->task->sparse &&
           context->task->params * sizeof(float) >= BYTES_MIN;
}

static at_err prepare(local *l, at_fail *fail)
{
    const at_world_context *context = l->context;
    const at_plan          *plan = context->plan;
    assert(plan->workers_max >= plan->workers);
    AT_TRY(open_map(&l->map, plan->workers_max, context->task->params, context->task->slot_floats,
                    plan->mix->owned_by_workers, fail));
    AT_TRY(at_resume_params(context, l->map.params, fail));
    l->process = calloc(plan->workers_max, sizeof *l->process);
    if (!l->process) return at_fail_memory(fail);
    for (uint32_t i = 0; i < plan->workers_max; i++) l->process[i].restart_at = AT_NEVER;
    l->restart_next = AT_NEVER;
    AT_TRY(at_supervisor_open(plan->workers_max, &l->supervisor, fail));
    /* Spinning pays off only while every process has its own core. */
    uint32_t hubs = at_plan_hubs(context->plan) > 1 ? at_plan_hubs(context->plan) : 1;
    bool     idle_cores = plan->workers_max + hubs <= context->cores && context->sample_time == 0;
    l->core = takes_turns(context, hubs) ? at_machine_core() : -1;
    l->spin_ns = idle_cores && l->core < 0 ? SPIN : 0;
    l->sums_early = sums_early(context);
    at_world_ops ops = {.self = l,
                        .send = send_order,
                        .flush = flush,
                        .evict = evict,
                        .change = change,
                        .publish = publish,
                        .gradients = {l, gradient_at}};
    AT_TRY(at_evaluator_open(context->task, &l->map.head->hub_bell, &l->evaluator, fail));
    AT_TRY(at_host_init(&l->host, plan, context->recorder, &l->updater, l->evaluator, &ops, fail));
    AT_TRY(at_host_watch(&l->host, context->usage_every, fail));
    AT_TRY(open_updater(l, fail));
    AT_TRY(at_resume_host(context, &l->host, fail));
    if (l->map.own) {
        AT_TRY(at_gossip_init(&l->gossip, context, l->map.params, l->map.own, l->map.stride, fail));
        l->host.gossip = &l->gossip;
    }
    atomic_store(&l->map.head->version, l->host.hub->version);
    for (uint32_t i = 0; i < plan->workers_max; i++)
        atomic_store(&l->map.slot[i].drawn, at_resume_drawn(&l->host, i + 1));
    return AT_OK;
}

static at_err start_all(local *l, at_fail *fail)
{
    at_event start = {.kind = AT_EV_START, .now = at_host_now(&l->host)};
    assert(l->supervisor);
    assert(l->host.hub->present == 0);
    at_host_event(&l->host, &start, NULL);
    for (uint32_t i = 1; i <= l->context->plan->workers; i++) AT_TRY(start_worker(l, i, fail));
    return AT_OK;
}

static at_err hand_over(const local *l, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = l->host.hub;
    uint32_t      workers = l->context->plan->workers_max;
    size_t        size = l->context->task->params * sizeof(float);
    at_host_outcome(&l->host, outcome);
    outcome->params = malloc(size);
    outcome->floats = l->context->task->params;
    outcome->drawn = calloc(workers, sizeof(uint64_t));
    if (!outcome->params || !outcome->drawn) return at_fail_memory(fail);
    memcpy(outcome->params, l->map.params, size);
    for (uint32_t i = 0; i < workers; i++) {
        outcome->drawn[i] = atomic_load(&l->map.slot[i].drawn);
        /* Both counts must agree, although different processes made them. */
        assert(outcome->drawn[i] == hub->member[i].used + hub->member[i].dropped);
    }
    memcpy(outcome->engine, l->map.slot[0].engine, sizeof outcome->engine);
    return AT_OK;
}

static void end_processes(local *l)
{
    assert(l->context);
    at_supervisor_close(l->supervisor);
    l->supervisor = NULL;
    at_evaluator_close(l->evaluator);
    l->evaluator = NULL;
    at_local_update_pool_close(l->pool);
    l->pool = NULL;
}

static at_err train(local *l, at_outcome *outcome, at_fail *fail)
{
    assert(l->supervisor);
    AT_TRY(start_all(l, fail));
    if (l->core >= 0) at_machine_pin(l->core);
    loop(l);
    if (l->core >= 0) at_machine_pin(-1);
    if (l->failure.err) {
        *fail = l->failure;
        return fail->err;
    }
    at_host_final_score(&l->host);
    return hand_over(l, outcome, fail);
}

static at_err run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    local  l = {.context = context};
    at_err err = prepare(&l, fail);
    assert(context->plan->workers_max >= 1);
    if (!err) {
        at_signals_open(&l.map.head->hub_bell);
        err = train(&l, outcome, fail);
        end_processes(&l);
        at_signals_close();
    }
    end_processes(&l);
    at_updater_deinit(&l.updater);
    at_host_deinit(&l.host);
    at_gossip_deinit(&l.gossip);
    free(l.process);
    if (l.map.head) munmap(l.map.head, l.map.size);
    return err;
}

static at_err check(const at_world_context *context, at_fail *fail)
{
    uint32_t workers = context->plan->workers_max;
    assert(context->plan->workers_max >= 1);
    if (workers <= AT_BELL_RINGS_MAX) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use `anytime simulate`",
                       "%u workers are too many for one machine (at most %d)", workers,
                       AT_BELL_RINGS_MAX);
}

const at_world at_world_local = {.name = "local",
                                 .steps_locally = true,
                                 .called = "--world local",
                                 .has_messages = true,
                                 .admits_workers = true,
                                 .shares_memory = true,
                                 .binds_workers = true,
                                 .has_hub = true,
                                 .owns_params = true,
                                 .reaches_params = true,
                                 .check = check,
                                 .run = run};

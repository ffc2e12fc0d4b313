/* The world in virtual time, hub side and the loop. */
#include "world/sim/sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "model_io/checkpoint.h"
#include "pace/pace.h"
#include "world/process/signals.h"
#include "world/sim/faults.h"

void at_sim_out_of_memory(at_sim *sim)
{
    assert(sim->fail);
    sim->err =
        at_fail_set(sim->fail, AT_ERR_FAILED, "use fewer workers",
                    "not enough memory to simulate %u workers", sim->context->plan->workers_max);
}

/* ---- versions -------------------------------------------------------------------------------- */

at_sim_params *at_sim_params_use(at_sim_params *params)
{
    assert(!params || params->users < UINT32_MAX);
    if (params) params->users++;
    return params;
}

void at_sim_params_drop(at_sim_params *params)
{
    if (!params) return;
    assert(params->users > 0);
    if (--params->users > 0) return;
    if (!params->borrowed) free(params->w);
    free(params);
}

/* What workers decode from a message with the hub's parameters. */
static float *decoded_params(at_sim *sim)
{
    const at_packing *packing = &sim->packings.params;
    at_fail           fail;
    float            *w = aligned_alloc(64, (packing->floats * sizeof *w + 63) / 64 * 64);
    assert(sim->packed);
    if (!w) {
        at_sim_out_of_memory(sim);
        return NULL;
    }
    at_pack(packing, sim->packed, sim->w);
    at_err err = at_unpack(packing, w, sim->packed, packing->size, &fail);
    assert(!err);
    return w;
}

/* The hub's current parameters. While they are the newest, all readers use the hub's own vector, or
 * one copy if they are compressed. */
static at_sim_params *current_params(at_sim *sim)
{
    uint64_t version = sim->host.hub->version;
    assert(!sim->current || sim->current->version <= version);
    if (sim->current && sim->current->version == version) return sim->current;
    at_sim_params *fresh = calloc(1, sizeof *fresh);
    if (!fresh) {
        at_sim_out_of_memory(sim);
        return sim->current; /* the run ends before it is used */
    }
    fresh->version = version;
    fresh->borrowed = !sim->packed || sim->packings.params.kind == AT_COMPRESS_NONE;
    fresh->w = fresh->borrowed ? sim->w : decoded_params(sim);
    at_sim_params_drop(sim->current);
    sim->current = at_sim_params_use(fresh);
    return fresh;
}

/* The worker's own parameters under gossip. They change only while nobody computes. */
static at_sim_params *own_params(at_sim *sim, at_node worker)
{
    at_sim_params *own = calloc(1, sizeof *own);
    assert(worker >= 1);
    if (!own) {
        at_sim_out_of_memory(sim);
        return NULL;
    }
    own->version = sim->host.hub->version;
    own->borrowed = true;
    own->w = sim->vectors ? sim->vectors + (worker - 1) * sim->stride : NULL;
    return own;
}

/* Will any worker still compute with these parameters after the hub has changed its own? A worker
 * that waits for an order gets newer ones with it. Workers that compute or start by themselves need
 * them, and so do messages in transit. */
static bool is_needed(const at_sim *sim, const at_sim_params *params)
{
    uint32_t known = 1; /* sim->current */
    bool     self_starting = sim->host.hub->plan->release->self_starting;
    for (uint32_t i = 0; i < sim->context->plan->workers_max; i++) {
        const at_sim_worker *w = &sim->worker[i];
        uint32_t             uses = (w->newest == params) + (uint32_t)(w->installed == params);
        if (uses > 0 && (at_worker_in_round(&w->machine) || self_starting)) return true;
        known += uses;
    }
    assert(known <= params->users);
    return known < params->users;
}

/* The hub is about to write: keeps a copy of the old version if it is still needed. */
static void change(void *self)
{
    at_sim        *sim = self;
    at_sim_params *old = sim->current;
    const at_task *task = sim->context->task;
    assert(!old || old->users > 0);
    if (!old || task->timing_only) return;
    bool needed = is_needed(sim, old);
    if (!old->borrowed && needed) return;
    if (!old->borrowed) free(old->w);
    old->borrowed = false;
    old->w = NULL;
    if (!needed) return;
    old->w = aligned_alloc(64, (task->params * sizeof(float) + 63) / 64 * 64);
    if (old->w)
        memcpy(old->w, sim->w, task->params * sizeof(float));
    else
        at_sim_out_of_memory(sim);
}

/* ---- heap ------------------------------------------------------------------------------------ */

/* Messages arrive in the order in which they were sent, in most networks. */
static unsigned lane_of(at_sim_kind kind)
{
    assert(kind <= AT_SIM_RETURN);
    if (kind == AT_SIM_ORDER || kind == AT_SIM_PARAMS) return 0;
    return kind == AT_SIM_REPORT ? 1 : AT_HEAP_NO_LANE;
}

at_heap_entry *at_sim_at(at_sim *sim, at_ns at, at_sim_kind kind, at_node worker)
{
    at_sim_worker *w = &sim->worker[worker - 1];
    at_heap_entry *entry = at_pool_take(&sim->entries);
    at_ns          thaw = w->frozen_until;
    assert(worker >= 1 && worker <= sim->context->plan->workers_max);
    assert(at >= sim->now);
    bool of_worker = kind <= AT_SIM_COMPUTED;
    if (entry && of_worker && at < thaw) at = thaw; /* a frozen worker reacts when it thaws */
    if (!entry || !at_heap_put(&sim->heap, at, entry, lane_of(kind))) {
        at_pool_give(&sim->entries, entry);
        at_sim_out_of_memory(sim);
        return NULL;
    }
    *entry = (at_heap_entry){.kind = kind, .worker = worker, .incarnation = w->incarnation};
    return entry;
}

static void free_entry(at_sim *sim, at_heap_entry *entry)
{
    assert(entry);
    at_sim_params_drop(entry->params);
    if (entry->kind == AT_SIM_ORDER) at_pool_give(&sim->orders, entry->order);
    if (entry->kind == AT_SIM_REPORT) at_pool_give(&sim->reports, entry->report);
    at_pool_give(&sim->entries, entry);
}

/* ---- operations for the host ----------------------------------------------------------------- */

double at_sim_message(const at_sim *sim, const at_packing *packing, uint64_t samples)
{
    const at_task *task = sim->context->task;
    return task->sparse ? at_task_message(task, samples) : (double)packing->size;
}

static void send_params(at_sim *sim, at_node worker, at_sim_kind kind, const at_order *order)
{
    bool     leave = order && order->leave, own = sim->host.gossip != NULL;
    uint64_t samples = order ? order->samples_max : sim->context->plan->batch;
    double   bytes = leave || own ? 0 : at_sim_message(sim, &sim->packings.params, samples);
    at_ns    arrives = at_sim_net_down(&sim->net, sim->now, worker, bytes);
    if (own && arrives < sim->averaged) arrives = sim->averaged;
    if (!leave && sim->net.allreduce != AT_ALLREDUCE_NONE && sim->host.hub->version > 0)
        arrives += at_sim_net_allreduce(&sim->net, sim->host.hub->present, bytes);
    if (sim->net.allreduce == AT_ALLREDUCE_NONE)
        at_host_count_sent(&sim->host, worker, (uint64_t)bytes);
    at_heap_entry *entry = at_sim_at(sim, arrives, kind, worker);
    assert(kind == AT_SIM_ORDER || kind == AT_SIM_PARAMS);
    assert((kind == AT_SIM_ORDER) == (order != NULL));
    if (!entry) return;
    if (!leave)
        entry->params = at_sim_params_use(own ? own_params(sim, worker) : current_params(sim));
    if (!order) return;
    entry->order = at_pool_take(&sim->orders);
    if (entry->order)
        *entry->order = *order;
    else
        at_sim_out_of_memory(sim);
}

/* Announces the parameters of all orders of the current event, at the first of them. */
static void expect_orders(at_sim *sim, const at_order *order)
{
    const at_out *out = &sim->host.out;
    uint32_t      copies = 0;
    assert(out->count >= 1);
    for (size_t i = 0; i < out->count; i++) {
        const at_action *action = &out->actions[i];
        if (action->kind != AT_ACT_SEND || action->as.order.leave) continue;
        if (copies == 0 && &action->as.order != order) return;
        copies++;
    }
    at_sim_net_expect(&sim->net, sim->now, copies);
}

static void send_order(void *self, at_node worker, const at_order *order)
{
    at_sim *sim = self;
    assert(order);
    if (sim->net.broadcast == AT_BROADCAST_SHARE && !order->leave) expect_orders(sim, order);
    send_params(sim, worker, AT_SIM_ORDER, order);
}

/* True for a worker that computes with older parameters. */
static bool is_behind(const at_sim *sim, uint32_t i)
{
    const at_member *member = &sim->host.hub->member[i];
    assert(i < sim->context->plan->workers_max);
    return member->state == AT_MEMBER_WORKING && member->begun_on != sim->host.hub->version;
}

/* Sends new parameters to workers that compute, if the strategy lets them react. Waiting workers
 * get them with their next order, or have just got them. */
static void cast(at_sim *sim)
{
    const at_plan *plan = sim->host.hub->plan;
    assert(sim->cast_due);
    if (!plan->release->self_starting && !at_plan_interrupts(plan)) return;
    uint32_t copies = 0;
    for (uint32_t i = 0; i < plan->workers_max; i++) copies += is_behind(sim, i);
    if (copies > 0) at_sim_net_expect(&sim->net, sim->now, copies);
    for (uint32_t i = 0; copies > 0 && i < plan->workers_max; i++)
        if (is_behind(sim, i)) send_params(sim, i + 1, AT_SIM_PARAMS, NULL);
}

static void lose(at_sim *sim, at_node worker, bool returns, at_ns after, const char *how)
{
    at_event event = {.kind = AT_EV_LOST, .worker = worker, .now = sim->now};
    assert(!sim->worker[worker - 1].alive);
    assert(after >= 0);
    event.as.lost.drawn = sim->worker[worker - 1].drawn;
    event.as.lost.returns = returns;
    at_host_event(&sim->host, &event, &(at_about){.text = how});
    if (sim->host.hub->member[worker - 1].expected)
        at_sim_at(sim, sim->now + after, AT_SIM_RETURN, worker);
}

/* LOST must follow; it is delivered as a heap entry, after the current event. */
static void evict(void *self, at_node worker)
{
    at_sim *sim = self;
    assert(worker >= 1 && worker <= sim->context->plan->workers_max);
    at_sim_worker_die(sim, worker);
    sim->worker[worker - 1].frozen_until = 0;
    at_heap_entry *entry = at_sim_at(sim, sim->now, AT_SIM_GONE, worker);
    if (entry) entry->token = 1; /* evicted */
}

static void score(void *self, at_score *sum)
{
    at_sim        *sim = self;
    const at_task *task = sim->context->task;
    assert(!task->timing_only);
    task->score(task->self, sum, sim->w, 0, task->test_samples);
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    at_sim *sim = self;
    assert(slot < AT_SIM_SLOTS);
    return sim->worker[worker - 1].gradient[slot];
}

/* ---- workers --------------------------------------------------------------------------------- */

static void join(at_sim *sim, at_node worker)
{
    at_sim_worker *w = &sim->worker[worker - 1];
    assert(!w->alive);
    w->alive = true;
    w->incarnation++;
    w->frozen_until = 0;
    w->late = 0;
    w->idle_since = sim->now;
    free(w->residual); /* that of its predecessor died with it */
    w->residual = NULL;
    if (w->local)
        at_local_steps_restart(w->local);
    else if (at_local_steps_new(sim->context, &w->local, sim->fail))
        sim->err = sim->fail->err;
    double learned = w->machine.cut.sample_ns; /* a replacement runs on the same machine */
    at_worker_init(&w->machine, sim->context->plan, worker, w->incarnation, AT_SIM_SLOTS,
                   sim->host.hub->member[worker - 1].sequence);
    w->machine.cut.sample_ns = learned;
    at_event event = {.kind = AT_EV_JOINED, .worker = worker, .now = sim->now};
    event.as.joined.incarnation = w->incarnation;
    at_host_event(&sim->host, &event, NULL);
}

static void on_report(at_sim *sim, const at_heap_entry *entry)
{
    at_event event = {.kind = AT_EV_MESSAGE, .worker = entry->worker, .now = sim->now};
    assert(entry->kind == AT_SIM_REPORT);
    event.as.report = *entry->report;
    bool current = entry->incarnation == sim->worker[entry->worker - 1].incarnation;
    at_host_event(&sim->host, &event, NULL);
    if (current && !sim->host.finished) at_sim_worker_sent(sim, entry->worker);
}

static void on_gone(at_sim *sim, const at_heap_entry *entry)
{
    bool running = sim->host.hub->end == AT_END_RUNNING;
    bool evicted = entry->token == 1;
    assert(entry->kind == AT_SIM_GONE);
    lose(sim, entry->worker, running && sim->context->respawn, 0,
         evicted ? "evicted, its lease expired" : "left");
}

static void dispatch(at_sim *sim, at_heap_entry *entry)
{
    assert(entry->worker >= 1);
    switch (entry->kind) {
    case AT_SIM_REPORT: on_report(sim, entry); break;
    case AT_SIM_GONE: on_gone(sim, entry); break;
    case AT_SIM_RETURN:
        if (sim->host.hub->member[entry->worker - 1].expected) join(sim, entry->worker);
        break;
    case AT_SIM_ORDER:
    case AT_SIM_PARAMS:
    case AT_SIM_MICRO:
    case AT_SIM_COMPUTED: at_sim_worker_event(sim, entry); break;
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Moves all entries of a frozen worker to the time when it thaws. */
static void freeze(at_sim *sim, at_node worker, at_ns until)
{
    at_heap *heap = &sim->heap;
    assert(worker >= 1);
    assert(until >= sim->now);
    if (until <= sim->worker[worker - 1].frozen_until) return; /* already frozen for longer */
    sim->worker[worker - 1].frozen_until = until;
    at_heap moved = {0};
    while (at_heap_due(heap) != AT_NEVER) {
        at_heap_item due = at_heap_take(heap);
        bool         its = due.entry->worker == worker && due.entry->kind <= AT_SIM_COMPUTED;
        at_ns        at = its && due.at < until ? until : due.at;
        if (!at_heap_put(&moved, at, due.entry, AT_HEAP_NO_LANE)) {
            free_entry(sim, due.entry);
            at_sim_out_of_memory(sim);
        }
    }
    at_heap_deinit(heap);
    *heap = moved;
}

/* A join of a worker that is present, or will be replaced, has no effect. Which workers are evicted
 * is not known when faults are checked. */
static void join_late(at_sim *sim, at_node worker)
{
    const at_member *member = &sim->host.hub->member[worker - 1];
    char             text[100];
    assert(worker <= sim->context->plan->workers_max);
    if (member->state == AT_MEMBER_AWAY && !member->expected) {
        join(sim, worker);
        return;
    }
    snprintf(text, sizeof text, "note: worker %u is present and does not join again", worker);
    at_host_say(&sim->host, sim->now, text);
}

static void inject(at_sim *sim, const at_fault *fault)
{
    at_sim_worker *w = &sim->worker[fault->worker - 1];
    assert(fault->worker >= 1 && fault->worker <= sim->context->plan->workers_max);
    assert(fault->at <= sim->now);
    if (fault->kind == AT_FAULT_JOIN) {
        join_late(sim, fault->worker);
        return;
    }
    if (!w->alive || sim->host.hub->member[fault->worker - 1].state == AT_MEMBER_EVICTED) return;
    switch (fault->kind) {
    case AT_FAULT_FREEZE: freeze(sim, fault->worker, sim->now + fault->lasts); break;
    case AT_FAULT_LATE: w->late += fault->lasts; break;
    case AT_FAULT_DIE:
        at_sim_worker_die(sim, fault->worker);
        lose(sim, fault->worker, sim->context->respawn, fault->lasts, "died");
        break;
    case AT_FAULT_JOIN: assert(!"handled above"); break;
    }
}

/* ---- loop ------------------------------------------------------------------------------------ */

static at_ns next_fault(const at_sim *sim)
{
    assert(sim->faults_done <= sim->context->fault_count);
    return sim->faults_done < sim->context->fault_count ? sim->context->faults[sim->faults_done].at
                                                        : AT_NEVER;
}

static void prefetch(const void *begin, size_t size)
{
    enum { LINE = 64 };
    for (size_t i = 0; i < size; i += LINE) __builtin_prefetch((const char *)begin + i, 1);
}

static void prefetch_worker(const at_sim *sim, at_node worker)
{
    assert(worker >= 1);
    prefetch(&sim->worker[worker - 1], sizeof *sim->worker);
    prefetch(&sim->host.hub->member[worker - 1], sizeof(at_member));
}

/* Asks for the memory of events that come soon while this one is processed: with very many workers
 * none of it is in the cache. Soon are the items in the upper levels of the heap. */
static void look_ahead(const at_sim *sim)
{
    enum { FEW = 2000, NEXT = 5, SOON = 21, LATER = 8 }; /* one, two levels below the first */
    const at_heap *heap = &sim->heap;
    assert(sim->worker);
    for (unsigned lane = 0; lane < AT_HEAP_LANES; lane++) {
        const at_heap_entry *entry = at_heap_lane_entry(heap, lane, LATER / 2);
        if (entry) prefetch_worker(sim, entry->worker);
        entry = at_heap_lane_entry(heap, lane, LATER);
        if (entry) __builtin_prefetch(entry);
    }
    if (heap->count < FEW) return;
    for (size_t i = NEXT; i < SOON; i++) __builtin_prefetch(heap->item[i].entry);
    for (size_t i = 0; i < NEXT; i++) prefetch_worker(sim, heap->item[i].entry->worker);
}

static at_err pass_time(at_sim *sim, at_ns to)
{
    if (to > AT_RUN_MAX)
        return at_fail_set(sim->fail, AT_ERR_USAGE,
                           "use fewer --steps, or a smaller --sample-time or --straggler-scale",
                           "the run would last more than nine years of virtual time");
    if (to > sim->now) sim->now = to;
    return AT_OK;
}

static void loop(at_sim *sim)
{
    while (!sim->host.finished && !sim->err) {
        at_ns heap = at_heap_due(&sim->heap), timer = at_host_due(&sim->host);
        at_ns fault = next_fault(sim), first = heap < timer ? heap : timer;
        if (fault < first) first = fault;
        assert(first != AT_NEVER);                   /* a worker or a lease is always pending */
        assert(first >= sim->now || first == timer); /* a lease may have expired already */
        if ((sim->err = pass_time(sim, first))) break;
        if (at_signals_stop()) {
            at_event stop = {.kind = AT_EV_STOP, .now = sim->now};
            at_host_event(&sim->host, &stop, NULL);
        }
        if (at_signals_save()) sim->host.timer[AT_TIMER_SAVE] = sim->now;
        if (sim->host.finished) break;
        if (fault == first)
            inject(sim, &sim->context->faults[sim->faults_done++]);
        else if (heap == first) {
            at_heap_item due = at_heap_take(&sim->heap);
            look_ahead(sim);
            dispatch(sim, due.entry);
            free_entry(sim, due.entry);
        } else
            at_host_poll(&sim->host, sim->now);
        if (sim->cast_due) cast(sim);
        sim->cast_due = false;
    }
}

/* ---- start and end --------------------------------------------------------------------------- */

/* A node sends its vector to all its neighbors. */
static at_ns send_to_neighbours(void *self, uint32_t node)
{
    const at_sim *sim = self;
    double        bytes = at_task_message(sim->context->task, sim->context->plan->batch);
    assert(node < sim->gossip.graph.nodes);
    return at_sim_net_gossip(&sim->net, node + 1, sim->gossip.graph.degree[node], bytes);
}

/* Of all rounds of a step: in each, the slowest worker is waited for; or, when they last for a
 * time, until the last worker has ended its last one. */
static at_ns averaging_time(at_sim *sim)
{
    const at_plan  *plan = sim->context->plan;
    const at_graph *graph = &sim->gossip.graph;
    at_mixing       mixing = at_plan_mixing(plan);
    at_ns           slowest = 0;
    assert(sim->host.gossip);
    if (mixing.time > 0) return sim->gossip.lasts;
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        if (!graph->present[i]) continue;
        at_ns sends = send_to_neighbours(sim, i);
        if (sends > slowest) slowest = sends;
    }
    return mixing.rounds * slowest;
}

static void publish(void *self, uint64_t version)
{
    at_sim *sim = self;
    (void)version;
    assert(version > 0);
    if (sim->host.gossip) sim->averaged = sim->now + averaging_time(sim);
    sim->cast_due = true; /* sent after the event, when the hub has its new version */
}

/* As of its last round that ended. */
static double learned_speed(const at_sim_worker *w)
{
    assert(w->machine.cut.sample_ns >= 0);
    return w->ahead ? w->sample_ns : w->machine.cut.sample_ns;
}

/* State of the simulation in a checkpoint: the link, and the workers' estimates of their speed. */
static void describe(void *self, at_snapshot *snapshot)
{
    const at_sim *sim = self;
    at_ns         in = sim->net.in_free - sim->now, out = sim->net.out_free - sim->now;
    assert(snapshot->workers == sim->context->plan->workers_max);
    snapshot->in_busy = in > 0 ? in : 0;
    snapshot->out_busy = out > 0 ? out : 0;
    snapshot->messages = sim->net.messages;
    for (uint32_t i = 0; i < snapshot->workers; i++)
        snapshot->member[i].sample_ns = learned_speed(&sim->worker[i]);
}

static void resume(at_sim *sim, const at_snapshot *snapshot)
{
    assert(sim->host.hub->resumed);
    assert(sim->heap.count == 0);
    sim->now = snapshot->clock;
    sim->net.in_free = sim->now + snapshot->in_busy;
    sim->net.out_free = sim->now + snapshot->out_busy;
    sim->net.messages = snapshot->messages;
    while (next_fault(sim) < sim->now) sim->faults_done++;
    for (uint32_t i = 0; i < sim->context->plan->workers_max; i++) {
        sim->worker[i].drawn = at_resume_drawn(&sim->host, i + 1);
        if (i < snapshot->workers)
            sim->worker[i].machine.cut.sample_ns = snapshot->member[i].sample_ns;
    }
}

static at_sim_worker *new_workers(uint32_t workers)
{
    size_t         size = workers * sizeof(at_sim_worker);
    at_sim_worker *worker = at_large_new(size);
    assert(workers >= 1);
    if (worker) memset(worker, 0, size);
    return worker;
}

/* Where workers have their own parameters. */
static at_err prepare_gossip(at_sim *sim, size_t floats, at_fail *fail)
{
    const at_world_context *context = sim->context;
    size_t                  size;
    if (!context->plan->mix->owned_by_workers) return AT_OK;
    sim->stride = (floats + 15) / 16 * 16;
    bool fits = at_size_product(context->plan->workers_max * sizeof(float), sim->stride, &size);
    if (fits && floats > 0) sim->vectors = aligned_alloc(64, size);
    if (!sim->vectors && floats > 0)
        return at_fail_set(fail, AT_ERR_FAILED, "use fewer workers or a smaller model",
                           "not enough memory for the parameters of %u workers",
                           context->plan->workers_max);
    AT_TRY(at_gossip_init(&sim->gossip, context, sim->w, sim->vectors, sim->stride, fail));
    sim->host.gossip = &sim->gossip;
    sim->gossip.self = sim;
    sim->gossip.sends = send_to_neighbours;
    return AT_OK;
}

/* Where messages are compressed, floats really are. */
static at_err prepare_packing(at_sim *sim, at_fail *fail)
{
    const at_packings *p = &sim->packings;
    size_t             size;
    AT_TRY(at_packings_init(&sim->packings, sim->context, fail));
    if (p->gradient.kind == AT_COMPRESS_NONE || sim->context->task->timing_only) return AT_OK;
    size = p->params.size > p->gradient.size ? p->params.size : p->gradient.size;
    sim->packed = aligned_alloc(64, (size + 63) / 64 * 64);
    return sim->packed ? AT_OK : at_fail_memory(fail);
}

static at_err prepare(at_sim *sim, at_fail *fail)
{
    const at_world_context *context = sim->context;
    const at_task          *task = context->task;
    size_t                  floats = task->timing_only ? 0 : task->params;
    assert(context->plan->workers_max >= 1);
    AT_TRY(at_sim_net_init(&sim->net, context, fail));
    AT_TRY(prepare_packing(sim, fail));
    sim->worker = new_workers(context->plan->workers_max);
    sim->w = aligned_alloc(64, (floats * sizeof(float) + 127) / 64 * 64);
    if (!sim->worker || !sim->w)
        return at_fail_set(fail, AT_ERR_FAILED, "use fewer workers or a smaller model",
                           "not enough memory to simulate %u workers", context->plan->workers_max);
    if (floats > 0) {
        AT_TRY(at_resume_params(context, sim->w, fail));
        AT_TRY(task->open(task->self, AT_NODE_ALL, fail));
    }
    at_world_ops ops = {.self = sim,
                        .virtual_time = true,
                        .send = send_order,
                        .evict = evict,
                        .change = change,
                        .publish = publish,
                        .describe = describe,
                        .score = floats > 0 && task->test_samples > 0 ? score : NULL,
                        .gradients = {sim, gradient_at}};
    AT_TRY(at_host_init(&sim->host, context->plan, context->recorder, &sim->updater, NULL, &ops,
                        fail));
    AT_TRY(at_updater_init(&sim->updater, context->learning, sim->w, floats,
                           sim->host.hub->pieces_max, fail));
    AT_TRY(at_resume_host(context, &sim->host, fail));
    AT_TRY(prepare_gossip(sim, floats, fail));
    if (context->resume) resume(sim, context->resume->snapshot);
    return AT_OK;
}

static at_err hand_over(at_sim *sim, at_outcome *outcome, at_fail *fail)
{
    const at_task *task = sim->context->task;
    uint32_t       workers = sim->context->plan->workers_max;
    at_host_outcome(&sim->host, outcome);
    outcome->params = sim->w;
    outcome->floats = task->timing_only ? 0 : task->params;
    sim->w = NULL;
    outcome->drawn = calloc(workers, sizeof *outcome->drawn);
    if (!outcome->drawn) return at_fail_memory(fail);
    for (uint32_t i = 0; i < workers; i++) {
        const at_member *member = &sim->host.hub->member[i];
        outcome->drawn[i] = sim->worker[i].drawn;
        assert(outcome->drawn[i] == member->used + member->dropped);
    }
    snprintf(outcome->engine, sizeof outcome->engine, "%s",
             task->timing_only ? "none" : task->engine(task->self));
    return AT_OK;
}

static void release(at_sim *sim)
{
    assert(sim->context);
    while (at_heap_due(&sim->heap) != AT_NEVER) free_entry(sim, at_heap_take(&sim->heap).entry);
    at_heap_deinit(&sim->heap);
    for (uint32_t i = 0; sim->worker && i < sim->context->plan->workers_max; i++) {
        at_sim_params_drop(sim->worker[i].newest);
        at_sim_params_drop(sim->worker[i].installed);
        for (int slot = 0; slot < AT_SIM_SLOTS; slot++) free(sim->worker[i].gradient[slot]);
        at_local_steps_free(sim->worker[i].local);
        free(sim->worker[i].residual);
    }
    at_sim_params_drop(sim->current);
    at_pool_deinit(&sim->entries);
    at_pool_deinit(&sim->orders);
    at_pool_deinit(&sim->reports);
    at_updater_deinit(&sim->updater);
    at_host_deinit(&sim->host);
    at_sim_net_deinit(&sim->net);
    at_gossip_deinit(&sim->gossip);
    free(sim->vectors);
    free(sim->packed);
    free(sim->worker);
    free(sim->w);
}

/* Those who joined before the checkpoint of a resumed run come first: as soon as the last expected
 * worker is there the run begins, and they are to take part in its first step. */
static void join_first(at_sim *sim)
{
    const at_world_context *c = sim->context;
    assert(c->plan->workers <= c->plan->workers_max);
    for (at_node id = c->plan->workers + 1; c->resume && id <= c->plan->workers_max; id++)
        if (at_faults_joined(c->faults, c->fault_count, id, c->respawn, sim->now)) join(sim, id);
    for (at_node id = 1; id <= c->plan->workers; id++) join(sim, id);
}

static void simulate(at_sim *sim)
{
    at_event start = {.kind = AT_EV_START, .now = sim->now};
    assert(sim->heap.count == 0);
    assert(!sim->err);
    at_signals_open(&sim->bell);
    at_host_event(&sim->host, &start, NULL);
    at_packings_say(sim->context, &sim->host, sim->now);
    join_first(sim);
    loop(sim);
    if (!sim->err) at_host_final_score(&sim->host);
    at_signals_close();
}

static at_err run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    at_sim sim = {.context = context,
                  .fail = fail,
                  .entries.size = sizeof(at_heap_entry),
                  .orders.size = sizeof(at_order),
                  .reports.size = sizeof(at_report)};
    at_err err = prepare(&sim, fail);
    assert(context->plan->workers_max >= 1);
    if (!err) {
        simulate(&sim);
        err = sim.err ? sim.err : hand_over(&sim, outcome, fail);
    }
    release(&sim);
    return err;
}

const at_world at_world_sim = {.name = "sim",
                               .called = "a simulation",
                               .virtual_time = true,
                               .steps_locally = true,
                               .one_process = true,
                               .has_messages = true,
                               .sends_vectors = true,
                               .admits_workers = true,
                               .has_hub = true,
                               .owns_params = true,
                               .reaches_params = true,
                               .check = at_sim_net_check,
                               .run = run};

/* A worker in virtual time. The state machine is the same as everywhere; a computation is a sleep
 * and some micro-batches whose ends are known beforehand. When nothing can interrupt a round (newer
 * rule `finish`) its end is worked out at once and costs one heap entry; otherwise every
 * micro-batch is an entry of its own, so that news are seen between two of them. Gradients are
 * really computed, when the round is over and only if it was not abandoned. */
#include <assert.h>
#include <stdlib.h>

#include "pace/pace.h"
#include "world/sim/sim.h"

static void deliver(at_sim *sim, at_sim_worker *w, const at_event *event);

static at_ns duration(const at_sim *sim, const at_sim_worker *w, uint32_t samples)
{
    double each =
        (double)sim->context->sample_time * at_pace_factor(sim->context->pace, w->machine.id);
    return (at_ns)(each * samples);
}

/* ---- floats ---------------------------------------------------------------------------------- */

static void add_gradient(at_sim *sim, at_sim_worker *w, uint32_t samples, uint32_t done)
{
    const at_task *task = sim->context->task;
    if (task->timing_only) return;
    uint32_t slot = at_worker_slot(&w->machine);
    if (!w->gradient[slot]) {
        w->gradient[slot] = aligned_alloc(64, (task->slot_floats * sizeof(float) + 63) / 64 * 64);
        if (!w->gradient[slot]) {
            sim->err = at_fail_set(sim->fail, AT_ERR_FAILED, "use fewer workers", "out of memory");
            return;
        }
    }
    at_draw draw = {.worker = w->machine.id, .position = w->drawn, .count = samples};
    if (w->order.position != AT_POSITION_OWN) {
        draw.position = w->order.position + done;
        draw.common = true;
    }
    at_point point = {.params = w->installed->w, .version = w->installed->version};
    assert(point.params); /* the hub has kept what we need */
    w->work.loss_sum += task->gradient(task->self, w->gradient[slot], done == 0, point, &draw);
}

/* The whole round at its end, in the same micro-batches as in every world. */
static void compute_round(at_sim *sim, at_sim_worker *w)
{
    uint32_t samples = w->work.samples;
    for (uint32_t done = 0; done < samples;) {
        uint32_t left = samples - done, m = sim->context->plan->micro_batch;
        uint32_t part = left < m ? left : m;
        if (!w->work.abandoned) add_gradient(sim, w, part, done);
        w->drawn += part;
        done += part;
    }
}

/* ---- versions -------------------------------------------------------------------------------- */

static void install_newest(at_sim_worker *w)
{
    assert(w->newest);
    at_sim_params *old = w->installed;
    w->installed = at_sim_params_use(w->newest);
    at_sim_params_drop(old);
    w->refresh = false;
}

/* A micro-batch under way goes on with the parameters it began with. */
static void install(at_sim_worker *w)
{
    if (w->computing && w->micro > 0)
        w->refresh = true;
    else
        install_newest(w);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void end_round(at_sim *sim, at_sim_worker *w, at_ns now)
{
    w->computing = false;
    w->work.sleep_ns = w->awake < now ? w->awake - w->begun : now - w->begun;
    w->work.compute_ns = now > w->awake ? now - w->awake : 0;
    w->work.capped = w->work.samples == w->order.samples_max;
    w->work.overslept = w->deadline != AT_NEVER && w->awake >= w->deadline;
    w->work.overshoot_ns = w->deadline == AT_NEVER ? 0 : now - w->deadline;
    w->work.abandoned = w->abandon;
    at_event event = {.kind = AT_EV_COMPUTED, .now = now, .as.work = w->work};
    deliver(sim, w, &event);
}

static bool can_be_interrupted(const at_sim_worker *w)
{
    return w->machine.plan->newer->choice != AT_NEWER_FINISH;
}

static void schedule(at_sim *sim, at_sim_worker *w, at_ns at, at_sim_kind kind)
{
    at_heap_entry *entry = at_sim_at(sim, at, kind, w->machine.id);
    if (entry) entry->token = w->token;
}

static void begin_micro(at_sim *sim, at_sim_worker *w, at_ns now)
{
    w->micro = w->abandon ? 0 : at_cut_next(&w->cut, now);
    if (w->micro == 0) {
        end_round(sim, w, now);
        return;
    }
    schedule(sim, w, now + duration(sim, w, w->micro), AT_SIM_MICRO);
}

/* The end of the sleep (micro == 0) or of a micro-batch, which takes news only now. */
static void on_micro(at_sim *sim, at_sim_worker *w, at_ns now)
{
    assert(w->computing);
    if (w->micro > 0) {
        if (!w->abandon) add_gradient(sim, w, w->micro, w->work.samples);
        at_cut_done(&w->cut, w->micro, duration(sim, w, w->micro));
        w->drawn += w->micro;
        w->work.samples += w->micro;
    }
    w->micro = 0;
    if (w->refresh) install_newest(w);
    if (w->work.samples == 0) w->work.version = w->installed->version;
    begin_micro(sim, w, now);
}

/* Walks through the whole round on paper. */
static void plan_round(at_sim *sim, at_sim_worker *w)
{
    at_ns now = w->awake;
    for (uint32_t samples; (samples = at_cut_next(&w->cut, now)) > 0;) {
        at_ns takes = duration(sim, w, samples);
        at_cut_done(&w->cut, samples, takes);
        w->work.samples += samples;
        now += takes;
    }
    schedule(sim, w, now, AT_SIM_COMPUTED);
}

static void begin_round(at_sim *sim, at_sim_worker *w, const at_action *action)
{
    const at_plan *plan = sim->context->plan;
    w->computing = true;
    w->abandon = false;
    w->token++;
    w->order = action->as.compute.order;
    w->deadline = action->as.compute.deadline;
    w->begun = sim->now;
    w->awake = sim->now + at_pace_sleep(sim->context->pace, w->machine.id, w->order.round);
    w->micro = 0;
    w->work = (at_work){.round = w->order.round,
                        .version = w->installed->version,
                        .idle_ns = sim->now - w->idle_since,
                        .send_ns = w->send_ns};
    at_cut_begin(&w->cut, &w->order, w->deadline, plan->micro_batch, plan->cut_after);
    if (can_be_interrupted(w))
        schedule(sim, w, w->awake, AT_SIM_MICRO);
    else
        plan_round(sim, w);
}

/* Samples of the round under way that were drawn by now: those of the micro-batches begun. */
static uint32_t drawn_by_now(const at_sim *sim, const at_sim_worker *w)
{
    if (!w->computing || sim->now < w->awake) return 0;
    if (can_be_interrupted(w)) return w->micro;
    at_ns    micro_ns = duration(sim, w, sim->context->plan->micro_batch);
    uint64_t begun = micro_ns > 0 ? (uint64_t)((sim->now - w->awake) / micro_ns) + 1 : UINT32_MAX;
    uint64_t samples = begun * sim->context->plan->micro_batch;
    return samples < w->work.samples ? (uint32_t)samples : w->work.samples;
}

/* A round that was planned to its end ends with the micro-batch under way instead. */
static void shorten_round(at_sim *sim, at_sim_worker *w)
{
    uint32_t m = sim->context->plan->micro_batch, samples = drawn_by_now(sim, w);
    at_ns    end = w->awake + samples / m * duration(sim, w, m) + duration(sim, w, samples % m);
    assert(samples <= w->work.samples);
    w->work.samples = samples;
    w->token++;
    schedule(sim, w, end > sim->now ? end : sim->now, AT_SIM_COMPUTED);
}

/* A sleep ends at once, a computation with the micro-batch under way: as in every world. */
static void abandon(at_sim *sim, at_sim_worker *w)
{
    assert(w->computing);
    if (w->abandon) return;
    w->abandon = true;
    if (sim->now < w->awake) {
        w->work.samples = 0;
        w->token++;
        end_round(sim, w, sim->now);
    } else if (!can_be_interrupted(w)) {
        shorten_round(sim, w);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void transmit(at_sim *sim, at_sim_worker *w, const at_report *report)
{
    const at_task *task = sim->context->task;
    double         bytes = report->work.abandoned ? 0 : at_task_message(task, report->work.samples);
    at_ns          arrives = at_sim_net_up(&sim->net, sim->now, bytes) + w->late;
    at_heap_entry *entry = at_sim_at(sim, arrives, AT_SIM_REPORT, w->machine.id);
    if (entry) entry->report = *report;
    w->late = 0;
    w->in_flight = true;
    w->idle_since = sim->now;
    at_event event = {.kind = AT_EV_SENT, .now = sim->now};
    deliver(sim, w, &event);
}

/* At most one report outstanding: a second one waits until the first has arrived. */
static void send_report(at_sim *sim, at_sim_worker *w, const at_report *report)
{
    w->send_ns = 0;
    if (!w->in_flight) {
        transmit(sim, w, report);
        return;
    }
    w->pending = true;
    w->pending_since = sim->now;
    w->report = *report;
}

void at_sim_worker_sent(at_sim *sim, at_node worker)
{
    at_sim_worker *w = &sim->worker[worker - 1];
    w->in_flight = false;
    if (!w->pending || !w->alive) return;
    w->pending = false;
    w->send_ns = sim->now - w->pending_since;
    transmit(sim, w, &w->report);
}

static void leave(at_sim *sim, at_sim_worker *w)
{
    at_sim_worker_die(sim, w->machine.id);
    at_heap_entry *entry = at_sim_at(sim, sim->now + sim->net.latency, AT_SIM_GONE, w->machine.id);
    if (entry) entry->incarnation = w->incarnation;
}

static void perform(at_sim *sim, at_sim_worker *w, const at_action *action)
{
    switch (action->kind) {
    case AT_ACT_INSTALL: install(w); break;
    case AT_ACT_COMPUTE: begin_round(sim, w, action); break;
    case AT_ACT_ABANDON: abandon(sim, w); break;
    case AT_ACT_SEND: send_report(sim, w, &action->as.report); break;
    case AT_ACT_FINISH: leave(sim, w); break;
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

static void deliver(at_sim *sim, at_sim_worker *w, const at_event *event)
{
    at_action actions[4];
    at_out    out = {.actions = actions, .size = 4};
    at_worker_step(&w->machine, event, &out);
    for (size_t i = 0; i < out.count && w->alive; i++) perform(sim, w, &actions[i]);
}

/* Parameters may overtake each other on a bad network: only newer ones count. */
static bool take_params(at_sim_worker *w, at_sim_params *params)
{
    if (w->newest && params->version <= w->newest->version) return false;
    at_sim_params_drop(w->newest);
    w->newest = at_sim_params_use(params);
    return true;
}

static void on_params(at_sim *sim, at_sim_worker *w, at_sim_params *params)
{
    if (!take_params(w, params)) return;
    at_event event = {.kind = AT_EV_NEWER, .now = sim->now, .as.newer.version = params->version};
    if (w->computing) deliver(sim, w, &event);
}

void at_sim_worker_event(at_sim *sim, const at_heap_entry *entry)
{
    at_sim_worker *w = &sim->worker[entry->worker - 1];
    if (!w->alive || entry->incarnation != w->incarnation) return;
    switch (entry->kind) {
    case AT_SIM_ORDER: {
        at_event event = {.kind = AT_EV_MESSAGE, .now = sim->now, .as.order = entry->order};
        if (entry->params) take_params(w, entry->params);
        deliver(sim, w, &event);
        break;
    }
    case AT_SIM_PARAMS: on_params(sim, w, entry->params); break;
    case AT_SIM_MICRO:
        if (entry->token == w->token) on_micro(sim, w, sim->now);
        break;
    case AT_SIM_COMPUTED:
        if (entry->token != w->token) break;
        w->work.abandoned = w->abandon;
        compute_round(sim, w);
        end_round(sim, w, sim->now);
        break;
    case AT_SIM_REPORT:
    case AT_SIM_GONE:
    case AT_SIM_RETURN: assert(!"something for the hub"); break;
    }
}

void at_sim_worker_die(at_sim *sim, at_node worker)
{
    at_sim_worker *w = &sim->worker[worker - 1];
    w->drawn += drawn_by_now(sim, w);
    w->alive = w->computing = w->pending = w->in_flight = false;
    at_sim_params_drop(w->newest);
    at_sim_params_drop(w->installed);
    w->newest = w->installed = NULL;
}

/* A worker in virtual time: the state machine of every world, whose actions cost time but not the
 * processor. When nothing can interrupt a round (rule `finish`), the machine is run ahead to the
 * round's end, which costs one heap entry; whatever does act on such a round (leave, death) puts
 * the machine back to the round's start and replays it to now. Otherwise every micro-batch is an
 * entry of its own. Gradients are really computed, when the entry fires, and only if they count. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "pace/pace.h"
#include "world/core/nonfinite.h"
#include "world/sim/sim.h"

/* --jitter: a factor for this micro-batch, by its place in the round. */
static double jitter(const at_sim *sim, const at_worker *machine)
{
    static const double LEAST = 0.1; /* a computation takes some time */
    uint64_t            place = (machine->work.round << 32) + machine->work.samples;
    at_rng rng = at_rng_stream(sim->context->seed, machine->id, AT_RNG_PURPOSE_JITTER, place);
    assert(sim->context->jitter > 0);
    return fmax(1 + sim->context->jitter * at_rng_normal(&rng), LEAST);
}

/* Of the micro-batch that is about to begin, or under way. Like a sleep, computing takes at most a
 * year per round, so that sums of times do not overflow. */
static at_ns duration(const at_sim *sim, const at_sim_worker *w, uint32_t samples)
{
    const at_world_context *context = sim->context;
    at_ns                   left = AT_SIM_ROUND_MAX - (w->machine.end - w->machine.awake);
    double factor = at_pace_factor(context->pace, w->machine.id, w->machine.work.round);
    double each = (double)context->sample_time * factor, ns = each * samples;
    assert(samples >= 1);
    assert(context->sample_time >= 0);
    if (context->jitter > 0) ns *= jitter(sim, &w->machine);
    if (context->micro_cost > 0) ns += (double)context->micro_cost * factor;
    return ns < (double)left ? (at_ns)ns : left;
}

static void feed(at_sim_worker *w, at_worker_event_kind kind, at_ns now)
{
    assert(now >= 0);
    at_worker_feed(&w->machine, &(at_worker_event){.kind = kind, .now = now});
}

static void run(at_sim *sim, at_sim_worker *w);

/* ---- floats ---------------------------------------------------------------------------------- */

static float *gradient_of(at_sim *sim, at_sim_worker *w)
{
    size_t   size = sim->context->task->slot_floats * sizeof(float);
    uint32_t slot = at_worker_slot(&w->machine);
    assert(slot < AT_SIM_SLOTS);
    if (!w->gradient[slot]) w->gradient[slot] = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!w->gradient[slot])
        sim->err = at_fail_set(sim->fail, AT_ERR_FAILED, "use fewer workers", "out of memory");
    return w->gradient[slot];
}

/* Samples done .. done+samples-1 of the round under way. */
static void add_gradient(at_sim *sim, at_sim_worker *w, uint32_t samples, uint32_t done)
{
    const at_task *task = sim->context->task;
    if (task->timing_only) return;
    float *gradient = gradient_of(sim, w);
    if (!gradient) return;
    uint64_t redrawn = sim->host.hub->member[w->machine.id - 1].redrawn;
    at_draw  draw = {.worker = w->machine.id, .position = w->drawn - redrawn, .count = samples};
    if (w->machine.position != AT_POSITION_OWN) {
        draw.position = w->machine.position + done;
        draw.common = true;
    }
    at_point point = {.params = w->installed->w, .version = w->installed->version};
    assert(point.params); /* the hub has kept what we need */
    if (w->local && done == 0)
        at_local_steps_begin(w->local, point.params, gradient, w->machine.order.used);
    w->loss_sum += w->local ? at_local_steps_micro(w->local, &draw)
                            : task->gradient(task->self, gradient, done == 0, point, &draw);
}

/* A whole round at its end, in the same micro-batches as in every world. */
static void compute_round(at_sim *sim, at_sim_worker *w)
{
    uint32_t samples = w->machine.work.samples, m = sim->context->plan->micro_batch;
    assert(m >= 1);
    for (uint32_t done = 0; done < samples;) {
        uint32_t left = samples - done, part = left < m ? left : m;
        if (!w->machine.abandon) add_gradient(sim, w, part, done);
        w->drawn += part;
        done += part;
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool can_be_interrupted(const at_sim_worker *w)
{
    assert(w->machine.plan);
    return at_plan_interrupts(w->machine.plan);
}

static void schedule(at_sim *sim, at_sim_worker *w, at_ns at, at_sim_kind kind)
{
    at_heap_entry *entry = at_sim_at(sim, at, kind, w->machine.id);
    assert(w->alive);
    assert(at >= sim->now);
    if (entry) entry->token = w->token;
}

static void install(at_sim *sim, at_sim_worker *w)
{
    at_sim_params *old = w->installed;
    assert(w->newest);
    w->installed = at_sim_params_use(w->newest);
    at_sim_params_drop(old);
    at_worker_feed(&w->machine, &(at_worker_event){.kind = AT_WORKER_INSTALLED,
                                                   .now = sim->now,
                                                   .version = w->installed->version});
}

/* Plays a round from the end of its sleep, up to and including what ends by `until`. Returns the
 * end of the micro-batch then under way; AT_NEVER: the round is over. */
static at_ns play(at_sim *sim, at_sim_worker *w, at_ns until)
{
    at_worker *machine = &w->machine;
    assert(until >= 0);
    while (at_worker_has_more(machine)) {
        at_worker_action micro = at_worker_step(machine);
        assert(micro.kind == AT_WORKER_MICRO);
        at_ns took = duration(sim, w, micro.samples), end = machine->end + took;
        if (end > until) return end;
        at_worker_feed(machine, &(at_worker_event){.kind = AT_WORKER_MICRO_DONE,
                                                   .now = end,
                                                   .samples = machine->micro,
                                                   .took = took});
    }
    return AT_NEVER;
}

static void begin_sleep(at_sim *sim, at_sim_worker *w)
{
    at_node  id = w->machine.id;
    uint64_t round = w->machine.work.round;
    at_ns    nap = at_pace_sleep(sim->context->pace, id, round);
    at_worker_resize(&w->machine, at_round_size_draw(&sim->context->round_size, id, round,
                                                     w->machine.cut.samples_max));
    assert(!w->ahead);
    assert(nap >= 0);
    w->token++;
    w->loss_sum = 0;
    w->awake = sim->now + nap;
    w->idle_ns = sim->now - w->idle_since;
    if (can_be_interrupted(w)) {
        schedule(sim, w, w->awake, AT_SIM_MICRO);
        return;
    }
    w->sample_ns = w->machine.cut.sample_ns;
    w->ahead = true;
    feed(w, AT_WORKER_AWAKE, w->awake);
    play(sim, w, AT_NEVER);
    schedule(sim, w, w->machine.end, AT_SIM_COMPUTED);
}

/* Back from the end of a round that was run ahead to its state at this moment; returns the end of
 * the sleep or micro-batch under way, AT_NEVER when the round is over. */
static at_ns replay(at_sim *sim, at_sim_worker *w, at_ns until)
{
    assert(w->alive);
    assert(w->ahead);
    w->ahead = false;
    at_worker_rewind(&w->machine, w->sample_ns);
    if (until < w->awake) return w->awake;
    feed(w, AT_WORKER_AWAKE, w->awake);
    return play(sim, w, until);
}

/* Leave acts on the round under way: a sleep ends at once, a computation with its micro-batch. */
static void on_leave(at_sim *sim, at_sim_worker *w)
{
    bool  ahead = w->ahead;
    at_ns end = ahead ? replay(sim, w, sim->now) : AT_NEVER;
    assert(w->alive);
    feed(w, AT_WORKER_LEAVE, sim->now);
    if (!ahead) return;
    w->token++;
    if (w->machine.state == AT_WORKER_COMPUTING)
        schedule(sim, w, end, AT_SIM_COMPUTED);
    else
        w->drawn += w->machine.work.samples;
}

/* The end of a round that nothing could interrupt, or of its last micro-batch after a leave. A
 * worker that was frozen meanwhile ends when it thaws. */
static void on_computed(at_sim *sim, at_sim_worker *w)
{
    assert(w->alive);
    if (w->ahead && sim->now > w->machine.end) replay(sim, w, w->machine.end - 1);
    w->ahead = false;
    if (w->machine.state == AT_WORKER_COMPUTING) {
        at_ns took = duration(sim, w, w->machine.micro);
        at_worker_feed(&w->machine, &(at_worker_event){.kind = AT_WORKER_MICRO_DONE,
                                                       .now = sim->now,
                                                       .samples = w->machine.micro,
                                                       .took = took});
    }
    compute_round(sim, w);
}

/* The end of the sleep or of a micro-batch, in rounds that can be interrupted. */
static void on_micro(at_sim *sim, at_sim_worker *w)
{
    assert(!w->ahead);
    if (w->machine.state == AT_WORKER_SLEEPING) {
        feed(w, AT_WORKER_AWAKE, sim->now);
        return;
    }
    if (w->machine.state != AT_WORKER_COMPUTING) return; /* the sleep was abandoned */
    uint32_t samples = w->machine.micro;
    at_ns    took = duration(sim, w, samples);
    if (!w->machine.abandon) add_gradient(sim, w, samples, w->machine.work.samples);
    w->drawn += samples;
    at_worker_feed(&w->machine, &(at_worker_event){.kind = AT_WORKER_MICRO_DONE,
                                                   .now = sim->now,
                                                   .samples = samples,
                                                   .took = took});
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Takes the report, which is in memory of sim->reports. */
static void transmit(at_sim *sim, at_sim_worker *w, at_report *report)
{
    bool           empty = report->work.abandoned || sim->host.gossip; /* gradients stay there */
    uint32_t       samples = report->work.samples;
    double         bytes = empty ? 0 : at_sim_message(sim, &sim->packings.gradient, samples);
    at_ns          arrives = at_sim_net_up(&sim->net, sim->now, w->machine.id, bytes) + w->late;
    at_heap_entry *entry = at_sim_at(sim, arrives, AT_SIM_REPORT, w->machine.id);
    assert(w->alive);
    assert(!w->in_flight);
    if (entry)
        entry->report = report;
    else
        at_pool_give(&sim->reports, report);
    if (sim->net.allreduce == AT_ALLREDUCE_NONE)
        at_host_count_received(&sim->host, w->machine.id, (uint64_t)bytes);
    w->late = 0;
    w->in_flight = true;
    w->idle_since = sim->now;
    feed(w, AT_WORKER_SENT, sim->now);
}

/* Replaces a gradient by what the hub decodes of it. */
static void compress(at_sim *sim, at_sim_worker *w, const at_report *report)
{
    const at_packing *packing = &sim->packings.gradient;
    float            *gradient = w->gradient[report->slot];
    at_fail           fail;
    if (!sim->packed || report->work.abandoned || report->work.samples == 0 || sim->err) return;
    if (!w->residual) w->residual = calloc(packing->packed + 1, sizeof *w->residual);
    if (!w->residual) {
        at_sim_out_of_memory(sim);
        return;
    }
    assert(gradient);
    at_pack_with_residual(packing, sim->packed, gradient, w->residual);
    at_err err = at_unpack(packing, gradient, sim->packed, packing->size, &fail);
    assert(!err); /* encoded here */
}

/* At most one report outstanding: a second one waits until the first has arrived. */
static void send_report(at_sim *sim, at_sim_worker *w, const at_report *report)
{
    at_report *copy = at_pool_take(&sim->reports);
    assert(!w->pending);
    if (!copy) {
        at_sim_out_of_memory(sim);
        return;
    }
    if (w->local && !report->work.abandoned && !sim->err) at_local_steps_end(w->local);
    *copy = *report;
    if (!sim->err && w->gradient[report->slot])
        at_nonfinite_look_and_clear(sim->context->task, w->machine.plan, w->gradient[report->slot],
                                    &copy->work);
    compress(sim, w, report);
    copy->work.loss_sum = w->loss_sum;
    copy->work.idle_ns = w->idle_ns;
    copy->work.send_ns = w->send_ns;
    w->send_ns = 0;
    w->pending_since = sim->now;
    if (w->in_flight)
        w->pending = copy;
    else
        transmit(sim, w, copy);
}

void at_sim_worker_sent(at_sim *sim, at_node worker)
{
    at_sim_worker *w = &sim->worker[worker - 1];
    assert(worker >= 1);
    w->in_flight = false;
    at_report *next = w->pending;
    if (!next || !w->alive) return;
    w->pending = NULL;
    w->send_ns = sim->now - w->pending_since;
    transmit(sim, w, next);
    run(sim, w);
}

static void leave(at_sim *sim, at_sim_worker *w)
{
    assert(w->alive);
    assert(!w->ahead);
    at_sim_worker_die(sim, w->machine.id);
    at_heap_entry *entry = at_sim_at(sim, sim->now + sim->net.latency, AT_SIM_GONE, w->machine.id);
    if (entry) entry->incarnation = w->incarnation;
}

/* Begins what the machine asks for until it waits. */
static void run(at_sim *sim, at_sim_worker *w)
{
    assert(w->machine.id >= 1);
    while (w->alive && !w->ahead) {
        at_worker_action action = at_worker_step(&w->machine);
        switch (action.kind) {
        case AT_WORKER_INSTALL: install(sim, w); break;
        case AT_WORKER_SLEEP: begin_sleep(sim, w); break;
        case AT_WORKER_MICRO:
            schedule(sim, w, sim->now + duration(sim, w, action.samples), AT_SIM_MICRO);
            break;
        case AT_WORKER_SEND: send_report(sim, w, &action.report); break;
        case AT_WORKER_ABANDON: break; /* a micro-batch under way ends when it would have */
        case AT_WORKER_FINISH: leave(sim, w); break;
        case AT_WORKER_WAIT: return;
        }
    }
}

/* Parameters may overtake each other on a bad network: only newer ones count. */
static bool take_params(at_sim_worker *w, at_sim_params *params)
{
    assert(params);
    if (w->newest && params->version <= w->newest->version) return false;
    at_sim_params_drop(w->newest);
    w->newest = at_sim_params_use(params);
    return true;
}

void at_sim_worker_event(at_sim *sim, const at_heap_entry *entry)
{
    at_sim_worker *w = &sim->worker[entry->worker - 1];
    if (!w->alive || entry->incarnation != w->incarnation) return;
    switch (entry->kind) {
    case AT_SIM_ORDER:
        if (entry->params) take_params(w, entry->params);
        if (entry->order->leave)
            on_leave(sim, w);
        else
            at_worker_feed(&w->machine, &(at_worker_event){.kind = AT_WORKER_ORDER,
                                                           .now = sim->now,
                                                           .order = *entry->order});
        break;
    case AT_SIM_PARAMS:
        if (take_params(w, entry->params))
            at_worker_feed(&w->machine, &(at_worker_event){.kind = AT_WORKER_NEWER,
                                                           .now = sim->now,
                                                           .version = w->newest->version});
        break;
    case AT_SIM_MICRO:
        if (entry->token == w->token) on_micro(sim, w);
        break;
    case AT_SIM_COMPUTED:
        if (entry->token == w->token) on_computed(sim, w);
        break;
    case AT_SIM_REPORT:
    case AT_SIM_GONE:
    case AT_SIM_RETURN: assert(!"something for the hub"); break;
    }
    run(sim, w);
}

void at_sim_worker_die(at_sim *sim, at_node worker)
{
    at_sim_worker *w = &sim->worker[worker - 1];
    assert(worker >= 1);
    if (w->ahead) replay(sim, w, sim->now);
    if (at_worker_in_round(&w->machine)) {
        w->drawn += w->machine.micro;
        if (!can_be_interrupted(w)) w->drawn += w->machine.work.samples; /* not booked yet */
    }
    at_pool_give(&sim->reports, w->pending);
    w->pending = NULL;
    w->alive = w->in_flight = w->ahead = false;
    at_sim_params_drop(w->newest);
    at_sim_params_drop(w->installed);
    w->newest = w->installed = NULL;
}

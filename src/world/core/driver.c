#include "world/core/driver.h"

#include <assert.h>

#include "base/clock.h"
#include "pace/pace.h"
#include "world/core/nonfinite.h"

void at_driver_init(at_driver *d, const at_driver_options *options)
{
    assert(options->context->plan);
    assert(options->transport.wait);
    assert(options->transport.take_order);
    assert(options->transport.send);
    assert(options->drawn);
    *d = (at_driver){.options = *options,
                     .version = AT_VERSION_NONE,
                     .params_due = AT_NEVER,
                     .idle_since = at_clock_now()};
    at_worker_init(&d->machine, options->context->plan, options->id, options->incarnation,
                   options->slots, options->sequence);
}

static void feed(at_driver *d, at_worker_event_kind kind, at_ns now)
{
    at_worker_feed(&d->machine, &(at_worker_event){.kind = kind, .now = now});
}

/* ---- induced delays ------------------------------------------------------------------------ */

static at_ns draw_delay(at_driver *d)
{
    const at_world_context *context = d->options.context;
    assert(context->comm_delay > 0);
    return at_comm_delay(context->comm_delay, context->seed, d->options.id, 2 * d->messages++ + 1);
}

/* The version that may be installed now. Under message delays the parameters of a self-starting
 * worker are a separate message: they are saved when available and installed when due, one at a
 * time. Other workers get them with their orders, which are delayed instead. */
static uint64_t newest_arrived(at_driver *d)
{
    const at_transport     *t = &d->options.transport;
    const at_world_context *context = d->options.context;
    uint64_t                newest = t->newest(t->self);
    bool apart = d->machine.plan->release->self_starting && d->version != AT_VERSION_NONE;
    if (context->comm_delay == 0 || !apart) return newest;
    if (d->params_due == AT_NEVER && newest != d->version) {
        d->params_version = t->fetch(t->self);
        d->params_due = at_clock_now() + draw_delay(d);
    }
    return d->params_due <= at_clock_now() ? d->params_version : d->version;
}

/* ---- events -------------------------------------------------------------------------------- */

static void poll_order(at_driver *d)
{
    const at_transport *t = &d->options.transport;
    if (!d->order_held) {
        if (!t->take_order(t->self, &d->order)) return;
        d->order_held = true;
        d->order_due = d->options.context->comm_delay > 0 ? at_clock_now() + draw_delay(d) : 0;
    }
    at_ns now = at_clock_now();
    if (now < d->order_due) return;
    d->order_held = false;
    at_worker_feed(&d->machine,
                   &(at_worker_event){.kind = AT_WORKER_ORDER, .now = now, .order = d->order});
}

static void poll_params(at_driver *d)
{
    bool in_round = d->sleeping || d->computing || d->machine.state == AT_WORKER_READY;
    if (!in_round || !at_plan_interrupts(d->machine.plan)) return;
    uint64_t newest = newest_arrived(d);
    if (newest == d->version) return;
    at_worker_feed(
        &d->machine,
        &(at_worker_event){.kind = AT_WORKER_NEWER, .now = at_clock_now(), .version = newest});
}

/* Feeds everything that has arrived; after LEAVE nothing more. */
static void poll_transport(at_driver *d)
{
    const at_transport *t = &d->options.transport;
    if (d->machine.leaving) return;
    if (t->leaves(t->self)) {
        feed(d, AT_WORKER_LEAVE, at_clock_now());
        return;
    }
    poll_order(d);
    poll_params(d);
}

/* ---- actions ------------------------------------------------------------------------------- */

static void install_fetched(at_driver *d)
{
    const at_transport *t = &d->options.transport;
    d->params_due = AT_NEVER;
    d->version = d->params_version;
    d->params = t->install(t->self);
}

/* Installs the newest arrived parameters, unless they are installed already. Those on their way to
 * a self-starting worker may be older than those of its first order behind a barrier. They are
 * installed all the same: the newer ones may be no more than the differences. */
static void install(at_driver *d)
{
    const at_transport *t = &d->options.transport;
    uint64_t            newest = newest_arrived(d);
    at_ns               begin = at_clock_now();
    bool                installs = newest != d->version;
    if (installs && d->params_due != AT_NEVER) install_fetched(d);
    if (newest != d->version) {
        d->params_version = t->fetch(t->self);
        install_fetched(d);
    }
    d->install_ns = installs ? at_clock_now() - begin : 0;
    at_worker_feed(&d->machine, &(at_worker_event){.kind = AT_WORKER_INSTALLED,
                                                   .now = at_clock_now(),
                                                   .version = d->version});
    assert(d->params);
    assert(d->version != AT_VERSION_NONE);
}

static void begin_sleep(at_driver *d)
{
    assert(!d->sleeping);
    assert(!d->computing);
    assert(!d->sending);
    const at_world_context *context = d->options.context;
    uint64_t                round = d->machine.work.round;
    at_ns                   nap = at_pace_sleep(context->pace, d->options.id, round);
    assert(nap >= 0);
    at_worker_resize(&d->machine, at_round_size_draw(&context->round_size, d->options.id, round,
                                                     d->machine.cut.samples_max));
    d->idle_ns = d->machine.begun - d->idle_since;
    d->spent = 0;
    d->done = 0;
    d->loss_sum = 0;
    d->gradient = NULL;
    d->early = false;
    d->until = d->machine.begun + nap;
    d->sleeping = nap > 0;
    if (!d->sleeping) feed(d, AT_WORKER_AWAKE, d->machine.begun);
    assert(d->idle_ns >= 0);
}

/* ---- ends of actions ------------------------------------------------------------------------ */

/* A duration of 0 is not used for predictions: the micro-batch was cut short. */
static void end_micro(at_driver *d, at_ns now, bool whole)
{
    assert(d->computing);
    assert(d->micro >= 1);
    at_worker_event event = {.kind = AT_WORKER_MICRO_DONE, .now = now};
    event.took = whole ? now - d->machine.end : 0;
    event.samples = d->micro;
    d->computing = d->padding = false;
    at_worker_feed(&d->machine, &event);
}

static bool try_send(at_driver *d)
{
    assert(d->sending);
    const at_transport *t = &d->options.transport;
    if (!t->send(t->self, &d->report)) return false;
    d->idle_since = at_clock_now();
    d->send_ns = d->idle_since - d->send_since;
    d->sending = false;
    feed(d, AT_WORKER_SENT, d->idle_since);
    assert(d->send_ns >= 0);
    return true;
}

/* For numbers that are not finite, in what the transport does not have yet: the rest was looked at
 * before, and may change by now. */
static void look(at_driver *d)
{
    const at_task *task = d->options.context->task;
    const at_plan *plan = d->machine.plan;
    at_work       *work = &d->report.work;
    if (!d->early) {
        at_nonfinite_look_and_clear(task, plan, d->gradient, work);
    } else if (!work->abandoned) {
        at_nonfinite_look_part(plan, d->gradient, 0, d->final_from, &d->bad);
        at_nonfinite_look_part(plan, d->gradient, task->trained, task->params - task->trained,
                               &d->bad);
        work->nonfinite = d->bad;
    }
}

static void begin_send(at_driver *d, const at_report *report)
{
    assert(!d->computing);
    assert(!d->sending);
    if (d->options.local && !report->work.abandoned) at_local_steps_end(d->options.local);
    d->report = *report;
    if (d->looks) look(d);
    d->report.work.loss_sum = d->loss_sum;
    d->report.work.idle_ns = d->idle_ns;
    d->report.work.install_ns = d->install_ns;
    d->report.work.send_ns = d->send_ns;
    d->send_since = at_clock_now();
    d->sleeping = d->padding = false;
    d->sending = true;
    try_send(d);
}

/* Feeds the end of a send, sleep or padding; false if none has ended. */
static bool feed_ended(at_driver *d)
{
    assert(!d->sleeping || !d->padding);
    if (d->sending) return try_send(d);
    if (!d->sleeping && !d->padding) return false;
    at_ns now = at_clock_now();
    if (now < d->until) return false;
    if (d->padding) {
        end_micro(d, now, true);
    } else {
        d->sleeping = false;
        feed(d, AT_WORKER_AWAKE, now);
    }
    return true;
}

/* When waiting ends if nothing arrives. */
static at_ns wake_at(const at_driver *d)
{
    at_ns at = d->sleeping || d->padding ? d->until : AT_NEVER;
    if (d->order_held && d->order_due < at) at = d->order_due;
    return at;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Counts the samples before they are computed, so that those of a dead worker are included. */
static void begin_micro(at_driver *d, const at_worker_action *action, at_micro *micro)
{
    assert(!d->computing);
    assert(action->samples >= 1);
    const at_driver_options *o = &d->options;
    const at_transport      *t = &o->transport;
    if (action->first) d->gradient = t->gradient(t->self, at_worker_slot(&d->machine));
    assert(d->params);
    assert(d->gradient);
    uint64_t drawn = atomic_load_explicit(o->drawn, memory_order_relaxed);
    assert(drawn >= o->redrawn);
    atomic_store_explicit(o->drawn, drawn + action->samples, memory_order_release);
    *micro = (at_micro){
        .point = {.params = d->params, .version = d->version, .lock = o->params_lock},
        .draw = {.worker = o->id, .position = drawn - o->redrawn, .count = action->samples},
        .first = action->first,
        .gradient = d->gradient};
    if (action->position != AT_POSITION_OWN) {
        micro->draw.position = action->position;
        micro->draw.common = true;
    }
    d->micro = action->samples;
    d->computing = true;
}

/* True when only the caller's consent to report is missing. Abandoned rounds need none. */
static bool awaits_consent(const at_driver *d)
{
    at_worker_state state = d->machine.state;
    if (!d->options.asks_to_report || d->machine.abandon) return false;
    return state == AT_WORKER_REPORTING ||
           (state == AT_WORKER_READY && !at_worker_has_more(&d->machine));
}

at_driver_status at_driver_turn(at_driver *d, at_micro *micro, at_ns until)
{
    const at_transport *t = &d->options.transport;
    assert(!d->computing || d->padding); /* at_driver_done comes first */
    uint32_t heard = 0;
    for (bool look = true, waited = false;;) {
        bool looked = look;
        if (look) {
            heard = t->heard(t->self);
            poll_transport(d);
        }
        if (awaits_consent(d)) return AT_DRIVER_ROUND_OVER;
        at_worker_action action = at_worker_step(&d->machine);
        look = false; /* poll again before waiting and before all but the first micro-batch */
        switch (action.kind) {
        case AT_WORKER_INSTALL: install(d); break;
        case AT_WORKER_SLEEP: begin_sleep(d); break;
        case AT_WORKER_MICRO: begin_micro(d, &action, micro); return AT_DRIVER_MICRO;
        case AT_WORKER_SEND:
            begin_send(d, &action.report);
            if (d->options.asks_to_report && !d->machine.leaving) return AT_DRIVER_ABANDONED;
            break;
        case AT_WORKER_ABANDON: end_micro(d, at_clock_now(), false); break;
        case AT_WORKER_FINISH: return AT_DRIVER_FINISHED;
        case AT_WORKER_WAIT:
            look = true;
            if (!looked || feed_ended(d)) break;
            if (waited && until != AT_NEVER) return AT_DRIVER_WAITING;
            t->wait(t->self, heard, wake_at(d) < until ? wake_at(d) : until);
            waited = until == AT_NEVER || t->interrupted(t->self) || at_clock_now() >= until;
            break;
        }
    }
}

bool at_driver_next(at_driver *d, at_micro *micro)
{
    assert(!d->options.asks_to_report);
    return at_driver_turn(d, micro, AT_NEVER) == AT_DRIVER_MICRO;
}

void at_driver_report(at_driver *d)
{
    assert(awaits_consent(d));
    at_worker_action action = at_worker_step(&d->machine);
    assert(action.kind == AT_WORKER_SEND);
    begin_send(d, &action.report);
}

void at_driver_return_micro(at_driver *d)
{
    if (!d->computing || d->padding) return;
    atomic_fetch_sub(d->options.drawn, d->micro);
    d->micro = 0;
}

void at_driver_shift(at_driver *d, at_ns by)
{
    assert(by >= 0);
    if (!at_worker_in_round(&d->machine)) return;
    at_worker_shift(&d->machine, by);
    d->until += by;
}

/* The earliest time at which the samples of this round may be done; 0: not padded. It counts from
 * the start of computing, so that oversleeping in one micro-batch shortens the next padding. */
static at_ns padded_end(const at_driver *d)
{
    assert(d->done >= 1);
    const at_world_context *context = d->options.context;
    double factor = at_pace_factor(context->pace, d->options.id, d->machine.work.round);
    double each = (double)context->sample_time * factor;
    if (context->sample_time > 0) return d->machine.awake + (at_ns)(each * d->done);
    return factor > 1 ? d->machine.awake + (at_ns)((double)d->spent * factor) : 0;
}

void at_driver_done(at_driver *d, uint32_t samples, double loss_sum)
{
    assert(d->computing);
    assert(!d->padding);
    assert(samples >= 1);
    at_ns now = at_clock_now();
    if (samples != d->micro) /* the ledger counts what was really drawn */
        atomic_fetch_add(d->options.drawn, (uint64_t)samples - d->micro);
    d->micro = samples;
    d->done += samples;
    d->loss_sum += loss_sum;
    d->spent += now - d->machine.end;
    d->until = padded_end(d);
    d->padding = d->until > now;
    if (!d->padding) end_micro(d, now, true);
}

/* A layer of the last micro-batch is done. */
static void on_final(void *self, size_t from)
{
    at_driver          *d = self;
    const at_transport *t = &d->options.transport;
    assert(d->early && from <= d->final_from);
    at_nonfinite_look_part(d->machine.plan, d->gradient, from, d->final_from - from, &d->bad);
    d->final_from = from;
    t->final(t->self, from);
}

/* If this is the round's last micro-batch, the transport learns what is final of its gradient. */
static double compute_gradient(at_driver *d, const at_micro *m)
{
    const at_task *task = d->options.context->task;
    bool           able = d->options.transport.final && task->watch;
    assert(!able || at_plan_sends_early(d->machine.plan));
    d->early = able && at_worker_decide_end(&d->machine);
    d->final_from = task->trained;
    d->bad = 0;
    if (d->early) task->watch(task->self, (at_gradient_watch){d, on_final});
    double loss = task->gradient(task->self, m->gradient, m->first, m->point, &m->draw);
    if (d->early) task->watch(task->self, (at_gradient_watch){0});
    return loss;
}

/* Returns the sum of losses. */
static double compute(at_driver *d, const at_micro *m, float *shared)
{
    const at_task  *task = d->options.context->task;
    at_local_steps *local = d->options.local;
    if (shared) return task->descend(task->self, shared, &m->draw);
    if (!local) return compute_gradient(d, m);
    if (m->first) at_local_steps_begin(local, m->point.params, m->gradient, d->machine.order.used);
    return at_local_steps_micro(local, &m->draw);
}

void at_driver_run(at_driver *d, float *shared)
{
    at_micro m;
    assert(d->options.context->task->gradient);
    assert(d->options.context->task->descend || !shared);
    d->looks = !shared;
    while (at_driver_next(d, &m)) at_driver_done(d, m.draw.count, compute(d, &m, shared));
}

/* ---- hub and worker in one process ---------------------------------------------------------- */

void at_inplace_order(at_inplace *place, const at_order *order)
{
    assert(order);
    place->order = *order;
    place->ordered = !order->leave;
    place->leaving = order->leave;
}

static bool take_inplace(void *self, at_order *order)
{
    at_inplace *place = self;
    assert(!place->ordered || !place->leaving);
    if (!place->ordered) return false;
    *order = place->order;
    place->ordered = false;
    place->in_round = true;
    return true;
}

static uint64_t newest_inplace(void *self)
{
    return ((at_inplace *)self)->hub->version;
}

static const float *params_inplace(void *self)
{
    return ((at_inplace *)self)->params;
}

static float *gradient_inplace(void *self, uint32_t slot)
{
    assert(slot == 0);
    return ((at_inplace *)self)->gradient;
}

at_transport at_inplace_transport(at_inplace *place)
{
    assert(place->hub);
    assert(place->params && place->gradient);
    return (at_transport){.self = place,
                          .take_order = take_inplace,
                          .newest = newest_inplace,
                          .fetch = newest_inplace,
                          .install = params_inplace,
                          .gradient = gradient_inplace};
}

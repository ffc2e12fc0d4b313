#include "step/worker.h"

#include <assert.h>

void at_worker_init(at_worker *worker, const at_plan *plan, at_node id, uint32_t incarnation,
                    uint32_t slots, uint64_t sequence)
{
    assert(plan->micro_batch >= 1);
    assert(id >= 1);
    assert(id <= plan->workers_max);
    assert(slots >= 1);
    *worker = (at_worker){.plan = plan,
                          .id = id,
                          .incarnation = incarnation,
                          .slots = slots,
                          .sequence = sequence,
                          .version = AT_VERSION_NONE};
}

uint32_t at_worker_slot(const at_worker *worker)
{
    assert(worker->slots >= 1);
    return (uint32_t)((worker->sequence + 1) % worker->slots);
}

/* ---- a round -------------------------------------------------------------------------------- */

bool at_worker_in_round(const at_worker *worker)
{
    return worker->state >= AT_WORKER_ORDERED && worker->state <= AT_WORKER_COMPUTING;
}

void at_worker_shift(at_worker *worker, at_ns by)
{
    assert(by >= 0);
    worker->begun += by;
    worker->awake += by;
    worker->end += by;
    if (worker->deadline != AT_NEVER) worker->deadline += by;
}

/* The deadline counts from here: installing parameters and sleeping are part of the time limit. */
static void begin_round(at_worker *worker, at_ns now)
{
    assert(!worker->leaving);
    assert(now >= worker->end);                 /* time does not run backwards */
    assert(worker->state == AT_WORKER_WAITING); /* one round at a time */
    const at_order *order = &worker->order;
    worker->deadline = order->time_limit == AT_NEVER ? AT_NEVER : now + order->time_limit;
    worker->position = order->position;
    worker->begun = worker->awake = worker->end = now;
    worker->newer = worker->abandon = worker->abandon_returned = worker->ordered = false;
    worker->last = false;
    worker->micro = 0;
    worker->work = (at_work){.round = order->round};
    worker->has_begun = true;
    at_cut_begin(&worker->cut, order, worker->deadline, worker->plan->micro_batch,
                 worker->plan->cut_after);
    if (worker->plan->own_batches) at_cut_own(&worker->cut);
    worker->state = AT_WORKER_ORDERED;
}

static void end_round(at_worker *worker)
{
    assert(worker->awake >= worker->begun);
    assert(worker->end >= worker->awake);
    assert(worker->work.samples >= 1 || worker->abandon);
    at_work *work = &worker->work;
    bool     timed = worker->deadline != AT_NEVER;
    assert(at_worker_in_round(worker));
    work->abandoned = worker->abandon;
    work->sleep_ns = worker->awake - worker->begun;
    work->compute_ns = worker->end - worker->awake;
    work->capped = work->samples >= worker->cut.samples_max;
    work->overslept = timed && worker->awake >= worker->deadline;
    work->overshoot_ns = timed ? worker->end - worker->deadline : 0;
    worker->state = AT_WORKER_REPORTING;
}

/* Invalidates the gradient. A sleep or a round between two micro-batches ends at once; a running
 * micro-batch is completed. */
static void abandon(at_worker *worker, at_ns now)
{
    assert(at_worker_in_round(worker));
    if (worker->abandon) return;
    worker->abandon = true;
    if (worker->state == AT_WORKER_SLEEPING) worker->awake = worker->end = now;
    if (worker->state != AT_WORKER_COMPUTING) end_round(worker);
}

/* ---- events --------------------------------------------------------------------------------- */

/* A pause names the round after the one that it lets the worker finish. If that one was never
 * begun, the pause has replaced its order: transports keep only the newest. */
static bool has_missed_order(const at_worker *worker, const at_order *order)
{
    bool idle = worker->state == AT_WORKER_WAITING ||
                (worker->state == AT_WORKER_SENDING && !worker->continues);
    if (!idle || worker->leaving || order->round == 0) return false;
    return !worker->has_begun || worker->work.round < order->round - 1;
}

static void on_pause(at_worker *worker, const at_order *order, at_ns now)
{
    assert(order->pause);
    if (!has_missed_order(worker, order)) return;
    worker->order.round = order->round - 1;
    if (worker->state == AT_WORKER_WAITING)
        begin_round(worker, now);
    else
        worker->ordered = true;
}

static void on_order(at_worker *worker, const at_worker_event *event)
{
    const at_order *order = &event->order;
    assert(!order->leave);
    /* A self-starting worker keeps counting its own rounds; an order only changes the amounts. The
     * hub may be several reports behind, and so may its pauses. */
    bool     counts = worker->order.again || order->pause;
    uint64_t round = counts ? worker->order.round : order->round;
    if (order->then && worker->plan->then) worker->plan = worker->plan->then;
    worker->order = *order;
    worker->order.round = round;
    if (order->pause) on_pause(worker, order, event->now);
    if (order->pause || worker->leaving) return;
    if (worker->state == AT_WORKER_WAITING)
        begin_round(worker, event->now);
    else /* while sending, it may be the order that the report asks for */
        worker->ordered =
            !order->again || (worker->state == AT_WORKER_SENDING && !worker->continues);
}

static void on_leave(at_worker *worker, at_ns now)
{
    worker->leaving = true;
    if (worker->state == AT_WORKER_WAITING)
        worker->state = AT_WORKER_DONE;
    else if (at_worker_in_round(worker))
        abandon(worker, now);
}

/* Would the hub, which has this version by now, drop the gradient of this round? */
static bool is_too_old(const at_worker *worker, uint64_t newest)
{
    const at_plan *plan = worker->plan;
    if (!plan->stale->interrupts || !plan->stale->interrupts(plan)) return false;
    if (newest <= worker->work.version) return false; /* the notice was late */
    return plan->stale->weight(plan, newest - worker->work.version) < 0;
}

/* Only a computation can be overtaken by newer parameters; otherwise the next round takes them. */
static void on_newer(at_worker *worker, const at_worker_event *event)
{
    at_ns now = event->now;
    if (!at_worker_in_round(worker) || worker->state < AT_WORKER_SLEEPING || worker->leaving)
        return;
    if (is_too_old(worker, event->version)) {
        abandon(worker, now);
        return;
    }
    switch (worker->plan->newer->choice) {
    case AT_NEWER_FINISH: break;
    case AT_NEWER_ABANDON: abandon(worker, now); break;
    case AT_NEWER_REFRESH: worker->newer = true; break;
    }
}

static void on_installed(at_worker *worker, const at_worker_event *event)
{
    assert(event->version != AT_VERSION_NONE);
    assert(event->version >= worker->version || worker->version == AT_VERSION_NONE);
    if (worker->state == AT_WORKER_REPORTING) return; /* ordered to leave meanwhile */
    assert(worker->state == AT_WORKER_INSTALLING);
    bool refreshed = worker->newer;
    worker->version = event->version;
    worker->newer = false;
    if (worker->work.samples == 0) worker->work.version = event->version;
    if (refreshed) {
        worker->state = AT_WORKER_READY;
        return;
    }
    worker->begun = worker->awake = worker->end = event->now;
    worker->state = AT_WORKER_STARTING;
}

static void on_awake(at_worker *worker, at_ns now)
{
    assert(now >= worker->begun);
    assert(worker->state == AT_WORKER_SLEEPING);
    worker->awake = worker->end = now;
    worker->state = AT_WORKER_READY;
}

static void on_micro_done(at_worker *worker, const at_worker_event *event)
{
    assert(event->now >= worker->end);
    assert(worker->state == AT_WORKER_COMPUTING);
    assert(worker->micro > 0);
    assert(event->samples > 0);
    at_cut_done(&worker->cut, event->samples, event->took);
    worker->work.samples += event->samples;
    worker->micro = 0;
    worker->end = event->now;
    worker->state = AT_WORKER_READY;
    if (worker->abandon) end_round(worker);
}

static void on_sent(at_worker *worker, at_ns now)
{
    assert(now >= worker->end);
    assert(worker->state == AT_WORKER_SENDING);
    worker->state = AT_WORKER_WAITING;
    if (worker->leaving) {
        worker->state = AT_WORKER_DONE;
    } else if (worker->ordered) {
        begin_round(worker, now);
    } else if (worker->continues) {
        worker->order.round++;
        begin_round(worker, now);
    }
}

void at_worker_feed(at_worker *worker, const at_worker_event *event)
{
    assert(worker->state != AT_WORKER_DONE);
    switch (event->kind) {
    case AT_WORKER_ORDER: on_order(worker, event); break;
    case AT_WORKER_LEAVE: on_leave(worker, event->now); break;
    case AT_WORKER_NEWER: on_newer(worker, event); break;
    case AT_WORKER_INSTALLED: on_installed(worker, event); break;
    case AT_WORKER_AWAKE: on_awake(worker, event->now); break;
    case AT_WORKER_MICRO_DONE: on_micro_done(worker, event); break;
    case AT_WORKER_SENT: on_sent(worker, event->now); break;
    }
}

void at_worker_resize(at_worker *worker, uint32_t samples)
{
    assert(worker->state == AT_WORKER_SLEEPING);
    assert(worker->cut.done == 0);
    assert(samples >= 1);
    assert(samples <= worker->cut.samples_max + worker->plan->drawn_extra);
    worker->cut.samples_max = samples;
}

void at_worker_rewind(at_worker *worker, double sample_ns)
{
    assert(worker->state >= AT_WORKER_SLEEPING && worker->state <= AT_WORKER_COMPUTING);
    assert(!worker->abandon);
    assert(!worker->leaving);
    worker->state = AT_WORKER_SLEEPING;
    worker->awake = worker->end = worker->begun;
    worker->micro = 0;
    worker->last = false;
    worker->work = (at_work){.round = worker->work.round, .version = worker->work.version};
    at_cut_rewind(&worker->cut, sample_ns);
}

/* ---- actions -------------------------------------------------------------------------------- */

/* Leaves the report alone: clearing it would be most of the cost of a simulated micro-batch. */
static at_worker_action plain_action(at_worker_action_kind kind)
{
    at_worker_action action;
    assert(kind <= AT_WORKER_FINISH);
    action.kind = kind;
    action.samples = 0;
    action.position = 0;
    action.first = false;
    return action;
}

static at_worker_action begin(at_worker *worker, at_worker_action_kind kind, at_worker_state state)
{
    assert(state != worker->state); /* an action is begun once */
    worker->state = state;
    return plain_action(kind);
}

/* The report does not change after this. */
static at_worker_action send_report(at_worker *worker)
{
    assert(worker->state == AT_WORKER_REPORTING);
    assert(worker->micro == 0);
    at_worker_action action = begin(worker, AT_WORKER_SEND, AT_WORKER_SENDING);
    action.report = (at_report){.work = worker->work,
                                .incarnation = worker->incarnation,
                                .slot = at_worker_slot(worker),
                                .sequence = worker->sequence + 1,
                                .again = worker->order.again};
    worker->continues = worker->order.again;
    worker->sequence++;
    return action;
}

static uint32_t next_samples(const at_worker *worker)
{
    return worker->last ? 0 : at_cut_next(&worker->cut, worker->end);
}

bool at_worker_has_more(const at_worker *worker)
{
    return worker->state == AT_WORKER_READY && next_samples(worker) > 0;
}

bool at_worker_decide_end(at_worker *worker)
{
    assert(worker->state == AT_WORKER_COMPUTING);
    assert(worker->micro > 0);
    worker->last =
        !worker->plan->own_batches && at_cut_is_last(&worker->cut, worker->micro, worker->end);
    return worker->last;
}

/* The next micro-batch, or the end of the round. */
static at_worker_action next_micro(at_worker *worker)
{
    assert(worker->state == AT_WORKER_READY);
    assert(worker->micro == 0);
    assert(!worker->abandon);
    uint32_t samples = next_samples(worker);
    if (samples == 0) {
        end_round(worker);
        return send_report(worker);
    }
    if (worker->newer) return begin(worker, AT_WORKER_INSTALL, AT_WORKER_INSTALLING);
    worker->micro = samples;
    at_worker_action action = begin(worker, AT_WORKER_MICRO, AT_WORKER_COMPUTING);
    action.samples = worker->micro;
    action.first = worker->work.samples == 0;
    action.position = worker->position;
    if (action.position != AT_POSITION_OWN) action.position += worker->work.samples;
    return action;
}

static at_worker_action watch_micro(at_worker *worker)
{
    assert(worker->micro > 0);
    assert(worker->abandon || !worker->abandon_returned);
    bool abandons = worker->abandon && !worker->abandon_returned;
    worker->abandon_returned = worker->abandon;
    return plain_action(abandons ? AT_WORKER_ABANDON : AT_WORKER_WAIT);
}

at_worker_action at_worker_step(at_worker *worker)
{
    switch (worker->state) {
    case AT_WORKER_ORDERED: return begin(worker, AT_WORKER_INSTALL, AT_WORKER_INSTALLING);
    case AT_WORKER_STARTING: return begin(worker, AT_WORKER_SLEEP, AT_WORKER_SLEEPING);
    case AT_WORKER_READY: return next_micro(worker);
    case AT_WORKER_COMPUTING: return watch_micro(worker);
    case AT_WORKER_REPORTING: return send_report(worker);
    case AT_WORKER_DONE: return plain_action(AT_WORKER_FINISH);
    case AT_WORKER_WAITING:
    case AT_WORKER_INSTALLING:
    case AT_WORKER_SLEEPING:
    case AT_WORKER_SENDING: break;
    }
    return plain_action(AT_WORKER_WAIT);
}

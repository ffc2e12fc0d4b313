#include "world/core/worker_loop.h"

#include <assert.h>

#include "base/clock.h"
#include "pace/pace.h"
#include "step/worker.h"
#include "world/core/compute.h"

typedef struct node {
    at_transport port;
    at_worker    machine;
    at_computer  computer;
    const float *params;         /* installed */
    uint64_t     version;        /* of the installed ones */
    uint64_t     coming_version; /* of newer ones that a slow network has not brought yet */
    at_ns        coming_due;     /* AT_NEVER: none are on their way */
    double       delay_sigma;
    uint64_t     seed, messages;
    bool         leave_seen;
    bool         abandon; /* the running computation is void */
    bool         done;
    bool         follows; /* the last action led to an event: */
    at_event     next;
    at_ns        idle_since;
    at_ns        send_ns, install_ns;
} node;

static void deliver(node *n, const at_event *event);

/* ---- parameters ---------------------------------------------------------------------------- */

static at_ns draw_delay(node *n)
{
    return at_comm_delay(n->delay_sigma, n->seed, n->machine.id, 2 * n->messages++ + 1);
}

/* With a slow network the parameters of a worker that starts by itself are a message of their own:
 * they are put aside when they are there to be had, and may be used when their time has come. One
 * is under way at a time. Other workers get them with their orders, which are late instead. */
static uint64_t newest_brought(node *n)
{
    uint64_t newest = n->port.newest(n->port.self);
    bool     apart = n->machine.plan->release->self_starting && n->version != AT_VERSION_NONE;
    if (n->delay_sigma == 0 || !apart) return newest;
    if (n->coming_due == AT_NEVER && newest != n->version) {
        n->coming_version = n->port.fetch(n->port.self);
        n->coming_due = at_clock_now() + draw_delay(n);
    }
    return n->coming_due <= at_clock_now() ? n->coming_version : n->version;
}

/* Takes the newest parameters that are here, unless they are the ones we have. */
static void install(node *n)
{
    n->install_ns = 0;
    if (newest_brought(n) == n->version) return;
    at_ns begin = at_clock_now();
    if (n->coming_due == AT_NEVER) n->coming_version = n->port.fetch(n->port.self);
    n->coming_due = AT_NEVER;
    n->version = n->coming_version;
    n->params = n->port.install(n->port.self);
    n->install_ns = at_clock_now() - begin;
}

/* ---- orders -------------------------------------------------------------------------------- */

/* An order that a slow network has not brought yet. */
static void await_delay(const node *n, at_ns until)
{
    while (at_clock_now() < until) {
        uint32_t heard = n->port.heard(n->port.self);
        if (n->port.leaves(n->port.self)) return;
        n->port.wait(n->port.self, heard, until);
    }
}

static bool news_of_orders(node *n)
{
    at_event event = {.kind = AT_EV_MESSAGE, .now = at_clock_now()};
    if (!n->leave_seen && n->port.leaves(n->port.self)) {
        n->leave_seen = true;
        event.as.order.leave = true;
        deliver(n, &event);
        return true;
    }
    if (!n->port.take_order(n->port.self, &event.as.order)) return false;
    if (n->delay_sigma > 0) {
        await_delay(n, event.now + draw_delay(n));
        event.now = at_clock_now();
    }
    deliver(n, &event);
    return true;
}

/* ---- the ground under a computation -------------------------------------------------------- */

static bool interrupted(void *self)
{
    node *n = self;
    if (n->port.poll) n->port.poll(n->port.self);
    if (n->port.leaves(n->port.self)) news_of_orders(n);
    if (n->machine.plan->newer->choice == AT_NEWER_FINISH) return n->abandon;
    uint64_t newest = newest_brought(n);
    if (newest != n->version) {
        at_event event = {.kind = AT_EV_NEWER, .now = at_clock_now(), .as.newer.version = newest};
        deliver(n, &event);
    }
    return n->abandon;
}

static void sleep_on_ground(void *self, at_ns until)
{
    node    *n = self;
    uint32_t heard = n->port.heard(n->port.self);
    if (!n->port.leaves(n->port.self)) n->port.wait(n->port.self, heard, until);
}

static const float *installed(void *self, uint64_t *version)
{
    node *n = self;
    assert(n->params);
    *version = n->version;
    return n->params;
}

/* ---- actions ------------------------------------------------------------------------------- */

static void compute(node *n, const at_action *action)
{
    at_ns begin = at_clock_now();
    n->abandon = false;
    float   *gradient = n->port.gradient(n->port.self, at_worker_slot(&n->machine));
    at_event event = {.kind = AT_EV_COMPUTED};
    at_ns    idle = begin - n->idle_since, install_ns = n->install_ns;
    event.as.work = at_compute_round(&n->computer, &action->as.compute.order,
                                     action->as.compute.deadline, gradient);
    event.as.work.idle_ns = idle;
    event.as.work.install_ns = install_ns;
    event.as.work.send_ns = n->send_ns;
    event.now = at_clock_now();
    n->next = event;
    n->follows = true;
}

static void send_report(node *n, const at_report *report)
{
    at_ns begin = at_clock_now();
    n->port.send(n->port.self, report);
    n->idle_since = at_clock_now();
    n->send_ns = n->idle_since - begin;
    n->next = (at_event){.kind = AT_EV_SENT, .now = n->idle_since};
    n->follows = true;
}

static void perform(node *n, const at_action *action)
{
    switch (action->kind) {
    case AT_ACT_INSTALL: install(n); break;
    case AT_ACT_COMPUTE: compute(n, action); break;
    case AT_ACT_ABANDON: n->abandon = true; break;
    case AT_ACT_SEND: send_report(n, &action->as.report); break;
    case AT_ACT_FINISH: n->done = true; break;
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
static void deliver(node *n, const at_event *event)
{
    at_event now = *event;
    do {
        at_action actions[4];
        at_out    out = {.actions = actions, .size = 4};
        at_worker_step(&n->machine, &now, &out);
        n->follows = false;
        for (size_t i = 0; i < out.count; i++) perform(n, &actions[i]);
        now = n->next;
    } while (n->follows);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void open_node(node *n, const at_worker_loop_start *start)
{
    const at_world_context *context = start->context;
    *n = (node){.port = start->port,
                .version = AT_VERSION_NONE,
                .coming_due = AT_NEVER,
                .delay_sigma = context->comm_delay,
                .seed = context->seed,
                .idle_since = at_clock_now()};
    at_worker_init(&n->machine, context->plan, start->id, start->incarnation, start->slots,
                   start->sequence);
    n->computer = (at_computer){.plan = context->plan,
                                .task = context->task,
                                .pace = context->pace,
                                .id = start->id,
                                .sample_time = context->sample_time,
                                .ground = {n, interrupted, sleep_on_ground, installed},
                                .params_lock = start->params_lock,
                                .shared = start->shared,
                                .drawn = start->drawn};
}

void at_worker_loop_run(const at_worker_loop_start *start)
{
    node n;
    assert(start->drawn);
    open_node(&n, start);
    while (!n.done) {
        uint32_t heard = n.port.heard(n.port.self);
        if (!news_of_orders(&n)) n.port.wait(n.port.self, heard, AT_NEVER);
    }
}

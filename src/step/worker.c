#include "step/worker.h"

#include <assert.h>

void at_worker_init(at_worker *worker, const at_plan *plan, at_node id, uint32_t incarnation,
                    uint32_t slots, uint64_t sequence)
{
    assert(id >= 1);
    assert(id <= plan->workers);
    assert(slots >= 1);
    *worker = (at_worker){
        .plan = plan, .id = id, .incarnation = incarnation, .slots = slots, .sequence = sequence};
}

uint32_t at_worker_slot(const at_worker *worker)
{
    return (uint32_t)((worker->sequence + 1) % worker->slots);
}

static void finish(at_worker *worker, at_out *out)
{
    worker->state = AT_WORKER_DONE;
    at_out_push(out, AT_ACT_FINISH);
}

static void begin_round(at_worker *worker, at_ns now, at_out *out)
{
    assert(worker->state != AT_WORKER_COMPUTING); /* one computation at a time */
    const at_order *order = &worker->order;
    at_out_push(out, AT_ACT_INSTALL);
    at_action *compute = at_out_push(out, AT_ACT_COMPUTE);
    compute->as.compute.order = *order;
    compute->as.compute.deadline =
        order->time_limit == AT_NEVER ? AT_NEVER : now + order->time_limit;
    worker->state = AT_WORKER_COMPUTING;
    worker->ordered = false;
}

static void on_order(at_worker *worker, const at_event *event, at_out *out)
{
    const at_order *order = &event->as.order;
    if (order->leave) {
        worker->leaving = true;
        if (worker->state == AT_WORKER_WAITING) finish(worker, out);
        if (worker->state == AT_WORKER_COMPUTING) at_out_push(out, AT_ACT_ABANDON);
        return;
    }
    /* A self-starting worker keeps counting its own rounds; an order only changes the amounts. */
    uint64_t round = worker->order.again ? worker->order.round : order->round;
    worker->order = *order;
    worker->order.round = round;
    if (order->pause) return;
    if (worker->state == AT_WORKER_WAITING)
        begin_round(worker, event->now, out);
    else /* while we send, it may be the order that our report has asked for */
        worker->ordered = !order->again || (worker->state == AT_WORKER_SENDING && !worker->goes_on);
}

/* Only a computation can be overtaken by a newer version; otherwise the next round takes it. */
static void on_newer(at_worker *worker, at_out *out)
{
    if (worker->state != AT_WORKER_COMPUTING || worker->leaving) return;
    switch (worker->plan->newer->choice) {
    case AT_NEWER_FINISH: break;
    case AT_NEWER_ABANDON: at_out_push(out, AT_ACT_ABANDON); break;
    case AT_NEWER_REFRESH: at_out_push(out, AT_ACT_INSTALL); break;
    }
}

static void on_computed(at_worker *worker, const at_event *event, at_out *out)
{
    assert(worker->state == AT_WORKER_COMPUTING);
    at_action *send = at_out_push(out, AT_ACT_SEND);
    send->as.report = (at_report){.work = event->as.work,
                                  .incarnation = worker->incarnation,
                                  .slot = at_worker_slot(worker),
                                  .sequence = worker->sequence + 1,
                                  .again = worker->order.again};
    worker->goes_on = worker->order.again;
    worker->sequence++;
    worker->state = AT_WORKER_SENDING;
}

static void on_sent(at_worker *worker, const at_event *event, at_out *out)
{
    assert(worker->state == AT_WORKER_SENDING);
    worker->state = AT_WORKER_WAITING;
    if (worker->leaving) {
        finish(worker, out);
    } else if (worker->ordered) {
        begin_round(worker, event->now, out);
    } else if (worker->goes_on) {
        worker->order.round++;
        begin_round(worker, event->now, out);
    }
}

void at_worker_step(at_worker *worker, const at_event *event, at_out *out)
{
    assert(worker->state != AT_WORKER_DONE);
    switch (event->kind) {
    case AT_EV_START: break;
    case AT_EV_MESSAGE: on_order(worker, event, out); break;
    case AT_EV_NEWER: on_newer(worker, out); break;
    case AT_EV_COMPUTED: on_computed(worker, event, out); break;
    case AT_EV_SENT: on_sent(worker, event, out); break;
    case AT_EV_STOP: finish(worker, out); break;
    case AT_EV_JOINED:
    case AT_EV_LOST:
    case AT_EV_APPLIED:
    case AT_EV_EVALUATED:
    case AT_EV_TIMER: assert(!"an event of the hub"); break;
    }
}

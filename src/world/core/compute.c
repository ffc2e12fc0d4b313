#include "world/core/compute.h"

#include <assert.h>

#include "base/clock.h"

/* Sleeps to the end, however often news wakes it, unless the news ends the computation. */
static bool sleep_through(const at_ground *ground, at_ns until)
{
    while (at_clock_now() < until) {
        ground->sleep(ground->self, until);
        if (at_clock_now() < until && ground->interrupted(ground->self)) return false;
    }
    return true;
}

/* When `samples` samples of this round should be done at the earliest. Measured from the start of
 * computing, so that what a sleep oversleeps is made up for in the next micro-batch. */
static at_ns paced_end(const at_computer *c, at_ns computing_since, uint32_t samples, at_ns spent)
{
    double factor = at_pace_factor(c->pace, c->id);
    double each = (double)c->sample_time * factor;
    if (c->sample_time > 0) return computing_since + (at_ns)(each * samples);
    return factor > 1 ? computing_since + (at_ns)((double)spent * factor) : 0;
}

/* The clock of one round. */
typedef struct round_clock {
    at_ns since; /* start of computing */
    at_ns now;   /* end of the last micro-batch */
    at_ns spent; /* in gradients, without padding */
} round_clock;

/* One micro-batch of `samples`; false when it was interrupted. */
static bool micro_batch(at_computer *c, const at_order *order, at_work *work, float *gradient,
                        uint32_t samples, round_clock *clock)
{
    uint64_t drawn = atomic_load_explicit(c->drawn, memory_order_relaxed);
    atomic_store_explicit(c->drawn, drawn + samples, memory_order_release);
    at_draw draw = {.worker = c->id, .position = drawn, .count = samples};
    if (order->position != AT_POSITION_OWN) {
        draw.position = order->position + work->samples;
        draw.common = true;
    }
    at_point point = {.lock = c->params_lock};
    point.params = c->ground.params(c->ground.self, &point.version);
    bool first = work->samples == 0;
    if (first) work->version = point.version;
    work->loss_sum += c->shared ? c->task->descend(c->task->self, c->shared, &draw)
                                : c->task->gradient(c->task->self, gradient, first, point, &draw);
    work->samples += samples;
    at_ns begin = clock->now;
    clock->now = at_clock_now();
    clock->spent += clock->now - begin;
    at_ns end = paced_end(c, clock->since, work->samples, clock->spent);
    bool  whole = end == 0 || sleep_through(&c->ground, end);
    if (end != 0) clock->now = at_clock_now();
    if (whole) at_cut_done(&c->cut, samples, clock->now - begin);
    return whole;
}

at_work at_compute_round(at_computer *c, const at_order *order, at_ns deadline, float *gradient)
{
    at_work work = {.round = order->round};
    at_ns   begin = at_clock_now();
    at_ns   nap = at_pace_sleep(c->pace, c->id, order->round);
    assert(nap >= 0);
    if (nap > 0) work.abandoned = !sleep_through(&c->ground, begin + nap);
    at_ns       awake = nap > 0 ? at_clock_now() : begin;
    round_clock clock = {.since = awake, .now = awake};

    at_cut_begin(&c->cut, order, deadline, c->plan->micro_batch, c->plan->cut_after);
    for (uint32_t samples; !work.abandoned && (samples = at_cut_next(&c->cut, clock.now)) > 0;)
        work.abandoned = c->ground.interrupted(c->ground.self) ||
                         !micro_batch(c, order, &work, gradient, samples, &clock);
    work.sleep_ns = awake - begin;
    work.compute_ns = clock.now - awake;
    work.capped = work.samples == order->samples_max;
    work.overslept = deadline != AT_NEVER && awake >= deadline;
    work.overshoot_ns = deadline == AT_NEVER ? 0 : clock.now - deadline;
    return work;
}

bool at_compute_order(at_worker *machine, at_computer *computer, const at_order *order,
                      float *gradient, at_report *report)
{
    at_action actions[4];
    at_out    out = {.actions = actions, .size = 4};
    at_event  event = {.kind = AT_EV_MESSAGE, .now = at_clock_now(), .as.order = *order};
    at_worker_step(machine, &event, &out);
    if (out.actions[out.count - 1].kind == AT_ACT_FINISH) return false;
    assert(out.count == 2);
    assert(out.actions[1].kind == AT_ACT_COMPUTE);
    at_ns deadline = out.actions[1].as.compute.deadline;
    event = (at_event){.kind = AT_EV_COMPUTED};
    event.as.work = at_compute_round(computer, order, deadline, gradient);
    event.now = at_clock_now();
    out.count = 0;
    at_worker_step(machine, &event, &out);
    assert(out.actions[0].kind == AT_ACT_SEND);
    *report = out.actions[0].as.report;
    event = (at_event){.kind = AT_EV_SENT, .now = event.now};
    out.count = 0;
    at_worker_step(machine, &event, &out);
    assert(out.count == 0);
    return true;
}

/* Behind a barrier, with arrivals sorted,
 *
 *     worker 1  ──────┤
 *     worker 2  ───────┤            half are done: from here on
 *     worker 3  ───────┊─────┤      this gap is due to 3 and 4, half each,
 *     worker 4  ───────┊─────┊────┤ this one to 4 alone
 *                               close
 *
 * This is the Shapley value of the game "how late does the step close": what a worker adds to it,
 * averaged over all orders of adding workers. One slow worker among equals is blamed for exactly
 * its extra time; two equally slow ones for half of it each.
 *
 * The hub of the local world wakes up once per step and reads all reports then, so the arrival of a
 * report is the earlier of two times: when it was read, and the end of its round plus the delivery
 * time of the last report of the step. */
#include "report/summary/blame.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

enum { RING = 8 }; /* recent rounds per worker, which may still be used or dropped */

/* Reports read within this time were read in the same wakeup of the hub. */
static const at_ns same_wakeup = AT_US(200);

typedef struct busy_round {
    uint64_t sequence;
    at_ns    busy;
} busy_round;

typedef struct worker_state {
    at_blame_totals sum;
    bool            present;
    bool            ordered;       /* has an order in the open step */
    bool            done;          /* ... and has reported, or never will */
    at_ns           end, at;       /* end of that round, and when its report was read */
    bool            waiting;       /* has reported and has no new order */
    at_ns           waiting_since; /* valid while waiting */
    busy_round      ring[RING];
    uint64_t        rounds;
} worker_state;

typedef struct arrival {
    at_ns    at;
    uint32_t worker; /* index */
} arrival;

struct at_blame {
    const at_plan *plan;
    uint32_t       live;
    at_node        cause; /* worker of the latest report or loss; 0: none */
    arrival       *arrivals;
    worker_state   worker[];
};

at_blame *at_blame_new(const at_plan *plan)
{
    assert(plan->workers_max >= 1);
    at_blame *b = calloc(1, sizeof *b + plan->workers_max * sizeof *b->worker);
    if (!b) return NULL;
    b->plan = plan;
    b->arrivals = calloc(plan->workers_max, sizeof *b->arrivals);
    if (b->arrivals) return b;
    free(b);
    return NULL;
}

void at_blame_free(at_blame *blame)
{
    if (!blame) return;
    free(blame->arrivals);
    free(blame);
}

static worker_state *find(at_blame *blame, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= blame->plan->workers_max);
    return &blame->worker[worker - 1];
}

void at_blame_join(at_blame *blame, at_node worker)
{
    worker_state *w = find(blame, worker);
    if (!w->present) blame->live++;
    w->present = true;
    w->waiting = false;
    blame->cause = 0;
}

void at_blame_lost(at_blame *blame, at_node worker, at_ns at, bool returns)
{
    worker_state *w = find(blame, worker);
    if (w->present) blame->live--;
    w->present = w->waiting = false;
    blame->cause = worker;
    if (!w->ordered || w->done || returns) return;
    w->done = true;
    w->end = w->at = at;
}

/* With a bound on staleness, the worker whose report releases another one kept it waiting. */
static void blame_release(at_blame *blame, const worker_state *released, at_ns at)
{
    uint32_t others = blame->live > 1 ? blame->live - 1 : 1;
    if (!blame->plan->release->looks_at_others || blame->plan->release->holds) return;
    if (!released->waiting || blame->cause == 0) return;
    worker_state *late = find(blame, blame->cause);
    if (late != released) late->sum.waited += at_seconds(at - released->waiting_since) / others;
}

void at_blame_order(at_blame *blame, at_node worker, at_ns at)
{
    worker_state *w = find(blame, worker);
    blame_release(blame, w, at);
    w->waiting = false;
    w->ordered = true;
    w->done = false;
}

void at_blame_report(at_blame *blame, at_node worker, const at_report *report, at_ns end,
                     at_ns busy, at_ns at)
{
    worker_state *w = find(blame, worker);
    assert(end <= at);
    w->done = true;
    w->end = end;
    w->at = at;
    w->waiting = true;
    w->waiting_since = at;
    w->ring[w->rounds++ % RING] = (busy_round){.sequence = report->sequence, .busy = busy};
    blame->cause = worker;
}

/* The busy time of a reported round; false for a round that a dead worker never reported. */
static bool find_busy(const worker_state *w, uint64_t sequence, at_ns *busy)
{
    for (int i = 0; i < RING; i++) {
        if (w->ring[i].sequence != sequence || sequence == 0) continue;
        *busy = w->ring[i].busy;
        return true;
    }
    return false;
}

void at_blame_drop(at_blame *blame, const at_action *drop, at_ns since, at_ns at)
{
    worker_state *w = find(blame, drop->worker);
    at_ns         busy = at > since ? at - since : 0;
    at_drop       why = drop->as.drop.why;
    assert(drop->kind == AT_ACT_DROP);
    if (why == AT_DROP_STOPPED) return; /* the end of a run always interrupts some rounds */
    if (!find_busy(w, drop->as.drop.sequence, &busy) && why != AT_DROP_LOST) return;
    w->sum.wasted += at_seconds(busy);
}

/* ---- closing a step ------------------------------------------------------------------------ */

/* Delivery time of the last report: the shortest among those read in the same wakeup. */
static at_ns last_delivery_time(const at_blame *blame)
{
    at_ns last = 0, delivery = AT_NEVER;
    for (uint32_t i = 0; i < blame->plan->workers_max; i++) {
        const worker_state *w = &blame->worker[i];
        if (w->ordered && w->done && w->at > last) last = w->at;
    }
    for (uint32_t i = 0; i < blame->plan->workers_max; i++) {
        const worker_state *w = &blame->worker[i];
        if (!w->ordered || !w->done || w->at < last - same_wakeup) continue;
        if (w->at - w->end < delivery) delivery = w->at - w->end;
    }
    return delivery;
}

static uint32_t collect_arrivals(at_blame *blame, at_ns closed)
{
    at_ns    delivery = last_delivery_time(blame);
    uint32_t count = 0;
    for (uint32_t i = 0; i < blame->plan->workers_max; i++) {
        worker_state *w = &blame->worker[i];
        if (!w->ordered) continue;
        at_ns at = closed;
        if (w->done && w->at < at) at = w->at;
        if (w->done && delivery != AT_NEVER && w->end + delivery < at) at = w->end + delivery;
        blame->arrivals[count++] = (arrival){.at = at, .worker = i};
        w->ordered = w->done = false;
    }
    assert(count <= blame->plan->workers_max);
    return count;
}

static int by_time(const void *a, const void *b)
{
    const arrival *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

void at_blame_close(at_blame *blame, at_ns at)
{
    double share = 0;
    if (!blame->plan->release->holds) return;
    uint32_t count = collect_arrivals(blame, at);
    if (count < 2) return;
    qsort(blame->arrivals, count, sizeof *blame->arrivals, by_time);
    for (uint32_t i = (count + 1) / 2; i < count; i++) { /* i workers are done before this one */
        at_ns gap = blame->arrivals[i].at - blame->arrivals[i - 1].at;
        assert(gap >= 0);
        share += at_seconds(gap) / (count - i);
        blame->worker[blame->arrivals[i].worker].sum.waited += share;
    }
}

void at_blame_skip(at_blame *blame)
{
    blame->cause = 0;
    for (uint32_t i = 0; i < blame->plan->workers_max; i++) {
        worker_state *w = &blame->worker[i];
        w->ordered = w->done = w->waiting = false;
    }
}

at_blame_totals at_blame_of(const at_blame *blame, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= blame->plan->workers_max);
    return blame->worker[worker - 1].sum;
}

/* Behind a barrier, with arrivals sorted,
 *
 *     worker 1  ──────┤
 *     worker 2  ───────┤            half are done: from here on
 *     worker 3  ───────┊─────┤      this gap is due to 3 and 4, half each,
 *     worker 4  ───────┊─────┊────┤ this one to 4 alone
 *                               close
 *
 * which is the Shapley value of the game "how late does the step close": what a worker adds to it,
 * averaged over all orders in which one could add them. One slow worker among equals is blamed for
 * exactly what it is slower by; two equally slow ones for half of it each.
 *
 * The hub of the local world is woken once a step and reads all reports then, so an arrival is the
 * earlier one of two: when it was read, and when its round ended plus the way that the last report
 * of the step took. */
#include "report/summary/blame.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

enum { RING = 8 }; /* rounds of a worker whose fate is still open */

static const at_ns together = AT_US(200); /* reports that one wake of the hub reads */

typedef struct busy_round {
    uint64_t sequence;
    at_ns    busy;
} busy_round;

typedef struct suspect {
    at_blamed  sum;
    bool       here;
    bool       awaited;  /* has an order in the open step */
    bool       done;     /* and has reported, or will never */
    at_ns      end, at;  /* of the round that is done, and when that was read */
    bool       waits;    /* has reported and has no order */
    at_ns      waits_at; /* since then */
    busy_round ring[RING];
    uint64_t   rounds;
} suspect;

typedef struct arrival {
    at_ns    at;
    uint32_t worker; /* index */
} arrival;

struct at_blame {
    const at_plan *plan;
    uint32_t       live;
    uint32_t       cause; /* index + 1 of the worker whose report or loss came last; 0: none */
    arrival       *arrivals;
    suspect        suspect[];
};

at_blame *at_blame_new(const at_plan *plan)
{
    assert(plan->workers >= 1);
    at_blame *b = calloc(1, sizeof *b + plan->workers * sizeof *b->suspect);
    if (!b) return NULL;
    b->plan = plan;
    b->arrivals = calloc(plan->workers, sizeof *b->arrivals);
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

static suspect *find(at_blame *blame, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= blame->plan->workers);
    return &blame->suspect[worker - 1];
}

void at_blame_join(at_blame *blame, at_node worker)
{
    suspect *s = find(blame, worker);
    if (!s->here) blame->live++;
    s->here = true;
    s->waits = false;
    blame->cause = 0;
}

void at_blame_lost(at_blame *blame, at_node worker, at_ns at, bool returns)
{
    suspect *s = find(blame, worker);
    if (s->here) blame->live--;
    s->here = s->waits = false;
    blame->cause = worker;
    if (!s->awaited || s->done || returns) return;
    s->done = true;
    s->end = s->at = at;
}

/* Under a bound, whoever's report lets another one start kept it waiting until now. */
static void blame_release(at_blame *blame, const suspect *waiting, at_ns at)
{
    uint32_t others = blame->live > 1 ? blame->live - 1 : 1;
    if (!blame->plan->release->looks_at_others || blame->plan->release->holds) return;
    if (!waiting->waits || blame->cause == 0) return;
    suspect *late = find(blame, blame->cause);
    if (late != waiting) late->sum.waited += at_seconds(at - waiting->waits_at) / others;
}

void at_blame_order(at_blame *blame, at_node worker, at_ns at)
{
    suspect *s = find(blame, worker);
    blame_release(blame, s, at);
    s->waits = false;
    s->awaited = true;
    s->done = false;
}

void at_blame_report(at_blame *blame, at_node worker, const at_report *report, at_ns end,
                     at_ns busy, at_ns at)
{
    suspect *s = find(blame, worker);
    assert(end <= at);
    s->done = true;
    s->end = end;
    s->at = at;
    s->waits = true;
    s->waits_at = at;
    s->ring[s->rounds++ % RING] = (busy_round){.sequence = report->sequence, .busy = busy};
    blame->cause = worker;
}

/* The time of a round by its number; a round of a dead worker has none. */
static bool find_busy(const suspect *s, uint64_t sequence, at_ns *busy)
{
    for (int i = 0; i < RING; i++) {
        if (s->ring[i].sequence != sequence || sequence == 0) continue;
        *busy = s->ring[i].busy;
        return true;
    }
    return false;
}

void at_blame_drop(at_blame *blame, const at_action *drop, at_ns since, at_ns at)
{
    suspect *s = find(blame, drop->worker);
    at_ns    busy = at > since ? at - since : 0;
    at_drop  why = drop->as.drop.why;
    assert(drop->kind == AT_ACT_DROP);
    if (why == AT_DROP_STOPPED) return; /* somebody is always interrupted at the end */
    if (!find_busy(s, drop->as.drop.sequence, &busy) && why != AT_DROP_LOST) return;
    s->sum.wasted += at_seconds(busy);
}

/* ---- closing a step ------------------------------------------------------------------------ */

/* How long the way of the last report was: the shortest of those that were read with it. */
static at_ns way_of_last(const at_blame *blame)
{
    at_ns last = 0, way = AT_NEVER;
    for (uint32_t i = 0; i < blame->plan->workers; i++) {
        const suspect *s = &blame->suspect[i];
        if (s->awaited && s->done && s->at > last) last = s->at;
    }
    for (uint32_t i = 0; i < blame->plan->workers; i++) {
        const suspect *s = &blame->suspect[i];
        if (!s->awaited || !s->done || s->at < last - together) continue;
        if (s->at - s->end < way) way = s->at - s->end;
    }
    return way;
}

static uint32_t collect_arrivals(at_blame *blame, at_ns closed)
{
    at_ns    way = way_of_last(blame);
    uint32_t count = 0;
    for (uint32_t i = 0; i < blame->plan->workers; i++) {
        suspect *s = &blame->suspect[i];
        if (!s->awaited) continue;
        at_ns at = closed;
        if (s->done && s->at < at) at = s->at;
        if (s->done && way != AT_NEVER && s->end + way < at) at = s->end + way;
        blame->arrivals[count++] = (arrival){.at = at, .worker = i};
        s->awaited = s->done = false;
    }
    assert(count <= blame->plan->workers);
    return count;
}

static int by_time(const void *a, const void *b)
{
    const arrival *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

void at_blame_close(at_blame *blame, at_ns at)
{
    double owed = 0;
    if (!blame->plan->release->holds) return;
    uint32_t count = collect_arrivals(blame, at);
    if (count < 2) return;
    qsort(blame->arrivals, count, sizeof *blame->arrivals, by_time);
    for (uint32_t i = (count + 1) / 2; i < count; i++) { /* i of them are done before this one */
        at_ns gap = blame->arrivals[i].at - blame->arrivals[i - 1].at;
        assert(gap >= 0);
        owed += at_seconds(gap) / (count - i);
        blame->suspect[blame->arrivals[i].worker].sum.waited += owed;
    }
}

at_blamed at_blame_of(const at_blame *blame, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= blame->plan->workers);
    return blame->suspect[worker - 1].sum;
}

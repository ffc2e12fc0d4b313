#include "report/summary/round_times.h"

#include <assert.h>
#include <stdlib.h>

typedef struct place {
    at_ns ordered; /* the newest order */
    at_ns end;     /* of the newest round, or when the worker joined */
    bool  chained; /* `end` is the end of a round */
    bool  again;   /* it starts by itself */
} place;

struct at_round_times {
    uint32_t workers;
    place    place[];
};

at_round_times *at_round_times_new(uint32_t workers)
{
    assert(workers <= AT_WORKERS_MAX);
    at_round_times *p = calloc(1, sizeof *p + workers * sizeof *p->place);
    if (!p) return NULL;
    p->workers = workers;
    return p;
}

void at_round_times_free(at_round_times *placing)
{
    free(placing);
}

static place *find(at_round_times *placing, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= placing->workers);
    return &placing->place[worker - 1];
}

void at_round_times_order(at_round_times *placing, at_node worker, const at_order *order, at_ns at)
{
    place *p = find(placing, worker);
    assert(!order->leave);
    p->ordered = at;
    p->again = order->again;
}

void at_round_times_join(at_round_times *placing, at_node worker, at_ns at)
{
    *find(placing, worker) = (place){.ordered = at, .end = at};
}

static at_ns larger(at_ns a, at_ns b)
{
    return a > b ? a : b;
}

static at_ns smaller(at_ns a, at_ns b)
{
    return a < b ? a : b;
}

at_round_span at_round_times_report(at_round_times *placing, at_node worker, const at_work *work,
                                    at_ns at)
{
    place *p = find(placing, worker);
    at_ns  busy = work->sleep_ns + work->compute_ns;
    at_ns  begin = p->again ? at - busy : p->ordered;
    if (p->chained) begin = p->end + work->send_ns + work->idle_ns;
    begin = smaller(larger(begin, p->ordered), at - busy);
    begin = larger(begin, p->end);
    at_round_span placed = {.sending = p->end, .begin = begin};
    placed.sent = p->chained ? smaller(p->end + work->send_ns, begin) : p->end;
    placed.end = larger(begin, smaller(begin + busy, at));
    placed.awake = smaller(begin + work->sleep_ns, placed.end);
    p->end = placed.end;
    p->chained = true;
    return placed;
}

at_ns at_round_times_open(const at_round_times *placing, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= placing->workers);
    const place *p = &placing->place[worker - 1];
    return larger(p->ordered, p->end);
}

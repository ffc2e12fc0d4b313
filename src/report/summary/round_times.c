#include "report/summary/round_times.h"

#include <assert.h>
#include <stdlib.h>

typedef struct worker_times {
    at_ns ordered;   /* newest order */
    at_ns end;       /* of the newest round, or when the worker joined */
    bool  has_round; /* `end` is the end of a round */
    bool  again;     /* starts rounds by itself */
} worker_times;

struct at_round_times {
    uint32_t     workers;
    worker_times worker[];
};

at_round_times *at_round_times_new(uint32_t workers)
{
    assert(workers <= AT_WORKERS_MAX);
    at_round_times *times = calloc(1, sizeof *times + workers * sizeof *times->worker);
    if (times) times->workers = workers;
    return times;
}

void at_round_times_free(at_round_times *times)
{
    free(times);
}

static worker_times *find(at_round_times *times, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= times->workers);
    return &times->worker[worker - 1];
}

void at_round_times_order(at_round_times *times, at_node worker, const at_order *order, at_ns at)
{
    worker_times *w = find(times, worker);
    assert(!order->leave);
    w->ordered = at;
    w->again = order->again;
}

void at_round_times_join(at_round_times *times, at_node worker, at_ns at)
{
    *find(times, worker) = (worker_times){.ordered = at, .end = at};
}

static at_ns larger(at_ns a, at_ns b)
{
    return a > b ? a : b;
}

static at_ns smaller(at_ns a, at_ns b)
{
    return a < b ? a : b;
}

at_round_span at_round_times_report(at_round_times *times, at_node worker, const at_work *work,
                                    at_ns at)
{
    worker_times *w = find(times, worker);
    at_ns         busy = work->sleep_ns + work->compute_ns;
    at_ns         begin = w->again ? at - busy : w->ordered;
    if (w->has_round) begin = w->end + work->send_ns + work->idle_ns;
    begin = smaller(larger(begin, w->ordered), at - busy);
    begin = larger(begin, w->end);
    at_round_span span = {.send_begin = w->end, .begin = begin};
    span.send_end = w->has_round ? smaller(w->end + work->send_ns, begin) : w->end;
    span.end = larger(begin, smaller(begin + busy, at));
    span.sleep_end = smaller(begin + work->sleep_ns, span.end);
    w->end = span.end;
    w->has_round = true;
    return span;
}

at_ns at_round_times_open(const at_round_times *times, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= times->workers);
    const worker_times *w = &times->worker[worker - 1];
    return larger(w->ordered, w->end);
}

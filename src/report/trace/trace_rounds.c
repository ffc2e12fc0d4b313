#include "report/trace/trace_rounds.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/summary/round_times.h"

#define NONE UINT32_MAX

enum {
    PENDING_MAX = 1024, /* LIMIT: pending rounds per worker; older ones are shown as undecided */
    ARGS_SIZE = 1024
};

typedef enum outcome { UNDECIDED, EMPTY, USED, DROPPED } outcome;

typedef struct round {
    uint32_t      next; /* pending round of the same worker, or free entry */
    uint32_t      incarnation;
    uint64_t      sequence;
    at_work       work;
    at_round_span span;

    outcome  outcome;
    uint64_t step; /* that used it */
    at_ns    step_at;
    at_drop  why;
} round;

typedef struct row {
    at_ns    order_at; /* AT_NEVER: none */
    uint64_t order_round;
    at_ns    slack;       /* smallest so far, see the header; AT_NEVER: unknown */
    uint32_t first, last; /* pending rounds, oldest first */
    uint32_t pending;     /* number of them */
    bool     named;
    bool     leaving; /* was ordered to leave */
} row;

struct at_trace_rounds {
    at_trace_writer *out;
    at_round_times  *times;
    row             *rows;
    uint32_t         workers, process;
    at_trace_row     hub;
    round           *pool;
    uint32_t         size, unused;
};

at_trace_rounds *at_trace_rounds_new(at_trace_writer *out, uint32_t workers, uint32_t process,
                                     at_trace_row hub)
{
    assert(workers >= 1);
    at_trace_rounds *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    *self = (at_trace_rounds){
        .out = out, .workers = workers, .process = process, .hub = hub, .unused = NONE};
    self->rows = calloc(workers, sizeof *self->rows);
    self->times = at_round_times_new(workers);
    if (!self->rows || !self->times) {
        at_trace_rounds_free(self);
        return NULL;
    }
    for (uint32_t i = 0; i < workers; i++)
        self->rows[i] = (row){.order_at = AT_NEVER, .slack = AT_NEVER, .first = NONE, .last = NONE};
    return self;
}

void at_trace_rounds_free(at_trace_rounds *self)
{
    if (!self) return;
    at_round_times_free(self->times);
    free(self->pool);
    free(self->rows);
    free(self);
}

static row *row_of(at_trace_rounds *self, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    return &self->rows[worker - 1];
}

/* The row of a worker, named at its first use. */
static at_trace_row trace_row_of(at_trace_rounds *self, at_node worker)
{
    row         *r = row_of(self, worker);
    at_trace_row trace_row = {self->process, worker};
    if (r->named) return trace_row;
    char name[32];
    snprintf(name, sizeof name, "worker %u", worker);
    at_trace_writer_row(self->out, trace_row, name);
    r->named = true;
    return trace_row;
}

/* ---- pending rounds -------------------------------------------------------------------------- */

static at_err grow(at_trace_rounds *self, at_fail *fail)
{
    uint32_t size = self->size > 0 ? 2 * self->size : 256;
    round   *more = size > self->size ? realloc(self->pool, size * sizeof *more) : NULL;
    if (!more) return at_fail_memory_for(fail, "for a trace");
    for (uint32_t i = self->size; i < size; i++) more[i].next = i + 1 < size ? i + 1 : self->unused;
    self->unused = self->size;
    self->pool = more;
    self->size = size;
    return AT_OK;
}

static void append(at_trace_rounds *self, row *r, const round *one)
{
    uint32_t index = self->unused;
    assert(index != NONE);
    self->unused = self->pool[index].next;
    self->pool[index] = *one;
    self->pool[index].next = NONE;
    if (r->last == NONE)
        r->first = index;
    else
        self->pool[r->last].next = index;
    r->last = index;
    r->pending++;
}

/* Removes a round; `before` is its predecessor, NONE for the first. */
static void remove_round(at_trace_rounds *self, row *r, uint32_t before, uint32_t index)
{
    assert(r->pending > 0);
    uint32_t next = self->pool[index].next;
    if (before == NONE)
        r->first = next;
    else
        self->pool[before].next = next;
    if (r->last == index) r->last = before;
    self->pool[index].next = self->unused;
    self->unused = index;
    r->pending--;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void describe(const round *one, char args[ARGS_SIZE])
{
    static const char *const words[] = {
        [UNDECIDED] = "undecided", [EMPTY] = "empty", [USED] = "used", [DROPPED] = "dropped"};
    at_text text = at_text_in(args, ARGS_SIZE);
    at_text_add(&text, "\"round\":%llu,\"version\":%llu,\"samples\":%u,\"gradient\":\"%s\"",
                (unsigned long long)one->work.round, (unsigned long long)one->work.version,
                one->work.samples, words[one->outcome]);
    if (one->outcome == USED) at_text_add(&text, ",\"step\":%llu", (unsigned long long)one->step);
    if (one->outcome == DROPPED) at_text_add(&text, ",\"why\":\"%s\"", at_drop_name[one->why]);
}

static void put_slice(at_trace_rounds *self, at_trace_row where, const char *name,
                      const char *color, at_ns begin, at_ns end)
{
    if (end > begin) at_trace_writer_slice(self->out, where, name, color, begin, end, NULL);
}

/* Writes the slices of a round. The arrow begins just before the end of the compute slice. */
static void put_round(at_trace_rounds *self, at_node worker, const round *one)
{
    char                 args[ARGS_SIZE];
    bool                 dropped = one->outcome == DROPPED;
    const at_round_span *at = &one->span;
    at_trace_row         where = trace_row_of(self, worker);
    at_ns                install_at = at->begin - one->work.install_ns;
    at_ns                last = at->end > at->sleep_end ? at->end - 1 : at->end;
    if (install_at < at->send_end) install_at = at->send_end;
    describe(one, args);
    put_slice(self, where, "send", "rail_load", at->send_begin, at->send_end);
    put_slice(self, where, "wait", "grey", at->send_end, install_at);
    put_slice(self, where, "install", "rail_response", install_at, at->begin);
    put_slice(self, where, "sleep", "yellow", at->begin, at->sleep_end);
    if (at->end > at->sleep_end || one->outcome != EMPTY)
        at_trace_writer_slice(self->out, where, dropped ? "compute (dropped)" : "compute",
                              dropped ? "terrible" : "thread_state_running", at->sleep_end, at->end,
                              args);
    if (one->outcome == USED && at->end >= self->out->from)
        at_trace_writer_arrow(self->out, "gradient", where, last, self->hub, one->step_at);
}

/* Writes and removes a pending round. */
static void settle(at_trace_rounds *self, at_node worker, uint32_t before, uint32_t index)
{
    put_round(self, worker, &self->pool[index]);
    remove_round(self, row_of(self, worker), before, index);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Only rounds with an order limit the offset of the row. */
static void note_slack(row *r, const at_work *work, at_ns at)
{
    if (r->order_at == AT_NEVER || r->order_round != work->round) return;
    at_ns slack = at - r->order_at - work->install_ns - work->sleep_ns - work->compute_ns;
    if (slack < 0) slack = 0;
    if (slack < r->slack) r->slack = slack;
}

static at_err put_report(at_trace_rounds *self, const at_event *event, at_ns at, at_fail *fail)
{
    row             *r = row_of(self, event->worker);
    const at_report *report = &event->as.report;
    round            one = {.incarnation = report->incarnation,
                            .sequence = report->sequence,
                            .work = report->work,
                            .outcome = report->work.samples == 0 ? EMPTY : UNDECIDED};
    note_slack(r, &report->work, at);
    one.span = at_round_times_report(self->times, event->worker, &report->work, at);
    if (one.outcome != UNDECIDED) {
        put_round(self, event->worker, &one);
        return AT_OK;
    }
    if (r->pending >= PENDING_MAX) settle(self, event->worker, NONE, r->first);
    if (self->unused == NONE) AT_TRY(grow(self, fail));
    append(self, r, &one);
    return AT_OK;
}

/* The pending round with this sequence number; incarnation 0 matches any. */
static uint32_t find(const at_trace_rounds *self, const row *r, uint64_t sequence,
                     uint32_t incarnation, uint32_t *before)
{
    *before = NONE;
    for (uint32_t i = r->first; i != NONE; *before = i, i = self->pool[i].next) {
        const round *one = &self->pool[i];
        if (one->sequence == sequence && (incarnation == 0 || one->incarnation == incarnation))
            return i;
    }
    return NONE;
}

void at_trace_rounds_used(at_trace_rounds *self, const at_action *apply, at_ns at)
{
    assert(apply->kind == AT_ACT_APPLY);
    for (uint32_t i = 0; i < apply->as.apply.count; i++) {
        const at_piece *piece = &apply->as.apply.pieces[i];
        uint32_t        before, index;
        row            *r = row_of(self, piece->worker);
        index = find(self, r, piece->sequence, piece->incarnation, &before);
        if (index == NONE) continue;
        self->pool[index].outcome = USED;
        self->pool[index].step = apply->as.apply.step;
        self->pool[index].step_at = at;
        settle(self, piece->worker, before, index);
    }
}

/* Samples of a process that died can be dropped without a report. */
static void put_drop(at_trace_rounds *self, const at_action *action, at_ns at)
{
    row     *r = row_of(self, action->worker);
    uint32_t before, index = find(self, r, action->as.drop.sequence, 0, &before);
    char     name[48], args[ARGS_SIZE];
    snprintf(name, sizeof name, "dropped: %s", at_drop_name[action->as.drop.why]);
    snprintf(args, sizeof args, "\"samples\":%llu,\"version\":%llu",
             (unsigned long long)action->as.drop.samples,
             (unsigned long long)action->as.drop.version);
    at_trace_writer_instant(self->out, trace_row_of(self, action->worker), name, at, args);
    if (index == NONE) return;
    self->pool[index].outcome = DROPPED;
    self->pool[index].why = action->as.drop.why;
    settle(self, action->worker, before, index);
}

static void put_join(at_trace_rounds *self, const at_record *record, at_ns at)
{
    char args[ARGS_SIZE];
    snprintf(args, sizeof args, "\"pid\":%lld,\"incarnation\":%u", (long long)record->pid,
             record->event->as.joined.incarnation);
    at_round_times_join(self->times, record->event->worker, at);
    row_of(self, record->event->worker)->order_at = AT_NEVER;
    row_of(self, record->event->worker)->leaving = false;
    at_trace_writer_instant(self->out, trace_row_of(self, record->event->worker), "joined", at,
                            args);
}

static void put_loss(at_trace_rounds *self, const at_record *record, at_ns at)
{
    char    args[ARGS_SIZE];
    at_text text = at_text_in(args, sizeof args);
    at_text_add(&text, "\"how\":");
    at_trace_writer_quote(&text, record->text ? record->text : "");
    bool leaving = row_of(self, record->event->worker)->leaving;
    at_trace_writer_instant(self->out, trace_row_of(self, record->event->worker),
                            leaving ? "left" : "lost", at, args);
}

static void put_order(at_trace_rounds *self, const at_action *action, at_ns at)
{
    row            *r = row_of(self, action->worker);
    const at_order *order = &action->as.order;
    r->leaving = r->leaving || order->leave;
    if (order->leave || order->pause) return;
    at_round_times_order(self->times, action->worker, order, at);
    r->order_at = at;
    r->order_round = order->round;
}

at_err at_trace_rounds_put(at_trace_rounds *self, const at_record *record, at_ns at, at_fail *fail)
{
    assert(at >= 0);
    if (record->kind == AT_REC_EVENT) {
        at_event_kind kind = record->event->kind;
        if (kind == AT_EV_MESSAGE) return put_report(self, record->event, at, fail);
        if (kind == AT_EV_JOINED) put_join(self, record, at);
        if (kind == AT_EV_LOST) put_loss(self, record, at);
    } else if (record->kind == AT_REC_ACTION) {
        const at_action *action = record->action;
        if (action->kind == AT_ACT_SEND) put_order(self, action, at);
        if (action->kind == AT_ACT_DROP) put_drop(self, action, at);
        if (action->kind == AT_ACT_EVICT)
            at_trace_writer_instant(self->out, trace_row_of(self, action->worker), "evicted", at,
                                    NULL);
    }
    return AT_OK;
}

void at_trace_rounds_end(at_trace_rounds *self)
{
    for (at_node worker = 1; worker <= self->workers; worker++) {
        row *r = row_of(self, worker);
        while (r->first != NONE) settle(self, worker, NONE, r->first);
        r->order_at = AT_NEVER;
    }
}

bool at_trace_rounds_uncertainty(const at_trace_rounds *self, at_node worker, at_ns *uncertainty)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    *uncertainty = self->rows[worker - 1].slack;
    return *uncertainty != AT_NEVER;
}

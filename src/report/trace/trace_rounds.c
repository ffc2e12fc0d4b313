#include "report/trace/trace_rounds.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/summary/round_times.h"

enum {
    NONE = UINT32_MAX,
    LIVE_MAX = 1024, /* LIMIT: undecided rounds of one worker; older ones are shown as undecided */
    ARGS_SIZE = 1024
};

typedef enum fate { OPEN, EMPTY, USED, DROPPED } fate;

typedef struct round {
    uint32_t      next; /* of the same worker, or of the free ones */
    uint32_t      incarnation;
    uint64_t      sequence;
    at_work       work;
    at_round_span placed;

    fate     fate;
    uint64_t step; /* that used it */
    at_ns    step_at;
    at_drop  why;
} round;

typedef struct row {
    at_ns    order_at; /* AT_NEVER: none */
    uint64_t order_round;
    at_ns    rest;        /* smallest so far, see the header; AT_NEVER: none known */
    uint32_t first, last; /* rounds that are undecided, oldest first */
    uint32_t live;        /* how many */
    bool     named;
    bool     leaves; /* it was told to */
} row;

struct at_trace_rounds {
    at_trace_writer *out;
    at_round_times  *placing;
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
    self->placing = at_round_times_new(workers);
    if (!self->rows || !self->placing) {
        at_trace_rounds_free(self);
        return NULL;
    }
    for (uint32_t i = 0; i < workers; i++)
        self->rows[i] = (row){.order_at = AT_NEVER, .rest = AT_NEVER, .first = NONE, .last = NONE};
    return self;
}

void at_trace_rounds_free(at_trace_rounds *self)
{
    if (!self) return;
    at_round_times_free(self->placing);
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

/* Where a worker is drawn; named when it is first used. */
static at_trace_row place_of(at_trace_rounds *self, at_node worker)
{
    row         *r = row_of(self, worker);
    at_trace_row place = {self->process, worker};
    if (r->named) return place;
    char name[32];
    snprintf(name, sizeof name, "worker %u", worker);
    at_trace_writer_row(self->out, place, name);
    r->named = true;
    return place;
}

/* ---- undecided rounds ------------------------------------------------------------------------ */

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

static void append(at_trace_rounds *self, row *r, const round *news)
{
    uint32_t index = self->unused;
    assert(index != NONE);
    self->unused = self->pool[index].next;
    self->pool[index] = *news;
    self->pool[index].next = NONE;
    if (r->last == NONE)
        r->first = index;
    else
        self->pool[r->last].next = index;
    r->last = index;
    r->live++;
}

/* Takes a round out; `before` is the one before it, NONE for the first. */
static void take_out(at_trace_rounds *self, row *r, uint32_t before, uint32_t index)
{
    assert(r->live > 0);
    uint32_t next = self->pool[index].next;
    if (before == NONE)
        r->first = next;
    else
        self->pool[before].next = next;
    if (r->last == index) r->last = before;
    self->pool[index].next = self->unused;
    self->unused = index;
    r->live--;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void describe(const round *one, char args[ARGS_SIZE])
{
    static const char *const words[] = {
        [OPEN] = "undecided", [EMPTY] = "empty", [USED] = "used", [DROPPED] = "dropped"};
    at_text text = at_text_in(args, ARGS_SIZE);
    at_text_add(&text, "\"round\":%llu,\"version\":%llu,\"samples\":%u,\"gradient\":\"%s\"",
                (unsigned long long)one->work.round, (unsigned long long)one->work.version,
                one->work.samples, words[one->fate]);
    if (one->fate == USED) at_text_add(&text, ",\"step\":%llu", (unsigned long long)one->step);
    if (one->fate == DROPPED) at_text_add(&text, ",\"why\":\"%s\"", at_drop_name[one->why]);
}

static void stretch(at_trace_rounds *self, at_trace_row where, const char *name, const char *colour,
                    at_ns begin, at_ns end)
{
    if (end > begin) at_trace_writer_slice(self->out, where, name, colour, begin, end, NULL);
}

/* The arrow begins within the slice, just before its end. */
static void show(at_trace_rounds *self, at_node worker, const round *one)
{
    char                 args[ARGS_SIZE];
    bool                 lost = one->fate == DROPPED;
    const at_round_span *at = &one->placed;
    at_trace_row         where = place_of(self, worker);
    at_ns                install_at = at->begin - one->work.install_ns;
    at_ns                last = at->end > at->awake ? at->end - 1 : at->end;
    if (install_at < at->sent) install_at = at->sent;
    describe(one, args);
    stretch(self, where, "send", "rail_load", at->sending, at->sent);
    stretch(self, where, "wait", "grey", at->sent, install_at);
    stretch(self, where, "install", "rail_response", install_at, at->begin);
    stretch(self, where, "sleep", "yellow", at->begin, at->awake);
    if (at->end > at->awake || one->fate != EMPTY)
        at_trace_writer_slice(self->out, where, lost ? "compute (dropped)" : "compute",
                              lost ? "terrible" : "thread_state_running", at->awake, at->end, args);
    if (one->fate == USED && at->end >= self->out->from)
        at_trace_writer_arrow(self->out, "gradient", where, last, self->hub, one->step_at);
}

/* Writes a round about which all is known now. */
static void settle(at_trace_rounds *self, at_node worker, uint32_t before, uint32_t index)
{
    show(self, worker, &self->pool[index]);
    take_out(self, row_of(self, worker), before, index);
}

/* ---- news ------------------------------------------------------------------------------------ */

/* Only rounds that the hub asked for by an order tell something about the row's place. */
static void note_rest(row *r, const at_work *work, at_ns at)
{
    if (r->order_at == AT_NEVER || r->order_round != work->round) return;
    at_ns rest = at - r->order_at - work->install_ns - work->sleep_ns - work->compute_ns;
    if (rest < 0) rest = 0;
    if (rest < r->rest) r->rest = rest;
}

static at_err put_report(at_trace_rounds *self, const at_event *event, at_ns at, at_fail *fail)
{
    row             *r = row_of(self, event->worker);
    const at_report *report = &event->as.report;
    round            news = {.incarnation = report->incarnation,
                             .sequence = report->sequence,
                             .work = report->work,
                             .fate = report->work.samples == 0 ? EMPTY : OPEN};
    note_rest(r, &report->work, at);
    news.placed = at_round_times_report(self->placing, event->worker, &report->work, at);
    if (news.fate != OPEN) {
        show(self, event->worker, &news);
        return AT_OK;
    }
    if (r->live >= LIVE_MAX) settle(self, event->worker, NONE, r->first);
    if (self->unused == NONE) AT_TRY(grow(self, fail));
    append(self, r, &news);
    return AT_OK;
}

/* The undecided round of this number; any incarnation will do when it is 0. */
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
        self->pool[index].fate = USED;
        self->pool[index].step = apply->as.apply.step;
        self->pool[index].step_at = at;
        settle(self, piece->worker, before, index);
    }
}

/* Samples may be dropped that no report told of: those of a process that died. */
static void put_drop(at_trace_rounds *self, const at_action *action, at_ns at)
{
    row     *r = row_of(self, action->worker);
    uint32_t before, index = find(self, r, action->as.drop.sequence, 0, &before);
    char     name[48], args[ARGS_SIZE];
    snprintf(name, sizeof name, "dropped: %s", at_drop_name[action->as.drop.why]);
    snprintf(args, sizeof args, "\"samples\":%llu,\"version\":%llu",
             (unsigned long long)action->as.drop.samples,
             (unsigned long long)action->as.drop.version);
    at_trace_writer_instant(self->out, place_of(self, action->worker), name, at, args);
    if (index == NONE) return;
    self->pool[index].fate = DROPPED;
    self->pool[index].why = action->as.drop.why;
    settle(self, action->worker, before, index);
}

static void put_join(at_trace_rounds *self, const at_record *record, at_ns at)
{
    char args[ARGS_SIZE];
    snprintf(args, sizeof args, "\"pid\":%lld,\"incarnation\":%u", (long long)record->pid,
             record->event->as.joined.incarnation);
    at_round_times_join(self->placing, record->event->worker, at);
    row_of(self, record->event->worker)->order_at = AT_NEVER;
    row_of(self, record->event->worker)->leaves = false;
    at_trace_writer_instant(self->out, place_of(self, record->event->worker), "joined", at, args);
}

static void put_loss(at_trace_rounds *self, const at_record *record, at_ns at)
{
    char    args[ARGS_SIZE];
    at_text text = at_text_in(args, sizeof args);
    at_text_add(&text, "\"how\":");
    at_trace_writer_quote(&text, record->text ? record->text : "");
    bool leaves = row_of(self, record->event->worker)->leaves;
    at_trace_writer_instant(self->out, place_of(self, record->event->worker),
                            leaves ? "left" : "lost", at, args);
}

static void put_order(at_trace_rounds *self, const at_action *action, at_ns at)
{
    row            *r = row_of(self, action->worker);
    const at_order *order = &action->as.order;
    r->leaves = r->leaves || order->leave;
    if (order->leave || order->pause) return;
    at_round_times_order(self->placing, action->worker, order, at);
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
            at_trace_writer_instant(self->out, place_of(self, action->worker), "evicted", at, NULL);
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
    *uncertainty = self->rows[worker - 1].rest;
    return *uncertainty != AT_NEVER;
}

/* A report is a fact of its own; whether its samples counted is decided later, by the APPLY or DROP
 * that names it. So the tally remembers each worker's newest reports until then:
 *
 *     MESSAGE (sequence 7, compute 5 ms) ─► ring ─► APPLY names sequence 7: 5 ms were useful
 *                                                └► ADD folds it into the open step, which decides
 */
#include "record/tally.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "record/histogram.h"
#include "record/roster.h"

enum { RING = 8 }; /* reports of one worker that a gather rule may hold undecided */

/* 2^(-1/50): the weight of a step's loss halves in 50 steps. */
static const double loss_memory = 0.98623270449335921;

typedef struct undecided {
    uint32_t incarnation;
    uint64_t sequence;
    at_ns    compute_ns;
} undecided;

typedef struct recall {
    undecided ring[RING];
    uint64_t  reports;   /* the next one goes to ring[reports % RING] */
    uint64_t  sequence;  /* of the newest report of the present incarnation */
    at_ns     folded_ns; /* compute time that ADD folded into the open step */
    bool      timed;     /* the newest order has a time limit */
} recall;

typedef struct books {
    at_tally  totals; /* first, so that both have one address */
    uint32_t  workers;
    at_place *place;
    recall   *recent;
} books;

static at_worker_tally *worker_of(books *self, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    return &self->totals.worker[worker - 1];
}

static recall *recall_of(books *self, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    return &self->recent[worker - 1];
}

static void show_place(books *self, at_node worker)
{
    assert(worker >= 1);
    at_worker_tally *shown = worker_of(self, worker);
    const at_place  *place = &self->place[worker - 1];
    shown->pid = place->pid;
    shown->state = place->state;
}

/* |end - T| counts for rounds that the clock ended: not the cap, a newer version or the sleep. */
static void book_overshoot(at_tally *sum, const at_work *work)
{
    if (work->capped || work->abandoned || work->overslept) return;
    double seconds = fabs(at_seconds(work->overshoot_ns));
    sum->overshoot_sum += seconds;
    sum->overshoot_count++;
    if (seconds > sum->overshoot_max) sum->overshoot_max = seconds;
}

/* The hub accepts an update once, and none from a process that is gone: so do we. */
static bool is_accepted(books *self, at_node worker, const at_report *report)
{
    assert(report->sequence >= 1);
    const at_place *place = &self->place[worker - 1];
    bool is_there = place->state == at_state_working || place->state == at_state_finished;
    return is_there && report->incarnation == place->incarnation &&
           report->sequence > recall_of(self, worker)->sequence;
}

/* Sums of times that came from a file must not overflow, whatever the file says. */
static void add_ns(at_ns *sum, at_ns value)
{
    assert(value >= 0);
    if (__builtin_add_overflow(*sum, value, sum)) *sum = AT_NEVER;
}

static void book_report(books *self, at_node worker, const at_report *report)
{
    at_worker_tally *sum = worker_of(self, worker);
    recall          *recent = recall_of(self, worker);
    const at_work   *work = &report->work;
    if (!is_accepted(self, worker, report)) return;
    recent->sequence = report->sequence;
    recent->ring[recent->reports++ % RING] = (undecided){
        .incarnation = report->incarnation,
        .sequence = report->sequence,
        .compute_ns = work->compute_ns,
    };
    sum->rounds++;
    sum->samples += work->samples;
    add_ns(&sum->compute_ns, work->compute_ns);
    add_ns(&sum->sleep_ns, work->sleep_ns);
    add_ns(&sum->idle_ns, work->idle_ns);
    add_ns(&sum->send_ns, work->send_ns);
    if (recent->timed) book_overshoot(&self->totals, work);
}

/* Compute time of the report that a piece came from; 0 when it is too old to be remembered. */
static at_ns compute_of(books *self, const at_piece *piece)
{
    assert(piece->worker >= 1);
    const recall *recent = recall_of(self, piece->worker);
    for (size_t i = 0; i < RING; i++)
        if (recent->ring[i].sequence == piece->sequence &&
            recent->ring[i].incarnation == piece->incarnation)
            return recent->ring[i].compute_ns;
    return 0;
}

static void book_piece(books *self, const at_piece *piece, uint64_t step, bool folded)
{
    at_worker_tally *sum = worker_of(self, piece->worker);
    recall          *recent = recall_of(self, piece->worker);
    assert(piece->version < step); /* nobody works on a version the hub has not made */
    uint64_t staleness = step - 1 - piece->version;
    sum->samples_used += piece->samples;
    add_ns(&sum->useful_ns, folded ? recent->folded_ns : compute_of(self, piece));
    recent->folded_ns = 0; /* one piece of a worker takes all that was folded */
    self->totals.staleness_sum += (double)staleness;
    self->totals.staleness_count++;
    if (staleness > self->totals.staleness_max) self->totals.staleness_max = staleness;
}

static void book_loss(books *self, double loss)
{
    assert(self->totals.loss_weight < 1);
    self->totals.loss_fading = loss_memory * self->totals.loss_fading + (1 - loss_memory) * loss;
    self->totals.loss_weight = loss_memory * self->totals.loss_weight + (1 - loss_memory);
    self->totals.loss_recent = self->totals.loss_fading / self->totals.loss_weight;
}

static void book_step(books *self, const at_record *record)
{
    assert(record->action->as.apply.step >= 1);
    assert(record->action->as.apply.pieces || record->action->as.apply.count == 0);
    at_tally *sum = &self->totals;
    at_ns     since = sum->step_count > 0 ? sum->applied_at : sum->began_at;
    uint64_t  step = record->action->as.apply.step, samples = record->action->as.apply.samples;
    if (since == AT_NEVER) since = record->at; /* a stream that does not begin at the start */
    assert(record->at >= since);
    at_histogram_add(sum->steps, record->at - since);
    sum->applied_at = record->at;
    sum->step_count++;
    sum->samples_used += samples;
    for (uint32_t i = 0; i < record->action->as.apply.count; i++)
        book_piece(self, &record->action->as.apply.pieces[i], step,
                   record->action->as.apply.folded);
    sum->loss_total += record->action->as.apply.loss_sum;
    if (samples > 0) book_loss(self, record->action->as.apply.loss_sum / (double)samples);
}

static void book_drop(books *self, const at_action *action)
{
    at_drop why = action->as.drop.why;
    assert(why < AT_DROP_COUNT);
    worker_of(self, action->worker)->samples_dropped += action->as.drop.samples;
    self->totals.samples_dropped += action->as.drop.samples;
    self->totals.dropped_why[why] += action->as.drop.samples;
}

/* The first order. Of a run that was resumed, the time between its parts does not count. */
static void begin(at_tally *sum, at_ns at)
{
    assert(at >= sum->before_end);
    sum->began_at = at - sum->before_ns;
    sum->applied_at += at - sum->before_end;
}

static void book_order(books *self, const at_record *record)
{
    const at_order *order = &record->action->as.order;
    if (order->leave) {
        show_place(self, record->action->worker);
        return;
    }
    if (self->totals.began_at == AT_NEVER) begin(&self->totals, record->at);
    recall_of(self, record->action->worker)->timed = order->time_limit != AT_NEVER;
}

static void book_finish(books *self, const at_action *action)
{
    assert(action->as.finish.why < AT_END_COUNT);
    self->totals.end = action->as.finish.why;
    for (at_node worker = 1; worker <= self->workers; worker++) show_place(self, worker);
}

static void book_join(books *self, const at_event *event)
{
    assert(event->as.joined.incarnation >= 1);
    worker_of(self, event->worker)->incarnations++;
    recall_of(self, event->worker)->sequence = 0;
    if (event->as.joined.incarnation > 1) self->totals.respawns++;
    show_place(self, event->worker);
}

static void book_evaluation(at_tally *sum, const at_record *record)
{
    assert(record->event->kind == AT_EV_EVALUATED);
    for (int i = 0; i < AT_METRIC_COUNT; i++) sum->test[i] = record->event->as.evaluated.value[i];
    sum->test_count = record->count;
    sum->test_step = record->event->as.evaluated.step;
    sum->evaluations++;
}

static void put_event(books *self, const at_record *record)
{
    const at_event *event = record->event;
    switch (event->kind) {
    case AT_EV_JOINED: book_join(self, event); break;
    case AT_EV_LOST: show_place(self, event->worker); break;
    case AT_EV_MESSAGE: book_report(self, event->worker, &event->as.report); break;
    case AT_EV_EVALUATED: book_evaluation(&self->totals, record); break;
    case AT_EV_START:
    case AT_EV_NEWER:
    case AT_EV_COMPUTED:
    case AT_EV_SENT:
    case AT_EV_APPLIED:
    case AT_EV_TIMER:
    case AT_EV_STOP: break;
    }
}

static void put_action(books *self, const at_record *record)
{
    const at_action *action = record->action;
    switch (action->kind) {
    case AT_ACT_SEND: book_order(self, record); break;
    case AT_ACT_ADD:
        add_ns(&recall_of(self, action->as.add.worker)->folded_ns,
               compute_of(self, &action->as.add));
        break;
    case AT_ACT_APPLY: book_step(self, record); break;
    case AT_ACT_DROP: book_drop(self, action); break;
    case AT_ACT_EVICT:
        self->totals.evictions++;
        show_place(self, action->worker);
        break;
    case AT_ACT_FINISH: book_finish(self, action); break;
    case AT_ACT_INSTALL:
    case AT_ACT_COMPUTE:
    case AT_ACT_ABANDON:
    case AT_ACT_TIMER:
    case AT_ACT_EVALUATE:
    case AT_ACT_SAVE:
    case AT_ACT_NOTICE: break;
    }
}

static void book_usage(books *self, const at_record *record)
{
    at_tally *sum = &self->totals;
    assert(record->usage);
    if (record->node == 0)
        at_usage_tally_put(&sum->hub_usage, record->usage);
    else if (record->node == AT_NODE_EVALUATOR)
        at_usage_tally_put(&sum->evaluator_usage, record->usage);
    else
        at_usage_tally_put(&worker_of(self, record->node)->usage, record->usage);
}

static void put(void *self, const at_record *record)
{
    books *full = self;
    at_roster_put(full->place, full->workers, record);
    if (record->kind == AT_REC_EVENT) put_event(full, record);
    if (record->kind == AT_REC_ACTION) put_action(full, record);
    if (record->kind == AT_REC_USAGE) book_usage(full, record);
}

/* The numbers are wanted after the end of the stream; at_tally_free releases them. */
static at_err close_sink(void *self, at_fail *fail)
{
    (void)fail;
    assert(self);
    return AT_OK;
}

at_tally *at_tally_new(const at_run_info *info, at_sink *sink)
{
    assert(info->plan->workers >= 1);
    uint32_t workers = info->plan->workers;
    books   *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->workers = workers;
    self->place = calloc(workers, sizeof *self->place);
    self->recent = calloc(workers, sizeof *self->recent);
    self->totals.worker = calloc(workers, sizeof *self->totals.worker);
    self->totals.steps = calloc(1, sizeof *self->totals.steps);
    if (!self->place || !self->recent || !self->totals.worker || !self->totals.steps) {
        at_tally_free(&self->totals);
        return NULL;
    }
    at_roster_init(self->place, workers);
    for (at_node worker = 1; worker <= workers; worker++) show_place(self, worker);
    self->totals.info = info;
    self->totals.began_at = AT_NEVER;
    self->totals.end = AT_END_RUNNING;
    self->totals.loss_recent = NAN;
    for (int i = 0; i < AT_METRIC_COUNT; i++) self->totals.test[i] = NAN;
    *sink = (at_sink){.name = "tally", .self = self, .put = put, .close = close_sink};
    return &self->totals;
}

void at_tally_free(at_tally *totals)
{
    if (!totals) return;
    books *self = (books *)totals;
    free(totals->steps);
    free(totals->worker);
    free(self->recent);
    free(self->place);
    free(self);
}

double at_tally_progressive(const at_tally *tally)
{
    assert(tally->step_count > 0 || tally->samples_used == 0);
    return tally->samples_used > 0 ? tally->loss_total / (double)tally->samples_used : NAN;
}

at_duration_stats at_tally_steps(const at_tally *tally)
{
    assert(tally->steps->count == tally->step_count);
    return at_histogram_stats(tally->steps);
}

double at_tally_seconds(const at_tally *tally)
{
    if (tally->step_count == 0 || tally->began_at == AT_NEVER) return 0;
    assert(tally->applied_at >= tally->began_at);
    return at_seconds(tally->applied_at - tally->began_at);
}

double at_tally_useful(const at_tally *tally)
{
    assert(tally->info->plan->workers >= 1);
    uint32_t workers = tally->info->plan->workers;
    double   useful = 0, whole = at_tally_seconds(tally) * workers;
    for (uint32_t i = 0; i < workers; i++) useful += at_seconds(tally->worker[i].useful_ns);
    return whole > 0 ? fmin(useful / whole, 1) : 0;
}

/* Whether the samples of a report are used is decided after it arrives, by the APPLY or DROP that
 * names it. So the tally keeps the newest reports of each worker until then:
 *
 *     MESSAGE (sequence 7, compute 5 ms) ─► ring ─► APPLY names sequence 7: 5 ms were useful
 *                                                └► ADD: useful when the open step closes
 */
#include "record/tally.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/histogram.h"
#include "record/roster.h"

/* Most reports per worker that a gather rule leaves undecided. Under a release rule that holds, a
 * worker waits until its report is decided. */
enum { RING = 8, RING_HELD = 1 };

/* 2^(-1/50): a half-life of 50 steps. */
static const double loss_decay = 0.98623270449335921;

typedef struct pending_report {
    uint32_t incarnation;
    uint64_t sequence;
    at_ns    compute_ns;
} pending_report;

typedef struct worker_reports {
    uint64_t count;     /* the next one goes to place count % self->ring_size of its ring */
    uint64_t sequence;  /* of the newest report of the current incarnation */
    at_ns    folded_ns; /* compute time of the gradients added to the open step */
    bool     timed;     /* the newest order has a time limit */
} worker_reports;

typedef struct full_tally {
    at_tally          totals; /* first, so that both have the same address */
    uint32_t          workers;
    at_worker_status *roster;
    worker_reports   *recent;
    pending_report   *ring; /* ring_size for every worker */
    uint32_t          ring_size;
} full_tally;

static at_worker_tally *worker_of(full_tally *self, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    return &self->totals.worker[worker - 1];
}

static worker_reports *reports_of(full_tally *self, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    return &self->recent[worker - 1];
}

static pending_report *ring_of(full_tally *self, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    return &self->ring[(size_t)(worker - 1) * self->ring_size];
}

static void copy_status(full_tally *self, at_node worker)
{
    assert(worker >= 1);
    at_worker_tally        *sum = worker_of(self, worker);
    const at_worker_status *status = &self->roster[worker - 1];
    sum->pid = status->pid;
    sum->state = status->state;
}

/* |end - deadline| counts only for rounds that were ended by their time limit. */
static void count_overshoot(at_tally *sum, const at_work *work)
{
    if (work->capped || work->abandoned || work->overslept) return;
    double seconds = fabs(at_seconds(work->overshoot_ns));
    sum->overshoot_sum += seconds;
    sum->overshoot_count++;
    if (seconds > sum->overshoot_max) sum->overshoot_max = seconds;
}

/* As in the hub: a report counts once, and not when its process is gone. */
static bool is_accepted(full_tally *self, at_node worker, const at_report *report)
{
    assert(report->sequence >= 1);
    const at_worker_status *status = &self->roster[worker - 1];
    bool is_alive = status->state == at_state_working || status->state == at_state_finished;
    return is_alive && report->incarnation == status->incarnation &&
           report->sequence > reports_of(self, worker)->sequence;
}

/* Saturates: times read from a file may be arbitrary. */
static void add_ns(at_ns *sum, at_ns value)
{
    assert(value >= 0);
    if (__builtin_add_overflow(*sum, value, sum)) *sum = AT_NEVER;
}

static void count_report(full_tally *self, at_node worker, const at_report *report)
{
    at_worker_tally *sum = worker_of(self, worker);
    worker_reports  *recent = reports_of(self, worker);
    const at_work   *work = &report->work;
    if (!is_accepted(self, worker, report)) return;
    recent->sequence = report->sequence;
    ring_of(self, worker)[recent->count++ % self->ring_size] = (pending_report){
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
    if (recent->timed) count_overshoot(&self->totals, work);
}

/* Compute time of the report that a piece came from; 0 when it is no longer in the ring. */
static at_ns compute_of(full_tally *self, const at_piece *piece)
{
    assert(piece->worker >= 1);
    const pending_report *ring = ring_of(self, piece->worker);
    for (uint32_t i = 0; i < self->ring_size; i++)
        if (ring[i].sequence == piece->sequence && ring[i].incarnation == piece->incarnation)
            return ring[i].compute_ns;
    return 0;
}

static void count_piece(full_tally *self, const at_piece *piece, uint64_t step, bool folded)
{
    at_worker_tally *sum = worker_of(self, piece->worker);
    worker_reports  *recent = reports_of(self, piece->worker);
    assert(piece->version < step);
    uint64_t staleness = step - 1 - piece->version;
    sum->samples_used += piece->samples;
    add_ns(&sum->useful_ns, folded ? recent->folded_ns : compute_of(self, piece));
    recent->folded_ns = 0; /* the first piece of a worker takes all of it */
    self->totals.staleness_sum += (double)staleness;
    self->totals.staleness_count++;
    if (staleness > self->totals.staleness_max) self->totals.staleness_max = staleness;
}

static void count_loss(full_tally *self, double loss)
{
    assert(self->totals.loss_weight < 1);
    self->totals.loss_fading = loss_decay * self->totals.loss_fading + (1 - loss_decay) * loss;
    self->totals.loss_weight = loss_decay * self->totals.loss_weight + (1 - loss_decay);
    self->totals.loss_recent = self->totals.loss_fading / self->totals.loss_weight;
}

static void count_step(full_tally *self, const at_record *record)
{
    assert(record->action->as.apply.step >= 1);
    assert(record->action->as.apply.pieces || record->action->as.apply.count == 0);
    at_tally *sum = &self->totals;
    at_ns     since = sum->step_count > 0 ? sum->applied_at : sum->began_at;
    uint64_t  step = record->action->as.apply.step, samples = record->action->as.apply.samples;
    if (since == AT_NEVER) since = record->at; /* the stream does not begin at the start */
    assert(record->at >= since);
    at_histogram_add(sum->steps, record->at - since);
    sum->applied_at = record->at;
    sum->step_count++;
    sum->samples_used += samples;
    for (uint32_t i = 0; i < record->action->as.apply.count; i++)
        count_piece(self, &record->action->as.apply.pieces[i], step,
                    record->action->as.apply.folded);
    sum->loss_total += record->action->as.apply.loss_sum;
    if (samples > 0) count_loss(self, record->action->as.apply.loss_sum / (double)samples);
}

static void count_drop(full_tally *self, const at_action *action)
{
    at_drop why = action->as.drop.why;
    assert(why < AT_DROP_COUNT);
    worker_of(self, action->worker)->samples_dropped += action->as.drop.samples;
    self->totals.samples_dropped += action->as.drop.samples;
    self->totals.dropped_why[why] += action->as.drop.samples;
}

/* The first order. The time between the parts of a resumed run does not count. */
static void begin(at_tally *sum, at_ns at)
{
    assert(at >= sum->before_end);
    sum->began_at = at - sum->before_ns;
    sum->applied_at += at - sum->before_end;
}

static void count_order(full_tally *self, const at_record *record)
{
    const at_order *order = &record->action->as.order;
    if (order->leave) {
        copy_status(self, record->action->worker);
        return;
    }
    if (self->totals.began_at == AT_NEVER) begin(&self->totals, record->at);
    reports_of(self, record->action->worker)->timed = order->time_limit != AT_NEVER;
}

static void count_finish(full_tally *self, const at_action *action)
{
    assert(action->as.finish.why < AT_END_COUNT);
    self->totals.end = action->as.finish.why;
    for (at_node worker = 1; worker <= self->workers; worker++) copy_status(self, worker);
}

static void count_join(full_tally *self, const at_event *event)
{
    assert(event->as.joined.incarnation >= 1);
    worker_of(self, event->worker)->incarnations++;
    reports_of(self, event->worker)->sequence = 0;
    if (event->as.joined.incarnation > 1) self->totals.respawns++;
    copy_status(self, event->worker);
}

/* Called when the roster has followed it. One that was evicted is counted when its end follows. */
static void count_loss_of(full_tally *self, at_node worker)
{
    copy_status(self, worker);
    const char *state = self->roster[worker - 1].state;
    bool        lost = state == at_state_lost || state == at_state_evicted;
    if (self->totals.link && lost) self->totals.link[worker - 1].losses++;
}

static void count_evaluation(at_tally *sum, const at_record *record)
{
    assert(record->event->kind == AT_EV_EVALUATED);
    for (int i = 0; i < AT_METRIC_COUNT; i++) sum->test[i] = record->event->as.evaluated.value[i];
    sum->test_count = record->count;
    sum->test_step = record->event->as.evaluated.step;
    sum->evaluations++;
}

static void put_event(full_tally *self, const at_record *record)
{
    const at_event *event = record->event;
    switch (event->kind) {
    case AT_EV_JOINED: count_join(self, event); break;
    case AT_EV_LOST: count_loss_of(self, event->worker); break;
    case AT_EV_MESSAGE: count_report(self, event->worker, &event->as.report); break;
    case AT_EV_EVALUATED: count_evaluation(&self->totals, record); break;
    case AT_EV_START:
    case AT_EV_APPLIED:
    case AT_EV_TIMER:
    case AT_EV_STOP: break;
    }
}

static void put_action(full_tally *self, const at_record *record)
{
    const at_action *action = record->action;
    switch (action->kind) {
    case AT_ACT_SEND: count_order(self, record); break;
    case AT_ACT_ADD:
        add_ns(&reports_of(self, action->as.add.worker)->folded_ns,
               compute_of(self, &action->as.add));
        break;
    case AT_ACT_APPLY: count_step(self, record); break;
    case AT_ACT_DROP: count_drop(self, action); break;
    case AT_ACT_EVICT:
        self->totals.evictions++;
        copy_status(self, action->worker);
        break;
    case AT_ACT_FINISH: count_finish(self, action); break;
    case AT_ACT_TIMER:
    case AT_ACT_EVALUATE:
    case AT_ACT_SAVE:
    case AT_ACT_NOTICE: break;
    }
}

/* Adds the growth of a counter; `before` is 0 for a new process. */
static void add_growth(uint64_t *sum, uint64_t now, uint64_t before)
{
    if (now == AT_USAGE_UNKNOWN || before == AT_USAGE_UNKNOWN || now < before) return;
    if (__builtin_add_overflow(*sum, now - before, sum)) *sum = AT_USAGE_UNKNOWN - 1;
}

static void raise_peak(uint64_t *peak, uint64_t value)
{
    if (value != AT_USAGE_UNKNOWN && value > *peak) *peak = value;
}

/* Network counters belong to the machine, so only the growth between two readings counts. */
static void add_network(at_usage_tally *tally, const at_usage *usage)
{
    assert(tally->last.pid == usage->pid);
    add_growth(&tally->net_in_bytes, usage->net_in_bytes, tally->last.net_in_bytes);
    add_growth(&tally->net_out_bytes, usage->net_out_bytes, tally->last.net_out_bytes);
    add_growth(&tally->loopback_bytes, usage->loopback_bytes, tally->last.loopback_bytes);
}

/* A counter that could not be read keeps its last value, from which growth is counted later. */
static void keep_known(uint64_t *now, uint64_t before)
{
    if (*now == AT_USAGE_UNKNOWN) *now = before;
}

static void store_reading(at_usage_tally *tally, const at_usage *usage)
{
    at_usage before = tally->last;
    bool     is_new = before.pid != usage->pid;
    tally->last = *usage;
    if (is_new) return;
    keep_known(&tally->last.read_bytes, before.read_bytes);
    keep_known(&tally->last.write_bytes, before.write_bytes);
    keep_known(&tally->last.net_in_bytes, before.net_in_bytes);
    keep_known(&tally->last.net_out_bytes, before.net_out_bytes);
    keep_known(&tally->last.loopback_bytes, before.loopback_bytes);
}

static void add_usage(at_usage_tally *tally, const at_usage *usage)
{
    assert(usage->pid > 0);
    bool     is_new = tally->last.pid != usage->pid;
    at_usage before = is_new ? (at_usage){0} : tally->last;
    at_ns    gained = at_usage_cpu(usage) - at_usage_cpu(&before);
    if (gained > 0 && __builtin_add_overflow(tally->cpu_ns, gained, &tally->cpu_ns))
        tally->cpu_ns = AT_NEVER;
    add_growth(&tally->read_bytes, usage->read_bytes, before.read_bytes);
    add_growth(&tally->write_bytes, usage->write_bytes, before.write_bytes);
    if (!is_new) add_network(tally, usage);
    raise_peak(&tally->peak_bytes, usage->rss_bytes);
    raise_peak(&tally->peak_bytes, usage->peak_bytes);
    store_reading(tally, usage);
}

static at_usage_tally *usage_of(full_tally *self, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    return &self->totals.usage[worker - 1];
}

static void count_usage(full_tally *self, const at_record *record)
{
    at_tally *sum = &self->totals;
    assert(record->usage);
    if (record->node == 0)
        add_usage(&sum->hub_usage, record->usage);
    else if (record->node == AT_NODE_EVALUATOR)
        add_usage(&sum->evaluator_usage, record->usage);
    else
        add_usage(usage_of(self, record->node), record->usage);
}

/* Counters begin again with every connection. */
static void count_link(full_tally *self, at_node worker, const at_link_stats *link)
{
    at_tally *sum = &self->totals;
    assert(worker >= 1);
    assert(worker <= self->workers);
    if (!sum->link) sum->link = calloc(self->workers, sizeof *sum->link);
    if (!sum->link) return; /* without memory they are not counted */
    at_link_tally *it = &sum->link[worker - 1];
    bool           same = strcmp(it->last.address, link->address) == 0;
    at_link_stats  before = same ? it->last : (at_link_stats){0};
    at_ns          least = link->round_trip_ns_min;
    add_growth(&it->sent_bytes, link->sent_bytes, before.sent_bytes);
    add_growth(&it->received_bytes, link->received_bytes, before.received_bytes);
    add_growth(&it->resent_packets, link->resent_packets, before.resent_packets);
    if (least > 0 && (it->round_trip_ns_min == 0 || least < it->round_trip_ns_min))
        it->round_trip_ns_min = least;
    it->last = *link;
}

static void put(void *self, const at_record *record)
{
    full_tally *full = self;
    at_roster_put(full->roster, full->workers, record);
    if (record->kind == AT_REC_EVENT) put_event(full, record);
    if (record->kind == AT_REC_ACTION) put_action(full, record);
    if (record->kind == AT_REC_USAGE) count_usage(full, record);
    if (record->kind == AT_REC_LINK) count_link(full, record->node, record->link);
    if (record->kind == AT_REC_TOTALS) at_tally_replace(&full->totals, record->text, record->at);
}

/* The totals are used after the recorder is closed; at_tally_free releases them. */
static at_err close_sink(void *self, at_fail *fail)
{
    (void)fail;
    assert(self);
    return AT_OK;
}

at_tally *at_tally_new(const at_run_info *info, at_sink *sink)
{
    assert(info->plan->workers_max >= 1);
    uint32_t    workers = info->plan->workers_max;
    full_tally *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->workers = workers;
    self->roster = calloc(workers, sizeof *self->roster);
    self->recent = calloc(workers, sizeof *self->recent);
    const at_release_rule *release = info->plan->release; /* NULL: unknown, as in some logs */
    self->ring_size = release && release->holds ? RING_HELD : RING;
    self->ring = calloc((size_t)workers * self->ring_size, sizeof *self->ring);
    self->totals.worker = calloc(workers, sizeof *self->totals.worker);
    self->totals.usage = calloc(workers, sizeof *self->totals.usage);
    self->totals.steps = calloc(1, sizeof *self->totals.steps);
    bool complete = self->roster && self->recent && self->ring && self->totals.worker &&
                    self->totals.usage && self->totals.steps;
    if (!complete) {
        at_tally_free(&self->totals);
        return NULL;
    }
    at_roster_init(self->roster, workers, info->plan->workers);
    for (at_node worker = 1; worker <= workers; worker++) copy_status(self, worker);
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
    full_tally *self = (full_tally *)totals;
    free(totals->steps);
    free(totals->worker);
    free(totals->usage);
    free(totals->link);
    free(self->recent);
    free(self->ring);
    free(self->roster);
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
    if (tally->step_count == 0) return 0;
    if (tally->began_at == AT_NEVER) return at_seconds(tally->before_ns); /* resumed at its end */
    assert(tally->applied_at >= tally->began_at);
    return at_seconds(tally->applied_at - tally->began_at);
}

/* How long a worker that joined in addition was present, up to its last report. */
static double seconds_present(const at_worker_tally *w)
{
    assert(w->compute_ns >= 0);
    return at_seconds(w->compute_ns) + at_seconds(w->sleep_ns) + at_seconds(w->idle_ns) +
           at_seconds(w->send_ns);
}

double at_tally_useful(const at_tally *tally)
{
    const at_plan *plan = tally->info->plan;
    assert(plan->workers_max >= 1);
    double useful = 0, whole = at_tally_seconds(tally) * plan->workers;
    for (uint32_t i = 0; i < plan->workers_max; i++)
        useful += at_seconds(tally->worker[i].useful_ns);
    for (uint32_t i = plan->workers; i < plan->workers_max; i++)
        whole += seconds_present(&tally->worker[i]);
    return whole > 0 ? fmin(useful / whole, 1) : 0;
}

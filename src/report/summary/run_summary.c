#include "report/summary/run_summary.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/roster.h"
#include "record/runinfo.h"
#include "report/summary/run_summary_parts.h"

enum { POINTS = 1000, CELLS = 1 << 18, LINES = 500, USAGE_POINTS = 400 };

/* Sums of times stay far from overflow, however often a run was resumed. */
static const at_ns shift_max = (at_ns)1 << 60;

static const char *const step_name[AT_STEP_CHANNELS] = {
#define X(id, text) [AT_STEP_##id] = text,
    AT_STEP_CHANNEL_MAP(X)
#undef X
};

static const char *const usage_name[AT_USAGE_CHANNELS] = {
#define X(id, text) [AT_USAGE_##id] = text,
    AT_USAGE_CHANNEL_MAP(X)
#undef X
};

/* ---- creation ------------------------------------------------------------------------------ */

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for the summary of the run");
}

/* A text of the log's header, borrowed. */
static const char *info_text(const at_run_summary *summary, const char *name)
{
    assert(summary->info_json);
    return json_string_value(json_object_get(summary->info_json, name));
}

static at_err parse_info(at_run_summary *s, const char *text, at_fail *fail)
{
    AT_TRY(at_run_info_plan(text, &s->plan, &s->then, fail));
    if (at_run_info_workers(text) == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "the header of the event log has no workers");
    s->info_json = json_loads(text, 0, NULL);
    if (!s->info_json) return no_memory(fail);
    s->info = (at_run_info){.plan = &s->plan,
                            .world = info_text(s, "world"),
                            .command = info_text(s, "command"),
                            .model = info_text(s, "model"),
                            .data = info_text(s, "data")};
    return AT_OK;
}

static uint32_t or_default(uint32_t given, uint32_t fallback)
{
    return given > 0 ? given : fallback;
}

static bool reserve(at_run_summary *s, const at_run_summary_options *options)
{
    uint32_t workers = s->plan.workers_max, points = or_default(options->points, POINTS);
    s->tally = at_tally_new(&s->info, &s->tally_sink);
    s->steps = at_downsampled_new(step_name, AT_STEP_CHANNELS, points < 2 ? 2 : points);
    s->tests = at_downsampled_new(at_metric_name, AT_METRIC_COUNT, points < 2 ? 2 : points);
    s->round_times = at_round_times_new(workers);
    s->timeline = at_timeline_new(workers, or_default(options->cells, CELLS));
    s->blame = at_blame_new(&s->plan);
    s->lines = at_event_lines_new(or_default(options->lines, LINES));
    s->connections = at_connections_new(workers);
    s->worker = calloc(workers, sizeof *s->worker);
    s->distribution = calloc(AT_DISTRIBUTION_COUNT, sizeof *s->distribution);
    return s->tally && s->steps && s->tests && s->round_times && s->timeline && s->blame &&
           s->lines && s->connections && s->worker && s->distribution;
}

at_err at_run_summary_new(const char *info, const at_run_summary_options *options,
                          at_run_summary **summary, at_fail *fail)
{
    at_run_summary *s = calloc(1, sizeof *s);
    *summary = NULL;
    if (!s) return no_memory(fail);
    at_err err = parse_info(s, info, fail);
    if (!err && options && options->workers > s->plan.workers_max)
        s->plan.workers_max = options->workers;
    if (!err && !reserve(s, options ? options : &(at_run_summary_options){0}))
        err = no_memory(fail);
    if (err) {
        at_run_summary_free(s);
        return err;
    }
    s->opened = AT_NEVER;
    for (uint32_t i = 0; i < s->plan.workers_max; i++) s->worker[i].gone_since = AT_NEVER;
    *summary = s;
    return AT_OK;
}

void at_run_summary_free(at_run_summary *summary)
{
    if (!summary) return;
    for (int i = 0; i < AT_RUN_SUMMARY_PROCESSES; i++)
        at_downsampled_free(summary->process[i].series);
    json_decref(summary->histograms);
    free(summary->distribution);
    free(summary->worker);
    at_connections_free(summary->connections);
    at_event_lines_free(summary->lines);
    at_blame_free(summary->blame);
    at_timeline_free(summary->timeline);
    at_round_times_free(summary->round_times);
    at_downsampled_free(summary->tests);
    at_downsampled_free(summary->steps);
    at_tally_free(summary->tally);
    json_decref(summary->info_json);
    free(summary);
}

/* ---- workers ------------------------------------------------------------------------------- */

static at_run_summary_worker *worker_of(at_run_summary *s, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= s->plan.workers_max);
    s->worker[worker - 1].serial = s->serial;
    return &s->worker[worker - 1];
}

static void end_absence(at_run_summary *s, at_node worker)
{
    at_run_summary_worker *w = worker_of(s, worker);
    if (w->gone_since != AT_NEVER) assert(w->gone_since <= s->at);
    if (w->gone_since != AT_NEVER)
        at_timeline_add(s->timeline, s->serial, worker, AT_ACTIVITY_GONE, w->gone_since, s->at);
    w->gone_since = AT_NEVER;
}

/* A worker is absent until it joins for the first time. */
static void on_joined(at_run_summary *s, const at_event *event)
{
    assert(event->worker >= 1);
    at_run_summary_worker *w = &s->worker[event->worker - 1];
    if (w->serial == 0) w->gone_since = 0;
    end_absence(s, event->worker);
    at_round_times_join(s->round_times, event->worker, s->at);
    at_blame_join(s->blame, event->worker);
}

/* A process that exits after an order to leave does not count as lost. */
static bool is_leaving(const at_run_summary *s, const at_record *record)
{
    if (record->kind != AT_REC_EVENT || record->event->kind != AT_EV_LOST) return false;
    return s->tally->worker[record->event->worker - 1].state == at_state_finished;
}

static void on_lost(at_run_summary *s, const at_event *event)
{
    at_run_summary_worker *w = worker_of(s, event->worker);
    at_blame_lost(s->blame, event->worker, s->at, event->as.lost.returns);
    if (w->gone_since == AT_NEVER) w->gone_since = s->at;
}

static void sample_round(at_run_summary *s, const at_work *work, uint64_t version)
{
    at_reservoir_add(&s->distribution[AT_DISTRIBUTION_DELAY], at_seconds(work->sleep_ns));
    at_reservoir_add(&s->distribution[AT_DISTRIBUTION_COMPUTE],
                     at_seconds(work->sleep_ns + work->compute_ns));
    at_reservoir_add(&s->distribution[AT_DISTRIBUTION_SAMPLES], work->samples);
    if (version >= work->version)
        at_reservoir_add(&s->distribution[AT_DISTRIBUTION_STALENESS],
                         (double)(version - work->version));
}

static void on_report(at_run_summary *s, const at_record *record)
{
    const at_event *event = record->event;
    const at_work  *work = &event->as.report.work;
    at_round_span   r = at_round_times_report(s->round_times, event->worker, work, s->at);
    assert(r.send_begin <= r.send_end && r.send_end <= r.begin);
    assert(r.begin <= r.sleep_end && r.sleep_end <= r.end);
    assert(r.end <= s->at);
    worker_of(s, event->worker);
    s->detailed = true;
    at_timeline_add(s->timeline, s->serial, event->worker, AT_ACTIVITY_SEND, r.send_begin,
                    r.send_end);
    at_timeline_add(s->timeline, s->serial, event->worker, AT_ACTIVITY_SLEEP, r.begin, r.sleep_end);
    at_timeline_add(s->timeline, s->serial, event->worker, AT_ACTIVITY_COMPUTE, r.sleep_end, r.end);
    at_timeline_round(s->timeline, s->serial, event->worker, r.end, work->samples);
    at_blame_report(s->blame, event->worker, &event->as.report, r.end,
                    work->sleep_ns + work->compute_ns, s->at);
    sample_round(s, work, record->version);
}

static void on_order(at_run_summary *s, const at_action *action)
{
    worker_of(s, action->worker);
    if (action->as.order.leave || action->as.order.pause) return;
    if (s->opened == AT_NEVER) s->opened = s->at;
    at_round_times_order(s->round_times, action->worker, &action->as.order, s->at);
    at_blame_order(s->blame, action->worker, s->at);
}

static void on_drop(at_run_summary *s, const at_action *action)
{
    worker_of(s, action->worker);
    at_blame_drop(s->blame, action, at_round_times_open(s->round_times, action->worker), s->at);
}

/* ---- steps --------------------------------------------------------------------------------- */

static double mean_staleness(const at_action *apply)
{
    assert(apply->kind == AT_ACT_APPLY);
    double sum = 0;
    for (uint32_t i = 0; i < apply->as.apply.count; i++)
        sum += (double)(apply->as.apply.step - 1 - apply->as.apply.pieces[i].version);
    return apply->as.apply.count > 0 ? sum / apply->as.apply.count : NAN;
}

static void sample_step(at_run_summary *s, const double *value)
{
    at_reservoir_add(&s->distribution[AT_DISTRIBUTION_MESSAGES], value[AT_STEP_MESSAGES]);
    at_reservoir_add(&s->distribution[AT_DISTRIBUTION_WAIT], value[AT_STEP_SECONDS]);
    at_reservoir_add(&s->distribution[AT_DISTRIBUTION_BATCH], value[AT_STEP_BATCH]);
}

/* After a resume, steps since the checkpoint occur again: the later ones count. */
static void rewind_to(at_run_summary *s, uint64_t step)
{
    if (step > s->step) return;
    at_downsampled_rewind(s->steps, step);
    at_downsampled_rewind(s->tests, step);
}

static void on_apply(at_run_summary *s, const at_record *record)
{
    const at_action *a = record->action;
    double           samples = (double)a->as.apply.samples, value[AT_STEP_CHANNELS];
    at_ns            opened = s->opened == AT_NEVER ? s->at : s->opened;
    assert(opened <= s->at);
    value[AT_STEP_LOSS] = samples > 0 ? a->as.apply.loss_sum / samples : NAN;
    value[AT_STEP_LR] = record->lr;
    value[AT_STEP_BATCH] = samples;
    value[AT_STEP_SECONDS] = at_seconds(s->at - opened);
    value[AT_STEP_MESSAGES] = a->as.apply.count > 0 ? (double)a->as.apply.count : NAN;
    value[AT_STEP_STALENESS] = mean_staleness(a);
    value[AT_STEP_SAMPLES] = (double)s->tally->samples_used;
    rewind_to(s, a->as.apply.step);
    at_downsampled_add(s->steps, s->serial, at_seconds(s->at), a->as.apply.step, value);
    sample_step(s, value);
    for (uint32_t i = 0; i < a->as.apply.count; i++) worker_of(s, a->as.apply.pieces[i].worker);
    at_blame_close(s->blame, s->at);
    s->step = a->as.apply.step;
    s->opened = s->at;
}

/* A result belongs to the time of its snapshot, which was taken earlier. */
static void on_evaluated(at_run_summary *s, const at_event *event)
{
    at_ns ago = event->now - event->as.evaluated.at;
    at_ns taken = ago > 0 && ago < s->at ? s->at - ago : s->at;
    if (ago >= s->at) taken = 0;
    at_downsampled_add(s->tests, s->serial, at_seconds(taken), event->as.evaluated.step,
                       event->as.evaluated.value);
}

/* ---- resource usage ------------------------------------------------------------------------ */

/* CPU time has a resolution of 10 ms, so shorter intervals would give noisy rates. */
static const at_ns usage_interval_min = AT_MS(100);

/* The entry of a process; NULL when there are too many. */
static at_process_usage *find_process(at_run_summary *s, at_node node)
{
    for (int i = 0; i < AT_RUN_SUMMARY_PROCESSES; i++) {
        at_process_usage *p = &s->process[i];
        if (p->series && p->node == node) return p;
        if (p->series) continue;
        p->series = at_downsampled_new(usage_name, AT_USAGE_CHANNELS, USAGE_POINTS);
        p->node = node;
        return p->series ? p : NULL;
    }
    return NULL;
}

/* A counter's increase per second; NAN when unknown. */
static double rate(uint64_t before, uint64_t now, double seconds)
{
    bool known = before != AT_USAGE_UNKNOWN && now != AT_USAGE_UNKNOWN && now >= before;
    return known && seconds > 0 ? (double)(now - before) / seconds : NAN;
}

static void measure_usage(const at_process_usage *p, const at_usage *now, double seconds,
                          double *value)
{
    const at_usage *before = &p->last;
    assert(seconds >= 0);
    at_ns cpu = at_usage_cpu(now) - at_usage_cpu(before);
    value[AT_USAGE_CPU] = seconds > 0 && cpu >= 0 ? at_seconds(cpu) / seconds : NAN;
    bool alive = now->rss_bytes != AT_USAGE_UNKNOWN && now->rss_bytes > 0;
    value[AT_USAGE_RSS] = alive ? (double)now->rss_bytes : NAN;
    value[AT_USAGE_READ] = rate(before->read_bytes, now->read_bytes, seconds);
    value[AT_USAGE_WRITE] = rate(before->write_bytes, now->write_bytes, seconds);
    value[AT_USAGE_NET_IN] = rate(before->net_in_bytes, now->net_in_bytes, seconds);
    value[AT_USAGE_NET_OUT] = rate(before->net_out_bytes, now->net_out_bytes, seconds);
    value[AT_USAGE_LOOPBACK] = rate(before->loopback_bytes, now->loopback_bytes, seconds);
}

static void put_usage(at_run_summary *s, at_node node, const at_usage *usage)
{
    at_process_usage *p = find_process(s, node);
    double            value[AT_USAGE_CHANNELS];
    if (!p) return;
    assert(p->last_at <= s->at);
    bool same = p->last.pid == usage->pid && usage->pid != 0;
    if (same && s->at - p->last_at < usage_interval_min) return;
    measure_usage(p, usage, same ? at_seconds(s->at - p->last_at) : 0, value);
    at_downsampled_add(p->series, s->serial, at_seconds(s->at), s->step, value);
    p->last = *usage;
    p->last_at = s->at;
    s->usage_serial = s->serial;
}

/* ---- records that were left out ------------------------------------------------------------ */

/* Shows what a worker did since the last totals as one span of each kind: a gap is shorter than
 * what a column shows, or nearly so. */
static void fill_gap(at_run_summary *s, at_node worker, const at_worker_tally *before)
{
    const at_worker_tally *now = &s->tally->worker[worker - 1];
    const at_ns            spent[] = {[AT_ACTIVITY_COMPUTE] = now->compute_ns - before->compute_ns,
                                      [AT_ACTIVITY_SLEEP] = now->sleep_ns - before->sleep_ns,
                                      [AT_ACTIVITY_SEND] = now->send_ns - before->send_ns};
    at_ns                  from = at_round_times_open(s->round_times, worker);
    for (int i = 0; i < (int)(sizeof spent / sizeof *spent) && from < s->at; i++) {
        at_ns end = spent[i] < s->at - from ? from + spent[i] : s->at;
        if (end <= from) continue;
        at_timeline_add(s->timeline, s->serial, worker, (at_activity)i, from, end);
        from = end;
    }
    at_round_times_join(s->round_times, worker, s->at);
}

/* The totals are exact again; curves and blame have a gap. */
static void put_totals(at_run_summary *s, const at_record *record)
{
    uint32_t         workers = s->plan.workers_max;
    at_worker_tally *before = malloc(workers * sizeof *before);
    if (before) memcpy(before, s->tally->worker, workers * sizeof *before);
    if (!s->thinned_at) s->thinned_at = s->step > 0 ? s->step : 1;
    s->tally_sink.put(s->tally_sink.self, record);
    for (uint32_t i = 0; i < workers; i++) {
        bool is_here = s->worker[i].gone_since == AT_NEVER && s->tally->worker[i].rounds > 0;
        if (before && is_here) fill_gap(s, i + 1, &before[i]);
    }
    at_blame_skip(s->blame);
    s->opened = s->at;
    free(before);
}

/* ---- records ------------------------------------------------------------------------------- */

static void put_event(at_run_summary *s, const at_record *record)
{
    switch (record->event->kind) {
    case AT_EV_JOINED: on_joined(s, record->event); break;
    case AT_EV_LOST: on_lost(s, record->event); break;
    case AT_EV_MESSAGE: on_report(s, record); break;
    case AT_EV_EVALUATED: on_evaluated(s, record->event); break;
    case AT_EV_START:
    case AT_EV_APPLIED:
    case AT_EV_TIMER:
    case AT_EV_STOP: break;
    }
}

static void put_action(at_run_summary *s, const at_record *record)
{
    if (record->action->kind == AT_ACT_SEND) on_order(s, record->action);
    if (record->action->kind == AT_ACT_DROP) on_drop(s, record->action);
    if (record->action->kind == AT_ACT_APPLY) on_apply(s, record);
}

/* The times of every log begin at 0. AT_REC_TEXT records may predate the start. */
static void follow_time(at_run_summary *s, const at_record *record)
{
    if (s->resuming && record->kind != AT_REC_TEXT) {
        s->shift = record->at < s->at ? s->at - record->at : 0;
        if (s->shift > shift_max) s->shift = shift_max;
        s->resuming = false;
    }
    assert(s->shift >= 0);
    at_ns at = record->at + s->shift;
    if (at > s->at) s->at = at;
}

void at_run_summary_put(at_run_summary *summary, const at_record *record)
{
    at_record shifted = *record;
    assert(summary->serial < UINT64_MAX);
    summary->serial++;
    follow_time(summary, record);
    shifted.at = summary->at;
    if (record->kind == AT_REC_TOTALS) {
        put_totals(summary, &shifted);
        return;
    }
    summary->tally_sink.put(summary->tally_sink.self, &shifted);
    if (is_leaving(summary, record)) return;
    at_moment moment = {.serial = summary->serial, .step = summary->step, .at = summary->at};
    at_event_lines_put(summary->lines, summary->serial, summary->at, record);
    at_connections_put(summary->connections, &moment, record);
    if (record->kind == AT_REC_EVENT) put_event(summary, record);
    if (record->kind == AT_REC_ACTION) put_action(summary, record);
    if (record->kind == AT_REC_USAGE) put_usage(summary, record->node, record->usage);
}

bool at_run_summary_resume(at_run_summary *summary, const char *info)
{
    assert(summary->at >= 0);
    if (at_run_info_workers(info) > summary->plan.workers_max) return false;
    summary->resuming = true;
    summary->opened = AT_NEVER;
    return true;
}

const at_tally *at_run_summary_tally(const at_run_summary *summary)
{
    assert(summary->tally);
    return summary->tally;
}

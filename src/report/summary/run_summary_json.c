/* The summary as JSON. Unchanged parts are left out, so that frequent updates are cheap. */
#include <assert.h>
#include <stdlib.h>

#include "record/roster.h"
#include "report/summary/json_value.h"
#include "report/summary/run_summary_parts.h"

enum { QUANTILES = 200 };

static const char *const distribution_name[AT_DISTRIBUTION_COUNT] = {
#define X(id, text) [AT_DISTRIBUTION_##id] = text,
    AT_DISTRIBUTION_MAP(X)
#undef X
};

/* ---- configuration ------------------------------------------------------------------------- */

static json_t *rules_json(const at_plan *plan)
{
    json_t *rules = json_object();
    char    text[AT_RULE_TEXT_SIZE];
    for (int i = 0; i < AT_FAMILY_COUNT; i++)
        json_object_set_new(
            rules, at_family_name[i],
            at_json_text(at_plan_rule_text(plan, (enum at_family)i, text, sizeof text)));
    return rules;
}

static json_t *limits_json(const at_limits *limits)
{
    assert(limits->targets <= AT_TARGETS_MAX);
    json_t *targets = json_array();
    for (uint32_t i = 0; i < limits->targets; i++)
        json_array_append_new(targets, json_pack("{s:s, s:o}", "metric",
                                                 at_metric_name[limits->target[i].metric], "value",
                                                 at_json_number(limits->target[i].value)));
    return json_pack("{s:o, s:o, s:o, s:o}", "steps", at_json_count(limits->steps), "samples",
                     at_json_count(limits->samples), "seconds", at_json_seconds(limits->time),
                     "targets", targets);
}

static json_t *info_json(const at_run_summary *s)
{
    json_t                  *info = json_object();
    static const char *const kept[] = {"anytime",    "world",         "command", "model", "data",
                                       "parameters", "samples_epoch", "seed",    "date"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        json_object_set(info, kept[i], json_object_get(s->info_json, kept[i]));
    json_object_set_new(info, "strategy",
                        at_json_text(s->plan.strategy ? s->plan.strategy->name : NULL));
    json_object_set_new(info, "workers", at_json_count(s->plan.workers_max));
    json_object_set_new(info, "batch", at_json_count(s->plan.batch));
    json_object_set_new(info, "rules", rules_json(&s->plan));
    json_object_set_new(info, "limits", limits_json(&s->plan.limits));
    return info;
}

/* ---- current state ------------------------------------------------------------------------- */

static json_t *ledger_json(const at_tally *t)
{
    json_t *why = json_object();
    for (int i = 0; i < AT_DROP_COUNT; i++)
        if (t->dropped_why[i] > 0)
            json_object_set_new(why, at_drop_name[i], at_json_count(t->dropped_why[i]));
    return json_pack("{s:o, s:o, s:o}", "used", at_json_count(t->samples_used), "dropped",
                     at_json_count(t->samples_dropped), "why", why);
}

static json_t *spread_json(const at_duration_stats *spread)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "mean", at_json_number(spread->mean), "p50",
                     at_json_number(spread->p50), "p95", at_json_number(spread->p95), "max",
                     at_json_number(spread->max));
}

static json_t *test_json(const at_tally *t)
{
    json_t *test = json_object();
    for (int i = 0; i < AT_METRIC_COUNT; i++)
        if (!isnan(t->test[i]))
            json_object_set_new(test, at_metric_name[i], at_json_number(t->test[i]));
    return test;
}

static json_t *state_json(const at_run_summary *s)
{
    const at_tally   *t = s->tally;
    double            seconds = at_tally_seconds(t);
    at_duration_stats steps = at_tally_steps(t);
    json_t           *state = json_object();
    assert(t->end < AT_END_COUNT);
    json_object_set_new(state, "end", json_string(at_end_name[t->end]));
    json_object_set_new(state, "at", at_json_seconds(s->at));
    json_object_set_new(state, "step", at_json_count(s->step));
    json_object_set_new(state, "steps", at_json_count(t->step_count));
    json_object_set_new(state, "seconds", at_json_number(seconds));
    json_object_set_new(state, "samples", ledger_json(t));
    json_object_set_new(state, "rate",
                        at_json_number(seconds > 0 ? (double)t->samples_used / seconds : NAN));
    json_object_set_new(state, "loss", at_json_number(t->loss_recent));
    json_object_set_new(state, "test", test_json(t));
    json_object_set_new(state, "useful", at_json_number(s->detailed ? at_tally_useful(t) : NAN));
    json_object_set_new(state, "step_seconds", spread_json(&steps));
    json_object_set_new(
        state, "staleness",
        at_json_number(t->staleness_count ? t->staleness_sum / (double)t->staleness_count : NAN));
    json_object_set_new(state, "staleness_max", at_json_count(t->staleness_max));
    json_object_set_new(state, "respawns", at_json_count(t->respawns));
    json_object_set_new(state, "evictions", at_json_count(t->evictions));
    return state;
}

/* ---- workers ------------------------------------------------------------------------------- */

/* Totals of one worker, or of neighbors that share a row. Times are in seconds, because nanoseconds
 * of thousands of workers overflow. */
typedef struct worker_sums {
    const char     *state; /* these two: of the last one */
    int64_t         pid;
    uint64_t        rounds, samples_used, samples_dropped, incarnations;
    double          compute, useful, sleep, send, idle;
    at_blame_totals blame;
} worker_sums;

static void add_worker(worker_sums *sum, const at_run_summary *s, at_node worker)
{
    const at_worker_tally *w = &s->tally->worker[worker - 1];
    at_blame_totals        b = at_blame_of(s->blame, worker);
    sum->state = w->state;
    sum->pid = w->pid;
    sum->rounds += w->rounds;
    sum->samples_used += w->samples_used;
    sum->samples_dropped += w->samples_dropped;
    sum->incarnations += w->incarnations;
    sum->compute += at_seconds(w->compute_ns);
    sum->useful += at_seconds(w->useful_ns);
    sum->sleep += at_seconds(w->sleep_ns);
    sum->send += at_seconds(w->send_ns);
    sum->idle += at_seconds(w->idle_ns);
    sum->blame.waited += b.waited;
    sum->blame.wasted += b.wasted;
}

static json_t *sums_json(const worker_sums *sum, at_node first, at_node last)
{
    json_t *row = json_object();
    assert(first <= last);
    json_object_set_new(row, "first", at_json_count(first));
    json_object_set_new(row, "last", at_json_count(last));
    json_object_set_new(row, "state", json_string(first == last ? sum->state : ""));
    json_object_set_new(row, "pid", json_integer(first == last ? (json_int_t)sum->pid : 0));
    json_object_set_new(row, "processes", at_json_count(sum->incarnations));
    json_object_set_new(row, "rounds", at_json_count(sum->rounds));
    json_object_set_new(row, "used", at_json_count(sum->samples_used));
    json_object_set_new(row, "dropped", at_json_count(sum->samples_dropped));
    json_object_set_new(row, "compute", at_json_number(sum->compute));
    json_object_set_new(row, "useful", at_json_number(sum->useful));
    json_object_set_new(row, "sleep", at_json_number(sum->sleep));
    json_object_set_new(row, "send", at_json_number(sum->send));
    json_object_set_new(row, "idle", at_json_number(sum->idle));
    json_object_set_new(row, "waited", at_json_number(sum->blame.waited));
    json_object_set_new(row, "wasted", at_json_number(sum->blame.wasted));
    return row;
}

/* The same rows as in the timeline; only those that have changed. */
static json_t *workers_json(const at_run_summary *s, uint64_t since)
{
    json_t  *rows = json_array();
    uint64_t workers = s->plan.workers_max;
    uint64_t count = workers < AT_TIMELINE_ROWS ? workers : AT_TIMELINE_ROWS;
    at_node  worker = 1;
    for (uint64_t r = 0; r < count; r++) {
        at_node     first = worker;
        worker_sums sum = {0};
        bool        changed = false;
        for (; worker <= workers && (uint64_t)(worker - 1) * count / workers == r; worker++) {
            add_worker(&sum, s, worker);
            changed = changed || s->worker[worker - 1].serial > since;
        }
        if (changed) json_array_append_new(rows, sums_json(&sum, first, worker - 1));
    }
    assert(worker == workers + 1);
    return rows;
}

enum { WORST = 20 };

typedef struct ranked {
    at_node         worker;
    at_blame_totals blame;
} ranked;

static int by_blame(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    double        p = x->blame.waited + x->blame.wasted, q = y->blame.waited + y->blame.wasted;
    return p > q ? -1 : p < q;
}

/* Where neighbors share rows, the workers that cost most are listed individually. */
static json_t *worst_json(const at_run_summary *s)
{
    uint32_t workers = s->plan.workers_max;
    ranked  *each = workers > AT_TIMELINE_ROWS ? calloc(workers, sizeof *each) : NULL;
    if (!each) return NULL;
    for (at_node w = 1; w <= workers; w++)
        each[w - 1] = (ranked){.worker = w, .blame = at_blame_of(s->blame, w)};
    qsort(each, workers, sizeof *each, by_blame);
    json_t *rows = json_array();
    for (uint32_t i = 0; i < WORST && each[i].blame.waited + each[i].blame.wasted > 0; i++)
        json_array_append_new(rows, json_pack("{s:I, s:o, s:o}", "id", (json_int_t)each[i].worker,
                                              "waited", at_json_number(each[i].blame.waited),
                                              "wasted", at_json_number(each[i].blame.wasted)));
    free(each);
    return rows;
}

/* ---- histograms ---------------------------------------------------------------------------- */

/* Evenly spaced quantiles, from which a page can compute a histogram with any bins. */
static json_t *quantiles_json(at_reservoir *reservoir)
{
    json_t *values = json_array();
    assert(reservoir->count > 0);
    at_stats_sort(reservoir->value, reservoir->count);
    for (int i = 0; i < QUANTILES; i++) {
        double percent = 100 * (i + 0.5) / QUANTILES;
        size_t index = (size_t)(percent / 100 * (double)reservoir->count);
        json_array_append_new(values, at_json_number(reservoir->value[index]));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o}", "count", at_json_count(reservoir->all.count),
                     "mean", at_json_number(reservoir->all.mean), "min",
                     at_json_number(reservoir->all.min), "max", at_json_number(reservoir->all.max),
                     "whole", !reservoir->fractional, "quantiles", values);
}

/* They change slowly, so they are recomputed only after 5 % more values. */
static void refresh_histograms(at_run_summary *s)
{
    uint64_t count = 0;
    for (int i = 0; i < AT_DISTRIBUTION_COUNT; i++) count += s->distribution[i].all.count;
    bool ended = s->tally->end != AT_END_RUNNING;
    if (count <= s->histograms_count + (ended ? 0 : s->histograms_count / 20)) return;
    json_decref(s->histograms);
    s->histograms = json_object();
    for (int i = 0; i < AT_DISTRIBUTION_COUNT; i++)
        if (s->distribution[i].count > 0)
            json_object_set_new(s->histograms, distribution_name[i],
                                quantiles_json(&s->distribution[i]));
    s->histograms_count = count;
    s->histograms_serial = s->serial;
}

/* ---- resource usage ------------------------------------------------------------------------ */

static json_t *usage_json(const at_run_summary *s, uint64_t since)
{
    if (s->usage_serial <= since) return NULL;
    json_t *processes = json_array();
    for (int i = 0; i < AT_RUN_SUMMARY_PROCESSES; i++) {
        const at_process_usage *p = &s->process[i];
        if (!p->series) continue;
        bool evaluator = p->node == AT_NODE_EVALUATOR;
        json_array_append_new(
            processes,
            json_pack("{s:o, s:I, s:o}", "node",
                      evaluator ? json_string("evaluator") : at_json_count(p->node), "pid",
                      (json_int_t)p->last.pid, "trend", at_downsampled_json(p->series, since)));
    }
    return processes;
}

/* ---- the document -------------------------------------------------------------------------- */

/* Extends the timeline of workers that are gone up to now. */
static void extend_absences(at_run_summary *s)
{
    if (s->tally->end != AT_END_RUNNING) return;
    for (at_node w = 1; w <= s->plan.workers_max; w++) {
        at_run_summary_worker *worker = &s->worker[w - 1];
        if (worker->gone_since == AT_NEVER || worker->gone_since >= s->at) continue;
        at_timeline_add(s->timeline, s->serial, w, AT_ACTIVITY_GONE, worker->gone_since, s->at);
        worker->gone_since = s->at;
    }
}

static void set(json_t *object, const char *name, json_t *value)
{
    if (value) json_object_set_new(object, name, value);
}

json_t *at_run_summary_json(at_run_summary *summary, uint64_t since)
{
    json_t *object = json_object();
    if (!object) return NULL;
    refresh_histograms(summary);
    extend_absences(summary);
    set(object, "serial", at_json_count(summary->serial));
    set(object, "since", at_json_count(since));
    if (since == 0) set(object, "info", info_json(summary));
    set(object, "state", state_json(summary));
    if (summary->serial <= since) return object; /* a page of an earlier server may be ahead */
    set(object, "steps", at_downsampled_json(summary->steps, since));
    set(object, "tests", at_downsampled_json(summary->tests, since));
    set(object, "log", at_event_lines_json(summary->lines, since));
    set(object, "usage", usage_json(summary, since));
    set(object, "network", at_connections_json(summary->connections, summary->tally, since));
    if (!summary->detailed) return object;
    set(object, "workers", workers_json(summary, since));
    set(object, "worst", worst_json(summary));
    set(object, "timeline", at_timeline_json(summary->timeline, since));
    if (summary->histograms_serial > since)
        set(object, "histograms", json_incref(summary->histograms));
    return object;
}

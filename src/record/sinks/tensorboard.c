/* tensorboard/: what a run looks like in TensorBoard.
 *
 *     tensorboard/hub/         the net, the settings, numbers of steps and evaluations
 *     tensorboard/worker-01/   numbers of its rounds, and so on for the first 64 workers
 *     tensorboard/evaluator/   what it takes from the machine, when that is recorded
 *
 * Nobody looks at five thousand points a second. A curve gets one point a tenth of a second, later
 * one each thousandth of the time that has passed, which is what the steps or rounds since the
 * point before came to. So a record costs a few additions, and a run of a week some ten thousand
 * points a curve. docs/guide/tensorboard.md tells what each tag means.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/histogram.h"
#include "record/sinks/sinks.h"
#include "record/sinks/tensorboard_text.h"
#include "record/sinks/tensorboard_usage.h"
#include "record/sinks/tfevents.h"

enum {
    WORKERS_MAX = 64, /* with a folder of their own: each costs an open file and a buffer */
    PATH_SIZE = 4096
};

/* How often something is written: `least` apart, and later `share` of the time that has passed. */
typedef struct rhythm {
    at_ns  least;
    double share;
} rhythm;

static const rhythm points = {AT_MS(100), 0.001};
static const rhythm spreads_at_evaluations = {AT_MS(100), 0.001};
static const rhythm spreads_anyway = {AT_SEC(1), 0.01};

static bool is_due(const rhythm *each, at_ns last, at_ns at)
{
    double gap = fmax((double)each->least, each->share * (double)at);
    return last == AT_NEVER || (double)at - (double)last >= gap;
}

typedef enum spread { BATCH, COMPUTE, STALENESS, SPREADS } spread;

static const struct {
    const char *tag;
    double      unit;
} spreads[SPREADS] = {
    [BATCH] = {"rounds/batch", 1},
    [COMPUTE] = {"rounds/compute_seconds", 1e-9},
    [STALENESS] = {"rounds/staleness", 1},
};

/* Rounds of a worker since its last point; times in seconds. */
typedef struct rounds {
    double count, samples, compute, sleep, wait, send, staleness, loss;
} rounds;

/* Steps since the last point. */
typedef struct steps {
    double count, samples, gradients, staleness, loss, longest;
    at_ns  since; /* end of the step before them; AT_NEVER: the run has just begun */
    double lr;
} steps;

/* What one folder shows. */
typedef struct node {
    at_tfevents *file;               /* NULL: this one has none */
    at_ns        point_at, usage_at; /* of its last points, AT_NEVER before */
    rounds       rounds;             /* of a worker */
    at_histogram spread[SPREADS];    /* rounds since they were last written; the hub's: of all */
    at_usage     usage;              /* at usage_at */
} node;

typedef struct board {
    const at_run_info *info;
    uint32_t           workers; /* with a folder */
    node              *nodes;   /* hub, workers, evaluator */
    bool              *there;   /* of each worker of the run */
    uint32_t           there_count;
    steps              steps;
    double             samples_used, samples_dropped;
    at_ns              at, applied_at, spread_at; /* applied_at: of the newest step */
    uint64_t           step;                      /* the newest that was closed */
} board;

static node *hub_of(board *self)
{
    return &self->nodes[0];
}

/* NULL for a worker without a folder. */
static node *worker_of(board *self, at_node worker)
{
    assert(worker >= 1);
    return worker <= self->workers ? &self->nodes[worker] : NULL;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void write_rounds(node *n, at_ns at, uint64_t step)
{
    const rounds *sum = &n->rounds;
    double        each = 1 / sum->count, busy = sum->compute + sum->sleep;
    if (sum->count == 0) return;
    at_tfevents_scalar scalars[] = {
        {"worker/batch", sum->samples * each},
        {"worker/compute_seconds", sum->compute * each},
        {"worker/sleep_seconds", sum->sleep * each},
        {"worker/wait_seconds", sum->wait * each},
        {"worker/send_seconds", sum->send * each},
        {"worker/staleness", sum->staleness * each},
        {"worker/loss", sum->samples > 0 ? sum->loss / sum->samples : NAN},
        {"worker/samples_per_second", busy > 0 ? sum->samples / busy : NAN},
    };
    at_tfevents_scalars(n->file, at, step, scalars, sizeof scalars / sizeof *scalars);
    n->rounds = (rounds){0};
    n->point_at = at;
}

static void count_spreads(node *n, const at_work *work, uint64_t staleness)
{
    at_histogram_add(&n->spread[BATCH], work->samples);
    at_histogram_add(&n->spread[COMPUTE], work->compute_ns);
    at_histogram_add(&n->spread[STALENESS], (at_ns)staleness);
}

static void put_report(board *self, const at_record *record)
{
    const at_work *work = &record->event->as.report.work;
    bool           behind = work->version < record->version;
    uint64_t       staleness = behind ? record->version - work->version : 0;
    node          *n = worker_of(self, record->event->worker);
    count_spreads(hub_of(self), work, staleness);
    if (!n) return;
    count_spreads(n, work, staleness);
    rounds *sum = &n->rounds;
    sum->count++;
    sum->samples += work->samples;
    sum->compute += at_seconds(work->compute_ns);
    sum->sleep += at_seconds(work->sleep_ns);
    sum->wait += at_seconds(work->idle_ns);
    sum->send += at_seconds(work->send_ns);
    sum->staleness += (double)staleness;
    sum->loss += work->loss_sum;
    if (is_due(&points, n->point_at, record->at)) write_rounds(n, record->at, record->version);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void write_steps(board *self)
{
    at_ns        at = self->applied_at;
    const steps *sum = &self->steps;
    node        *hub = hub_of(self);
    double       each = 1 / sum->count, seconds = at_seconds(at - sum->since);
    if (sum->count == 0) return;
    at_tfevents_scalar scalars[] = {
        {"train/loss", sum->samples > 0 ? sum->loss / sum->samples : NAN},
        {"train/learning_rate", sum->lr},
        {"step/seconds", seconds * each},
        {"step/seconds_longest", sum->longest},
        {"step/batch", sum->samples * each},
        {"step/gradients", sum->gradients * each},
        {"step/staleness", sum->gradients > 0 ? sum->staleness / sum->gradients : NAN},
        {"step/samples_per_second", seconds > 0 ? sum->samples / seconds : NAN},
        {"samples/used", self->samples_used},
        {"samples/dropped", self->samples_dropped},
        {"workers/there", self->there_count},
    };
    at_tfevents_scalars(hub->file, at, self->step, scalars, sizeof scalars / sizeof *scalars);
    self->steps = (steps){.since = at};
    hub->point_at = at;
}

static void write_spreads(board *self)
{
    for (uint32_t i = 0; i <= self->workers; i++) {
        node *n = &self->nodes[i];
        for (int kind = 0; kind < SPREADS; kind++)
            at_tfevents_histogram(n->file, self->at, self->step, spreads[kind].tag,
                                  &n->spread[kind], spreads[kind].unit);
        if (n->spread[BATCH].count > 0) memset(n->spread, 0, sizeof n->spread);
    }
    self->spread_at = self->at;
}

static void put_step(board *self, const at_record *record)
{
    const at_action *action = record->action;
    steps           *sum = &self->steps;
    uint64_t         step = action->as.apply.step;
    double           wait = at_seconds(action->as.apply.wait_ns);
    if (sum->since == AT_NEVER) sum->since = record->at - action->as.apply.wait_ns;
    sum->count++;
    sum->samples += (double)action->as.apply.samples;
    sum->gradients += action->as.apply.count;
    sum->loss += action->as.apply.loss_sum;
    sum->lr = record->lr;
    if (wait > sum->longest) sum->longest = wait;
    for (uint32_t i = 0; i < action->as.apply.count; i++) {
        assert(action->as.apply.pieces[i].version < step);
        sum->staleness += (double)(step - 1 - action->as.apply.pieces[i].version);
    }
    self->step = step;
    self->applied_at = record->at;
    self->samples_used += (double)action->as.apply.samples;
    if (is_due(&points, hub_of(self)->point_at, record->at)) write_steps(self);
    if (is_due(&spreads_anyway, self->spread_at, record->at)) write_spreads(self);
}

static void put_evaluation(board *self, const at_record *record)
{
    static const char *const tags[AT_METRIC_COUNT] = {
#define X(id, text) [AT_METRIC_##id] = "test/" text,
        AT_METRIC_MAP(X)
#undef X
    };
    const at_event    *event = record->event;
    at_tfevents_scalar scalars[AT_METRIC_COUNT];
    size_t             count = 0;
    at_ns              age = event->now - event->as.evaluated.at;
    for (int i = 0; i < AT_METRIC_COUNT; i++)
        if (!isnan(event->as.evaluated.value[i]))
            scalars[count++] = (at_tfevents_scalar){tags[i], event->as.evaluated.value[i]};
    at_tfevents_scalars(hub_of(self)->file, record->at - age, event->as.evaluated.step, scalars,
                        count);
    if (is_due(&spreads_at_evaluations, self->spread_at, record->at)) write_spreads(self);
}

/* ---- who is there, and what it takes --------------------------------------------------------- */

static void note_presence(board *self, at_node worker, bool is_there)
{
    assert(worker >= 1);
    assert(worker <= self->info->plan->workers);
    bool *there = &self->there[worker - 1];
    if (*there == is_there) return;
    *there = is_there;
    if (is_there)
        self->there_count++;
    else
        self->there_count--;
}

static node *node_of(board *self, at_node who)
{
    if (who == 0) return hub_of(self);
    if (who == AT_NODE_EVALUATOR) return &self->nodes[self->workers + 1];
    return worker_of(self, who);
}

/* A point needs two readings of the same process. */
static void put_usage(board *self, const at_record *record)
{
    node *n = node_of(self, record->node);
    if (!n || !n->file) return;
    bool is_same = n->usage_at != AT_NEVER && n->usage.pid == record->usage->pid;
    if (is_same && (record->at <= n->usage_at || !is_due(&points, n->usage_at, record->at))) return;
    if (is_same) {
        at_tfevents_scalar scalars[AT_TFEVENTS_SCALARS];
        double             seconds = at_seconds(record->at - n->usage_at);
        size_t             count = at_tensorboard_usage(scalars, &n->usage, record->usage, seconds);
        at_tfevents_scalars(n->file, record->at, self->step, scalars, count);
    }
    n->usage = *record->usage;
    n->usage_at = record->at;
}

/* ---- the sink -------------------------------------------------------------------------------- */

/* A resumed run begins at the version of its checkpoint. */
static void put_start(board *self, const at_record *record)
{
    self->step = record->version;
    if (record->version == 0) return;
    for (uint32_t i = 0; i <= self->workers; i++)
        at_tfevents_restart(self->nodes[i].file, record->at, record->version + 1);
}

static void put_event(board *self, const at_record *record)
{
    at_event_kind kind = record->event->kind;
    if (kind == AT_EV_MESSAGE) put_report(self, record);
    if (kind == AT_EV_START) put_start(self, record);
    if (kind == AT_EV_JOINED) note_presence(self, record->event->worker, true);
    if (kind == AT_EV_LOST) note_presence(self, record->event->worker, false);
    if (kind == AT_EV_EVALUATED) put_evaluation(self, record);
}

static void put_action(board *self, const at_record *record)
{
    const at_action *action = record->action;
    if (action->kind == AT_ACT_APPLY) put_step(self, record);
    if (action->kind == AT_ACT_DROP) self->samples_dropped += (double)action->as.drop.samples;
}

static void put(void *opaque, const at_record *record)
{
    board *self = opaque;
    if (record->kind == AT_REC_SAY) return; /* may come from outside the run's time */
    self->at = record->at;
    if (record->kind == AT_REC_EVENT) put_event(self, record);
    if (record->kind == AT_REC_ACTION) put_action(self, record);
    if (record->kind == AT_REC_USAGE) put_usage(self, record);
}

static void write_last(board *self)
{
    write_steps(self);
    for (uint32_t i = 1; i <= self->workers; i++)
        write_rounds(&self->nodes[i], self->at, self->step);
    write_spreads(self);
}

static at_err release(board *self, at_fail *fail)
{
    at_err first = AT_OK;
    for (uint32_t i = 0; self->nodes && i < self->workers + 2; i++) {
        at_err err = at_tfevents_close(self->nodes[i].file, first ? NULL : fail);
        if (!first) first = err;
    }
    free(self->there);
    free(self->nodes);
    free(self);
    return first;
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    write_last(opaque);
    return release(opaque, fail);
}

static at_err open_node(board *self, uint32_t index, const char *name, at_fail *fail)
{
    char  path[PATH_SIZE];
    node *n = &self->nodes[index];
    int   size = snprintf(path, sizeof path, "%s/tensorboard/%s", self->info->folder, name);
    if (size < 0 || (size_t)size >= sizeof path)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the name of the run's folder is too long");
    n->point_at = n->usage_at = AT_NEVER;
    return at_tfevents_open(path, self->info->date, &n->file, fail);
}

static at_err describe(board *self, at_fail *fail)
{
    const at_run_info *info = self->info;
    at_tfevents       *file = hub_of(self)->file;
    char              *text = at_tensorboard_settings(info);
    if (!text) return at_fail_memory_for(fail, "for TensorBoard");
    at_err err = at_tfevents_text(file, "settings", text, fail);
    free(text);
    if (err || info->layer_count == 0) return err;
    return at_tfevents_graph(file, info->layers, info->layer_count, fail);
}

static at_err open_nodes(board *self, at_fail *fail)
{
    char name[32];
    AT_TRY(open_node(self, 0, "hub", fail));
    for (uint32_t i = 1; i <= self->workers; i++) {
        snprintf(name, sizeof name, "worker-%02u", i);
        AT_TRY(open_node(self, i, name, fail));
    }
    if (self->info->usage) AT_TRY(open_node(self, self->workers + 1, "evaluator", fail));
    return describe(self, fail);
}

at_err at_sink_tensorboard(const at_run_info *info, at_sink *sink, at_fail *fail)
{
    assert(info->folder);
    assert(info->plan->workers >= 1);
    board *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for TensorBoard");
    self->info = info;
    self->workers = info->plan->workers < WORKERS_MAX ? info->plan->workers : WORKERS_MAX;
    self->nodes = calloc(self->workers + 2, sizeof *self->nodes);
    self->there = calloc(info->plan->workers, sizeof *self->there);
    self->steps.since = self->spread_at = AT_NEVER;
    at_err err = self->nodes && self->there ? open_nodes(self, fail)
                                            : at_fail_memory_for(fail, "for TensorBoard");
    if (err) {
        release(self, NULL);
        return err;
    }
    *sink = (at_sink){.name = "tensorboard", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}

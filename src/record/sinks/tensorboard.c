/* tensorboard/: the files that TensorBoard shows.
 *
 *     tensorboard/hub/         the model graph, the settings, scalars per step and evaluation
 *     tensorboard/worker-01/   scalars of its rounds, and so on for the first 64 workers
 *     tensorboard/evaluator/   its resource usage, when that is sampled
 *
 * A run may make thousands of steps per second, so steps and rounds are aggregated: a curve gets
 * one point per 0.1 s, later one per 0.1 % of the elapsed time, each covering everything since the
 * previous point; of evaluations the newest one. A record then costs a few additions, and a run of
 * a week has about ten thousand points per curve. docs/guide/tensorboard.md explains the tags.
 */
#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/histogram.h"
#include "record/sinks/sinks.h"
#include "record/sinks/tfevents.h"

enum {
    WORKERS_MAX = 64, /* workers with a folder: each costs an open file and a buffer */
    PATH_SIZE = 4096
};

/* Least time between two points: `least`, or `share` of the elapsed time if that is longer. */
typedef struct interval {
    at_ns  least;
    double share;
} interval;

static const interval points = {AT_MS(100), 0.001};
static const interval evaluations = {0, 0.001};
static const interval histograms_at_evaluations = {AT_MS(100), 0.001};
static const interval histograms_always = {AT_SEC(1), 0.01};

static bool is_due(const interval *each, at_ns last, at_ns at)
{
    double gap = fmax((double)each->least, each->share * (double)at);
    return last == AT_NEVER || (double)at - (double)last >= gap;
}

typedef enum histogram { BATCH, COMPUTE, STALENESS, HISTOGRAMS } histogram;

static const struct {
    const char *tag;
    double      unit;
} histograms[HISTOGRAMS] = {
    [BATCH] = {"rounds/batch", 1},
    [COMPUTE] = {"rounds/compute_seconds", 1e-9},
    [STALENESS] = {"rounds/staleness", 1},
};

/* Sums over the rounds of a worker since its last point; times in seconds. */
typedef struct rounds {
    double count, samples, compute, sleep, wait, send, staleness, loss;
} rounds;

/* Sums over the steps since the last point. */
typedef struct steps {
    double count, samples, gradients, staleness, loss, longest;
    at_ns  since; /* end of the step before them; AT_NEVER before the first step */
    double lr;
} steps;

/* The newest evaluation. */
typedef struct test {
    at_tfevents_scalar scalar[AT_METRIC_COUNT];
    size_t             count;      /* 0: it is written */
    at_ns              at;         /* of its snapshot */
    at_ns              written_at; /* when the last one was written, AT_NEVER: none was */
    uint64_t           step;
} test;

/* One folder. */
typedef struct node {
    at_tfevents *file;                  /* NULL: it has none */
    at_ns        point_at, usage_at;    /* of its last points, AT_NEVER before */
    rounds       rounds;                /* of a worker */
    at_histogram histogram[HISTOGRAMS]; /* rounds since they were written; hub: of all workers */
    at_usage     usage;                 /* at usage_at */
} node;

typedef struct board {
    const at_run_info *info;
    uint32_t           workers; /* that have a folder */
    node              *nodes;   /* hub, workers, evaluator */
    bool              *present; /* for each worker of the run */
    uint32_t           present_count;
    steps              steps;
    test               test;
    double             samples_used, samples_dropped;
    at_ns              at, applied_at, histograms_at; /* applied_at: of the newest step */
    uint64_t           step;                          /* the newest one */
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

static void add_to_histograms(node *n, const at_work *work, uint64_t staleness)
{
    at_histogram_add(&n->histogram[BATCH], work->samples);
    at_histogram_add(&n->histogram[COMPUTE], work->compute_ns);
    at_histogram_add(&n->histogram[STALENESS], (at_ns)staleness);
}

static void put_report(board *self, const at_record *record)
{
    const at_work *work = &record->event->as.report.work;
    bool           is_stale = work->version < record->version;
    uint64_t       staleness = is_stale ? record->version - work->version : 0;
    node          *n = worker_of(self, record->event->worker);
    add_to_histograms(hub_of(self), work, staleness);
    if (!n) return;
    add_to_histograms(n, work, staleness);
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
        {"workers/there", self->present_count},
    };
    at_tfevents_scalars(hub->file, at, self->step, scalars, sizeof scalars / sizeof *scalars);
    self->steps = (steps){.since = at};
    hub->point_at = at;
}

static void write_histograms(board *self)
{
    for (uint32_t i = 0; i <= self->workers; i++) {
        node *n = &self->nodes[i];
        for (int kind = 0; kind < HISTOGRAMS; kind++)
            at_tfevents_histogram(n->file, self->at, self->step, histograms[kind].tag,
                                  &n->histogram[kind], histograms[kind].unit);
        if (n->histogram[BATCH].count > 0) memset(n->histogram, 0, sizeof n->histogram);
    }
    self->histograms_at = self->at;
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
    if (is_due(&histograms_always, self->histograms_at, record->at)) write_histograms(self);
}

static void write_test(board *self)
{
    test *t = &self->test;
    at_tfevents_scalars(hub_of(self)->file, t->at, t->step, t->scalar, t->count);
    t->count = 0;
    t->written_at = self->at;
}

/* A small test set is evaluated hundreds of times per second. */
static void put_evaluation(board *self, const at_record *record)
{
    static const char *const tags[AT_METRIC_COUNT] = {
#define X(id, text, set) [AT_METRIC_##id] = set "/" text,
        AT_METRIC_MAP(X)
#undef X
    };
    const at_event *event = record->event;
    test           *t = &self->test;
    t->at = record->at - (event->now - event->as.evaluated.at);
    t->step = event->as.evaluated.step;
    t->count = 0;
    for (int i = 0; i < AT_METRIC_COUNT; i++)
        if (!isnan(event->as.evaluated.value[i]))
            t->scalar[t->count++] = (at_tfevents_scalar){tags[i], event->as.evaluated.value[i]};
    if (is_due(&evaluations, t->written_at, record->at)) write_test(self);
    if (is_due(&histograms_at_evaluations, self->histograms_at, record->at)) write_histograms(self);
}

/* ---- workers present, resource usage --------------------------------------------------------- */

static void set_present(board *self, at_node worker, bool is_present)
{
    assert(worker >= 1);
    assert(worker <= self->info->plan->workers_max);
    bool *present = &self->present[worker - 1];
    if (*present == is_present) return;
    *present = is_present;
    if (is_present)
        self->present_count++;
    else
        self->present_count--;
}

static node *node_of(board *self, at_node id)
{
    if (id == 0) return hub_of(self);
    if (id == AT_NODE_EVALUATOR) return &self->nodes[self->workers + 1];
    return worker_of(self, id);
}

/* Counters of at_usage that are shown as rates. */
static const struct {
    const char *tag;
    size_t      offset;
} counters[] = {
    {"resources/disk_read", offsetof(at_usage, read_bytes)},
    {"resources/disk_write", offsetof(at_usage, write_bytes)},
    {"resources/network_in", offsetof(at_usage, net_in_bytes)},
    {"resources/network_out", offsetof(at_usage, net_out_bytes)},
    {"resources/network_loopback", offsetof(at_usage, loopback_bytes)},
};

enum { COUNTERS = sizeof counters / sizeof *counters };

_Static_assert(COUNTERS + 2 <= AT_TFEVENTS_SCALARS, "they fit into one event");

static uint64_t counter(const at_usage *usage, size_t index)
{
    uint64_t value;
    assert(index < COUNTERS);
    memcpy(&value, (const char *)usage + counters[index].offset, sizeof value);
    return value;
}

/* Rates between two readings of one process, `seconds` apart, and its memory now, without unknown
 * values. Returns the number of scalars. */
static size_t usage_scalars(at_tfevents_scalar scalars[AT_TFEVENTS_SCALARS], const at_usage *before,
                            const at_usage *now, double seconds)
{
    size_t count = 0;
    double cpu = at_seconds(at_usage_cpu(now)) - at_seconds(at_usage_cpu(before));
    assert(seconds > 0);
    assert(before->pid == now->pid);
    if (cpu >= 0) scalars[count++] = (at_tfevents_scalar){"resources/cpus", cpu / seconds};
    if (now->rss_bytes != AT_USAGE_UNKNOWN)
        scalars[count++] = (at_tfevents_scalar){"resources/memory_bytes", (double)now->rss_bytes};
    for (size_t i = 0; i < COUNTERS; i++) {
        uint64_t old = counter(before, i), new = counter(now, i);
        if (old == AT_USAGE_UNKNOWN || new == AT_USAGE_UNKNOWN || new < old) continue;
        scalars[count++] = (at_tfevents_scalar){counters[i].tag, (double)(new - old) / seconds};
    }
    return count;
}

/* A rate needs two readings of the same process. */
static void put_usage(board *self, const at_record *record)
{
    node *n = node_of(self, record->node);
    if (!n || !n->file) return;
    bool is_same = n->usage_at != AT_NEVER && n->usage.pid == record->usage->pid;
    if (is_same && (record->at <= n->usage_at || !is_due(&points, n->usage_at, record->at))) return;
    if (is_same) {
        at_tfevents_scalar scalars[AT_TFEVENTS_SCALARS];
        double             seconds = at_seconds(record->at - n->usage_at);
        size_t             count = usage_scalars(scalars, &n->usage, record->usage, seconds);
        at_tfevents_scalars(n->file, record->at, self->step, scalars, count);
    }
    n->usage = *record->usage;
    n->usage_at = record->at;
}

/* ---- the sink -------------------------------------------------------------------------------- */

/* A resumed run starts at the version of its checkpoint. */
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
    if (kind == AT_EV_JOINED) set_present(self, record->event->worker, true);
    if (kind == AT_EV_LOST) set_present(self, record->event->worker, false);
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
    if (record->kind == AT_REC_TEXT) return; /* its time may be outside the run */
    self->at = record->at;
    if (record->kind == AT_REC_EVENT) put_event(self, record);
    if (record->kind == AT_REC_ACTION) put_action(self, record);
    if (record->kind == AT_REC_USAGE) put_usage(self, record);
}

static void write_rest(board *self)
{
    write_steps(self);
    write_test(self);
    for (uint32_t i = 1; i <= self->workers; i++)
        write_rounds(&self->nodes[i], self->at, self->step);
    write_histograms(self);
}

static at_err release(board *self, at_fail *fail)
{
    at_err first = AT_OK;
    for (uint32_t i = 0; self->nodes && i < self->workers + 2; i++) {
        at_err err = at_tfevents_close(self->nodes[i].file, first ? NULL : fail);
        if (!first) first = err;
    }
    free(self->present);
    free(self->nodes);
    free(self);
    return first;
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    write_rest(opaque);
    return release(opaque, fail);
}

static at_err open_node(board *self, uint32_t index, const char *name, at_fail *fail)
{
    char  path[PATH_SIZE];
    node *n = &self->nodes[index];
    int   size = snprintf(path, sizeof path, "%s/tensorboard/%s", self->info->folder, name);
    if (size < 0 || (size_t)size >= sizeof path)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the path of the run folder is too long");
    n->point_at = n->usage_at = AT_NEVER;
    return at_tfevents_open(path, self->info->date, &n->file, fail);
}

/* ---- settings -------------------------------------------------------------------------------- */

/* Escapes the special characters of Markdown; control characters become '?'. */
static void write_cell(FILE *out, const char *text)
{
    static const char special[] = "|`*_<>[]\\&";
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        bool          is_special = false;
        for (const char *c = special; *c; c++) is_special = is_special || *c == *text;
        if (is_special)
            fprintf(out, "&#%d;", byte);
        else
            fputc(byte < ' ' || byte == 0x7f ? '?' : byte, out);
    }
}

static void write_row(FILE *out, const char *name, const char *value)
{
    assert(name);
    fputs("| ", out);
    write_cell(out, name);
    fputs(" | ", out);
    write_cell(out, value ? value : "");
    fputs(" |\n", out);
}

static void write_number(FILE *out, const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    write_row(out, name, text);
}

static void write_run(FILE *out, const at_run_info *info)
{
    char text[AT_RULE_TEXT_SIZE];
    assert(info->plan);
    write_row(out, "anytime", ANYTIME_VERSION);
    write_row(out, "command", info->command);
    write_row(out, "world", info->world);
    write_row(out, "model", info->model);
    write_number(out, "parameters", info->parameters);
    write_row(out, "data", info->data);
    write_number(out, "samples", info->samples_epoch);
    if (info->plan->strategy) write_row(out, "strategy", info->plan->strategy->name);
    for (int i = 0; info->plan->work && i < AT_FAMILY_COUNT; i++)
        write_row(out, at_family_name[i],
                  at_plan_rule_text(info->plan, (enum at_family)i, text, sizeof text));
    write_number(out, "workers", info->plan->workers);
    write_number(out, "seed", info->seed);
}

/* Options without a value (null) are left out. */
static void write_options(FILE *out, const json_t *options)
{
    void *object = (void *)options; /* the iterators of jansson are not const */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const json_t *value = json_object_iter_value(i);
        char          name[80];
        snprintf(name, sizeof name, "--%s", json_object_iter_key(i));
        if (json_is_null(value)) continue;
        if (json_is_string(value)) {
            write_row(out, name, json_string_value(value));
            continue;
        }
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
        write_row(out, name, text);
        free(text);
    }
}

/* A Markdown table of the run and all its options, to be freed; NULL when there is no memory. */
static char *settings_table(const at_run_info *info)
{
    char  *text = NULL;
    size_t size;
    FILE  *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fputs("| setting | value |\n|---|---|\n", out);
    write_run(out, info);
    if (info->options) write_options(out, info->options);
    bool failed = ferror(out);
    if (fclose(out) || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- opening --------------------------------------------------------------------------------- */

static at_err write_description(board *self, at_fail *fail)
{
    const at_run_info *info = self->info;
    at_tfevents       *file = hub_of(self)->file;
    char              *text = settings_table(info);
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
    return write_description(self, fail);
}

at_err at_sink_tensorboard(const at_run_info *info, at_sink *sink, at_fail *fail)
{
    assert(info->folder);
    assert(info->plan->workers_max >= 1);
    board *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for TensorBoard");
    self->info = info;
    self->workers = info->plan->workers_max < WORKERS_MAX ? info->plan->workers_max : WORKERS_MAX;
    self->nodes = calloc(self->workers + 2, sizeof *self->nodes);
    self->present = calloc(info->plan->workers_max, sizeof *self->present);
    self->steps.since = self->histograms_at = self->test.written_at = AT_NEVER;
    at_err err = self->nodes && self->present ? open_nodes(self, fail)
                                              : at_fail_memory_for(fail, "for TensorBoard");
    if (err) {
        release(self, NULL);
        return err;
    }
    *sink = (at_sink){.name = "tensorboard",
                      .self = self,
                      .complete = true, /* its points are sums, and become rare by themselves */
                      .put = put,
                      .close = close_sink};
    return AT_OK;
}

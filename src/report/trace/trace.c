#include "report/trace/trace.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/log/eventlog.h"
#include "record/runinfo.h"
#include "report/trace/trace_rounds.h"
#include "report/trace/trace_writer.h"

enum { HUB = 1, WORKERS = 2 }; /* processes of the trace */

enum { ARGS_SIZE = 512, UNCERTAIN_MAX = 64 /* workers whose uncertainty is listed */ };

static const at_trace_row hub_row = {HUB, 1}, evaluator_row = {HUB, 2};

/* Largest distance between parts of a run; the times within a log are smaller, too. */
static const at_ns shift_max = (at_ns)1 << 60;

typedef struct trace {
    at_trace_writer  out;
    at_trace_rounds *rounds;
    uint32_t         workers; /* maximum over all logs */
    json_t          *info;    /* of the first log */
    uint32_t         logs;
    bool             truncated; /* a log ends within a record */
    bool             whole;     /* write nothing rather than a part */
    at_ns            shift;     /* added to the times of the current log */
    at_ns            end;       /* latest time so far */
    at_ns            hub_end;   /* end of the hub's last slice */
    at_ns            evaluator_end;
    bool             has_evaluator; /* its row has a name */
} trace;

static at_ns later(at_ns a, at_ns b)
{
    return a > b ? a : b;
}

/* ---- the hub --------------------------------------------------------------------------------- */

/* A step gathers from the end of the previous one; applying is the hub's own work. */
static void put_step(trace *t, const at_record *record, at_ns at)
{
    char             args[ARGS_SIZE];
    const at_action *action = record->action;
    uint64_t         samples = action->as.apply.samples;
    at_text          text = at_text_in(args, sizeof args);
    at_ns            close = later(at, t->hub_end);
    at_ns            open = later(at - action->as.apply.wait_ns, t->hub_end);
    double           loss = action->as.apply.loss_sum / (double)samples;
    at_text_add(&text, "\"step\":%llu,\"gradients\":%u,\"samples\":%llu",
                (unsigned long long)action->as.apply.step, action->as.apply.count,
                (unsigned long long)samples);
    if (close > open) at_trace_writer_slice(&t->out, hub_row, "gather", "grey", open, close, args);
    if (isfinite(loss)) at_text_add(&text, ",\"loss\":%.7g", loss);
    if (isfinite(record->lr)) at_text_add(&text, ",\"learning_rate\":%.7g", record->lr);
    at_trace_writer_slice(&t->out, hub_row, "apply", "good", close, close + record->took, args);
    t->hub_end = close + record->took;
    at_trace_rounds_used(t->rounds, action, close);
}

/* From the snapshot to the result, but not before the end of the previous evaluation. */
static void put_evaluation(trace *t, const at_record *record, at_ns at)
{
    char            args[ARGS_SIZE];
    const at_event *event = record->event;
    at_text         text = at_text_in(args, sizeof args);
    at_ns           begin = at - (event->now - event->as.evaluated.at);
    if (!t->has_evaluator) at_trace_writer_row(&t->out, evaluator_row, "evaluator");
    t->has_evaluator = true;
    at_text_add(&text, "\"step\":%llu", (unsigned long long)event->as.evaluated.step);
    for (int i = 0; i < AT_METRIC_COUNT; i++)
        if (isfinite(event->as.evaluated.value[i]))
            at_text_add(&text, ",\"%s\":%.7g", at_metric_name[i], event->as.evaluated.value[i]);
    begin = later(begin, t->evaluator_end);
    at_trace_writer_slice(&t->out, evaluator_row, "evaluate", "rail_animation", begin,
                          later(at, begin), args);
    t->evaluator_end = later(at, begin);
}

static void put_hub_action(trace *t, const at_record *record, at_ns at)
{
    const at_action *action = record->action;
    char             text[64];
    if (action->kind == AT_ACT_APPLY) put_step(t, record, at);
    if (action->kind == AT_ACT_SAVE)
        at_trace_writer_instant(&t->out, hub_row, "checkpoint", at, NULL);
    if (action->kind == AT_ACT_NOTICE) {
        snprintf(text, sizeof text, "waiting for worker %u", action->worker);
        at_trace_writer_instant(&t->out, hub_row, text, at, NULL);
    }
    if (action->kind == AT_ACT_FINISH) {
        snprintf(text, sizeof text, "finished: %s", at_end_name[action->as.finish.why]);
        at_trace_writer_instant(&t->out, hub_row, text, at, NULL);
    }
}

/* Steps before this time were not recorded. */
static void skip(trace *t, at_ns at)
{
    at_trace_rounds_end(t->rounds);
    t->hub_end = later(t->hub_end, at);
    at_trace_writer_instant(&t->out, hub_row, "steps before this were not recorded", at, NULL);
}

static at_err put_record(trace *t, const at_record *record, at_fail *fail)
{
    at_ns at = record->at + t->shift;
    bool  timed = record->kind == AT_REC_EVENT || record->kind == AT_REC_ACTION;
    if (!timed) return AT_OK;
    assert(at >= 0);
    t->end = later(t->end, at);
    if (record->kind == AT_REC_TOTALS) {
        skip(t, at);
        return AT_OK;
    }
    AT_TRY(at_trace_rounds_put(t->rounds, record, at, fail));
    if (record->kind == AT_REC_ACTION) put_hub_action(t, record, at);
    if (record->kind != AT_REC_EVENT) return AT_OK;
    if (record->event->kind == AT_EV_EVALUATED) put_evaluation(t, record, at);
    if (record->event->kind == AT_EV_STOP)
        at_trace_writer_instant(&t->out, hub_row, "stop requested", at, NULL);
    return AT_OK;
}

/* ---- logs ------------------------------------------------------------------------------------ */

static at_err count_workers(void *self, at_eventlog *log, at_fail *fail)
{
    trace   *t = self;
    uint32_t workers = at_run_info_workers(at_eventlog_info(log));
    (void)fail;
    if (workers > t->workers) t->workers = workers;
    return AT_OK;
}

static double date_of(const json_t *info)
{
    return json_number_value(json_object_get(info, "date"));
}

/* A resumed run continues at its real date; virtual time continues where it stopped. */
static void resume(trace *t, const json_t *info)
{
    const char *world = json_string_value(json_object_get(info, "world"));
    double      pause = (date_of(info) - date_of(t->info)) * 1e9;
    bool        is_real_time = world && strcmp(world, "sim") != 0;
    t->shift = t->end;
    if (is_real_time && pause > (double)t->end) t->shift = (at_ns)fmin(pause, (double)shift_max);
    t->hub_end = t->evaluator_end = t->shift;
    at_trace_writer_instant(&t->out, hub_row, "resumed", t->shift, NULL);
}

static bool is_over_limit(const trace *t)
{
    return t->whole && t->out.omitted > 0;
}

static at_err read_log(void *self, at_eventlog *log, at_fail *fail)
{
    trace           *t = self;
    const at_record *record;
    json_t          *info = json_loads(at_eventlog_info(log), 0, NULL);
    if (t->logs++ > 0) {
        resume(t, info);
        json_decref(info);
    } else {
        t->info = info;
    }
    if (t->shift > shift_max)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL,
                           "the times in the event logs of the run are out of range");
    at_err err = at_eventlog_next(log, &record, fail);
    while (!err && record && !is_over_limit(t)) {
        err = put_record(t, record, fail);
        if (!err) err = at_eventlog_next(log, &record, fail);
    }
    at_trace_rounds_end(t->rounds);
    t->truncated = t->truncated || at_eventlog_truncated(log);
    return err;
}

/* ---- metadata of the trace ------------------------------------------------------------------- */

static json_t *microseconds(at_ns time)
{
    return json_real((double)time / 1e3);
}

static json_t *uncertainties(const trace *t)
{
    json_t *object = json_object(), *each = json_object();
    at_ns   least = AT_NEVER, most = -1;
    for (at_node worker = 1; worker <= t->workers; worker++) {
        at_ns one;
        char  key[16];
        if (!at_trace_rounds_uncertainty(t->rounds, worker, &one)) continue;
        if (one < least) least = one;
        if (one > most) most = one;
        snprintf(key, sizeof key, "%u", worker);
        if (worker <= UNCERTAIN_MAX) json_object_set_new(each, key, microseconds(one));
    }
    json_object_set_new(object, "worker", each);
    json_object_set_new(object, "least", most >= 0 ? microseconds(least) : json_null());
    json_object_set_new(object, "most", most >= 0 ? microseconds(most) : json_null());
    return object;
}

static const char clock_text[] =
    "All times are the hub's clock. Workers send durations, not times: a worker's rounds are laid "
    "end to end and fitted between the orders and the reports that the hub recorded, so no clock "
    "of another host is used and none has to be corrected. Only the offset of a whole row is "
    "estimated; it can be wrong by its offset_uncertainty_us.";

static char *make_metadata(const trace *t)
{
    json_t *metadata = json_object();
    json_object_set_new(metadata, "anytime", json_string(ANYTIME_VERSION));
    for (size_t i = 0; i < 4; i++) {
        static const char *const keys[] = {"command", "world", "model", "data"};
        json_object_set(metadata, keys[i], json_object_get(t->info, keys[i]));
    }
    json_object_set_new(metadata, "clock", json_string(clock_text));
    json_object_set_new(metadata, "offset_uncertainty_us", uncertainties(t));
    json_object_set_new(metadata, "events", json_integer((json_int_t)t->out.written));
    json_object_set_new(metadata, "events_omitted", json_integer((json_int_t)t->out.omitted));
    if (t->out.omitted > 0)
        json_object_set_new(metadata, "written_until_us", microseconds(t->out.cut_at));
    json_object_set_new(metadata, "begins_at_us", microseconds(t->out.from));
    json_object_set_new(metadata, "run_ends_at_us", microseconds(t->end));
    json_object_set_new(metadata, "log_cut_off", json_boolean(t->truncated));
    char *text = json_dumps(metadata, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(metadata);
    return text;
}

static void mark_cut(trace *t)
{
    char text[120];
    snprintf(text, sizeof text, "truncated: %llu more events (--trace-events, --trace-from)",
             (unsigned long long)t->out.omitted);
    at_trace_writer_mark_cut(&t->out, hub_row, text);
}

static at_err finish(trace *t, at_fail *fail)
{
    if (is_over_limit(t)) {
        at_trace_writer_discard(&t->out);
        return AT_OK;
    }
    mark_cut(t);
    char *metadata = make_metadata(t);
    if (!metadata) {
        at_trace_writer_discard(&t->out);
        return at_fail_memory_for(fail, "for a trace");
    }
    at_err err = at_trace_writer_commit(&t->out, metadata, fail);
    free(metadata);
    return err;
}

/* ---- the whole run --------------------------------------------------------------------------- */

static at_err open_trace(trace *t, const char *path, const at_trace_options *options, at_fail *fail)
{
    uint64_t events = options->events_max > 0 ? options->events_max : AT_TRACE_EVENTS;
    AT_TRY(at_trace_writer_open(&t->out, path, events, options->from, fail));
    t->rounds = at_trace_rounds_new(&t->out, t->workers, WORKERS, hub_row);
    if (!t->rounds) return at_fail_memory_for(fail, "for a trace");
    at_trace_writer_process(&t->out, HUB, "hub");
    at_trace_writer_process(&t->out, WORKERS, "workers");
    at_trace_writer_row(&t->out, hub_row, "hub");
    return AT_OK;
}

at_err at_trace_write(const char *run, const char *path, const at_trace_options *options,
                      at_trace_counts *counts, at_fail *fail)
{
    trace   t = {.whole = options->whole};
    at_fail ignored;
    assert(options->from >= 0);
    AT_TRY(at_eventlog_visit(run, count_workers, &t, fail));
    at_err err = open_trace(&t, path, options, fail);
    if (!err) {
        err = at_eventlog_visit(run, read_log, &t, fail);
        at_err written = finish(&t, err ? &ignored : fail);
        if (!err) err = written;
    }
    if (counts)
        *counts = (at_trace_counts){
            .written = t.out.written, .omitted = t.out.omitted, .cut_at = t.out.cut_at};
    at_trace_writer_discard(&t.out);
    at_trace_rounds_free(t.rounds);
    json_decref(t.info);
    return err;
}

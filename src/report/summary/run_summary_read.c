/* Reads a summary from a run folder: from its event logs in order, or from its CSV files. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "record/log/eventlog.h"
#include "record/runinfo.h"
#include "report/plot/csv_reader.h"
#include "report/summary/run_summary_parts.h"

enum { PATH_SIZE = 4096 + 32, RESULT_SIZE_MAX = 64 << 20 };

/* ---- event logs ---------------------------------------------------------------------------- */

static at_err put_records(at_run_summary *summary, at_eventlog *log, at_fail *fail)
{
    const at_record *record;
    for (;;) {
        AT_TRY(at_eventlog_next(log, &record, fail));
        if (!record) break;
        at_run_summary_put(summary, record);
    }
    if (at_eventlog_truncated(log))
        at_eventlog_torn(log, summary->note, sizeof summary->note);
    else if (summary->thinned_at)
        snprintf(summary->note, sizeof summary->note,
                 "the event log leaves out steps after step %llu (--record-limit): totals are "
                 "exact; curves, timeline and waiting times show what was recorded",
                 (unsigned long long)summary->thinned_at);
    return AT_OK;
}

static at_err count_workers(void *self, at_eventlog *log, at_fail *fail)
{
    uint32_t *most = self, workers = at_run_info_workers(at_eventlog_info(log));
    (void)fail;
    if (workers > *most) *most = workers;
    return AT_OK;
}

typedef struct reading {
    at_run_summary_options options;
    at_run_summary       **summary;
} reading;

static at_err read_log(void *self, at_eventlog *log, at_fail *fail)
{
    reading    *r = self;
    const char *info = at_eventlog_info(log);
    if (!*r->summary) {
        AT_TRY(at_run_summary_new(info, &r->options, r->summary, fail));
    } else {
        bool fits = at_run_summary_resume(*r->summary, info);
        assert(fits); /* the workers of all logs were counted */
    }
    return put_records(*r->summary, log, fail);
}

static at_err read_logs(const char *folder, const at_run_summary_options *options,
                        at_run_summary **summary, at_fail *fail)
{
    reading r = {.summary = summary};
    if (options) r.options = *options;
    AT_TRY(at_eventlog_visit(folder, count_workers, &r.options.workers, fail));
    return at_eventlog_visit(folder, read_log, &r, fail);
}

/* ---- CSV files ----------------------------------------------------------------------------- */

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The header that the run's event log would have had, as far as a summary needs it. The caller
 * frees it. */
static char *make_info(const json_t *result)
{
    const json_t   *rules = json_object_get(result, "rules");
    json_int_t      workers = json_integer_value(json_object_get(result, "workers"));
    at_plan         plan;
    at_fail         ignored;
    at_plan_options options = {
        .strategy = text_at(result, "strategy"),
        .work = text_at(rules, "work"),
        .gather = text_at(rules, "gather"),
        .release = text_at(rules, "release"),
        .newer = text_at(rules, "newer"),
        .stale = text_at(rules, "stale"),
        .size = text_at(rules, "size"),
        .mix = text_at(rules, "mix"),
        .outer = text_at(rules, "outer"),
        .workers = workers >= 1 && workers <= AT_WORKERS_MAX ? (uint32_t)workers : 1};
    if (at_plan_resolve(&options, &plan, &ignored)) {
        options = (at_plan_options){.strategy = "fmb", .workers = 1};
        if (at_plan_resolve(&options, &plan, &ignored)) return NULL;
    }
    at_run_info info = {.plan = &plan,
                        .world = text_at(result, "world"),
                        .command = text_at(result, "command"),
                        .model = text_at(result, "model"),
                        .data = text_at(result, "data")};
    return at_run_info_text(&info);
}

enum { TIME, STEP, LOSS, RATE, TEST_LOSS, ACCURACY, HUB_FIELDS };
static const char *const hub_columns[HUB_FIELDS] = {
    [TIME] = "time",          [STEP] = "step",           [LOSS] = "loss",
    [RATE] = "learning_rate", [TEST_LOSS] = "test_loss", [ACCURACY] = "accuracy",
};

static at_ns time_of(double seconds)
{
    return seconds > 0 && seconds < 1e9 ? AT_SEC(seconds) : 0;
}

static void put_step(at_run_summary *summary, const double *field, double samples)
{
    at_action action = {.kind = AT_ACT_APPLY};
    bool      known = samples >= 1 && samples < 1e15;
    if (!(field[STEP] >= 1 && field[STEP] < 1e15)) return;
    action.as.apply.step = (uint64_t)field[STEP];
    action.as.apply.samples = known ? (uint64_t)samples : 0;
    action.as.apply.loss_sum = known ? field[LOSS] * samples : 0;
    at_run_summary_put(summary, &(at_record){.kind = AT_REC_ACTION,
                                             .action = &action,
                                             .at = time_of(field[TIME]),
                                             .lr = field[RATE]});
}

static void put_test(at_run_summary *summary, const double *field)
{
    at_event event = {.kind = AT_EV_EVALUATED, .now = summary->at};
    for (int i = 0; i < AT_METRIC_COUNT; i++) event.as.evaluated.value[i] = NAN;
    event.as.evaluated.value[AT_METRIC_LOSS] = field[TEST_LOSS];
    event.as.evaluated.value[AT_METRIC_ACCURACY] = field[ACCURACY];
    event.as.evaluated.step = field[STEP] >= 0 && field[STEP] < 1e15 ? (uint64_t)field[STEP] : 0;
    event.as.evaluated.at = time_of(field[TIME]);
    at_run_summary_put(
        summary, &(at_record){.kind = AT_REC_EVENT, .event = &event, .at = event.as.evaluated.at});
}

enum { COLLECT_STEP, SAMPLES, COLLECT_FIELDS };
static const char *const collect_columns[COLLECT_FIELDS] = {
    [COLLECT_STEP] = "step", [SAMPLES] = "total_samples"};

/* Reads on until `row` is that of the step or a later one. */
static at_err find_step(at_csv_reader *collect, double step, double *row, at_fail *fail)
{
    for (bool more = true; more && !(row[COLLECT_STEP] >= step);)
        AT_TRY(at_csv_reader_next(collect, row, &more, fail));
    return AT_OK;
}

/* The sample counts of steps are in collect_stats.csv. Both tables are in order, but each may lack
 * steps of its own: those that were not on the disk yet when it was full or the power failed. */
static at_err put_rows(at_run_summary *summary, at_csv_reader *hub, at_csv_reader *collect,
                       at_fail *fail)
{
    double field[AT_CSV_READER_MAX], row[AT_CSV_READER_MAX] = {NAN};
    for (bool more;;) {
        AT_TRY(at_csv_reader_next(hub, field, &more, fail));
        if (!more) return AT_OK;
        if (isnan(field[RATE])) {
            put_test(summary, field);
        } else if (field[STEP] >= 1) {
            AT_TRY(find_step(collect, field[STEP], row, fail));
            put_step(summary, field, row[COLLECT_STEP] == field[STEP] ? row[SAMPLES] : NAN);
        }
    }
}

static void put_end(at_run_summary *summary, const json_t *result)
{
    const char *stopped = text_at(result, "stopped");
    at_action   action = {.kind = AT_ACT_FINISH, .as.finish.why = AT_END_RUNNING};
    for (int i = 0; i < AT_END_COUNT && stopped; i++)
        if (strcmp(at_end_name[i], stopped) == 0) action.as.finish.why = (at_end)i;
    at_run_summary_put(summary,
                       &(at_record){.kind = AT_REC_ACTION, .action = &action, .at = summary->at});
}

static at_err put_csv_files(at_run_summary *summary, const char *folder, at_fail *fail)
{
    at_csv_reader hub = {0}, collect = {0};
    at_err        err =
        at_csv_reader_open(&hub, folder, "master_stats.csv", hub_columns, HUB_FIELDS, fail);
    if (!err)
        err = at_csv_reader_open(&collect, folder, "collect_stats.csv", collect_columns,
                                 COLLECT_FIELDS, fail);
    if (!err) err = put_rows(summary, &hub, &collect, fail);
    at_csv_reader_close(&hub);
    at_csv_reader_close(&collect);
    return err;
}

static at_err read_csv_files(const char *folder, const at_run_summary_options *options,
                             at_run_summary **summary, at_fail *fail)
{
    char           path[PATH_SIZE];
    unsigned char *bytes;
    size_t         size;
    at_text        text = at_text_in(path, sizeof path);
    at_text_add(&text, "%s/result.json", folder);
    if (text.full)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: the folder name is too long", folder);
    AT_TRY(at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, fail));
    json_t *result = json_loadb((const char *)bytes, size, 0, NULL);
    char   *info = make_info(result);
    free(bytes);
    at_err err = info ? at_run_summary_new(info, options, summary, fail) : at_fail_memory(fail);
    if (!err) err = put_csv_files(*summary, folder, fail);
    if (!err) put_end(*summary, result);
    json_decref(result);
    free(info);
    return err;
}

/* Without any log that begins like one, the tables have what there is. */
static at_err read_either(const char *folder, const at_run_summary_options *options,
                          at_run_summary **summary, at_fail *fail)
{
    at_fail log = {0};
    at_err  err = read_logs(folder, options, summary, &log);
    bool    unreadable = !*summary && (err == AT_ERR_MISSING || err == AT_ERR_FORMAT);
    if (!unreadable) {
        if (err) *fail = log;
        return err;
    }
    struct stat about;
    char        path[PATH_SIZE];
    at_text     text = at_text_in(path, sizeof path);
    at_text_add(&text, "%s/events.bin", folder);
    bool exists = !text.full && stat(path, &about) == 0;
    err = read_csv_files(folder, options, summary, fail);
    if (err && exists) *fail = log; /* that is what is wrong with this run */
    if (!err && exists) snprintf((*summary)->note, sizeof(*summary)->note, "%.400s", log.text);
    return err && exists ? log.err : err;
}

at_err at_run_summary_read(const char *folder, const at_run_summary_options *options,
                           at_run_summary **summary, at_fail *fail)
{
    at_fail here = {0};
    *summary = NULL;
    at_err err = read_either(folder, options, summary, &here);
    if (!err) return AT_OK;
    at_run_summary_free(*summary);
    *summary = NULL;
    *fail = here;
    return err;
}

const char *at_run_summary_note(const at_run_summary *summary)
{
    assert(summary);
    return summary->note;
}

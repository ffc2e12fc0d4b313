#include "advise/measured.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "data/files/source.h"
#include "record/log/eventlog.h"
#include "record/runinfo.h"
#include "report/summary/pace_from_run.h"
#include "report/summary/stats.h"

enum { PATH_SIZE = 4096, TRANSFERS_MIN = 30 };

void at_measured_deinit(at_measured *m)
{
    at_step_log_deinit(&m->log);
    free(m->round_s);
    free(m->command);
    *m = (at_measured){0};
}

/* ---- CSV files ------------------------------------------------------------------------------- */

static at_err feed_file(at_step_log_reader *reader, const char *path, at_fail *fail)
{
    enum { BLOCK = 1 << 16 };
    at_source *source = NULL;
    size_t     got = 1;
    at_err     opened = at_source_open(path, &source, fail);
    if (opened == AT_ERR_MISSING)
        return at_fail_set(fail, opened, "give the folder of a run, or a CSV file of step times",
                           "%s: no such file or folder", path);
    AT_TRY(opened);
    char  *block = malloc(BLOCK);
    at_err err = block ? at_step_log_next_file(reader, fail) : at_fail_memory(fail);
    while (!err && got > 0) {
        err = at_source_read(source, block, BLOCK, &got, fail);
        if (!err && got > 0 && at_step_log_feed(reader, block, got, fail))
            err = at_fail_wrap(fail, "%.300s", path);
    }
    free(block);
    at_source_close(source);
    return err;
}

static at_err read_files(const char *const *paths, uint32_t count,
                         const at_step_log_options *options, at_measured *m, at_fail *fail)
{
    at_step_log_reader *reader = NULL;
    AT_TRY(at_step_log_reader_new(options, &reader, fail));
    at_err err = AT_OK;
    for (uint32_t i = 0; !err && i < count; i++) err = feed_file(reader, paths[i], fail);
    if (!err && at_step_log_end(reader, &m->log, fail))
        err = at_fail_wrap(fail, "%.300s", paths[0]);
    at_step_log_reader_free(reader);
    return err;
}

/* ---- run folders ----------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* A folder without an event log may have the table of a published run. */
static bool find_table(const char *folder, char *path)
{
    static const char *const names[] = {"worker_stats.csv", "worker_stats.csv.gz"};
    snprintf(path, PATH_SIZE, "%s/events.bin", folder);
    if (access(path, F_OK) == 0) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, PATH_SIZE, "%s/%s", folder, names[i]);
        if (access(path, F_OK) == 0) return true;
    }
    return false;
}

static at_err read_info(const char *folder, at_measured *m, at_fail *fail)
{
    char         path[PATH_SIZE];
    at_eventlog *log = NULL;
    at_plan      plan = {0}, then = {0};
    snprintf(path, sizeof path, "%s/events.bin", folder);
    AT_TRY(at_eventlog_open(path, &log, fail));
    const char *text = at_eventlog_info(log);
    json_t     *info = json_loads(text, 0, NULL);
    at_err      err = at_run_info_plan(text, &plan, &then, fail);
    if (!err && plan.then)
        err = at_fail_set(fail, AT_ERR_FORMAT, "record a run without --switch",
                          "%s: the run has two strategies, so its times are not those of one",
                          folder);
    if (!err) {
        const char *command = json_string_value(json_object_get(info, "command"));
        m->command = command ? strdup(command) : NULL;
        m->batch = plan.batch;
        m->micro_batch = plan.micro_batch;
        m->samples_epoch = plan.samples_epoch;
        m->parameters = json_number_value(json_object_get(info, "parameters"));
        snprintf(m->strategy, sizeof m->strategy, "%s",
                 plan.strategy ? plan.strategy->name : "fmb");
    }
    json_decref(info);
    at_eventlog_close(log);
    return err;
}

/* Rounds that every worker finished. */
static uint32_t complete_rounds(const at_run_pace *pace)
{
    uint32_t complete = 0;
    for (uint32_t round = 0; round < pace->rounds; round++) {
        bool all = true;
        for (uint32_t i = 0; i < pace->workers; i++)
            all = all && pace->samples[(size_t)round * pace->workers + i] > 0;
        complete += all;
    }
    return complete;
}

static void fill(at_step_log *log, const at_run_pace *pace)
{
    uint32_t step = 0;
    for (uint32_t round = 0; round < pace->rounds && step < log->steps; round++) {
        bool all = true;
        for (uint32_t i = 0; i < log->workers; i++) {
            size_t from = (size_t)round * log->workers + i, to = (size_t)step * log->workers + i;
            all = all && pace->samples[from] > 0;
            log->pause[to] = pace->sleep_s[from];
            log->seconds[to] = pace->sleep_s[from] + pace->compute_s[from];
            log->samples[to] = pace->samples[from];
        }
        log->key[step] = round + 1;
        if (all) step++;
    }
    for (uint32_t i = 0; i < log->workers; i++)
        snprintf(log->names[i], sizeof log->names[i], "%u", i + 1);
}

static at_err take_run(const char *folder, const at_run_pace *pace, at_measured *m, at_fail *fail)
{
    enum { ROUNDS_MIN = 3 };
    uint32_t complete = complete_rounds(pace);
    if (complete < ROUNDS_MIN || pace->steps == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "record a longer run",
                           "%s: only %u rounds were finished by all %u workers", folder, complete,
                           pace->workers);
    AT_TRY(at_step_log_init(&m->log, pace->workers, complete, "ps", fail));
    fill(&m->log, pace);
    if (complete < pace->rounds)
        snprintf(m->log.notes, sizeof m->log.notes,
                 "%u of %u rounds lack workers and are left out. ", pace->rounds - complete,
                 pace->rounds);
    m->step_s = at_seconds(pace->steps_ns) / (double)pace->steps;
    m->rate = (double)pace->used / at_seconds(pace->steps_ns);
    m->latency_s = at_seconds(pace->message) / 2;
    return AT_OK;
}

static at_err read_run(const char *folder, at_measured *m, at_fail *fail)
{
    at_run_pace pace;
    AT_TRY(read_info(folder, m, fail));
    AT_TRY(at_run_pace_read(folder, &pace, fail));
    at_err err = take_run(folder, &pace, m, fail);
    at_run_pace_deinit(&pace);
    return err;
}

/* ---- what the rows say ----------------------------------------------------------------------- */

static double cell_mean(const double *values, const at_step_log *log)
{
    double sum = 0;
    size_t cells = (size_t)log->steps * log->workers;
    for (size_t i = 0; i < cells; i++) sum += values[i];
    return sum / (double)cells;
}

double at_measured_slowest(const at_measured *m)
{
    double sum = 0;
    for (uint32_t step = 0; step < m->log.steps; step++) {
        const double *row = m->round_s + (size_t)step * m->log.workers;
        double        slowest = 0;
        for (uint32_t i = 0; i < m->log.workers; i++) slowest = fmax(slowest, row[i]);
        sum += slowest;
    }
    return sum / m->log.steps;
}

double at_measured_ceiling(const at_measured *m)
{
    double inverse = 0;
    size_t cells = (size_t)m->log.steps * m->log.workers;
    for (size_t i = 0; i < cells; i++) inverse += 1 / m->round_s[i];
    return at_measured_slowest(m) * inverse / (double)cells;
}

/* Rounds of equal size: times without the pause are scaled to `batch` samples. */
static at_err equal_rounds(at_measured *m, at_fail *fail)
{
    const at_step_log *log = &m->log;
    size_t             cells = (size_t)log->steps * log->workers;
    m->round_s = malloc(cells * sizeof *m->round_s);
    if (!m->round_s) return at_fail_memory(fail);
    for (size_t i = 0; i < cells; i++) {
        double pause = log->pause ? log->pause[i] : 0, computing = log->seconds[i] - pause;
        double scale = log->samples ? m->batch / log->samples[i] : 1;
        m->round_s[i] = pause + computing * scale;
        if (!(m->round_s[i] > 0) || !isfinite(m->round_s[i]))
            return at_fail_set(fail, AT_ERR_FORMAT, "record the run again",
                               "the round times of worker %s are not above 0",
                               log->names[i % log->workers]);
    }
    return AT_OK;
}

/* A log without a scale is measured in mean rounds. */
static void scale_to_mean(at_step_log *log)
{
    double mean = cell_mean(log->seconds, log);
    size_t cells = (size_t)log->steps * log->workers;
    for (size_t i = 0; i < cells; i++) log->seconds[i] /= mean;
}

static void set_batch(at_measured *m)
{
    double mean = AT_MEASURED_MICRO_BATCHES;
    if (m->log.samples) mean = cell_mean(m->log.samples, &m->log);
    m->batch = mean < 1 ? 1 : mean > 1e9 ? (uint32_t)1e9 : (uint32_t)llround(mean);
    m->micro_batch = m->batch / AT_MEASURED_MICRO_BATCHES;
    if (m->micro_batch == 0) m->micro_batch = 1;
    m->samples_epoch = (uint64_t)m->batch * m->log.workers * (m->log.steps / 10 + 1);
    snprintf(m->strategy, sizeof m->strategy, "fmb");
}

typedef struct arrival {
    double when, took;
} arrival;

static int by_time(const void *a, const void *b)
{
    const arrival *x = a, *y = b;
    return x->when < y->when ? -1 : x->when > y->when;
}

/* A worker that finished no later than the one whose gradient arrived just before it has waited for
 * the link, so the gap between the two arrivals is one transfer. */
static at_err estimate_transfer(at_measured *m, at_fail *fail)
{
    const at_step_log *log = &m->log;
    arrival           *row = calloc(log->workers, sizeof *row);
    double            *gap = calloc((size_t)log->steps * log->workers, sizeof *gap);
    size_t             gaps = 0;
    bool               allocated = row && gap;
    for (uint32_t step = 0; allocated && step < log->steps; step++) {
        for (uint32_t i = 0; i < log->workers; i++) {
            size_t cell = (size_t)step * log->workers + i;
            row[i] = (arrival){.when = log->when[cell], .took = log->seconds[cell]};
        }
        qsort(row, log->workers, sizeof *row, by_time);
        for (uint32_t i = 1; i < log->workers; i++)
            if (row[i].took <= row[i - 1].took) gap[gaps++] = row[i].when - row[i - 1].when;
    }
    if (gaps >= TRANSFERS_MIN) {
        at_stats_sort(gap, gaps);
        m->transfer_s = at_stats_percentile(gap, gaps, 50);
        m->transfers = gaps;
    }
    free(row);
    free(gap);
    return allocated ? AT_OK : at_fail_memory(fail);
}

/* The time between the ends of steps, if the rows say when they were written. */
static double step_of_stamps(const at_step_log *log)
{
    double first = -INFINITY, last = -INFINITY;
    for (uint32_t i = 0; i < log->workers; i++) {
        first = fmax(first, log->when[i]);
        last = fmax(last, log->when[(size_t)(log->steps - 1) * log->workers + i]);
    }
    return (last - first) / (log->steps - 1);
}

static at_err check_stamps(const at_measured *m, double step, double slowest, at_fail *fail)
{
    const double wrong = 2;
    assert(slowest > 0);
    if (step > slowest / wrong) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "give the unit of the times with --unit",
                       "the slowest worker of a step takes %.3g s on average, but steps end every "
                       "%.3g s according to the time stamps",
                       slowest, step * (m->log.steps > 1));
}

/* What a step takes beyond its slowest worker is the messages. */
static at_err set_link(at_measured *m, at_fail *fail)
{
    double slowest = at_measured_slowest(m);
    m->step_s = slowest;
    if (m->log.when && !m->log.normalised) {
        double step = step_of_stamps(&m->log);
        AT_TRY(check_stamps(m, step, slowest, fail));
        AT_TRY(estimate_transfer(m, fail));
        m->step_s = fmax(step, slowest);
        if (m->transfer_s <= 0) m->latency_s = (m->step_s - slowest) / 2;
    }
    double samples = m->log.samples ? cell_mean(m->log.samples, &m->log) : m->batch;
    m->rate = samples * m->log.workers / m->step_s;
    return AT_OK;
}

static at_err read_tables(const char *const *paths, uint32_t count,
                          const at_step_log_options *options, at_measured *m, at_fail *fail)
{
    AT_TRY(read_files(paths, count, options, m, fail));
    set_batch(m);
    if (m->log.normalised) scale_to_mean(&m->log);
    AT_TRY(equal_rounds(m, fail));
    return set_link(m, fail);
}

/* ---- all kinds ------------------------------------------------------------------------------- */

static at_err read_logs(const char *const *paths, uint32_t count,
                        const at_step_log_options *options, at_measured *m, at_fail *fail)
{
    char        table[PATH_SIZE];
    const char *only = table;
    bool        folder = is_folder(paths[0]);
    for (uint32_t i = 1; i < count; i++)
        if (folder || is_folder(paths[i]))
            return at_fail_set(fail, AT_ERR_USAGE, "ask about each run by itself",
                               "several logs must be CSV files of one job");
    if (!folder) return read_tables(paths, count, options, m, fail);
    if (find_table(paths[0], table)) return read_tables(&only, 1, options, m, fail);
    AT_TRY(read_run(paths[0], m, fail));
    return equal_rounds(m, fail);
}

at_err at_measured_read(const char *const *paths, uint32_t count,
                        const at_step_log_options *options, at_measured *measured, at_fail *fail)
{
    assert(count >= 1);
    *measured = (at_measured){0};
    at_err err = read_logs(paths, count, options, measured, fail);
    if (err) at_measured_deinit(measured);
    return err;
}

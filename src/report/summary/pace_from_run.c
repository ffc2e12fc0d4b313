#include "report/summary/pace_from_run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/text.h"
#include "record/log/eventlog.h"
#include "record/runinfo.h"

enum { ROUNDS_MAX = 100000, MESSAGES_MAX = 100000, NUMBER_SIZE = 32 };

/* Sums while reading. */
typedef struct reading {
    const char  *folder;
    at_run_pace *pace;
    double      *compute_ns, *samples; /* (workers) */
    at_ns       *ordered;              /* (workers) time of the current order */
    at_ns       *message;              /* one per step */
    uint32_t     messages;
    at_ns        message_step; /* minimum in the open step: that of the slowest worker */
    at_ns        closed;       /* when the newest step closed; AT_NEVER: none has */
    uint32_t     rows;         /* allocated rows of sleep_s, compute_s and samples */
} reading;

static at_err reserve_row(reading *r, uint64_t round, at_fail *fail)
{
    at_run_pace *p = r->pace;
    if (round < r->rows) return AT_OK;
    uint32_t rows = r->rows ? 2 * r->rows : 256;
    while (rows <= round) rows *= 2;
    size_t size;
    if (!at_size_product((size_t)rows * p->workers, sizeof(double), &size))
        return at_fail_memory(fail);
    double **table[] = {&p->sleep_s, &p->compute_s, &p->samples};
    size_t   old = (size_t)r->rows * p->workers;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double *grown = realloc(*table[i], size);
        if (!grown) return at_fail_memory(fail);
        memset(grown + old, 0, size - old * sizeof(double));
        *table[i] = grown;
    }
    r->rows = rows;
    return AT_OK;
}

/* The hub may read reports only when the last one it needs is there, so only the minimum over a
 * step measures the message time. */
static at_err add_report(reading *r, const at_event *event, at_fail *fail)
{
    const at_work *work = &event->as.report.work;
    uint32_t       i = event->worker - 1;
    assert(i < r->pace->workers);
    if (work->samples == 0 || work->abandoned || work->round >= ROUNDS_MAX) return AT_OK;
    r->compute_ns[i] += (double)work->compute_ns;
    r->samples[i] += work->samples;
    at_ns overhead = event->now - r->ordered[i] - work->compute_ns - work->sleep_ns;
    if (overhead >= 0 && overhead < r->message_step) r->message_step = overhead;
    AT_TRY(reserve_row(r, work->round, fail));
    size_t cell = work->round * r->pace->workers + i;
    r->pace->sleep_s[cell] = at_seconds(work->sleep_ns);
    r->pace->compute_s[cell] = at_seconds(work->compute_ns);
    r->pace->samples[cell] = work->samples;
    if (work->round >= r->pace->rounds) r->pace->rounds = (uint32_t)work->round + 1;
    return AT_OK;
}

static void close_step(reading *r, const at_action *apply, at_ns now)
{
    if (r->closed != AT_NEVER) {
        r->pace->steps++;
        r->pace->steps_ns += now - r->closed;
        r->pace->used += apply->as.apply.samples;
    }
    r->closed = now;
    if (r->message_step != AT_NEVER && r->messages < MESSAGES_MAX)
        r->message[r->messages++] = r->message_step;
    r->message_step = AT_NEVER;
}

static at_err add_record(reading *r, const at_record *record, at_ns now, at_fail *fail)
{
    if (record->kind == AT_REC_EVENT && record->event->kind == AT_EV_MESSAGE)
        return add_report(r, record->event, fail);
    if (record->kind != AT_REC_ACTION) return AT_OK;
    if (record->action->kind == AT_ACT_APPLY) close_step(r, record->action, now);
    if (record->action->kind == AT_ACT_SEND) r->ordered[record->action->worker - 1] = now;
    return AT_OK;
}

static int by_value(const void *a, const void *b)
{
    const at_ns *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static at_err conclude(reading *r, at_fail *fail)
{
    at_run_pace *p = r->pace;
    double       compute = 0, samples = 0;
    for (uint32_t i = 0; i < p->workers; i++) {
        compute += r->compute_ns[i];
        samples += r->samples[i];
    }
    if (samples == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "record a longer run",
                           "no worker computed a sample");
    for (uint32_t i = 0; i < p->workers; i++) /* a worker without reports counts as average */
        p->sample_ns[i] = r->samples[i] > 0 ? r->compute_ns[i] / r->samples[i] : compute / samples;
    qsort(r->message, r->messages, sizeof *r->message, by_value);
    p->message = r->messages > 0 ? r->message[r->messages / 2] : 0;
    return AT_OK;
}

/* A run that was killed leaves a log that ends within a record, but no result. */
static at_err check_end(const reading *r, const at_eventlog *log, at_fail *fail)
{
    char torn[512], result[4096];
    snprintf(result, sizeof result, "%s/result.json", r->folder);
    if (!at_eventlog_truncated(log)) return AT_OK;
    if (!at_eventlog_damaged(log) && access(result, F_OK) != 0) return AT_OK;
    at_eventlog_torn(log, torn, sizeof torn);
    return at_fail_set(fail, AT_ERR_FORMAT, "copy the run folder again, or use another run", "%s",
                       torn);
}

static at_err read_log(reading *r, at_eventlog *log, at_fail *fail)
{
    const at_record *record;
    at_ns            now = 0; /* of the newest event, which caused the actions after it */
    for (;;) {
        AT_TRY(at_eventlog_next(log, &record, fail));
        bool has_gap = record && record->kind == AT_REC_TOTALS;
        if (!record) AT_TRY(check_end(r, log, fail));
        if (!record || has_gap) return conclude(r, fail); /* up to where it is complete */
        if (record->kind == AT_REC_EVENT) now = record->event->now;
        AT_TRY(add_record(r, record, now, fail));
    }
}

static at_err open_reading(reading *r, uint32_t workers, at_fail *fail)
{
    r->pace->workers = workers;
    r->message_step = r->closed = AT_NEVER;
    r->pace->sample_ns = calloc(workers, sizeof(double));
    r->compute_ns = calloc(workers, sizeof(double));
    r->samples = calloc(workers, sizeof(double));
    r->ordered = calloc(workers, sizeof(at_ns));
    r->message = calloc(MESSAGES_MAX, sizeof(at_ns));
    bool allocated = r->pace->sample_ns && r->compute_ns && r->samples && r->ordered && r->message;
    return allocated ? AT_OK : at_fail_memory(fail);
}

at_err at_run_pace_read(const char *folder, at_run_pace *pace, at_fail *fail)
{
    char         path[4096];
    at_eventlog *log = NULL;
    *pace = (at_run_pace){0};
    reading r = {.folder = folder, .pace = pace};
    snprintf(path, sizeof path, "%s/events.bin", folder);
    AT_TRY(at_eventlog_open(path, &log, fail));
    uint32_t workers = at_run_info_workers(at_eventlog_info(log));
    at_err   err = workers > 0 ? open_reading(&r, workers, fail)
                               : at_fail_set(fail, AT_ERR_FORMAT, NULL, "header without workers");
    if (!err) err = read_log(&r, log, fail);
    if (err && err != AT_ERR_FAILED) at_fail_wrap(fail, "%s", path);
    if (err) at_run_pace_deinit(pace);
    at_eventlog_close(log);
    free(r.compute_ns);
    free(r.samples);
    free(r.ordered);
    free(r.message);
    return err;
}

void at_run_pace_deinit(at_run_pace *pace)
{
    free(pace->sample_ns);
    free(pace->sleep_s);
    free(pace->compute_s);
    free(pace->samples);
    *pace = (at_run_pace){0};
}

static void put_round(const at_run_pace *pace, uint32_t round, char *line, size_t size,
                      at_atomic_file *file)
{
    at_text text = at_text_in(line, size);
    for (uint32_t i = 0; i < pace->workers; i++)
        at_text_add(&text, "%.9f%c", pace->sleep_s[(size_t)round * pace->workers + i],
                    i + 1 < pace->workers ? ' ' : '\n');
    assert(!text.full);
    at_atomic_file_put(file, line, text.used);
}

/* Durable, because it belongs to the run: a resumed one reads it again. */
at_err at_run_pace_write_trace(const at_run_pace *pace, const char *path, at_fail *fail)
{
    static const char head[] =
        "# induced sleep in seconds: one line per round, one column per worker\n";
    at_atomic_file file;
    size_t         size = (size_t)pace->workers * NUMBER_SIZE;
    char          *line = malloc(size);
    if (!line) return at_fail_memory_for(fail, "for %s", path);
    at_err err = at_atomic_file_begin(&file, path, false, fail);
    if (!err) {
        at_atomic_file_put(&file, head, strlen(head));
        for (uint32_t round = 0; round < pace->rounds; round++)
            put_round(pace, round, line, size, &file);
        err = at_atomic_file_commit(&file, fail);
    }
    free(line);
    return err;
}

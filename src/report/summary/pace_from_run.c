#include "report/summary/pace_from_run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "record/log/eventlog.h"
#include "record/runinfo.h"

enum { ROUNDS_MAX = 100000, MESSAGES_MAX = 100000 };

/* Sums while reading. */
typedef struct reading {
    at_run_pace *out;
    double      *compute_ns, *samples; /* (workers) */
    at_ns       *ordered;              /* (workers) when the order under way was given */
    at_ns       *message;              /* one a step */
    uint32_t     messages;
    at_ns        message_step; /* the shortest of the open step: the slowest worker's */
    uint32_t     rows;         /* reserved rows of sleeps */
} reading;

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory(fail);
}

static at_err reserve_row(reading *r, uint64_t round, at_fail *fail)
{
    at_run_pace *m = r->out;
    if (round < r->rows) return AT_OK;
    uint32_t rows = r->rows ? 2 * r->rows : 256;
    while (rows <= round) rows *= 2;
    size_t size;
    if (!at_size_product((size_t)rows * m->workers, sizeof(double), &size)) return no_memory(fail);
    double *grown = realloc(m->sleep_s, size);
    if (!grown) return no_memory(fail);
    size_t old = (size_t)r->rows * m->workers;
    memset(grown + old, 0, size - old * sizeof(double));
    m->sleep_s = grown;
    r->rows = rows;
    return AT_OK;
}

/* The hub may look at reports only when the last one it needs is there, so only the shortest time
 * of a step tells how long messages take. */
static at_err take_report(reading *r, const at_event *event, at_fail *fail)
{
    const at_work *work = &event->as.report.work;
    uint32_t       i = event->worker - 1;
    assert(i < r->out->workers);
    if (work->samples == 0 || work->abandoned || work->round >= ROUNDS_MAX) return AT_OK;
    r->compute_ns[i] += (double)work->compute_ns;
    r->samples[i] += work->samples;
    at_ns beside = event->now - r->ordered[i] - work->compute_ns - work->sleep_ns;
    if (beside >= 0 && beside < r->message_step) r->message_step = beside;
    AT_TRY(reserve_row(r, work->round, fail));
    r->out->sleep_s[work->round * r->out->workers + i] = at_seconds(work->sleep_ns);
    if (work->round >= r->out->rounds) r->out->rounds = (uint32_t)work->round + 1;
    return AT_OK;
}

static void close_step(reading *r)
{
    if (r->message_step != AT_NEVER && r->messages < MESSAGES_MAX)
        r->message[r->messages++] = r->message_step;
    r->message_step = AT_NEVER;
}

static at_err take(reading *r, const at_record *record, at_ns now, at_fail *fail)
{
    if (record->kind == AT_REC_EVENT && record->event->kind == AT_EV_MESSAGE)
        return take_report(r, record->event, fail);
    if (record->kind != AT_REC_ACTION) return AT_OK;
    if (record->action->kind == AT_ACT_APPLY) close_step(r);
    if (record->action->kind == AT_ACT_SEND) r->ordered[record->action->worker - 1] = now;
    return AT_OK;
}

static int by_size(const void *a, const void *b)
{
    const at_ns *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static at_err conclude(reading *r, at_fail *fail)
{
    at_run_pace *m = r->out;
    double       compute = 0, samples = 0;
    for (uint32_t i = 0; i < m->workers; i++) {
        compute += r->compute_ns[i];
        samples += r->samples[i];
    }
    if (samples == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "record a longer run", "nobody computed anything");
    for (uint32_t i = 0; i < m->workers;
         i++) /* one that never reported is taken for an average one */
        m->sample_ns[i] = r->samples[i] > 0 ? r->compute_ns[i] / r->samples[i] : compute / samples;
    qsort(r->message, r->messages, sizeof *r->message, by_size);
    m->message = r->messages > 0 ? r->message[r->messages / 2] : 0;
    return AT_OK;
}

static at_err read_log(reading *r, at_eventlog *log, at_fail *fail)
{
    const at_record *record;
    at_ns            now = 0; /* of the newest event: actions follow from it */
    for (;;) {
        AT_TRY(at_eventlog_next(log, &record, fail));
        if (!record) return conclude(r, fail);
        if (record->kind == AT_REC_EVENT) now = record->event->now;
        AT_TRY(take(r, record, now, fail));
    }
}

static at_err open_reading(reading *r, uint32_t workers, at_fail *fail)
{
    r->out->workers = workers;
    r->message_step = AT_NEVER;
    r->out->sample_ns = calloc(workers, sizeof(double));
    r->compute_ns = calloc(workers, sizeof(double));
    r->samples = calloc(workers, sizeof(double));
    r->ordered = calloc(workers, sizeof(at_ns));
    r->message = calloc(MESSAGES_MAX, sizeof(at_ns));
    bool enough = r->out->sample_ns && r->compute_ns && r->samples && r->ordered && r->message;
    return enough ? AT_OK : no_memory(fail);
}

at_err at_run_pace_read(const char *folder, at_run_pace *measured, at_fail *fail)
{
    char         path[4096];
    at_eventlog *log = NULL;
    *measured = (at_run_pace){0};
    reading r = {.out = measured};
    snprintf(path, sizeof path, "%s/events.bin", folder);
    AT_TRY(at_eventlog_open(path, &log, fail));
    uint32_t workers = at_run_info_workers(at_eventlog_info(log));
    at_err   err = workers > 0 ? open_reading(&r, workers, fail)
                               : at_fail_set(fail, AT_ERR_FORMAT, NULL, "it names no workers");
    if (!err) err = read_log(&r, log, fail);
    if (err && err != AT_ERR_FAILED) at_fail_wrap(fail, "%s", path);
    if (err) at_run_pace_deinit(measured);
    at_eventlog_close(log);
    free(r.compute_ns);
    free(r.samples);
    free(r.ordered);
    free(r.message);
    return err;
}

void at_run_pace_deinit(at_run_pace *measured)
{
    free(measured->sample_ns);
    free(measured->sleep_s);
    *measured = (at_run_pace){0};
}

at_err at_run_pace_write_trace(const at_run_pace *m, const char *path, at_fail *fail)
{
    FILE *file = fopen(path, "we");
    if (!file) return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write %s", path);
    fprintf(file, "# induced sleep in seconds: a line a round, a column a worker\n");
    for (uint32_t round = 0; round < m->rounds; round++)
        for (uint32_t i = 0; i < m->workers; i++)
            fprintf(file, "%.9f%c", m->sleep_s[(size_t)round * m->workers + i],
                    i + 1 < m->workers ? ' ' : '\n');
    return at_file_close(file, path, fail);
}

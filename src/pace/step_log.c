/* From rows in any order to a complete table. step_log_csv.c reads the rows. */
#include "pace/step_log.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "pace/step_rows.h"

enum { STEPS_MIN = 3 };
static const double DUPLICATES_MAX = 0.01; /* a larger share: probably two jobs in one file */
static const double COMPLETE_MIN = 0.5;    /* share of steps with all workers */

void at_step_log_deinit(at_step_log *log)
{
    free(log->names);
    free(log->key);
    free(log->seconds);
    free(log->pause);
    free(log->samples);
    free(log->when);
    *log = (at_step_log){0};
}

at_err at_step_log_init(at_step_log *log, uint32_t workers, uint32_t steps, const char *with,
                        at_fail *fail)
{
    size_t cells, size;
    assert(workers >= 1 && steps >= 1);
    *log = (at_step_log){.workers = workers, .steps = steps};
    if (!at_size_product(workers, steps, &cells) || !at_size_product(cells, sizeof(double), &size))
        return at_fail_memory_for(fail, "for %u steps of %u workers", steps, workers);
    bool pause = strchr(with, 'p'), samples = strchr(with, 's'), when = strchr(with, 'w');
    log->names = calloc(workers, sizeof *log->names);
    log->key = calloc(steps, sizeof(double));
    log->seconds = calloc(cells, sizeof(double));
    log->pause = pause ? calloc(cells, sizeof(double)) : NULL;
    log->samples = samples ? calloc(cells, sizeof(double)) : NULL;
    log->when = when ? calloc(cells, sizeof(double)) : NULL;
    bool allocated = log->names && log->key && log->seconds && (!pause || log->pause) &&
                     (!samples || log->samples) && (!when || log->when);
    if (allocated) return AT_OK;
    at_step_log_deinit(log);
    return at_fail_memory_for(fail, "for %u steps of %u workers", steps, workers);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int by_step(const void *a, const void *b)
{
    const at_step_row *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->worker != y->worker) return x->worker < y->worker ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Removes second rows of a worker in a step from the sorted rows; the first in the file stays.
 * Returns how many were removed, and the first of them. */
static size_t drop_duplicates(at_step_rows *rows, at_step_row *first)
{
    size_t kept = 0, dropped = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const at_step_row *last = kept > 0 ? &rows->row[kept - 1] : NULL;
        if (!last || last->key != rows->row[i].key || last->worker != rows->row[i].worker)
            rows->row[kept++] = rows->row[i];
        else if (dropped++ == 0)
            *first = rows->row[i];
    }
    rows->count = kept;
    return dropped;
}

/* The end of the step that begins at row i. */
static size_t step_end(const at_step_rows *rows, size_t i)
{
    size_t end = i;
    assert(i < rows->count);
    while (end < rows->count && rows->row[end].key == rows->row[i].key) end++;
    return end;
}

typedef struct census {
    uint32_t steps, complete;
    uint32_t missing;     /* a worker that is missing in the first incomplete step */
    double   missing_key; /* of that step */
} census;

static census count_steps(const at_step_rows *rows)
{
    census c = {0};
    for (size_t i = 0, end; i < rows->count; i = end) {
        end = step_end(rows, i);
        c.steps++;
        if (end - i == rows->workers) {
            c.complete++;
        } else if (c.steps - c.complete == 1) {
            c.missing_key = rows->row[i].key;
            while (i + c.missing < end && rows->row[i + c.missing].worker == c.missing) c.missing++;
        }
    }
    return c;
}

static at_err check_census(const at_step_rows *rows, const census *c, at_fail *fail)
{
    const char *name = rows->names[c->missing < rows->workers ? c->missing : 0];
    if (c->complete >= STEPS_MIN && c->complete >= COMPLETE_MIN * c->steps) return AT_OK;
    if (c->steps == c->complete)
        return at_fail_set(fail, AT_ERR_FORMAT, "record a longer log",
                           "only %u steps; at least %d are needed", c->steps, STEPS_MIN);
    return at_fail_set(fail, AT_ERR_FORMAT,
                       "remove workers that took part for a short time only, or check that all "
                       "workers number their steps alike",
                       "only %u of %u steps have rows of all %u workers; worker %s is missing in "
                       "%s %.10g, for example",
                       c->complete, c->steps, rows->workers, name, rows->by_time ? "time" : "step",
                       c->missing_key);
}

static void note_incomplete(const at_step_rows *rows, const census *c, at_text *notes)
{
    uint32_t left_out = c->steps - c->complete;
    if (left_out == 0) return;
    at_text_add(notes,
                "%u of %u steps lack workers and are left out (the first: worker %s at %s %.10g). ",
                left_out, c->steps, rows->names[c->missing], rows->by_time ? "time" : "step",
                c->missing_key);
}

static at_err settle_duplicates(at_step_rows *rows, at_text *notes, at_fail *fail)
{
    at_step_row first = {0};
    size_t      before = rows->count, dropped = drop_duplicates(rows, &first);
    if (dropped == 0) return AT_OK;
    const char *key = rows->by_time ? "time" : "step", *name = rows->names[first.worker];
    if ((double)dropped > DUPLICATES_MAX * (double)before)
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "give one job per file, with one row per worker "
                           "and step",
                           "line %u: worker %s already has a row for %s %.10g; %zu rows are "
                           "duplicates",
                           first.line, name, key, first.key, dropped);
    at_text_add(notes,
                "%zu row%s ignored because the worker already has one for the same %s "
                "(the first: line %u, worker %s). ",
                dropped, dropped == 1 ? " is" : "s are", key, first.line, name);
    return AT_OK;
}

/* ---- workers --------------------------------------------------------------------------------- */

typedef struct named {
    double   number;
    uint32_t worker;
} named;

static int by_number(const void *a, const void *b)
{
    const named *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->worker < y->worker ? -1 : x->worker > y->worker;
}

/* Orders workers by number when all names are numbers; otherwise they stay in order of
 * appearance. */
static at_err order_workers(at_step_rows *rows, at_fail *fail)
{
    named    *order = calloc(rows->workers, sizeof *order);
    uint32_t *rank = calloc(rows->workers, sizeof *rank);
    char(*names)[AT_STEP_LOG_NAME_SIZE] = calloc(rows->workers, sizeof *names);
    bool allocated = order && rank && names, numbers = true;
    for (uint32_t i = 0; allocated && i < rows->workers; i++) {
        order[i].worker = i;
        numbers = numbers && at_text_real(rows->names[i], &order[i].number);
    }
    if (allocated && numbers) {
        qsort(order, rows->workers, sizeof *order, by_number);
        for (uint32_t i = 0; i < rows->workers; i++) {
            rank[order[i].worker] = i;
            memcpy(names[i], rows->names[order[i].worker], sizeof *names);
        }
        memcpy(rows->names, names, rows->workers * sizeof *names);
        for (size_t i = 0; i < rows->count; i++) rows->row[i].worker = rank[rows->row[i].worker];
    }
    free(order);
    free(rank);
    free(names);
    return allocated ? AT_OK : at_fail_memory(fail);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void fill(at_step_log *log, const at_step_rows *rows)
{
    uint32_t step = 0;
    for (size_t i = 0, end; i < rows->count; i = end) {
        end = step_end(rows, i);
        if (end - i != rows->workers) continue;
        assert(step < log->steps);
        log->key[step] = rows->row[i].key;
        for (uint32_t w = 0; w < log->workers; w++) {
            const at_step_row *row = &rows->row[i + w];
            size_t             cell = (size_t)step * log->workers + w;
            assert(row->worker == w);
            log->seconds[cell] = row->seconds;
            if (log->samples) log->samples[cell] = row->samples;
            if (log->when) log->when[cell] = row->when;
        }
        step++;
    }
    assert(step == log->steps);
    memcpy(log->names, rows->names, log->workers * sizeof *log->names);
}

at_err at_step_rows_build(at_step_rows *rows, at_step_log *log, at_fail *fail)
{
    char    text[AT_STEP_LOG_NOTES_SIZE] = "";
    at_text notes = at_text_in(text, sizeof text);
    if (rows->count == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "write one row per worker and step",
                           "the log has no rows");
    AT_TRY(order_workers(rows, fail));
    qsort(rows->row, rows->count, sizeof *rows->row, by_step);
    AT_TRY(settle_duplicates(rows, &notes, fail));
    census c = count_steps(rows);
    AT_TRY(check_census(rows, &c, fail));
    note_incomplete(rows, &c, &notes);
    char with[3] = "", *end = with;
    if (rows->has_samples) *end++ = 's';
    if (rows->has_when) *end++ = 'w';
    AT_TRY(at_step_log_init(log, rows->workers, c.complete, with, fail));
    fill(log, rows);
    log->normalised = rows->normalised;
    log->by_time = rows->by_time;
    memcpy(log->notes, text, sizeof text);
    return AT_OK;
}

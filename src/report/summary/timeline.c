#include "report/summary/timeline.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "report/summary/json_value.h"

enum { COLUMNS_MIN = 64, COLUMNS_MAX = 4096, DIGIT_TOP = 63, BATCH_TOP = 4095 };

static const at_ns width_first = AT_US(1);

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

static const char *const activity_name[AT_ACTIVITY_COUNT] = {
#define X(id, text) [AT_ACTIVITY_##id] = text,
    AT_ACTIVITY_MAP(X)
#undef X
};

typedef struct cell {
    float seconds[AT_ACTIVITY_COUNT];
    float samples, rounds;
} cell;

struct at_timeline {
    uint32_t  workers, rows;
    uint32_t  columns; /* of each row, even */
    uint32_t  used;    /* columns that the run has reached so far */
    at_ns     width;   /* of a column */
    uint64_t  changed; /* serial at which all columns were last changed */
    uint64_t *serial;  /* (columns) */
    uint32_t  batch_top;
    cell     *cells; /* (rows, columns) */
};

static uint32_t choose_columns(uint32_t cells, uint32_t rows)
{
    assert(rows >= 1);
    uint32_t columns = cells / rows;
    if (columns < COLUMNS_MIN) columns = COLUMNS_MIN;
    if (columns > COLUMNS_MAX) columns = COLUMNS_MAX;
    return columns - columns % 2;
}

at_timeline *at_timeline_new(uint32_t workers, uint32_t cells)
{
    assert(workers >= 1);
    at_timeline *t = calloc(1, sizeof *t);
    size_t       count;
    if (!t) return NULL;
    t->workers = workers;
    t->rows = workers < AT_TIMELINE_ROWS ? workers : AT_TIMELINE_ROWS;
    t->columns = choose_columns(cells, t->rows);
    t->width = width_first;
    t->batch_top = 1;
    if (at_size_product(t->rows, t->columns, &count)) t->cells = calloc(count, sizeof *t->cells);
    t->serial = calloc(t->columns, sizeof *t->serial);
    if (t->cells && t->serial) return t;
    at_timeline_free(t);
    return NULL;
}

void at_timeline_free(at_timeline *timeline)
{
    if (!timeline) return;
    free(timeline->cells);
    free(timeline->serial);
    free(timeline);
}

/* ---- adding -------------------------------------------------------------------------------- */

static cell merge(const cell *a, const cell *b)
{
    cell sum = {.samples = a->samples + b->samples, .rounds = a->rounds + b->rounds};
    for (int i = 0; i < AT_ACTIVITY_COUNT; i++) sum.seconds[i] = a->seconds[i] + b->seconds[i];
    return sum;
}

/* Merges pairs of columns. */
static void widen(at_timeline *t, uint64_t serial)
{
    uint32_t half = t->columns / 2;
    for (uint32_t r = 0; r < t->rows; r++) {
        cell *row = t->cells + (size_t)r * t->columns;
        for (uint32_t c = 0; c < half; c++) row[c] = merge(&row[2 * c], &row[2 * c + 1]);
        for (uint32_t c = half; c < t->columns; c++) row[c] = (cell){0};
    }
    t->width *= 2;
    t->used = (t->used + 1) / 2;
    t->changed = serial;
    assert(t->width > 0);
}

static cell *row_of(at_timeline *t, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= t->workers);
    size_t row = (size_t)(worker - 1) * t->rows / t->workers;
    return t->cells + row * t->columns;
}

/* The column of a time; widens the columns until there is one. */
static uint32_t reach(at_timeline *t, uint64_t serial, at_ns at)
{
    assert(at >= 0);
    while (at / t->width >= t->columns) widen(t, serial);
    uint32_t column = (uint32_t)(at / t->width);
    if (column >= t->used) t->used = column + 1;
    t->serial[column] = serial;
    return column;
}

void at_timeline_add(at_timeline *timeline, uint64_t serial, at_node worker, at_activity activity,
                     at_ns begin, at_ns end)
{
    assert(begin >= 0);
    assert(activity < AT_ACTIVITY_COUNT);
    if (end <= begin) return;
    uint32_t last = reach(timeline, serial, end - 1);
    cell    *row = row_of(timeline, worker);
    for (uint32_t c = (uint32_t)(begin / timeline->width); c <= last; c++) {
        at_ns from = (at_ns)c * timeline->width, until = from + timeline->width;
        if (from < begin) from = begin;
        if (until > end) until = end;
        row[c].seconds[activity] += (float)at_seconds(until - from);
        timeline->serial[c] = serial;
    }
}

void at_timeline_round(at_timeline *timeline, uint64_t serial, at_node worker, at_ns end,
                       uint32_t samples)
{
    cell *c = row_of(timeline, worker) + reach(timeline, serial, end);
    c->samples += (float)samples;
    c->rounds += 1;
    if (samples <= timeline->batch_top) return;
    while (timeline->batch_top < samples && timeline->batch_top <= UINT32_MAX / 2)
        timeline->batch_top *= 2;
    timeline->changed = serial;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static uint32_t first_after(const at_timeline *t, uint64_t since)
{
    if (t->changed > since) return 0;
    uint32_t c = 0;
    while (c < t->used && t->serial[c] <= since) c++;
    return c;
}

static uint32_t digit_of(double share, uint32_t top)
{
    assert(share >= 0);
    return share >= 1 ? top : (uint32_t)lround(share * top);
}

/* The first worker of a row. */
static uint32_t first_of(const at_timeline *t, uint32_t row)
{
    return (uint32_t)(((uint64_t)row * t->workers + t->rows - 1) / t->rows) + 1;
}

static bool write_shares(const at_timeline *t, uint32_t row, uint32_t from, at_activity activity,
                         char *text)
{
    const cell *cells = t->cells + (size_t)row * t->columns;
    double      total = at_seconds(t->width) * (first_of(t, row + 1) - first_of(t, row));
    bool        some = false;
    for (uint32_t c = from; c < t->used; c++) {
        uint32_t digit = digit_of(cells[c].seconds[activity] / total, DIGIT_TOP);
        some = some || digit > 0;
        *text++ = digits[digit];
    }
    *text = '\0';
    return some;
}

static bool write_batches(const at_timeline *t, uint32_t row, uint32_t from, char *text)
{
    const cell *cells = t->cells + (size_t)row * t->columns;
    bool        some = false;
    for (uint32_t c = from; c < t->used; c++) {
        double   mean = cells[c].rounds > 0 ? (double)(cells[c].samples / cells[c].rounds) : 0;
        uint32_t number = digit_of(mean / t->batch_top, BATCH_TOP);
        some = some || number > 0;
        *text++ = digits[number / (DIGIT_TOP + 1)];
        *text++ = digits[number % (DIGIT_TOP + 1)];
    }
    *text = '\0';
    return some;
}

static json_t *row_json(const at_timeline *t, uint32_t row, uint32_t from, char *text)
{
    json_t *object = json_object();
    json_object_set_new(object, "first", at_json_count(first_of(t, row)));
    json_object_set_new(object, "last", at_json_count(first_of(t, row + 1) - 1));
    for (int i = 0; i < AT_ACTIVITY_COUNT; i++)
        if (write_shares(t, row, from, (at_activity)i, text))
            json_object_set_new(object, activity_name[i], json_string(text));
    if (write_batches(t, row, from, text)) json_object_set_new(object, "batch", json_string(text));
    return object;
}

json_t *at_timeline_json(const at_timeline *timeline, uint64_t since)
{
    uint32_t from = first_after(timeline, since);
    json_t  *object = json_object(), *rows = json_array();
    char    *text = malloc(2 * (size_t)timeline->columns + 1);
    for (uint32_t r = 0; r < timeline->rows && text; r++)
        json_array_append_new(rows, row_json(timeline, r, from, text));
    free(text);
    json_object_set_new(object, "width", at_json_seconds(timeline->width));
    json_object_set_new(object, "from", at_json_count(from));
    json_object_set_new(object, "columns", at_json_count(timeline->used));
    json_object_set_new(object, "top", at_json_count(timeline->batch_top));
    json_object_set_new(object, "rows", rows);
    return object;
}

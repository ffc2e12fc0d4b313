#include "report/plot/curve.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/plot/csv_columns.h"

/* ---- thinning ----------------------------------------------------------------------------- */

/* Each finished point is the mean of `lines_each` lines; the sums are those of the next one. */
typedef struct thinner {
    at_curve *curve;
    uint64_t  lines_each, lines;
    double    x_sum, y_sum, x_last;
} thinner;

/* Joins neighbours, so that half of the points are free again. */
static void halve(thinner *t)
{
    at_curve *c = t->curve;
    assert(c->count == AT_CURVE_POINTS_MAX);
    c->count /= 2;
    for (size_t i = 0; i < c->count; i++) {
        c->x[i] = (c->x[2 * i] + c->x[2 * i + 1]) / 2;
        c->y[i] = (c->y[2 * i] + c->y[2 * i + 1]) / 2;
    }
    t->lines_each *= 2;
}

static void end_point(thinner *t)
{
    at_curve *c = t->curve;
    assert(t->lines > 0);
    assert(c->count < AT_CURVE_POINTS_MAX);
    c->x[c->count] = t->x_sum / (double)t->lines;
    c->y[c->count] = t->y_sum / (double)t->lines;
    c->count++;
    t->lines = 0;
    t->x_sum = t->y_sum = 0;
}

static void add_line(thinner *t, double x, double y)
{
    t->x_sum += x;
    t->y_sum += y;
    t->lines++;
    if (t->lines == t->lines_each && t->curve->count == AT_CURVE_POINTS_MAX) halve(t);
    if (t->lines == t->lines_each) end_point(t);
}

/* What is left makes a last point of fewer lines. */
static void end_curve(thinner *t)
{
    if (t->lines == 0) return;
    if (t->curve->count == AT_CURVE_POINTS_MAX) halve(t);
    end_point(t);
}

/* ---- reading ------------------------------------------------------------------------------ */

enum { X, Y, WHERE, FIELDS };

/* A sum runs over all lines, a gap counting nothing. */
static at_err add_fields(const at_csv_reader *table, const double *field,
                         const at_curve_source *from, double *sum, thinner *thin, at_fail *fail)
{
    if (isnan(field[Y]) || isnan(field[WHERE])) return AT_OK;
    if (isnan(field[X])) return at_csv_reader_malformed(table, "not a number", fail);
    if (field[X] < thin->x_last) return at_csv_reader_malformed(table, "it runs backwards", fail);
    thin->x_last = field[X];
    *sum += field[Y];
    add_line(thin, field[X], from->sum ? *sum : field[Y]);
    return AT_OK;
}

static at_err read_table(at_csv_reader *table, const at_curve_source *from, at_curve *curve,
                         at_fail *fail)
{
    bool    more;
    double  field[FIELDS], sum = 0;
    thinner thin = {.curve = curve, .lines_each = 1, .x_last = -INFINITY};
    for (;;) {
        AT_TRY(at_csv_reader_next(table, field, &more, fail));
        if (!more) break;
        AT_TRY(add_fields(table, field, from, &sum, &thin, fail));
    }
    end_curve(&thin);
    return AT_OK;
}

at_err at_curve_read_from(const char *path, const at_curve_source *from, at_curve *curve,
                          at_fail *fail)
{
    assert(path);
    assert(from->x && from->y);
    const char *const names[FIELDS] = {
        [X] = from->x, [Y] = from->y, [WHERE] = from->where ? from->where : from->y};
    at_csv_reader table;
    curve->count = 0;
    at_err err = at_csv_reader_open(&table, path, names, FIELDS, fail);
    if (!err) err = read_table(&table, from, curve, fail);
    at_csv_reader_close(&table);
    return err;
}

at_err at_curve_read(const char *path, const char *column, at_curve *curve, at_fail *fail)
{
    assert(column);
    return at_curve_read_from(path, &(at_curve_source){.x = "time", .y = column}, curve, fail);
}

/* ---- the mean of several ------------------------------------------------------------------- */

/* Linear between points; before the first and after the last one the value there. */
static double value_at(const at_curve *curve, double x)
{
    assert(curve->count > 0);
    size_t i = 0;
    while (i < curve->count && curve->x[i] < x) i++;
    if (i == 0) return curve->y[0];
    if (i == curve->count) return curve->y[i - 1];
    double width = curve->x[i] - curve->x[i - 1];
    assert(width > 0); /* x lies between them, and past the left one */
    double share = (x - curve->x[i - 1]) / width;
    return curve->y[i - 1] + share * (curve->y[i] - curve->y[i - 1]);
}

static double mean_at(const at_curve *curves, size_t count, double x)
{
    double sum = 0;
    size_t counted = 0;
    for (size_t i = 0; i < count; i++) {
        if (curves[i].count == 0) continue;
        sum += value_at(&curves[i], x);
        counted++;
    }
    assert(counted > 0);
    return sum / (double)counted;
}

void at_curve_mean(const at_curve *curves, size_t count, at_curve *mean)
{
    double          low = -INFINITY, high = -INFINITY;
    const at_curve *some = NULL;
    size_t          counted = 0;
    mean->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (curves[i].count == 0) continue;
        some = &curves[i];
        counted++;
        low = fmax(low, some->x[0]);
        high = fmax(high, some->x[some->count - 1]);
    }
    if (counted == 1) *mean = *some; /* nothing to average: keep its own points */
    if (counted <= 1) return;
    assert(low <= high);
    mean->count = low < high ? AT_CURVE_POINTS_MAX : 1;
    for (size_t i = 0; i < mean->count; i++) {
        mean->x[i] = low + (high - low) * (double)i / (AT_CURVE_POINTS_MAX - 1);
        mean->y[i] = mean_at(curves, count, mean->x[i]);
    }
}

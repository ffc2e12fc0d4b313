#include "report/plot/curve.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "report/plot/csv_reader.h"

/* ---- downsampling ------------------------------------------------------------------------- */

/* Each finished point is the mean of `rows_each` rows; the sums are those of the next point. */
typedef struct downsampler {
    at_curve *curve;
    uint64_t  rows_each, rows;
    double    x_sum, y_sum, x_last;
} downsampler;

/* Averages pairs of neighbors, which frees half of the points. */
static void halve(downsampler *t)
{
    at_curve *c = t->curve;
    assert(c->count == AT_CURVE_POINTS_MAX);
    c->count /= 2;
    for (size_t i = 0; i < c->count; i++) {
        c->x[i] = (c->x[2 * i] + c->x[2 * i + 1]) / 2;
        c->y[i] = (c->y[2 * i] + c->y[2 * i + 1]) / 2;
    }
    t->rows_each *= 2;
}

static void end_point(downsampler *t)
{
    at_curve *c = t->curve;
    assert(t->rows > 0);
    assert(c->count < AT_CURVE_POINTS_MAX);
    c->x[c->count] = t->x_sum / (double)t->rows;
    c->y[c->count] = t->y_sum / (double)t->rows;
    c->count++;
    t->rows = 0;
    t->x_sum = t->y_sum = 0;
}

static void add_row(downsampler *t, double x, double y)
{
    t->x_sum += x;
    t->y_sum += y;
    t->rows++;
    if (t->rows == t->rows_each && t->curve->count == AT_CURVE_POINTS_MAX) halve(t);
    if (t->rows == t->rows_each) end_point(t);
}

/* The remaining rows make a last point. */
static void end_curve(downsampler *t)
{
    if (t->rows == 0) return;
    if (t->curve->count == AT_CURVE_POINTS_MAX) halve(t);
    end_point(t);
}

/* ---- reading ------------------------------------------------------------------------------ */

enum { X, Y, WHERE, FIELDS };

static at_err add_fields(const at_csv_reader *reader, const double *field,
                         const at_curve_source *source, double *sum, downsampler *points,
                         at_fail *fail)
{
    if (isnan(field[Y]) || isnan(field[WHERE])) return AT_OK;
    if (isnan(field[X])) return at_csv_reader_malformed(reader, "not a number", fail);
    if (field[X] < points->x_last)
        return at_csv_reader_malformed(reader, "time or step decreases", fail);
    points->x_last = field[X];
    *sum += field[Y];
    add_row(points, field[X], source->sum ? *sum : field[Y]);
    return AT_OK;
}

static at_err read_rows(at_csv_reader *reader, const at_curve_source *source, at_curve *curve,
                        at_fail *fail)
{
    bool        more;
    double      field[FIELDS], sum = 0;
    downsampler points = {.curve = curve, .rows_each = 1, .x_last = -INFINITY};
    for (;;) {
        AT_TRY(at_csv_reader_next(reader, field, &more, fail));
        if (!more) break;
        AT_TRY(add_fields(reader, field, source, &sum, &points, fail));
    }
    end_curve(&points);
    return AT_OK;
}

at_err at_curve_read(const char *folder, const char *name, const at_curve_source *source,
                     at_curve *curve, at_fail *fail)
{
    assert(source->x && source->y);
    const char *const columns[FIELDS] = {
        [X] = source->x, [Y] = source->y, [WHERE] = source->where ? source->where : source->y};
    at_csv_reader reader;
    curve->count = 0;
    at_err err = at_csv_reader_open(&reader, folder, name, columns, FIELDS, fail);
    if (!err) err = read_rows(&reader, source, curve, fail);
    at_csv_reader_close(&reader);
    return err;
}

/* ---- mean --------------------------------------------------------------------------------- */

double at_curve_at(const at_curve *curve, double x)
{
    assert(curve->count > 0);
    size_t i = 0;
    while (i < curve->count && curve->x[i] < x) i++;
    if (i == 0) return curve->y[0];
    if (i == curve->count) return curve->y[i - 1];
    double width = curve->x[i] - curve->x[i - 1];
    assert(width > 0); /* x is between them, right of the left one */
    double share = (x - curve->x[i - 1]) / width;
    return curve->y[i - 1] + share * (curve->y[i] - curve->y[i - 1]);
}

static double mean_at(const at_curve *curves, size_t count, double x)
{
    double sum = 0;
    size_t counted = 0;
    for (size_t i = 0; i < count; i++) {
        if (curves[i].count == 0) continue;
        sum += at_curve_at(&curves[i], x);
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
    if (counted == 1) *mean = *some; /* nothing to average: keep the points */
    if (counted <= 1) return;
    assert(low <= high);
    mean->count = low < high ? AT_CURVE_POINTS_MAX : 1;
    for (size_t i = 0; i < mean->count; i++) {
        mean->x[i] = low + (high - low) * (double)i / (AT_CURVE_POINTS_MAX - 1);
        mean->y[i] = mean_at(curves, count, mean->x[i]);
    }
}

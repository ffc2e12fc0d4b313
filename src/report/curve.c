#include "report/curve.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { LINE_SIZE = 1024 }; /* ours have six numbers */

/* ---- thinning ----------------------------------------------------------------------------- */

/* Each finished point is the mean of `lines_each` lines; the sums are those of the next one. */
typedef struct thinner {
    at_curve *curve;
    uint64_t  lines_each, lines;
    double    x_sum, y_sum;
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

typedef struct reader {
    FILE       *file;
    const char *path;
    uint64_t    number; /* of the line */
    char        line[LINE_SIZE];
} reader;

static at_err malformed(const reader *r, const char *what, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "was it written by anytime?", "%s:%llu: %s", r->path,
                       (unsigned long long)r->number, what);
}

/* The next line without its end; *more is false at the end of the file. */
static at_err next_line(reader *r, bool *more, at_fail *fail)
{
    r->number++;
    *more = fgets(r->line, sizeof r->line, r->file) != NULL;
    if (!*more && ferror(r->file))
        return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot read", r->path);
    if (!*more) return AT_OK;
    char *end = strchr(r->line, '\n');
    if (!end && !feof(r->file)) return malformed(r, "the line is too long", fail);
    if (end) *end = '\0';
    return AT_OK;
}

/* Where the field of this name stands in the header, or -1. */
static int find_column(const char *header, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0;; i++) {
        size_t size = strcspn(header, ",");
        if (size == length && memcmp(header, name, size) == 0) return i;
        if (!header[size]) return -1;
        header += size + 1;
    }
}

/* Copies field `index` of the line; false when there is none or it is too long for a number. */
static bool get_field(const char *line, int index, char *text, size_t size)
{
    for (; index > 0; index--) {
        line = strchr(line, ',');
        if (!line) return false;
        line++;
    }
    size_t length = strcspn(line, ",");
    if (length >= size) return false;
    memcpy(text, line, length);
    text[length] = '\0';
    return true;
}

/* Empty, or a number that cannot be drawn: printf spells those nan, inf and -inf. */
static bool is_gap(const char *text)
{
    const char *word = *text == '-' ? text + 1 : text;
    return !*text || strcmp(word, "nan") == 0 || strcmp(word, "inf") == 0;
}

static at_err read_line(const reader *r, int time, int column, double *last, thinner *thin,
                        at_fail *fail)
{
    char   x_text[64], y_text[64];
    double x, y;
    if (!get_field(r->line, column, y_text, sizeof y_text))
        return malformed(r, "a column is missing", fail);
    if (is_gap(y_text)) return AT_OK;
    if (!get_field(r->line, time, x_text, sizeof x_text) || !at_text_real(x_text, &x) ||
        !at_text_real(y_text, &y))
        return malformed(r, "not a number", fail);
    if (x < *last) return malformed(r, "time runs backwards", fail);
    *last = x;
    add_line(thin, x, y);
    return AT_OK;
}

static at_err read_table(reader *r, const char *column, at_curve *curve, at_fail *fail)
{
    bool    more;
    thinner thin = {.curve = curve, .lines_each = 1};
    double  last = -INFINITY;
    AT_TRY(next_line(r, &more, fail));
    int x = more ? find_column(r->line, "time") : -1, y = more ? find_column(r->line, column) : -1;
    if (x < 0 || y < 0) return malformed(r, "the header lacks a column", fail);
    for (;;) {
        AT_TRY(next_line(r, &more, fail));
        if (!more) break;
        AT_TRY(read_line(r, x, y, &last, &thin, fail));
    }
    end_curve(&thin);
    return AT_OK;
}

at_err at_curve_read(const char *path, const char *column, at_curve *curve, at_fail *fail)
{
    assert(path);
    assert(column);
    curve->count = 0;
    reader r = {.file = fopen(path, "re"), .path = path};
    if (!r.file && errno == ENOENT)
        return at_fail_set(fail, AT_ERR_MISSING, NULL, "%s: no such file", path);
    if (!r.file)
        return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot open: %s", path, strerror(errno));
    at_err err = read_table(&r, column, curve, fail);
    fclose(r.file);
    return err;
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

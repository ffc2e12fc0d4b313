#include "report/summary/downsampled_series.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "report/summary/json_value.h"

/* One channel of one point. */
typedef struct spread {
    double   sum, min, max;
    uint64_t count; /* of the rows that had a value */
} spread;

typedef struct point {
    double   seconds;
    uint64_t step, serial;
    uint64_t rows;
} point;

struct at_downsampled {
    const char *const *names;
    size_t             channels;
    uint32_t           size;    /* of `points`, even */
    uint32_t           count;   /* points in use; the last one may be incomplete */
    uint64_t           every;   /* rows per point */
    uint64_t           changed; /* serial at which all points were last changed */
    point             *points;
    spread            *spreads; /* (size, channels) */
    bool              *seen;    /* (channels) had a value */
};

at_downsampled *at_downsampled_new(const char *const *names, size_t channels, uint32_t points)
{
    assert(points >= 2);
    size_t          cells, bytes;
    at_downsampled *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (at_downsampled){
        .names = names, .channels = channels, .size = points + points % 2, .every = 1};
    if (at_size_product(s->size, channels, &cells) &&
        at_size_product(cells, sizeof *s->spreads, &bytes)) {
        s->points = calloc(s->size, sizeof *s->points);
        s->spreads = calloc(1, bytes);
        s->seen = calloc(channels, sizeof *s->seen);
    }
    if (s->points && s->spreads && s->seen) return s;
    at_downsampled_free(s);
    return NULL;
}

void at_downsampled_free(at_downsampled *series)
{
    if (!series) return;
    free(series->points);
    free(series->spreads);
    free(series->seen);
    free(series);
}

/* ---- downsampling -------------------------------------------------------------------------- */

static spread *spread_of(const at_downsampled *s, uint32_t index, size_t channel)
{
    assert(index < s->size);
    assert(channel < s->channels);
    return &s->spreads[index * s->channels + channel];
}

static spread merge(spread a, spread b)
{
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    return (spread){.sum = a.sum + b.sum,
                    .min = fmin(a.min, b.min),
                    .max = fmax(a.max, b.max),
                    .count = a.count + b.count};
}

static void halve(at_downsampled *s, uint64_t serial)
{
    assert(s->count == s->size);
    s->count /= 2;
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t rows = s->points[2 * i].rows;
        s->points[i] = s->points[2 * i + 1];
        s->points[i].rows += rows;
        for (size_t c = 0; c < s->channels; c++)
            *spread_of(s, i, c) = merge(*spread_of(s, 2 * i, c), *spread_of(s, 2 * i + 1, c));
    }
    s->every *= 2;
    s->changed = serial;
}

/* The point to which the next row belongs. */
static uint32_t open_point(at_downsampled *s, uint64_t serial)
{
    if (s->count > 0 && s->points[s->count - 1].rows < s->every) return s->count - 1;
    if (s->count == s->size) halve(s, serial);
    s->points[s->count] = (point){0};
    for (size_t c = 0; c < s->channels; c++) *spread_of(s, s->count, c) = (spread){0};
    return s->count++;
}

void at_downsampled_add(at_downsampled *series, uint64_t serial, double seconds, uint64_t step,
                        const double *values)
{
    uint32_t index = open_point(series, serial);
    point   *p = &series->points[index];
    assert(p->serial <= serial);
    *p = (point){.seconds = seconds, .step = step, .serial = serial, .rows = p->rows + 1};
    for (size_t c = 0; c < series->channels; c++) {
        spread one = {.sum = values[c], .min = values[c], .max = values[c], .count = 1};
        if (!isfinite(values[c])) continue;
        *spread_of(series, index, c) = merge(*spread_of(series, index, c), one);
        if (!series->seen[c]) series->changed = serial;
        series->seen[c] = true;
    }
}

void at_downsampled_rewind(at_downsampled *series, uint64_t step)
{
    assert(series->count <= series->size);
    while (series->count > 0 && series->points[series->count - 1].step >= step) series->count--;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static uint32_t first_after(const at_downsampled *s, uint64_t since)
{
    if (s->changed > since) return 0;
    uint32_t first = s->count;
    while (first > 0 && s->points[first - 1].serial > since) first--;
    return first;
}

static json_t *channel_json(const at_downsampled *s, size_t channel, uint32_t from)
{
    json_t *mean = json_array(), *min = json_array(), *max = json_array();
    for (uint32_t i = from; i < s->count; i++) {
        const spread *one = spread_of(s, i, channel);
        bool          some = one->count > 0;
        json_array_append_new(mean, at_json_number(some ? one->sum / (double)one->count : NAN));
        if (s->every == 1) continue;
        json_array_append_new(min, at_json_number(some ? one->min : NAN));
        json_array_append_new(max, at_json_number(some ? one->max : NAN));
    }
    if (s->every > 1) return json_pack("{s:o, s:o, s:o}", "mean", mean, "min", min, "max", max);
    json_decref(min);
    json_decref(max);
    return json_pack("{s:o}", "mean", mean);
}

json_t *at_downsampled_json(const at_downsampled *series, uint64_t since)
{
    uint32_t from = first_after(series, since);
    json_t  *object = json_object(), *t = json_array(), *steps = json_array();
    assert(from <= series->count);
    for (uint32_t i = from; i < series->count; i++) {
        json_array_append_new(t, at_json_number(series->points[i].seconds));
        json_array_append_new(steps, json_integer((json_int_t)series->points[i].step));
    }
    json_object_set_new(object, "from", json_integer(from));
    json_object_set_new(object, "every", json_integer((json_int_t)series->every));
    json_object_set_new(object, "t", t);
    json_object_set_new(object, "step", steps);
    for (size_t c = 0; c < series->channels; c++)
        if (series->seen[c])
            json_object_set_new(object, series->names[c], channel_json(series, c, from));
    return object;
}

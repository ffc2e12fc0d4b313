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
    uint64_t count; /* of the lines that had a value */
} spread;

typedef struct point {
    double   seconds;
    uint64_t step, serial;
    uint64_t lines;
} point;

struct at_downsampled {
    const char *const *names;
    size_t             channels;
    uint32_t           size;  /* of `points`, even */
    uint32_t           count; /* the last one may still grow to `every` lines */
    uint64_t           every;
    uint64_t           changed; /* serial at which earlier points were last changed */
    point             *points;
    spread            *spreads; /* (size, channels) */
    bool              *seen;    /* (channels) had a value once */
};

at_downsampled *at_downsampled_new(const char *const *names, size_t channels, uint32_t points)
{
    assert(points >= 2);
    size_t          cells, bytes;
    at_downsampled *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    *t = (at_downsampled){
        .names = names, .channels = channels, .size = points + points % 2, .every = 1};
    if (at_size_product(t->size, channels, &cells) &&
        at_size_product(cells, sizeof *t->spreads, &bytes)) {
        t->points = calloc(t->size, sizeof *t->points);
        t->spreads = calloc(1, bytes);
        t->seen = calloc(channels, sizeof *t->seen);
    }
    if (t->points && t->spreads && t->seen) return t;
    at_downsampled_free(t);
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

/* ---- thinning ------------------------------------------------------------------------------ */

static spread *spread_of(const at_downsampled *t, uint32_t index, size_t channel)
{
    assert(index < t->size);
    assert(channel < t->channels);
    return &t->spreads[index * t->channels + channel];
}

static spread join(spread a, spread b)
{
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    return (spread){.sum = a.sum + b.sum,
                    .min = fmin(a.min, b.min),
                    .max = fmax(a.max, b.max),
                    .count = a.count + b.count};
}

static void halve(at_downsampled *t, uint64_t serial)
{
    assert(t->count == t->size);
    t->count /= 2;
    for (uint32_t i = 0; i < t->count; i++) {
        uint64_t lines = t->points[2 * i].lines;
        t->points[i] = t->points[2 * i + 1];
        t->points[i].lines += lines;
        for (size_t c = 0; c < t->channels; c++)
            *spread_of(t, i, c) = join(*spread_of(t, 2 * i, c), *spread_of(t, 2 * i + 1, c));
    }
    t->every *= 2;
    t->changed = serial;
}

/* The point that takes the next line in. */
static uint32_t open_point(at_downsampled *t, uint64_t serial)
{
    if (t->count > 0 && t->points[t->count - 1].lines < t->every) return t->count - 1;
    if (t->count == t->size) halve(t, serial);
    t->points[t->count] = (point){0};
    for (size_t c = 0; c < t->channels; c++) *spread_of(t, t->count, c) = (spread){0};
    return t->count++;
}

void at_downsampled_add(at_downsampled *series, uint64_t serial, double seconds, uint64_t step,
                        const double *values)
{
    uint32_t index = open_point(series, serial);
    point   *p = &series->points[index];
    assert(p->serial <= serial);
    *p = (point){.seconds = seconds, .step = step, .serial = serial, .lines = p->lines + 1};
    for (size_t c = 0; c < series->channels; c++) {
        spread one = {.sum = values[c], .min = values[c], .max = values[c], .count = 1};
        if (!isfinite(values[c])) continue;
        *spread_of(series, index, c) = join(*spread_of(series, index, c), one);
        if (!series->seen[c]) series->changed = serial;
        series->seen[c] = true;
    }
}

void at_downsampled_rewind(at_downsampled *series, uint64_t step)
{
    assert(series->count <= series->size);
    while (series->count > 0 && series->points[series->count - 1].step >= step) series->count--;
}

/* ---- telling ------------------------------------------------------------------------------- */

static uint32_t first_after(const at_downsampled *t, uint64_t since)
{
    if (t->changed > since) return 0;
    uint32_t first = t->count;
    while (first > 0 && t->points[first - 1].serial > since) first--;
    return first;
}

static json_t *channel_json(const at_downsampled *t, size_t channel, uint32_t from)
{
    json_t *mean = json_array(), *min = json_array(), *max = json_array();
    for (uint32_t i = from; i < t->count; i++) {
        const spread *s = spread_of(t, i, channel);
        bool          some = s->count > 0;
        json_array_append_new(mean, at_json_value_json(some ? s->sum / (double)s->count : NAN));
        if (t->every == 1) continue;
        json_array_append_new(min, at_json_value_json(some ? s->min : NAN));
        json_array_append_new(max, at_json_value_json(some ? s->max : NAN));
    }
    if (t->every > 1) return json_pack("{s:o, s:o, s:o}", "mean", mean, "min", min, "max", max);
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
        json_array_append_new(t, at_json_value_json(series->points[i].seconds));
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

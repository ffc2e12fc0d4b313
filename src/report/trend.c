#include "report/trend.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "report/value.h"

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

struct at_trend {
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

at_trend *at_trend_new(const char *const *names, size_t channels, uint32_t points)
{
    assert(points >= 2);
    size_t    cells, bytes;
    at_trend *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    *t = (at_trend){.names = names, .channels = channels, .size = points + points % 2, .every = 1};
    if (at_size_product(t->size, channels, &cells) &&
        at_size_product(cells, sizeof *t->spreads, &bytes)) {
        t->points = calloc(t->size, sizeof *t->points);
        t->spreads = calloc(1, bytes);
        t->seen = calloc(channels, sizeof *t->seen);
    }
    if (t->points && t->spreads && t->seen) return t;
    at_trend_free(t);
    return NULL;
}

void at_trend_free(at_trend *trend)
{
    if (!trend) return;
    free(trend->points);
    free(trend->spreads);
    free(trend->seen);
    free(trend);
}

/* ---- thinning ------------------------------------------------------------------------------ */

static spread *spread_of(const at_trend *t, uint32_t index, size_t channel)
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

static void halve(at_trend *t, uint64_t serial)
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
static uint32_t open_point(at_trend *t, uint64_t serial)
{
    if (t->count > 0 && t->points[t->count - 1].lines < t->every) return t->count - 1;
    if (t->count == t->size) halve(t, serial);
    t->points[t->count] = (point){0};
    for (size_t c = 0; c < t->channels; c++) *spread_of(t, t->count, c) = (spread){0};
    return t->count++;
}

void at_trend_add(at_trend *trend, uint64_t serial, double seconds, uint64_t step,
                  const double *values)
{
    uint32_t index = open_point(trend, serial);
    point   *p = &trend->points[index];
    assert(p->serial <= serial);
    *p = (point){.seconds = seconds, .step = step, .serial = serial, .lines = p->lines + 1};
    for (size_t c = 0; c < trend->channels; c++) {
        spread one = {.sum = values[c], .min = values[c], .max = values[c], .count = 1};
        if (!isfinite(values[c])) continue;
        *spread_of(trend, index, c) = join(*spread_of(trend, index, c), one);
        if (!trend->seen[c]) trend->changed = serial;
        trend->seen[c] = true;
    }
}

void at_trend_rewind(at_trend *trend, uint64_t step)
{
    assert(trend->count <= trend->size);
    while (trend->count > 0 && trend->points[trend->count - 1].step >= step) trend->count--;
}

/* ---- telling ------------------------------------------------------------------------------- */

static uint32_t first_after(const at_trend *t, uint64_t since)
{
    if (t->changed > since) return 0;
    uint32_t first = t->count;
    while (first > 0 && t->points[first - 1].serial > since) first--;
    return first;
}

static json_t *channel_json(const at_trend *t, size_t channel, uint32_t from)
{
    json_t *mean = json_array(), *min = json_array(), *max = json_array();
    for (uint32_t i = from; i < t->count; i++) {
        const spread *s = spread_of(t, i, channel);
        bool          some = s->count > 0;
        json_array_append_new(mean, at_value_json(some ? s->sum / (double)s->count : NAN));
        if (t->every == 1) continue;
        json_array_append_new(min, at_value_json(some ? s->min : NAN));
        json_array_append_new(max, at_value_json(some ? s->max : NAN));
    }
    if (t->every > 1) return json_pack("{s:o, s:o, s:o}", "mean", mean, "min", min, "max", max);
    json_decref(min);
    json_decref(max);
    return json_pack("{s:o}", "mean", mean);
}

json_t *at_trend_json(const at_trend *trend, uint64_t since)
{
    uint32_t from = first_after(trend, since);
    json_t  *object = json_object(), *t = json_array(), *steps = json_array();
    assert(from <= trend->count);
    for (uint32_t i = from; i < trend->count; i++) {
        json_array_append_new(t, at_value_json(trend->points[i].seconds));
        json_array_append_new(steps, json_integer((json_int_t)trend->points[i].step));
    }
    json_object_set_new(object, "from", json_integer(from));
    json_object_set_new(object, "every", json_integer((json_int_t)trend->every));
    json_object_set_new(object, "t", t);
    json_object_set_new(object, "step", steps);
    for (size_t c = 0; c < trend->channels; c++)
        if (trend->seen[c])
            json_object_set_new(object, trend->names[c], channel_json(trend, c, from));
    return object;
}

/* rig.h - one layer of any kind with data for one call, checked in double precision. */
#ifndef AT_TESTS_UNIT_LEARN_RIG_H
#define AT_TESTS_UNIT_LEARN_RIG_H

#include "fixture.h"
#include "learn/layers/layer.h"

/* A layer and the data of one call. Plain data are doubles (count, channels, area). */
typedef struct rig {
    at_layer      layer;
    size_t        count, numbers, floats; /* plain and in blocks, of all samples */
    double       *x, *r;                  /* input, and the weights of y: loss = sum r y */
    double        weight[64], bias[64];
    float        *fx, *fy, *fdy, *fdx, params[128], stats[128], gradient[128], sums[128];
    at_layer_pass pass;
} rig;

static inline double *doubles(size_t n)
{
    double *v = calloc(n, sizeof *v);
    assert_non_null(v);
    return v;
}

static inline void *room(size_t bytes)
{
    return floats(bytes / sizeof(float) + 1);
}

/* The offset of a plain element in the layout. */
static inline size_t weights(const at_activation *shape, size_t i)
{
    size_t area = at_activation_area(shape), place = i % area, c = i / area % shape->channels;
    size_t n = i / area / shape->channels;
    return n * at_activation_size(shape) + (c / shape->block * area + place) * shape->block +
           c % shape->block;
}

static inline void put(const rig *r, float *to, const double *plain)
{
    memset(to, 0, r->floats * sizeof *to);
    for (size_t i = 0; i < r->numbers; i++) to[weights(&r->layer.in, i)] = (float)plain[i];
}

static inline void fill_doubles(double *v, size_t n, double scale, double mean, at_rng *rng)
{
    for (size_t i = 0; i < n; i++) v[i] = (double)(float)(mean + scale * at_rng_normal(rng));
}

static inline rig rig_new(const at_layer_spec *spec, at_activation shape, size_t count, double mean)
{
    at_rng rng = at_rng_stream(11, shape.channels, AT_RNG_PURPOSE_TEST, shape.block);
    rig    r = {.layer = {.kind = spec->kind, .spec = *spec, .in = shape, .number = 1},
                .count = count,
                .numbers = count * at_activation_numbers(&shape),
                .floats = count * at_activation_size(&shape)};
    assert_int_equal(spec->kind->shape(&r.layer, NULL), AT_OK);
    assert_true(shape.channels <= 64);
    r.x = doubles(r.numbers);
    r.r = doubles(r.numbers);
    fill_doubles(r.x, r.numbers, 1.5, mean, &rng);
    fill_doubles(r.r, r.numbers, 1.0, 0.1, &rng);
    fill_doubles(r.weight, 64, 0.5, 1.0, &rng);
    fill_doubles(r.bias, 64, 0.5, 0.0, &rng);
    r.fx = floats(r.floats);
    r.fy = floats(r.floats);
    r.fdy = floats(r.floats);
    r.fdx = floats(r.floats);
    put(&r, r.fx, r.x);
    put(&r, r.fdy, r.r);
    return r;
}

/* Points the pass at the rig's own memory; call it when the rig has its final address. */
static inline at_layer_pass *rig_pass(rig *r)
{
    const at_layer_kind *kind = r->layer.kind;
    for (size_t c = 0; c < r->layer.in.channels; c++) {
        r->params[c] = (float)r->weight[c];
        r->params[r->layer.in.channels + c] = (float)r->bias[c];
    }
    r->pass = (at_layer_pass){.count = r->count,
                              .training = true,
                              .params = r->params,
                              .stats = r->stats,
                              .x = r->fx,
                              .y = r->fy,
                              .dy = r->fdy,
                              .dx = r->fdx,
                              .gradient = r->gradient,
                              .stats_sums = r->sums,
                              .noise = 77};
    r->pass.saved = kind->saved ? room(kind->saved(&r->layer, r->count)) : NULL;
    r->pass.scratch = kind->scratch ? room(kind->scratch(&r->layer, r->count)) : NULL;
    return &r->pass;
}

static inline void rig_free(rig *r)
{
    free(r->pass.saved);
    free(r->pass.scratch);
    free(r->x);
    free(r->r);
    free(r->fx);
    free(r->fy);
    free(r->fdy);
    free(r->fdx);
}

#endif

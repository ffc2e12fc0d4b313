/* stage.h - one layer with data for one call, checked bit for bit.
 *
 *     stage *s = stage_new((at_layer_spec){.kind = &at_layer_relu}, in, in.block);
 *     forward(s);
 *     assert_same(&s->layer.out, s->pass.y, s->plain_y);
 */
#ifndef AT_TESTS_UNIT_LEARN_STAGE_H
#define AT_TESTS_UNIT_LEARN_STAGE_H

#include <math.h>

#include "fixture.h"
#include "learn/layers/layer.h"

enum { SAMPLES = 3, BLOCKS = 3 };
static const uint32_t BLOCK[BLOCKS] = {1, 8, 16};

/* A layer with its shapes and memory for one call. Values are (channels, height, width) per sample
 * in the plain_ arrays, and in blocks in those of the pass. */
typedef struct stage {
    at_layer      layer;
    at_layer_pass pass;
    float        *plain_x, *plain_y, *plain_dy, *plain_dx;
    size_t        ins, outs; /* numbers of all samples */
} stage;

static inline size_t offset(const at_activation *shape, size_t channel, size_t place)
{
    size_t block = shape->block;
    return (channel / block * at_activation_area(shape) + place) * block + channel % block;
}

static inline void to_blocks(const at_activation *shape, float *blocked, const float *plain)
{
    size_t area = at_activation_area(shape), size = at_activation_size(shape);
    memset(blocked, 0, SAMPLES * size * sizeof *blocked);
    for (size_t n = 0; n < SAMPLES; n++)
        for (size_t c = 0; c < shape->channels; c++)
            for (size_t i = 0; i < area; i++)
                blocked[n * size + offset(shape, c, i)] =
                    plain[(n * shape->channels + c) * area + i];
}

/* Compares everything, including the padding of the last block, bit for bit. */
static inline void assert_same(const at_activation *shape, const float *blocked, const float *plain)
{
    size_t size = SAMPLES * at_activation_size(shape);
    float *wanted = floats(size);
    to_blocks(shape, wanted, plain);
    for (size_t i = 0; i < size; i++)
        if (memcmp(&wanted[i], &blocked[i], sizeof(float)) != 0)
            fail_msg("block %u, element %zu: %.9g, not %.9g", shape->block, i, (double)blocked[i],
                     (double)wanted[i]);
    free(wanted);
}

/* Some small whole numbers, so that windows have equal values. */
static inline void fill_uneven(float *v, size_t n, at_rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        double number = 2 * at_rng_normal(rng);
        v[i] = (float)(at_rng_below(rng, 2) ? number : round(number));
    }
}

/* x is const only to layers. */
static inline float *stage_x(stage *s)
{
    return (float *)(uintptr_t)s->pass.x;
}

/* NULL when the layer refuses these shapes. */
static inline stage *stage_try(at_layer_spec spec, at_activation in, uint32_t block_out,
                               at_fail *fail)
{
    stage *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->layer = (at_layer){.kind = spec.kind, .spec = spec, .in = in};
    s->layer.out.block = block_out;
    s->layer.kernels = at_kernels_elementwise(in.block == 1 ? AT_ENGINE_REF : AT_ENGINE_FAST);
    if (spec.kind->shape(&s->layer, fail) == AT_OK) return s;
    free(s);
    return NULL;
}

static inline stage *stage_new(at_layer_spec spec, at_activation in, uint32_t block_out)
{
    at_fail fail = {0};
    at_rng  rng = at_rng_stream(3, 0, AT_RNG_PURPOSE_TEST, 0);
    stage  *s = stage_try(spec, in, block_out, &fail);
    if (!s) fail_msg("%s", fail.text);
    at_layer *l = &s->layer;
    s->ins = SAMPLES * at_activation_numbers(&l->in);
    s->outs = SAMPLES * at_activation_numbers(&l->out);
    s->plain_x = floats(s->ins), s->plain_dx = floats(s->ins);
    s->plain_y = floats(s->outs), s->plain_dy = floats(s->outs);
    fill_uneven(s->plain_x, s->ins, &rng);
    fill_uneven(s->plain_dy, s->outs, &rng);
    size_t        in_size = SAMPLES * at_activation_size(&l->in);
    size_t        out_size = SAMPLES * at_activation_size(&l->out);
    float        *x = floats(in_size);
    at_layer_pass p = {.count = SAMPLES, .training = true, .x = x, .y = floats(out_size)};
    p.dy = floats(out_size);
    p.dx = floats(in_size);
    p.scratch = l->kind->scratch ? floats(l->kind->scratch(l, SAMPLES) / sizeof(float) + 1) : NULL;
    p.saved = l->kind->saved ? floats(l->kind->saved(l, SAMPLES) / sizeof(float) + 1) : NULL;
    to_blocks(&l->in, x, s->plain_x);
    to_blocks(&l->out, p.dy, s->plain_dy);
    for (size_t i = 0; i < in_size; i++) p.dx[i] = NAN; /* must be written completely */
    s->pass = p;
    return s;
}

static inline void stage_free(stage *s)
{
    void *all[] = {s->plain_x, s->plain_y, s->plain_dy,     s->plain_dx,   stage_x(s),
                   s->pass.dy, s->pass.y,  s->pass.scratch, s->pass.saved, s->pass.dx};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(s);
}

static inline void forward(stage *s)
{
    s->layer.kind->forward(&s->layer, &s->pass);
}

static inline void backward(stage *s)
{
    s->layer.kind->backward(&s->layer, &s->pass);
}

#endif

/* Dropout (Srivastava and others 2014, inverted): in training a number stays with probability
 * `keep`, divided by it, and is 0 otherwise; a scored model passes everything on.
 *
 * Whether number i stays is a hash of the call's key, the layer's number and i, counted in plain
 * order, whatever the order in memory, so that all engines drop the same. A byte a number tells
 * backward what stayed. */
#include "learn/layers/layer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "learn/engines/vectorize.h"

static const uint64_t GOLDEN = 0x9e3779b97f4a7c15u; /* sets layers of one call apart */

static size_t floats(const at_layer *layer, size_t count)
{
    return count * at_activation_size(&layer->in);
}

static size_t keep(const at_layer *layer, size_t count)
{
    return floats(layer, count);
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    double stays = layer->spec.keep;
    if (!(stays > 0 && stays <= 1))
        return at_fail_set(fail, AT_ERR_USAGE, "keep is above 0 and at most 1",
                           "numbers cannot stay with probability %g", stays);
    layer->out = layer->in;
    return AT_OK;
}

/* 32 well-mixed bits of i: a permutation for each pair of keys. */
static inline __attribute__((always_inline)) uint32_t hash(uint32_t i, uint32_t a, uint32_t b)
{
    uint32_t z = i * 0x9e3779b1u + a;
    z = (z ^ (z >> 16)) * 0x85ebca6bu + b;
    z = (z ^ (z >> 13)) * 0xc2b2ae35u;
    return z ^ (z >> 16);
}

/* stays (n) = 1 where the hash of first, first + stride, .. is at most `limit`, otherwise 0. */
AT_VECTORISED static void draw(uint8_t *restrict stays, uint32_t n, uint32_t first, uint32_t stride,
                               uint64_t key, uint32_t limit)
{
    uint32_t a = (uint32_t)key, b = (uint32_t)(key >> 32);
    for (uint32_t i = 0; i < n; i++) stays[i] = hash(first + i * stride, a, b) <= limit;
}

/* The same for pictures in blocks: neighbours in memory are an area apart in plain order. */
static void draw_blocks(const at_activation *form, uint8_t *stays, size_t count, uint64_t key,
                        uint32_t limit)
{
    size_t   blocks = at_activation_blocks(form);
    uint32_t area = (uint32_t)at_activation_area(form), block = form->block;
    for (size_t n = 0; n < count; n++)
        for (size_t b = 0; b < blocks; b++)
            for (uint32_t i = 0; i < area; i++, stays += block)
                draw(stays, block, (uint32_t)(n * form->channels + b * block) * area + i, area, key,
                     limit);
}

AT_VECTORISED static void mask(float *restrict y, const uint8_t *restrict stays, float scale,
                               size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = stays[i] ? y[i] * scale : 0.0f;
}

/* Where x is not positive, the gradient of the ReLU before it does not pass either. */
AT_VECTORISED static void forget(uint8_t *restrict stays, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) stays[i] = x[i] > 0 ? stays[i] : 0;
}

static void forward(const at_layer *layer, const at_pass *pass)
{
    size_t n = floats(layer, pass->count);
    double stays = layer->spec.keep;
    assert(stays > 0 && stays <= 1);
    if (pass->y != pass->x) memcpy(pass->y, pass->x, n * sizeof *pass->y);
    if (!pass->training) return;
    uint64_t key = at_rng_mix(pass->noise + GOLDEN * layer->number);
    uint32_t limit = (uint32_t)(ceil(stays * 0x1p32) - 1);
    assert(n <= UINT32_MAX);
    if (layer->in.block == 1)
        draw(pass->keep, (uint32_t)n, 0, 1, key, limit);
    else
        draw_blocks(&layer->in, pass->keep, pass->count, key, limit);
    if (layer->masks) forget(pass->keep, pass->y, n);
    mask(pass->y, pass->keep, (float)(1 / stays), n);
}

static void backward(const at_layer *layer, const at_pass *pass)
{
    size_t n = floats(layer, pass->count);
    if (!pass->dx) return;
    assert(pass->dx_write == AT_WRITE_SET);
    if (pass->dx != pass->dy) memcpy(pass->dx, pass->dy, n * sizeof *pass->dx);
    mask(pass->dx, pass->keep, (float)(1 / layer->spec.keep), n);
}

const at_layer_kind at_layer_dropout = {
    .name = "dropout",
    .takes_blocks = true,
    .takes_plain = true,
    .in_place = true,
    .masks_relu = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .keep = keep,
};

/* Dropout (Srivastava et al. 2014, inverted): in training each value is kept with probability
 * `keep` and divided by it, otherwise set to 0; scoring passes everything on.
 *
 * Whether value i is kept depends on a hash of the call's seed, the layer's number and i in plain
 * order, independent of the layout in memory, so that all engines drop the same values. One byte
 * per value saves the decision for backward. */
#include "learn/layers/layer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "learn/engines/vectorize.h"

static const uint64_t GOLDEN = 0x9e3779b97f4a7c15u; /* different noise for each layer of a call */

static size_t floats(const at_layer *layer, size_t count)
{
    return count * at_activation_size(&layer->in);
}

static size_t saved(const at_layer *layer, size_t count)
{
    return floats(layer, count);
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    double kept = layer->spec.keep;
    if (!(kept > 0 && kept <= 1))
        return at_fail_set(fail, AT_ERR_USAGE, "set keep above 0 and at most 1",
                           "invalid keep probability %g", kept);
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

/* kept (n) = 1 where the hash of first, first + stride, .. is at most `limit`, otherwise 0. */
AT_VECTORIZED static void draw(uint8_t *restrict kept, uint32_t n, uint32_t first, uint32_t stride,
                               uint64_t key, uint32_t limit)
{
    uint32_t a = (uint32_t)key, b = (uint32_t)(key >> 32);
    for (uint32_t i = 0; i < n; i++) kept[i] = hash(first + i * stride, a, b) <= limit;
}

/* The same in blocks: neighbors in memory are an area apart in plain order. */
static void draw_blocks(const at_activation *shape, uint8_t *kept, size_t count, uint64_t key,
                        uint32_t limit)
{
    size_t   blocks = at_activation_blocks(shape);
    uint32_t area = (uint32_t)at_activation_area(shape), block = shape->block;
    for (size_t n = 0; n < count; n++)
        for (size_t b = 0; b < blocks; b++)
            for (uint32_t i = 0; i < area; i++, kept += block)
                draw(kept, block, (uint32_t)(n * shape->channels + b * block) * area + i, area, key,
                     limit);
}

AT_VECTORIZED static void mask(float *restrict y, const uint8_t *restrict kept, float scale,
                               size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = kept[i] ? y[i] * scale : 0.0f;
}

/* Masks the gradient of the ReLU before it: drops values that are not positive. */
AT_VECTORIZED static void mask_relu(uint8_t *restrict kept, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) kept[i] = x[i] > 0 ? kept[i] : 0;
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    size_t n = floats(layer, pass->count);
    double kept = layer->spec.keep;
    assert(kept > 0 && kept <= 1);
    if (pass->y != pass->x) memcpy(pass->y, pass->x, n * sizeof *pass->y);
    if (!pass->training) return;
    uint64_t key = at_rng_mix(pass->noise + GOLDEN * layer->number);
    uint32_t limit = (uint32_t)(ceil(kept * 0x1p32) - 1);
    assert(n <= UINT32_MAX);
    if (layer->in.block == 1)
        draw(pass->saved, (uint32_t)n, 0, 1, key, limit);
    else
        draw_blocks(&layer->in, pass->saved, pass->count, key, limit);
    if (layer->masks_input) mask_relu(pass->saved, pass->y, n);
    mask(pass->y, pass->saved, (float)(1 / kept), n);
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    size_t n = floats(layer, pass->count);
    if (!pass->dx) return;
    assert(pass->dx_write == AT_WRITE_SET);
    if (pass->dx != pass->dy) memcpy(pass->dx, pass->dy, n * sizeof *pass->dx);
    mask(pass->dx, pass->saved, (float)(1 / layer->spec.keep), n);
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
    .saved = saved,
};

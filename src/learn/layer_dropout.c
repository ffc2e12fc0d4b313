/* Dropout (Srivastava and others 2014, inverted): in training a number stays with probability
 * `keep`, divided by it, and is 0 otherwise; a scored model passes everything on.
 *
 * Whether number i stays is a hash of the call's key, the layer's number and i, counted in the
 * order in which they lie in memory: plain for lines of numbers (so the same for all engines), by
 * blocks for pictures. A byte a number tells backward what stayed. */
#include "learn/layer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "learn/vector.h"

static const uint64_t GOLDEN = 0x9e3779b97f4a7c15u; /* sets layers of one call apart */

static size_t floats(const at_layer *layer, size_t count)
{
    return count * at_picture_size(&layer->in);
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

/* stays (n) = 1 where the hash is at most `limit`, otherwise 0. */
AT_VECTORISED static void draw(uint8_t *restrict stays, size_t n, uint64_t key, uint32_t limit)
{
    uint32_t a = (uint32_t)key, b = (uint32_t)(key >> 32), count = (uint32_t)n;
    assert(n <= UINT32_MAX);
    for (uint32_t i = 0; i < count; i++) stays[i] = hash(i, a, b) <= limit;
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
    draw(pass->keep, n, key, (uint32_t)(ceil(stays * 0x1p32) - 1));
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

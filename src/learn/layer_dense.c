/* Dense: y = x * transpose(weight) + bias, weight (out, in) and then bias (out) in the flat vector.
 *     dweight = transpose(dy) * x,  dbias = column sums of dy,  dx = dy * weight. */
#include "learn/layer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static size_t weights(const at_layer *layer)
{
    return (size_t)layer->in * layer->out;
}

static size_t params(const at_layer *layer)
{
    return weights(layer) + layer->out;
}

static uint64_t mults(const at_layer *layer)
{
    return weights(layer);
}

static size_t scratch(const at_layer *layer, size_t count)
{
    const at_kernels *k = layer->kernels;
    return k->dense_scratch ? k->dense_scratch(count, layer->in, layer->out) : 0;
}

/* Glorot and Bengio 2010, equation 16: uniform in +-sqrt(6 / (in + out)); biases start at zero. */
static void init(const at_layer *layer, float *to, at_rng *rng)
{
    memset(to, 0, params(layer) * sizeof *to);
    if (layer->start == AT_START_ZERO) return;
    assert(layer->start == AT_START_GLOROT);
    double limit = sqrt(6.0 / ((double)layer->in + layer->out));
    size_t n = weights(layer);
    assert(n + layer->out == layer->params);
    for (size_t i = 0; i < n; i++) to[i] = (float)(limit * (2.0 * at_rng_uniform(rng) - 1.0));
}

static void forward(const at_layer *layer, const at_pass *pass)
{
    assert(pass->x != pass->y);
    layer->kernels->dense_forward(pass->y, pass->x, pass->params, pass->params + weights(layer),
                                  pass->count, layer->in, layer->out);
}

static void backward(const at_layer *layer, const at_pass *pass)
{
    const at_kernels *k = layer->kernels;
    assert(pass->dx != pass->dy);
    k->dense_weight(pass->gradient, pass->dy, pass->x, pass->count, layer->in, layer->out,
                    pass->write, pass->scratch);
    k->dense_bias(pass->gradient + weights(layer), pass->dy, pass->count, layer->out, pass->write);
    if (pass->dx)
        k->dense_input(pass->dx, pass->dy, pass->params, pass->count, layer->in, layer->out);
}

const at_layer_kind at_layer_dense = {
    .name = "dense",
    .forward = forward,
    .backward = backward,
    .params = params,
    .mults = mults,
    .scratch = scratch,
    .init = init,
};

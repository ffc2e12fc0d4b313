/* Average pool: y is the mean of x in each window, without padding; each x in it gets an equal
 * share of its gradient. Over the whole image it leaves one number per channel. */
#include "learn/layers/layer.h"

#include <assert.h>

#include "learn/engines/pool_kernels.h"

static at_pool pool_of(const at_layer *layer)
{
    return (at_pool){.in = layer->in, .out = layer->out, .window = layer->spec.window};
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    return at_window_fit(&layer->spec.window, layer->spec.same, &layer->in, &layer->out, fail);
}

static size_t scratch(const at_layer *layer, size_t count)
{
    at_pool pool = pool_of(layer);
    (void)count;
    return at_avgpool_scratch(&pool) * sizeof(float);
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    at_pool pool = pool_of(layer);
    assert(pass->x != pass->y);
    at_pools_for(&pool)->avg_forward(&pool, pass->y, pass->x, pass->count);
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    at_pool pool = pool_of(layer);
    assert(pass->dx != pass->dy);
    if (pass->dx)
        at_pools_for(&pool)->avg_backward(&pool, pass->dx, pass->dy, pass->count, pass->dx_write,
                                          pass->scratch);
}

const at_layer_kind at_layer_avgpool = {
    .name = "avgpool",
    .takes_blocks = true,
    .adds_dx = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .scratch = scratch,
};

/* Max pool: y is the largest x in each window; its gradient goes to the first x with that value.
 * Forward saves the position as a byte, so backward reads neither x nor y. After a ReLU the byte is
 * NONE where the maximum is not positive, which masks ReLU's gradient on the smaller side. */
#include "learn/layers/layer.h"

#include <assert.h>

#include "learn/engines/pool_kernels.h"

static at_pool pool_of(const at_layer *layer)
{
    return (at_pool){.in = layer->in, .out = layer->out, .window = layer->spec.window};
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    at_window *w = &layer->spec.window;
    AT_TRY(at_window_fit(w, layer->spec.same, &layer->in, &layer->out, fail));
    if ((uint64_t)w->height * w->width <= AT_POOL_WINDOW_MAX) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL,
                       "a window of %ux%u over %ux%u is too large (at most %d positions)",
                       w->height, w->width, layer->in.height, layer->in.width, AT_POOL_WINDOW_MAX);
}

static size_t saved(const at_layer *layer, size_t count)
{
    return count * at_activation_size(&layer->out);
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    at_pool pool = pool_of(layer);
    assert(pass->x != pass->y);
    at_pools_for(&pool)->max_forward(&pool, pass->y, pass->training ? pass->saved : NULL, pass->x,
                                     pass->count, layer->masks_input);
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    at_pool pool = pool_of(layer);
    assert(pass->dx != pass->dy);
    if (pass->dx)
        at_pools_for(&pool)->max_backward(&pool, pass->dx, pass->dy, pass->saved, pass->count,
                                          pass->dx_write);
}

const at_layer_kind at_layer_maxpool = {
    .name = "maxpool",
    .takes_blocks = true,
    .adds_dx = true,
    .masks_relu = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .saved = saved,
};

/* ReLU: y = max(x, 0), in place. The sign of y is all that backward needs. */
#include "learn/layer.h"

#include <assert.h>

static void forward(const at_layer *layer, const at_pass *pass)
{
    assert(pass->x == pass->y);
    layer->kernels->relu_forward(pass->y, pass->count * layer->out);
}

static void backward(const at_layer *layer, const at_pass *pass)
{
    assert(pass->dx == pass->dy);
    layer->kernels->relu_backward(pass->dy, pass->y, pass->count * layer->out);
}

const at_layer_kind at_layer_relu = {
    .name = "relu",
    .in_place = true,
    .forward = forward,
    .backward = backward,
};

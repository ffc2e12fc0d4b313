/* Add: y = x + other, the end of a residual block, then max(y, 0) with a fused ReLU. The gradient
 * of either input is dy itself, so the model passes dy on to both without a copy; backward only
 * masks dy for the ReLU, in place. */
#include "learn/layers/layer.h"

#include <assert.h>

#include "learn/engines/activation_kernels.h"

static at_err shape(at_layer *layer, at_fail *fail)
{
    (void)fail; /* the net has compared the shapes of the inputs */
    layer->out.channels = layer->in.channels;
    layer->out.height = layer->in.height;
    layer->out.width = layer->in.width;
    return AT_OK;
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(pass->other);
    at_add_forward(pass->y, pass->x, pass->other, pass->count * at_activation_size(&layer->out),
                   layer->spec.relu);
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(pass->dy);
    if (!layer->spec.relu || layer->relu_done) return;
    layer->kernels->relu_backward(pass->dy, pass->y, pass->count * at_activation_size(&layer->out));
}

const at_layer_kind at_layer_add = {
    .name = "add",
    .takes_blocks = true,
    .takes_plain = true,
    .has_other = true,
    .in_place = true,
    .fuses_relu = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

/* Flatten: an image to a flat vector, channel by channel, each row by row. */
#include "learn/layers/layer.h"

#include <assert.h>

#include "learn/engines/activation_kernels.h"

static at_err shape(at_layer *layer, at_fail *fail)
{
    size_t numbers = at_activation_numbers(&layer->in);
    if (numbers > UINT32_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%ux%ux%u is too large for a flat vector",
                           layer->in.channels, layer->in.height, layer->in.width);
    layer->out.channels = (uint32_t)numbers;
    layer->out.height = layer->out.width = 1;
    return AT_OK;
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(pass->x != pass->y && layer->out.block == 1);
    at_blocks_to_plain(&layer->in, pass->y, pass->x, pass->count);
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(pass->dx != pass->dy && pass->dx_write == AT_WRITE_SET);
    if (pass->dx) at_blocks_from_plain(&layer->in, pass->dx, pass->dy, pass->count);
}

const at_layer_kind at_layer_flatten = {
    .name = "flatten",
    .takes_blocks = true,
    .takes_plain = true,
    .gives_plain = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

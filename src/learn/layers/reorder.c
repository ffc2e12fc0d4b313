/* Reorder: a plain activation into blocks of channels. Not part of .net texts: the net inserts it
 * before layers that need blocks. */
#include "learn/layers/layer.h"

#include <assert.h>

#include "learn/engines/activation_kernels.h"

static at_err shape(at_layer *layer, at_fail *fail)
{
    (void)fail;
    layer->out.channels = layer->in.channels;
    layer->out.height = layer->in.height;
    layer->out.width = layer->in.width;
    return AT_OK;
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(pass->x != pass->y && layer->in.block == 1);
    at_blocks_from_plain(&layer->out, pass->y, pass->x, pass->count);
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(pass->dx != pass->dy && pass->dx_write == AT_WRITE_SET);
    if (pass->dx) at_blocks_to_plain(&layer->out, pass->dx, pass->dy, pass->count);
}

const at_layer_kind at_layer_reorder = {
    .name = "reorder",
    .takes_plain = true,
    .gives_blocks = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

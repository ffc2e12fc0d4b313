/* Reshape: a flat vector as an image, channel by channel, each row by row. No data move. */
#include "learn/layers/layer.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"

static at_err shape(at_layer *layer, at_fail *fail)
{
    const at_layer_spec *spec = &layer->spec;
    size_t               area, numbers;
    bool                 fits = at_size_product(spec->height, spec->width, &area) &&
                at_size_product(spec->units, area, &numbers);
    if (!fits || numbers != at_activation_numbers(&layer->in))
        return at_fail_set(fail, AT_ERR_USAGE, NULL,
                           "%zu values (%ux%ux%u) cannot be reshaped to %ux%ux%u",
                           at_activation_numbers(&layer->in), layer->in.channels, layer->in.height,
                           layer->in.width, spec->units, spec->height, spec->width);
    layer->out.channels = spec->units;
    layer->out.height = spec->height;
    layer->out.width = spec->width;
    return AT_OK;
}

static size_t bytes(const at_layer *layer, const at_layer_pass *pass)
{
    assert(layer->in.block == 1 && layer->out.block == 1);
    return pass->count * at_activation_numbers(&layer->out) * sizeof(float);
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    if (pass->y != pass->x) memcpy(pass->y, pass->x, bytes(layer, pass));
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(pass->dx_write == AT_WRITE_SET);
    if (pass->dx && pass->dx != pass->dy) memcpy(pass->dx, pass->dy, bytes(layer, pass));
}

const at_layer_kind at_layer_reshape = {
    .name = "reshape",
    .takes_plain = true,
    .gives_plain = true,
    .in_place = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

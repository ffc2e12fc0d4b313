/* Rgb: gray images to three equal channels, for nets made for color images. Images that have three
 * channels stay unchanged. */
#include "learn/layers/layer.h"

#include <assert.h>
#include <string.h>

enum { COLORS = 3 };

static at_err shape(at_layer *layer, at_fail *fail)
{
    if (layer->in.channels != 1 && layer->in.channels != COLORS)
        return at_fail_set(fail, AT_ERR_USAGE, NULL,
                           "%ux%ux%u has %u channels; only 1 or 3 can be converted to 3x%ux%u",
                           layer->in.channels, layer->in.height, layer->in.width,
                           layer->in.channels, layer->in.height, layer->in.width);
    layer->out.channels = COLORS;
    layer->out.height = layer->in.height;
    layer->out.width = layer->in.width;
    return AT_OK;
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    size_t in = at_activation_numbers(&layer->in), copies = COLORS / layer->in.channels;
    float *y = pass->y;
    assert(pass->x != pass->y && layer->in.block == 1);
    for (size_t n = 0; n < pass->count; n++)
        for (size_t c = 0; c < copies; c++, y += in) memcpy(y, pass->x + n * in, in * sizeof *y);
}

/* No layer before it is trained, see samples_only. */
static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(!layer->wants_dx);
    assert(!pass->dx);
}

const at_layer_kind at_layer_rgb = {
    .name = "rgb",
    .takes_plain = true,
    .gives_plain = true,
    .samples_only = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

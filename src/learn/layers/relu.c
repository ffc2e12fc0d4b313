/* ReLU: y = max(x, 0), in place where possible. Backward needs only the sign of y. It is a layer of
 * its own only after layers that cannot fuse it. */
#include "learn/layers/layer.h"

#include <assert.h>
#include <string.h>

#include "learn/engines/vectorize.h"

static at_err shape(at_layer *layer, at_fail *fail)
{
    (void)fail;
    layer->out.channels = layer->in.channels;
    layer->out.height = layer->in.height;
    layer->out.width = layer->in.width;
    return AT_OK;
}

AT_VECTORIZED static void clip(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0.0f : x[i];
}

AT_VECTORIZED static void add_masked(float *restrict dx, const float *restrict dy,
                                     const float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) dx[i] += y[i] > 0 ? dy[i] : 0.0f;
}

AT_VECTORIZED static void set_masked(float *restrict dx, const float *restrict dy,
                                     const float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) dx[i] = y[i] > 0 ? dy[i] : 0.0f;
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    size_t n = pass->count * at_activation_size(&layer->out);
    if (pass->x == pass->y)
        layer->kernels->relu_forward(pass->y, n);
    else
        clip(pass->y, pass->x, n);
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    size_t n = pass->count * at_activation_size(&layer->out);
    if (!pass->dx) return;
    if (pass->dx == pass->dy) {
        assert(pass->dx_write == AT_WRITE_SET);
        layer->kernels->relu_backward(pass->dy, pass->y, n);
    } else if (pass->dx_write == AT_WRITE_ADD) {
        add_masked(pass->dx, pass->dy, pass->y, n);
    } else {
        set_masked(pass->dx, pass->dy, pass->y, n);
    }
}

const at_layer_kind at_layer_relu = {
    .name = "relu",
    .takes_blocks = true,
    .takes_plain = true,
    .in_place = true,
    .needs_y = true,
    .adds_dx = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

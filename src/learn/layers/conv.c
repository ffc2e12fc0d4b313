/* Convolution: weight (out, in, height, width) in the engine's layout and then bias (out) in the
 * flat vector; y = x * weight + bias, clipped at zero with a fused ReLU. */
#include "learn/layers/layer.h"

#include "base/arena.h"
#include "learn/engines/vectorize.h"
#include "learn/net/net.h"

#include <assert.h>
#include <string.h>

/* Bits that grow with the magnitude of a number: finite numbers, then infinities, then NaN. */
static inline uint32_t magnitude(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits & 0x7fffffffu;
}

static bool is_finite(uint32_t most)
{
    return most < 0x7f800000u;
}

/* to += sum; returns the largest magnitude of the result. */
AT_VECTORIZED static uint32_t add(float *restrict to, const float *restrict sum, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        to[i] += sum[i];
        most = magnitude(to[i]) > most ? magnitude(to[i]) : most;
    }
    return most;
}

/* Turns negative zeros, which engines may leave, into positive ones. */
AT_VECTORIZED static uint32_t add_to_zero(float *to, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        to[i] = 0.0f + to[i];
        most = magnitude(to[i]) > most ? magnitude(to[i]) : most;
    }
    return most;
}

AT_VECTORIZED static uint32_t largest(const float *v, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) most = magnitude(v[i]) > most ? magnitude(v[i]) : most;
    return most;
}

/* Later products of these sizes cannot overflow. */
static bool too_many_weights(const at_layer *layer)
{
    const at_window *w = &layer->spec.window;
    size_t           n;
    bool             fits = at_size_product(w->height, w->width, &n) &&
                at_size_product(n, layer->in.channels, &n) &&
                at_size_product(n, layer->spec.units, &n);
    return !fits || n > AT_NET_PARAMS_MAX;
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    at_window *w = &layer->spec.window;
    assert(layer->spec.units > 0);
    assert(w->height > 0);
    AT_TRY(at_window_fit(w, layer->spec.same, &layer->in, &layer->out, fail));
    layer->out.channels = layer->spec.units;
    if (too_many_weights(layer))
        return at_fail_set(fail, AT_ERR_USAGE, "use fewer channels or a smaller window",
                           "%u filters of %ux%u over %u channels have too many weights",
                           layer->spec.units, w->height, w->width, layer->in.channels);
    return AT_OK;
}

/* Numbers of the weight tensor, without padding. */
static size_t weights(const at_layer *layer)
{
    return (size_t)layer->out.channels * layer->in.channels * layer->spec.window.height *
           layer->spec.window.width;
}

static size_t tensors(const at_layer *layer, at_layer_tensor rows[AT_LAYER_TENSORS_MAX])
{
    const at_window *w = &layer->spec.window;
    rows[0] = (at_layer_tensor){
        .name = "weight",
        .role = AT_ROLE_WEIGHT,
        .dims = 4,
        .shape = {layer->out.channels, layer->in.channels, w->height, w->width},
        .layout = &layer->layout,
    };
    rows[1] = (at_layer_tensor){
        .name = "bias", .role = AT_ROLE_BIAS, .dims = 1, .shape = {layer->out.channels}};
    return layer->spec.bias ? 2 : 1;
}

static void init(const at_layer *layer, float *plain, at_rng *rng)
{
    double area = (double)layer->spec.window.height * layer->spec.window.width;
    double in = area * layer->in.channels, out = area * layer->out.channels;
    size_t n = weights(layer);
    at_initializer_fill(layer->spec.init, plain, n, in, out, rng);
    if (layer->spec.bias)
        at_initializer_fill(layer->spec.bias_init, plain + n, layer->out.channels, in, out, rng);
}

static uint64_t mults(const at_layer *layer)
{
    return weights(layer) * at_activation_area(&layer->out);
}

static size_t biases(const at_layer *layer)
{
    return layer->spec.bias ? layer->out.channels : 0;
}

/* For sums that are then added to the gradient. */
static size_t scratch(const at_layer *layer, size_t count)
{
    assert(count > 0);
    size_t size = (layer->layout.floats + biases(layer)) * sizeof(float);
    return (size + 63) / 64 * 64;
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    const float *b = layer->spec.bias ? pass->params + layer->layout.floats : NULL;
    assert(pass->x != pass->y);
    assert(pass->conv);
    layer->conv->forward(pass->conv, pass->y, pass->x, pass->params, b, pass->conv_scratch);
}

static void backward_weight(const at_layer *layer, const at_layer_pass *pass)
{
    size_t n = layer->layout.floats + biases(layer);
    float *dw = pass->write == AT_WRITE_SET ? pass->gradient : pass->scratch;
    float *db = layer->spec.bias ? dw + layer->layout.floats : NULL;
    layer->conv->weight(pass->conv, dw, db, pass->dy, pass->x, pass->conv_scratch);
    uint32_t most = pass->write == AT_WRITE_SET ? add_to_zero(dw, n) : add(pass->gradient, dw, n);
    if (pass->broken && !is_finite(most)) *pass->broken = true;
}

/* ReLUs and pools can turn NaN into zero, and then even gradients are finite. */
static void check_weights(const at_layer *layer, const at_layer_pass *pass)
{
    size_t n = layer->layout.floats + biases(layer);
    if (pass->broken && !is_finite(largest(pass->params, n))) *pass->broken = true;
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(pass->dx != pass->dy);
    assert(pass->conv);
    if (pass->dx) assert(layer->wants_dx);
    if (layer->spec.relu && !layer->relu_done)
        layer->kernels->relu_backward(pass->dy, pass->y,
                                      pass->count * at_activation_size(&layer->out));
    if (pass->fresh) check_weights(layer, pass);
    backward_weight(layer, pass);
    at_layer_tell(layer, pass);
    if (!pass->dx) return;
    const float *w = pass->reordered ? pass->reordered : pass->params;
    layer->conv->input(pass->conv, pass->dx, pass->dy, w, pass->conv_scratch);
}

const at_layer_kind at_layer_conv = {
    .name = "conv",
    .takes_blocks = true,
    .takes_plain = true, /* with few channels */
    .gives_blocks = true,
    .fuses_relu = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tensors = tensors,
    .init = init,
    .mults = mults,
    .scratch = scratch,
};

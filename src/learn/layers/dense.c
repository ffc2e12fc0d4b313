/* Dense: y = x * transpose(weight) + bias, weight (out, in) and then bias (out) in the flat vector.
 *     dweight = transpose(dy) * x,  dbias = column sums of dy,  dx = dy * weight. */
#include "learn/layers/layer.h"

#include <assert.h>

static size_t inputs(const at_layer *layer)
{
    return at_activation_numbers(&layer->in);
}

static size_t outputs(const at_layer *layer)
{
    return layer->out.channels;
}

static size_t weights(const at_layer *layer)
{
    return inputs(layer) * outputs(layer);
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    assert(layer->in.block == 1);
    if (layer->spec.units == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: dense 100",
                           "a dense layer needs at least one output");
    layer->out.channels = layer->spec.units;
    layer->out.height = layer->out.width = 1;
    return AT_OK;
}

static size_t tensors(const at_layer *layer, at_layer_tensor rows[AT_LAYER_TENSORS_MAX])
{
    uint32_t in = (uint32_t)inputs(layer), out = (uint32_t)outputs(layer);
    rows[0] =
        (at_layer_tensor){.name = "weight", .role = AT_ROLE_WEIGHT, .dims = 2, .shape = {out, in}};
    rows[1] = (at_layer_tensor){.name = "bias", .role = AT_ROLE_BIAS, .dims = 1, .shape = {out}};
    return 2;
}

static uint64_t mults(const at_layer *layer)
{
    return weights(layer);
}

static size_t scratch(const at_layer *layer, size_t count)
{
    const at_kernels *k = layer->kernels;
    return k->dense_scratch ? k->dense_scratch(count, inputs(layer), outputs(layer)) * sizeof(float)
                            : 0;
}

static void init(const at_layer *layer, float *plain, at_rng *rng)
{
    double in = (double)inputs(layer), out = (double)outputs(layer);
    at_initializer_fill(layer->spec.init, plain, weights(layer), in, out, rng);
    at_initializer_fill(layer->spec.bias_init, plain + weights(layer), outputs(layer), in, out,
                        rng);
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    const at_kernels *k = layer->kernels;
    assert(pass->x != pass->y);
    k->dense_forward(pass->y, pass->x, pass->params, pass->params + weights(layer), pass->count,
                     inputs(layer), outputs(layer));
    if (layer->spec.relu) layer->elementwise->relu_forward(pass->y, pass->count * outputs(layer));
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    const at_kernels *k = layer->kernels;
    size_t            in = inputs(layer), out = outputs(layer);
    assert(pass->dx != pass->dy);
    assert(!pass->dx || pass->dx_write == AT_WRITE_SET);
    if (layer->spec.relu && !layer->relu_done)
        layer->elementwise->relu_backward(pass->dy, pass->y, pass->count * out);
    k->dense_weight(pass->gradient, pass->dy, pass->x, pass->count, in, out, pass->write,
                    pass->scratch);
    k->dense_bias(pass->gradient + weights(layer), pass->dy, pass->count, out, pass->write);
    at_layer_tell(layer, pass);
    if (pass->dx) k->dense_input(pass->dx, pass->dy, pass->params, pass->count, in, out);
}

const at_layer_kind at_layer_dense = {
    .name = "dense",
    .takes_plain = true,
    .gives_plain = true,
    .fuses_relu = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tensors = tensors,
    .init = init,
    .mults = mults,
    .scratch = scratch,
};

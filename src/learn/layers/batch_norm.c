/* Batch norm (Ioffe and Szegedy 2015): normalizes each channel to mean 0 and deviation 1 over this
 * call's samples and positions, then y = weight * x + bias. Scoring uses running statistics
 * instead. With sums over the n values of a channel and z = (x - mean) / deviation:
 *
 *     dbias = sum dy,  dweight = sum dy z,
 *     dx = weight / deviation * (dy - dbias / n - z dweight / n).
 *
 * The statistics of this call are returned as sums, like gradients: samples times mean, and samples
 * times unbiased variance. Their sum over all workers divided by all samples is then the mean that
 * weights every sample equally. */
#include "learn/layers/layer.h"

#include <assert.h>
#include <math.h>

#include "learn/engines/norm_kernels.h"

/* Saved from forward to backward, per channel: mean and biased variance. */
static float *saved_mean(const at_layer_pass *pass)
{
    assert(pass->saved);
    return pass->saved;
}

static float *saved_variance(const at_layer *layer, const at_layer_pass *pass)
{
    return saved_mean(pass) + layer->in.channels;
}

static size_t saved(const at_layer *layer, size_t count)
{
    assert(count > 0);
    return 2 * (size_t)layer->in.channels * sizeof(float);
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    (void)fail; /* every shape is valid */
    assert(layer->spec.epsilon > 0);
    layer->out = layer->in;
    return AT_OK;
}

static size_t tensors(const at_layer *layer, at_layer_tensor rows[AT_LAYER_TENSORS_MAX])
{
    static const struct {
        const char    *name;
        at_tensor_role role;
    } all[] = {{"weight", AT_ROLE_NORM},
               {"bias", AT_ROLE_NORM},
               {"running_mean", AT_ROLE_STAT},
               {"running_var", AT_ROLE_STAT}};
    const size_t count = sizeof all / sizeof *all;
    assert(count <= AT_LAYER_TENSORS_MAX);
    for (size_t i = 0; i < count; i++)
        rows[i] = (at_layer_tensor){
            .name = all[i].name, .role = all[i].role, .dims = 1, .shape = {layer->in.channels}};
    return count;
}

static void init(const at_layer *layer, float *plain, at_rng *rng)
{
    size_t channels = layer->in.channels;
    assert(channels > 0);
    (void)rng;
    for (size_t c = 0; c < channels; c++) {
        plain[c] = 1;                /* weight */
        plain[channels + c] = 0;     /* bias */
        plain[2 * channels + c] = 0; /* running mean */
        plain[3 * channels + c] = 1; /* running variance */
    }
}

/* Copies mean, weight / deviation and bias of the strip's channels to its lanes. */
static void lanes_of(at_norm_lanes *lanes, const at_layer *layer, const at_layer_pass *pass,
                     const at_norm_strip *strip, const float *mean, const float *variance)
{
    const float *weight = pass->params + strip->first, *bias = weight + layer->in.channels;
    float        scale[AT_NORM_LANES];
    for (size_t c = 0; c < strip->valid; c++)
        scale[c] = (float)(weight[c] / sqrt(variance[strip->first + c] + layer->spec.epsilon));
    at_norm_spread(strip, lanes->mean, mean + strip->first);
    at_norm_spread(strip, lanes->scale, scale);
    at_norm_spread(strip, lanes->shift, bias);
}

/* Saves mean and biased variance of this call for backward. */
static void measure(const at_layer *layer, const at_layer_pass *pass, const at_norm_strip *strip)
{
    float *to_mean = saved_mean(pass) + strip->first;
    float *to_variance = saved_variance(layer, pass) + strip->first;
    double mean[AT_NORM_LANES], squares[AT_NORM_LANES];
    double n = (double)at_norm_count(strip);
    at_norm_moments(strip, pass->x, mean, squares);
    for (size_t c = 0; c < strip->valid; c++) {
        to_mean[c] = (float)mean[c];
        to_variance[c] = (float)(squares[c] / n);
    }
}

/* Strip by strip, so that each strip is still in the cache when it is normalized. */
static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    size_t       strips = at_norm_strips(&layer->in);
    const float *mean = pass->training ? saved_mean(pass) : pass->stats;
    assert(mean);
    for (size_t i = 0; i < strips; i++) {
        at_norm_strip strip = at_norm_strip_of(&layer->in, i, pass->count);
        at_norm_lanes lanes = {.floor = layer->spec.relu ? 0.0f : -INFINITY};
        if (pass->training) measure(layer, pass, &strip);
        lanes_of(&lanes, layer, pass, &strip, mean, mean + layer->in.channels);
        at_norm_forward(&strip, &lanes, pass->y, pass->x);
    }
}

/* Adds the statistics of this call to their sums. */
static void add_statistics(const at_layer *layer, const at_layer_pass *pass)
{
    size_t channels = layer->in.channels;
    double n = (double)(pass->count * at_activation_area(&layer->in));
    double unbiased = n > 1 ? n / (n - 1) : 1, count = (double)pass->count;
    float *mean = saved_mean(pass), *variance = saved_variance(layer, pass);
    float *mean_sum = pass->stats_sums, *variance_sum = mean_sum + channels;
    for (size_t c = 0; c < channels; c++) {
        at_norm_put(mean_sum + c, count * mean[c], pass->write);
        at_norm_put(variance_sum + c, count * unbiased * variance[c], pass->write);
    }
}

/* Parameter gradients of the strip's channels, and the dx coefficients of its lanes. */
static void put_gradient(const at_layer *layer, const at_layer_pass *pass,
                         const at_norm_strip *strip, at_norm_lanes *lanes)
{
    double sum[AT_NORM_LANES], product[AT_NORM_LANES];
    float  offset[AT_NORM_LANES], slope[AT_NORM_LANES];
    double n = (double)at_norm_count(strip);
    float *weight = pass->gradient + strip->first, *bias = weight + layer->in.channels;
    float *variance = saved_variance(layer, pass) + strip->first;
    at_norm_sums(strip, lanes, pass->dy, pass->x, sum, product);
    for (size_t c = 0; c < strip->valid; c++) {
        double precision = 1 / (variance[c] + layer->spec.epsilon);
        offset[c] = (float)(lanes->scale[c] * sum[c] / n);
        slope[c] = (float)(lanes->scale[c] * product[c] * precision / n);
        at_norm_put(weight + c, product[c] * sqrt(precision), pass->write);
        at_norm_put(bias + c, sum[c], pass->write);
    }
    at_norm_spread(strip, lanes->offset, offset);
    at_norm_spread(strip, lanes->slope, slope);
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    bool   relu = layer->spec.relu && !layer->relu_done;
    size_t strips = at_norm_strips(&layer->in);
    add_statistics(layer, pass);
    for (size_t i = 0; i < strips; i++) {
        at_norm_strip strip = at_norm_strip_of(&layer->in, i, pass->count);
        at_norm_lanes lanes = {.floor = relu ? 0.0f : -INFINITY,
                               .x_floor = layer->masks_input ? 0.0f : -INFINITY};
        lanes_of(&lanes, layer, pass, &strip, saved_mean(pass), saved_variance(layer, pass));
        put_gradient(layer, pass, &strip, &lanes);
        if (pass->dx) at_norm_backward(&strip, &lanes, pass->dx, pass->dy, pass->x, pass->dx_write);
    }
}

const at_layer_kind at_layer_bn = {
    .name = "bn",
    .takes_blocks = true,
    .takes_plain = true,
    .adds_dx = true,
    .fuses_relu = true,
    .masks_relu = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .tensors = tensors,
    .init = init,
    .saved = saved,
};

/* Group norm (Wu and He 2018): normalizes each group of channels of one sample to mean 0 and
 * deviation 1, then y = weight * x + bias by channel. Samples are independent, so the result is the
 * same for any micro-batch, and for training and scoring. With sums over the n values of a group
 * and z = (x - mean) / deviation:
 *
 *     dbias = sum over samples and positions of dy,  dweight = the same of dy z,
 *     dx = (weight dy - sum (weight dy) / n - z sum (weight dy z) / n) / deviation. */
#include "learn/layers/layer.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "learn/engines/norm_kernels.h"

static size_t group_channels(const at_layer *layer)
{
    assert(layer->spec.groups > 0);
    return layer->in.channels / layer->spec.groups;
}

/* Values of one group in one sample. */
static double group_size(const at_layer *layer)
{
    return (double)(group_channels(layer) * at_activation_area(&layer->in));
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    uint32_t groups = layer->spec.groups, channels = layer->in.channels;
    assert(layer->spec.epsilon > 0);
    if (!groups || channels % groups)
        return at_fail_set(fail, AT_ERR_USAGE, "use a number of groups that divides the channels",
                           "%u channels cannot be split into %u groups", channels, groups);
    layer->out = layer->in;
    return AT_OK;
}

static size_t tensors(const at_layer *layer, at_layer_tensor rows[AT_LAYER_TENSORS_MAX])
{
    at_layer_tensor row = {.role = AT_ROLE_NORM, .dims = 1, .shape = {layer->in.channels}};
    rows[0] = rows[1] = row;
    rows[0].name = "weight";
    rows[1].name = "bias";
    return 2;
}

static void init(const at_layer *layer, float *plain, at_rng *rng)
{
    size_t channels = layer->in.channels;
    assert(channels > 0);
    (void)rng;
    for (size_t c = 0; c < channels; c++) {
        plain[c] = 1;            /* weight */
        plain[channels + c] = 0; /* bias */
    }
}

/* Mean and 1 / deviation of each group, for each sample. */
static size_t saved(const at_layer *layer, size_t count)
{
    return 2 * sizeof(float) * layer->spec.groups * count;
}

/* Per channel: two sums of a sample, and backward two of all samples. */
static size_t scratch(const at_layer *layer, size_t count)
{
    assert(count > 0);
    return 4 * sizeof(double) * layer->in.channels;
}

static float *saved_of(const at_layer *layer, const at_layer_pass *pass, size_t sample)
{
    float *first = pass->saved;
    assert(first);
    return first + 2 * layer->spec.groups * sample;
}

/* Computes the moments of each group from the means and squared deviations of its channels. */
static void measure_groups(const at_layer *layer, float *moments, const double *mean,
                           const double *squares)
{
    size_t groups = layer->spec.groups, members = group_channels(layer);
    double area = (double)at_activation_area(&layer->in);
    for (size_t g = 0; g < groups; g++, mean += members, squares += members) {
        double group_mean = 0, sum = 0;
        for (size_t c = 0; c < members; c++) group_mean += mean[c] / (double)members;
        for (size_t c = 0; c < members; c++)
            sum += squares[c] + area * (mean[c] - group_mean) * (mean[c] - group_mean);
        moments[g] = (float)group_mean;
        moments[groups + g] = (float)(1 / sqrt(sum / group_size(layer) + layer->spec.epsilon));
    }
}

/* What forward and both parts of backward need, by lane. */
static void lanes_of(at_norm_lanes *lanes, const at_layer *layer, const at_layer_pass *pass,
                     const at_norm_strip *strip, const float *moments)
{
    const float *weight = pass->params + strip->first, *bias = weight + layer->in.channels;
    size_t       groups = layer->spec.groups, members = group_channels(layer);
    float        mean[AT_NORM_LANES], scale[AT_NORM_LANES];
    for (size_t c = 0; c < strip->valid; c++) {
        size_t g = (strip->first + c) / members;
        mean[c] = moments[g];
        scale[c] = weight[c] * moments[groups + g];
    }
    at_norm_spread(strip, lanes->mean, mean);
    at_norm_spread(strip, lanes->scale, scale);
    at_norm_spread(strip, lanes->shift, bias);
}

static void measure(const at_layer *layer, const at_layer_pass *pass, const float *x,
                    float *moments)
{
    double *mean = pass->scratch, *squares = mean + layer->in.channels;
    size_t  strips = at_norm_strips(&layer->in);
    for (size_t i = 0; i < strips; i++) {
        double        strip_mean[AT_NORM_LANES], strip_squares[AT_NORM_LANES];
        at_norm_strip strip = at_norm_strip_of(&layer->in, i, 1);
        at_norm_moments(&strip, x, strip_mean, strip_squares);
        for (size_t c = 0; c < strip.valid; c++) {
            mean[strip.first + c] = strip_mean[c];
            squares[strip.first + c] = strip_squares[c];
        }
    }
    measure_groups(layer, moments, mean, squares);
}

/* Sample by sample, so that each stays in the cache. */
static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    size_t size = at_activation_size(&layer->in), strips = at_norm_strips(&layer->in);
    float *temporary = (float *)((double *)pass->scratch + 2 * layer->in.channels);
    for (size_t n = 0; n < pass->count; n++) {
        const float *x = pass->x + n * size;
        float       *moments = pass->training ? saved_of(layer, pass, n) : temporary;
        measure(layer, pass, x, moments);
        for (size_t i = 0; i < strips; i++) {
            at_norm_strip strip = at_norm_strip_of(&layer->in, i, 1);
            at_norm_lanes lanes = {.floor = layer->spec.relu ? 0.0f : -INFINITY};
            lanes_of(&lanes, layer, pass, &strip, moments);
            at_norm_forward(&strip, &lanes, pass->y + n * size, x);
        }
    }
}

/* The state of backward. */
typedef struct backward_state {
    const at_layer      *layer;
    const at_layer_pass *pass;
    double              *sum, *product; /* per channel, of one sample */
    double              *bias, *weight; /* per channel, of all samples */
    const float         *moments;       /* of one sample */
    size_t               at;            /* its position in x, dy and dx */
} backward_state;

static void backward_lanes(at_norm_lanes *lanes, const backward_state *b,
                           const at_norm_strip *strip)
{
    bool relu = b->layer->spec.relu && !b->layer->relu_done;
    lanes->floor = relu ? 0.0f : -INFINITY;
    lanes->x_floor = b->layer->masks_input ? 0.0f : -INFINITY;
    lanes_of(lanes, b->layer, b->pass, strip, b->moments);
}

/* The sums of a sample, which are also added to those of all samples. */
static void sum_sample(const backward_state *b)
{
    size_t       strips = at_norm_strips(&b->layer->in), members = group_channels(b->layer);
    const float *inverse = b->moments + b->layer->spec.groups;
    for (size_t i = 0; i < strips; i++) {
        double        sum[AT_NORM_LANES], product[AT_NORM_LANES];
        at_norm_lanes lanes = {0};
        at_norm_strip strip = at_norm_strip_of(&b->layer->in, i, 1);
        backward_lanes(&lanes, b, &strip);
        at_norm_sums(&strip, &lanes, b->pass->dy + b->at, b->pass->x + b->at, sum, product);
        for (size_t c = 0; c < strip.valid; c++) {
            size_t channel = strip.first + c;
            b->sum[channel] = sum[c];
            b->product[channel] = product[c];
            b->bias[channel] += sum[c];
            b->weight[channel] += product[c] * inverse[channel / members];
        }
    }
}

/* Replaces the channels' sums by the dx coefficients of their group. */
static void group_coefficients(const backward_state *b)
{
    size_t       groups = b->layer->spec.groups, members = group_channels(b->layer);
    const float *weight = b->pass->params;
    double       n = group_size(b->layer);
    for (size_t g = 0; g < groups; g++) {
        double inverse = b->moments[groups + g], sum = 0, product = 0;
        size_t first = g * members;
        for (size_t c = first; c < first + members; c++) {
            sum += weight[c] * b->sum[c];
            product += weight[c] * b->product[c];
        }
        for (size_t c = first; c < first + members; c++) {
            b->sum[c] = inverse * sum / n;
            b->product[c] = inverse * inverse * inverse * product / n;
        }
    }
}

static void write_dx(const backward_state *b)
{
    size_t strips = at_norm_strips(&b->layer->in);
    for (size_t i = 0; i < strips; i++) {
        float         offset[AT_NORM_LANES], slope[AT_NORM_LANES];
        at_norm_lanes lanes = {0};
        at_norm_strip strip = at_norm_strip_of(&b->layer->in, i, 1);
        for (size_t c = 0; c < strip.valid; c++) {
            offset[c] = (float)b->sum[strip.first + c];
            slope[c] = (float)b->product[strip.first + c];
        }
        backward_lanes(&lanes, b, &strip);
        at_norm_spread(&strip, lanes.offset, offset);
        at_norm_spread(&strip, lanes.slope, slope);
        at_norm_backward(&strip, &lanes, b->pass->dx + b->at, b->pass->dy + b->at,
                         b->pass->x + b->at, b->pass->dx_write);
    }
}

static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    size_t         size = at_activation_size(&layer->in), channels = layer->in.channels;
    double        *doubles = pass->scratch;
    backward_state b = {.layer = layer,
                        .pass = pass,
                        .sum = doubles,
                        .product = doubles + channels,
                        .bias = doubles + 2 * channels,
                        .weight = doubles + 3 * channels};
    for (size_t c = 0; c < channels; c++) b.bias[c] = b.weight[c] = 0;
    for (size_t n = 0; n < pass->count; n++) {
        b.moments = saved_of(layer, pass, n);
        b.at = n * size;
        sum_sample(&b);
        group_coefficients(&b);
        if (pass->dx) write_dx(&b);
    }
    for (size_t c = 0; c < channels; c++) {
        at_norm_put(pass->gradient + c, b.weight[c], pass->write);
        at_norm_put(pass->gradient + channels + c, b.bias[c], pass->write);
    }
}

const at_layer_kind at_layer_gn = {
    .name = "gn",
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
    .scratch = scratch,
    .saved = saved,
};

/* Group norm (Wu and He 2018): the channels of each group are brought to mean 0 and deviation 1
 * over the places of one sample, and then y = weight * x + bias by channel. Samples do not meet, so
 * it is the same for any micro-batch, and for training and scoring. With n numbers in a group, sums
 * over them, z = (x - mean) / deviation:
 *
 *     dbias = sum over samples and places of dy,  dweight = the same of dy z,
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

/* Numbers of one group in one sample. */
static double group_numbers(const at_layer *layer)
{
    return (double)(group_channels(layer) * at_activation_area(&layer->in));
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    uint32_t groups = layer->spec.groups, channels = layer->in.channels;
    assert(layer->spec.epsilon > 0);
    if (!groups || channels % groups)
        return at_fail_set(fail, AT_ERR_USAGE, "take a number of groups that divides the channels",
                           "%u channels cannot be parted into %u groups", channels, groups);
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

/* Mean and one over the deviation of each group, for each sample. */
static size_t keep(const at_layer *layer, size_t count)
{
    return 2 * sizeof(float) * layer->spec.groups * count;
}

/* Numbers per channel: two of a sample, and backward two of all samples. */
static size_t scratch(const at_layer *layer, size_t count)
{
    assert(count > 0);
    return 4 * sizeof(double) * layer->in.channels;
}

static float *kept_of(const at_layer *layer, const at_pass *pass, size_t sample)
{
    float *first = pass->keep;
    assert(first);
    return first + 2 * layer->spec.groups * sample;
}

/* From the channels' means and squared distances to those of each group. */
static void measure_groups(const at_layer *layer, float *kept, const double *mean,
                           const double *squares)
{
    size_t groups = layer->spec.groups, members = group_channels(layer);
    double places = (double)at_activation_area(&layer->in);
    for (size_t g = 0; g < groups; g++, mean += members, squares += members) {
        double middle = 0, sum = 0;
        for (size_t c = 0; c < members; c++) middle += mean[c] / (double)members;
        for (size_t c = 0; c < members; c++)
            sum += squares[c] + places * (mean[c] - middle) * (mean[c] - middle);
        kept[g] = (float)middle;
        kept[groups + g] = (float)(1 / sqrt(sum / group_numbers(layer) + layer->spec.epsilon));
    }
}

/* Spreads what forward and both parts of backward need over the lanes. */
static void lanes_of(at_norm_lanes *lanes, const at_layer *layer, const at_pass *pass,
                     const at_norm_strip *strip, const float *kept)
{
    const float *weight = pass->params + strip->first, *bias = weight + layer->in.channels;
    size_t       groups = layer->spec.groups, members = group_channels(layer);
    float        mean[AT_NORM_LANES], scale[AT_NORM_LANES];
    for (size_t c = 0; c < strip->valid; c++) {
        size_t g = (strip->first + c) / members;
        mean[c] = kept[g];
        scale[c] = weight[c] * kept[groups + g];
    }
    at_norm_spread(strip, lanes->mean, mean);
    at_norm_spread(strip, lanes->scale, scale);
    at_norm_spread(strip, lanes->shift, bias);
}

static void measure(const at_layer *layer, const at_pass *pass, const float *x, float *kept)
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
    measure_groups(layer, kept, mean, squares);
}

/* Sample by sample, which stays in a cache meanwhile. */
static void forward(const at_layer *layer, const at_pass *pass)
{
    size_t size = at_activation_size(&layer->in), strips = at_norm_strips(&layer->in);
    float *once = (float *)((double *)pass->scratch + 2 * layer->in.channels);
    for (size_t n = 0; n < pass->count; n++) {
        const float *x = pass->x + n * size;
        float       *kept = pass->training ? kept_of(layer, pass, n) : once;
        measure(layer, pass, x, kept);
        for (size_t i = 0; i < strips; i++) {
            at_norm_strip strip = at_norm_strip_of(&layer->in, i, 1);
            at_norm_lanes lanes = {.floor = layer->spec.relu ? 0.0f : -INFINITY};
            lanes_of(&lanes, layer, pass, &strip, kept);
            at_norm_forward(&strip, &lanes, pass->y + n * size, x);
        }
    }
}

/* Where backward works. */
typedef struct bench {
    const at_layer *layer;
    const at_pass  *pass;
    double         *sum, *product; /* by channel, of one sample */
    double         *bias, *weight; /* by channel, of all samples */
    const float    *kept;          /* of one sample */
    size_t          at;            /* its first float */
} bench;

static void lanes_back(at_norm_lanes *lanes, const bench *b, const at_norm_strip *strip)
{
    bool relu = b->layer->spec.relu && !b->layer->relu_done;
    lanes->floor = relu ? 0.0f : -INFINITY;
    lanes->x_floor = b->layer->masks ? 0.0f : -INFINITY;
    lanes_of(lanes, b->layer, b->pass, strip, b->kept);
}

/* Sums of the sample; those of all samples grow by them. */
static void sum_sample(const bench *b)
{
    size_t       strips = at_norm_strips(&b->layer->in), members = group_channels(b->layer);
    const float *inverse = b->kept + b->layer->spec.groups;
    for (size_t i = 0; i < strips; i++) {
        double        sum[AT_NORM_LANES], product[AT_NORM_LANES];
        at_norm_lanes lanes = {0};
        at_norm_strip strip = at_norm_strip_of(&b->layer->in, i, 1);
        lanes_back(&lanes, b, &strip);
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

/* From the channels' sums to what each place of their group is pulled by; in their place. */
static void pull_groups(const bench *b)
{
    size_t       groups = b->layer->spec.groups, members = group_channels(b->layer);
    const float *weight = b->pass->params;
    double       n = group_numbers(b->layer);
    for (size_t g = 0; g < groups; g++) {
        double inverse = b->kept[groups + g], sum = 0, product = 0;
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

static void write_dx(const bench *b)
{
    size_t strips = at_norm_strips(&b->layer->in);
    for (size_t i = 0; i < strips; i++) {
        float         pull[AT_NORM_LANES], slope[AT_NORM_LANES];
        at_norm_lanes lanes = {0};
        at_norm_strip strip = at_norm_strip_of(&b->layer->in, i, 1);
        for (size_t c = 0; c < strip.valid; c++) {
            pull[c] = (float)b->sum[strip.first + c];
            slope[c] = (float)b->product[strip.first + c];
        }
        lanes_back(&lanes, b, &strip);
        at_norm_spread(&strip, lanes.pull, pull);
        at_norm_spread(&strip, lanes.slope, slope);
        at_norm_backward(&strip, &lanes, b->pass->dx + b->at, b->pass->dy + b->at,
                         b->pass->x + b->at, b->pass->dx_write);
    }
}

static void backward(const at_layer *layer, const at_pass *pass)
{
    size_t  size = at_activation_size(&layer->in), channels = layer->in.channels;
    double *room = pass->scratch;
    bench   b = {.layer = layer,
                 .pass = pass,
                 .sum = room,
                 .product = room + channels,
                 .bias = room + 2 * channels,
                 .weight = room + 3 * channels};
    for (size_t c = 0; c < channels; c++) b.bias[c] = b.weight[c] = 0;
    for (size_t n = 0; n < pass->count; n++) {
        b.kept = kept_of(layer, pass, n);
        b.at = n * size;
        sum_sample(&b);
        pull_groups(&b);
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
    .keep = keep,
};

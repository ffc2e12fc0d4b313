/* Resize: images to another height and width, bilinear, without antialiasing. Values belong to
 * pixel centers, so output i reads position (i + 1/2) in/out - 1/2; beyond the outermost centers
 * the edge values are repeated.
 *
 * First every row is resized horizontally, then rows are interpolated, so that each input row is
 * resized only once. */
#include "learn/layers/layer.h"

#include <assert.h>

#include "learn/engines/vectorize.h"

/* A position between the centers of pixels `first` and `second`. */
typedef struct sample_point {
    uint32_t first, second;
    float    weight; /* of the second */
} sample_point;

static sample_point point_of(uint32_t i, uint32_t in, uint32_t out)
{
    float scale = (float)in / (float)out;
    float at = ((float)i + 0.5f) * scale - 0.5f;
    if (at < 0) at = 0;
    uint32_t first = (uint32_t)at;
    if (first > in - 1) first = in - 1;
    return (sample_point){first, first + 1 < in ? first + 1 : first, at - (float)first};
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    if (layer->spec.height == 0 || layer->spec.width == 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%ux%u cannot be resized to %ux%u",
                           layer->in.height, layer->in.width, layer->spec.height,
                           layer->spec.width);
    layer->out.channels = layer->in.channels;
    layer->out.height = layer->spec.height;
    layer->out.width = layer->spec.width;
    return AT_OK;
}

/* The points of all columns, then a channel with its rows resized. */
static size_t scratch(const at_layer *layer, size_t count)
{
    (void)count;
    return layer->out.width * (sizeof(sample_point) + layer->in.height * sizeof(float));
}

static void resize_row(float *restrict to, const float *restrict row, const sample_point *points,
                       size_t width)
{
    for (size_t w = 0; w < width; w++) {
        float weight = points[w].weight;
        to[w] = (1.0f - weight) * row[points[w].first] + weight * row[points[w].second];
    }
}

AT_VECTORIZED static void interpolate(float *restrict y, const float *restrict upper,
                                      const float *restrict lower, float far, size_t n)
{
    float near = 1.0f - far;
    for (size_t i = 0; i < n; i++) y[i] = near * upper[i] + far * lower[i];
}

static void forward(const at_layer *layer, const at_layer_pass *pass)
{
    const at_activation *in = &layer->in, *out = &layer->out;
    size_t               width = out->width, channels = pass->count * in->channels;
    sample_point        *points = pass->scratch;
    float               *rows = (float *)(points + width), *y = pass->y;
    assert(pass->scratch && in->block == 1 && out->block == 1);
    for (uint32_t w = 0; w < width; w++) points[w] = point_of(w, in->width, out->width);
    for (size_t c = 0; c < channels; c++) {
        const float *x = pass->x + c * at_activation_area(in);
        for (size_t h = 0; h < in->height; h++)
            resize_row(rows + h * width, x + h * in->width, points, width);
        for (uint32_t h = 0; h < out->height; h++, y += width) {
            sample_point t = point_of(h, in->height, out->height);
            interpolate(y, rows + t.first * width, rows + t.second * width, t.weight, width);
        }
    }
}

/* No layer before it is trained, see samples_only. */
static void backward(const at_layer *layer, const at_layer_pass *pass)
{
    assert(!layer->wants_dx);
    assert(!pass->dx);
}

const at_layer_kind at_layer_resize = {
    .name = "resize",
    .takes_plain = true,
    .gives_plain = true,
    .samples_only = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .scratch = scratch,
};

/* Resize: samples to another height and width, bilinear, without smoothing before. Pixels are
 * squares and their values belong to the centres, so output i looks at (i + 1/2) in/out - 1/2, and
 * beyond the centres of the outermost pixels their values go on.
 *
 * First every row of the picture is stretched, then rows are mixed: a row of a picture that grows
 * is stretched only once. */
#include "learn/layers/layer.h"

#include <assert.h>

#include "learn/engines/vectorize.h"

/* A position between the centres of pixels `first` and `second`. */
typedef struct tap {
    uint32_t first, second;
    float    far; /* weight of the second */
} tap;

static tap tap_of(uint32_t i, uint32_t in, uint32_t out)
{
    float scale = (float)in / (float)out;
    float at = ((float)i + 0.5f) * scale - 0.5f;
    if (at < 0) at = 0;
    uint32_t first = (uint32_t)at;
    if (first > in - 1) first = in - 1;
    return (tap){first, first + 1 < in ? first + 1 : first, at - (float)first};
}

static at_err shape(at_layer *layer, at_fail *fail)
{
    if (layer->spec.height == 0 || layer->spec.width == 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%ux%u cannot become %ux%u", layer->in.height,
                           layer->in.width, layer->spec.height, layer->spec.width);
    layer->out.channels = layer->in.channels;
    layer->out.height = layer->spec.height;
    layer->out.width = layer->spec.width;
    return AT_OK;
}

/* The taps of all columns, then a channel with its rows stretched. */
static size_t scratch(const at_layer *layer, size_t count)
{
    (void)count;
    return layer->out.width * (sizeof(tap) + layer->in.height * sizeof(float));
}

static void range(float *restrict to, const float *restrict row, const tap *taps, size_t width)
{
    for (size_t w = 0; w < width; w++) {
        float far = taps[w].far;
        to[w] = (1.0f - far) * row[taps[w].first] + far * row[taps[w].second];
    }
}

AT_VECTORISED static void mix(float *restrict y, const float *restrict upper,
                              const float *restrict lower, float far, size_t n)
{
    float near = 1.0f - far;
    for (size_t i = 0; i < n; i++) y[i] = near * upper[i] + far * lower[i];
}

static void forward(const at_layer *layer, const at_pass *pass)
{
    const at_activation *in = &layer->in, *out = &layer->out;
    size_t               width = out->width, channels = pass->count * in->channels;
    tap                 *taps = pass->scratch;
    float               *rows = (float *)(taps + width), *y = pass->y;
    assert(pass->scratch && in->block == 1 && out->block == 1);
    for (uint32_t w = 0; w < width; w++) taps[w] = tap_of(w, in->width, out->width);
    for (size_t c = 0; c < channels; c++) {
        const float *x = pass->x + c * at_activation_area(in);
        for (size_t h = 0; h < in->height; h++)
            range(rows + h * width, x + h * in->width, taps, width);
        for (uint32_t h = 0; h < out->height; h++, y += width) {
            tap t = tap_of(h, in->height, out->height);
            mix(y, rows + t.first * width, rows + t.second * width, t.far, width);
        }
    }
}

/* Nothing that is trained comes before it. */
static void backward(const at_layer *layer, const at_pass *pass)
{
    assert(!layer->wants_dx);
    assert(!pass->dx);
}

const at_layer_kind at_layer_resize = {
    .name = "resize",
    .takes_plain = true,
    .gives_plain = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .scratch = scratch,
};

/* The reference for convolutions: plain images and weights, sums in double, directly from the
 * definition:
 *     y[o][v][u] = b[o] + sum over i, h, w of x[i][v * stride + h - top][u * stride + w - left]
 *                                             * w[o][i][h][w]
 * where x is zero outside of the image. */
#include "learn/engines/conv_kernels.h"

#include <assert.h>
#include <stdlib.h>

struct at_conv {
    at_conv_spec spec;
    uint32_t     rows;
};

static uint32_t block(void)
{
    return 1;
}

static at_err choose(const at_conv_spec *spec, uint32_t rows, at_weight_layout *layout,
                     at_fail *fail)
{
    assert(rows > 0);
    (void)fail;
    *layout = at_weight_layout_plain(spec);
    return AT_OK;
}

static at_err open(const at_conv_spec *spec, const at_weight_layout *layout, uint32_t rows,
                   at_conv **conv, at_fail *fail)
{
    assert(rows > 0);
    assert(spec->in.block == 1);
    assert(spec->out.block == 1);
    assert(layout->inner_count == 0);
    *conv = malloc(sizeof **conv);
    if (!*conv) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for a convolution");
    **conv = (at_conv){*spec, rows};
    return AT_OK;
}

static void close(at_conv *conv)
{
    free(conv);
}

static size_t none(const at_conv *conv)
{
    assert(conv);
    return 0;
}

static void reorder(at_conv *conv, float *reordered, const float *w)
{
    (void)conv, (void)reordered, (void)w;
    assert(!"the reference needs no reordered weights");
}

/* The output positions 0 .. count-1 along one axis whose window has its element `offset` inside the
 * image: position * stride + offset - before is in 0 .. size-1. */
typedef struct reach {
    size_t begin, end;
} reach;

static reach reach_of(size_t offset, size_t stride, size_t before, size_t size, size_t count)
{
    reach r = {offset < before ? (before - offset + stride - 1) / stride : 0, 0};
    if (size + before > offset) r.end = (size + before - offset - 1) / stride + 1;
    if (r.end > count) r.end = count;
    return r;
}

/* Which positions of an input and an output plane meet in one element of the window. */
typedef struct overlap {
    reach  v, u;
    size_t in_width, out_width, stride, x_at; /* x_at + v * stride * in_width + u * stride */
} overlap;

static overlap overlap_of(const at_conv_spec *spec, uint32_t h, uint32_t w)
{
    const at_window *k = &spec->window;
    return (overlap){
        .v = reach_of(h, k->stride, k->top, spec->in.height, spec->out.height),
        .u = reach_of(w, k->stride, k->left, spec->in.width, spec->out.width),
        .in_width = spec->in.width,
        .out_width = spec->out.width,
        .stride = k->stride,
        /* May wrap below zero; every position in reach wraps back. */
        .x_at = ((size_t)h - k->top) * spec->in.width + ((size_t)w - k->left),
    };
}

static size_t x_index(const overlap *m, size_t v, size_t u)
{
    return m->x_at + v * m->stride * m->in_width + u * m->stride;
}

/* sum of x * y over all positions. */
static double dot(const overlap *m, const float *x, const float *y)
{
    double sum = 0;
    for (size_t v = m->v.begin; v < m->v.end; v++)
        for (size_t u = m->u.begin; u < m->u.end; u++)
            sum += (double)x[x_index(m, v, u)] * y[v * m->out_width + u];
    return sum;
}

/* y += x * weight at all positions. */
static void gather(const overlap *m, double *y, const float *x, double weight)
{
    for (size_t v = m->v.begin; v < m->v.end; v++)
        for (size_t u = m->u.begin; u < m->u.end; u++)
            y[v * m->out_width + u] += x[x_index(m, v, u)] * weight;
}

/* x += y * weight at all positions. */
static void scatter(const overlap *m, double *x, const float *y, double weight)
{
    for (size_t v = m->v.begin; v < m->v.end; v++)
        for (size_t u = m->u.begin; u < m->u.end; u++)
            x[x_index(m, v, u)] += y[v * m->out_width + u] * weight;
}

/* Doubles of the plane that is summed. */
static size_t scratch(const at_conv *conv)
{
    size_t in = at_activation_area(&conv->spec.in), out = at_activation_area(&conv->spec.out);
    return (in > out ? in : out) * sizeof(double);
}

/* One plane of y, in double. */
static void forward_plane(const at_conv_spec *spec, double *sum, const float *x, const float *w)
{
    size_t area = at_activation_area(&spec->in);
    for (uint32_t i = 0; i < spec->in.channels; i++)
        for (uint32_t h = 0; h < spec->window.height; h++)
            for (uint32_t v = 0; v < spec->window.width; v++, w++) {
                overlap m = overlap_of(spec, h, v);
                gather(&m, sum, x + i * area, *w);
            }
}

static void forward(at_conv *conv, float *y, const float *x, const float *w, const float *b,
                    void *scratch_bytes)
{
    const at_conv_spec *spec = &conv->spec;
    assert(spec->bias == (b != NULL));
    double *sum = scratch_bytes;
    size_t  area = at_activation_area(&spec->out), in = at_activation_size(&spec->in);
    size_t  filter = (size_t)spec->in.channels * spec->window.height * spec->window.width;
    for (uint32_t n = 0; n < conv->rows; n++)
        for (uint32_t o = 0; o < spec->out.channels; o++, y += area) {
            for (size_t i = 0; i < area; i++) sum[i] = b ? b[o] : 0.0;
            forward_plane(spec, sum, x + n * in, w + o * filter);
            /* A NaN stays, so that a diverged run is noticed. */
            for (size_t i = 0; i < area; i++) y[i] = (float)(spec->relu && sum[i] < 0 ? 0 : sum[i]);
        }
}

/* The gradient of one weight. */
static double weight_sum(const at_conv *conv, const float *dy, const float *x, uint32_t h,
                         uint32_t w)
{
    const at_conv_spec *spec = &conv->spec;
    size_t              in = at_activation_size(&spec->in), out = at_activation_size(&spec->out);
    overlap             m = overlap_of(spec, h, w);
    double              sum = 0;
    for (uint32_t n = 0; n < conv->rows; n++) sum += dot(&m, x + n * in, dy + n * out);
    return sum;
}

static double bias_sum(const at_conv *conv, const float *dy)
{
    const at_activation *out = &conv->spec.out;
    double               sum = 0;
    for (uint32_t n = 0; n < conv->rows; n++)
        for (size_t i = 0; i < at_activation_area(out); i++)
            sum += dy[n * at_activation_size(out) + i];
    return sum;
}

static void weight(at_conv *conv, float *dw, float *db, const float *dy, const float *x,
                   void *scratch_bytes)
{
    const at_conv_spec *spec = &conv->spec;
    size_t              in = at_activation_area(&spec->in), out = at_activation_area(&spec->out);
    assert(spec->bias == (db != NULL));
    (void)scratch_bytes;
    for (uint32_t o = 0; o < spec->out.channels; o++) {
        if (db) db[o] = (float)bias_sum(conv, dy + o * out);
        for (uint32_t i = 0; i < spec->in.channels; i++)
            for (uint32_t h = 0; h < spec->window.height; h++)
                for (uint32_t w = 0; w < spec->window.width; w++)
                    *dw++ = (float)weight_sum(conv, dy + o * out, x + i * in, h, w);
    }
}

/* One plane of dx, in double; dy and w of its sample and channel. */
static void input_plane(const at_conv_spec *spec, double *sum, const float *dy, const float *w)
{
    size_t area = at_activation_area(&spec->out);
    size_t elements = (size_t)spec->window.height * spec->window.width;
    for (uint32_t o = 0; o < spec->out.channels; o++, w += spec->in.channels * elements)
        for (uint32_t t = 0; t < elements; t++) {
            overlap m = overlap_of(spec, t / spec->window.width, t % spec->window.width);
            scatter(&m, sum, dy + o * area, w[t]);
        }
}

static void input(at_conv *conv, float *dx, const float *dy, const float *reordered,
                  void *scratch_bytes)
{
    const at_conv_spec *spec = &conv->spec;
    assert(spec->wants_dx);
    double *sum = scratch_bytes;
    size_t  area = at_activation_area(&spec->in), out = at_activation_size(&spec->out);
    size_t  elements = (size_t)spec->window.height * spec->window.width;
    for (uint32_t n = 0; n < conv->rows; n++)
        for (uint32_t i = 0; i < spec->in.channels; i++, dx += area) {
            for (size_t j = 0; j < area; j++) sum[j] = 0;
            input_plane(spec, sum, dy + n * out, reordered + i * elements);
            for (size_t j = 0; j < area; j++) dx[j] = (float)sum[j];
        }
}

const at_conv_kernels at_conv_ref = {
    .name = "ref",
    .block = block,
    .choose = choose,
    .open = open,
    .close = close,
    .scratch = scratch,
    .reordered_size = none,
    .reorder = reorder,
    .forward = forward,
    .weight = weight,
    .input = input,
};

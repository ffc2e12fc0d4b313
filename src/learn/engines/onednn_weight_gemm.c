/* For each element (h, w) of the window the weight gradient is a matrix product,
 *     dw[h][w] (in, out) = transpose(x (positions, in)) * dy (positions, out)
 * over the positions where the element is inside the image. With activations transposed to (height,
 * width, sample, channel), a row of such positions of all samples is contiguous. */
#include "learn/engines/onednn_weight_gemm.h"

#include "learn/engines/activation_kernels.h"

#include <assert.h>
#include <dnnl.h>
#include <string.h>

static size_t whole(const at_activation *shape)
{
    return at_activation_blocks(shape) * shape->block;
}

bool at_weight_gemm_is_faster(const at_weight_gemm *gemm)
{
    enum { CHANNELS_MIN = 64, ROW_MIN = 32 }; /* smaller products are slow */
    const at_conv_spec *spec = gemm->spec;
    const at_window    *k = &spec->window;
    if (k->stride != 1 || !at_weight_layout_is_blocked(gemm->layout, spec)) return false;
    if (whole(&spec->in) < CHANNELS_MIN || whole(&spec->out) < CHANNELS_MIN) return false;
    if ((size_t)gemm->rows * spec->out.width < ROW_MIN) return false;
    uint64_t inside = at_window_products(k, &spec->in, &spec->out);
    uint64_t all = at_activation_area(&spec->out) * k->height * k->width;
    return inside * 5 < all * 3; /* oneDNN does all products, each a little faster */
}

static size_t rounded(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

size_t at_weight_gemm_scratch(const at_weight_gemm *gemm)
{
    const at_conv_spec *spec = gemm->spec;
    return rounded(gemm->rows * at_activation_size(&spec->in)) +
           rounded(gemm->rows * at_activation_size(&spec->out)) +
           rounded(whole(&spec->in) * whole(&spec->out));
}

/* From (sample, block, position, in block) to (position, sample, channel). */
static void transpose(float *to, const float *from, const at_activation *shape, size_t rows)
{
    size_t area = at_activation_area(shape), block = shape->block;
    for (size_t n = 0; n < rows; n++)
        for (size_t b = 0; b < at_activation_blocks(shape); b++)
            for (size_t p = 0; p < area; p++, from += block)
                memcpy(to + (p * rows + n) * whole(shape) + b * block, from, block * sizeof *to);
}

/* sum (in, out) <- the gradient of one element of the window, from transposed dy and x. */
static void multiply(const at_weight_gemm *gemm, float *sum, const float *dy, const float *x,
                     uint32_t h, uint32_t w)
{
    const at_conv_spec *spec = gemm->spec;
    const at_window    *k = &spec->window;
    size_t              in = whole(&spec->in), out = whole(&spec->out), rows = gemm->rows;
    at_window_reach     v = at_window_reach_of(h, k->top, spec->in.height, spec->out.height);
    at_window_reach     u = at_window_reach_of(w, k->left, spec->in.width, spec->out.width);
    size_t              range = (u.end - u.begin) * rows;
    if (range == 0 || v.begin == v.end) memset(sum, 0, in * out * sizeof *sum);
    for (size_t i = v.begin; i < v.end && range; i++) {
        const float *at_x =
            x + ((i + h - k->top) * spec->in.width + u.begin + w - k->left) * rows * in;
        const float  *at_dy = dy + (i * spec->out.width + u.begin) * rows * out;
        dnnl_status_t status =
            dnnl_sgemm('T', 'N', (dnnl_dim_t)in, (dnnl_dim_t)out, (dnnl_dim_t)range, 1.0f, at_x,
                       (dnnl_dim_t)in, at_dy, (dnnl_dim_t)out, i > v.begin, sum, (dnnl_dim_t)out);
        assert(status == dnnl_success);
    }
}

/* Copies the gradient of one element into the layout of the weights. */
static void put(const at_weight_gemm *gemm, float *dw, const float *sum, uint32_t h, uint32_t w)
{
    const at_weight_layout *layout = gemm->layout;
    size_t                  block = gemm->spec->in.block, out = whole(&gemm->spec->out);
    dw += h * layout->stride[2] + w * layout->stride[3];
    for (size_t o = 0; o < at_activation_blocks(&gemm->spec->out); o++)
        for (size_t i = 0; i < whole(&gemm->spec->in); i++)
            memcpy(dw + o * layout->stride[0] + i / block * layout->stride[1] + i % block * block,
                   sum + i * out + o * block, block * sizeof *dw);
}

/* db <- sums of transposed dy: over the samples of a position in `sum`, then over positions. */
static void sum_bias(const at_weight_gemm *gemm, float *db, const float *dy, float *sum)
{
    size_t out = whole(&gemm->spec->out);
    memset(db, 0, out * sizeof *db);
    for (size_t p = 0; p < at_activation_area(&gemm->spec->out); p++) {
        memset(sum, 0, out * sizeof *sum);
        for (size_t n = 0; n < gemm->rows; n++, dy += out) at_vector_add(sum, dy, out);
        at_vector_add(db, sum, out);
    }
}

void at_weight_gemm_run(const at_weight_gemm *gemm, float *dw, float *db, const float *dy,
                        const float *x, float *scratch)
{
    const at_conv_spec *spec = gemm->spec;
    assert(at_weight_gemm_is_faster(gemm));
    float *at_dy = scratch + rounded(gemm->rows * at_activation_size(&spec->in));
    float *sum = at_dy + rounded(gemm->rows * at_activation_size(&spec->out));
    transpose(scratch, x, &spec->in, gemm->rows);
    transpose(at_dy, dy, &spec->out, gemm->rows);
    for (uint32_t h = 0; h < spec->window.height; h++)
        for (uint32_t w = 0; w < spec->window.width; w++) {
            multiply(gemm, sum, at_dy, scratch, h, w);
            put(gemm, dw, sum, h, w);
        }
    if (db) sum_bias(gemm, db, at_dy, sum);
}

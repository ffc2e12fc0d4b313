/* Plain C for processors without AVX2. Sums use LANES independent lanes, so that a compiler can use
 * vectors without reordering additions. */
#include "learn/engines/kernels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "learn/engines/vectorize.h"

enum { LANES = 16 };

/* Products of sums are kept below this before their logarithm is taken: the next factor is at most
 * the number of classes, far from overflow. */
static const double PRODUCT_MAX = 1e200;

static float sum_lanes(const float *lane)
{
    float sum = 0;
    for (size_t j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

AT_VECTORIZED static float dot(const float *restrict a, const float *restrict b, size_t n)
{
    float  lane[LANES] = {0};
    size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j] += a[i + j] * b[i + j];
    for (size_t i = whole; i < n; i++) lane[i - whole] += a[i] * b[i];
    return sum_lanes(lane);
}

static void dense_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                          size_t I, size_t O)
{
    assert(B > 0);
    for (size_t n = 0; n < B; n++)
        for (size_t o = 0; o < O; o++) y[n * O + o] = b[o] + dot(x + n * I, w + o * I, I);
}

/* sum (n) = the rows of x, `stride` apart, weighted by d, one weight every d_stride floats. */
AT_VECTORIZED static void weighted_rows(float *restrict sum, const float *restrict d,
                                        size_t d_stride, const float *restrict x, size_t stride,
                                        size_t rows, size_t n)
{
    for (size_t j = 0; j < n; j++) sum[j] = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < n; j++) sum[j] += d[r * d_stride] * x[r * stride + j];
}

AT_VECTORIZED static void put(float *restrict to, const float *restrict sum, size_t n,
                              at_write write)
{
    if (write == AT_WRITE_ADD)
        for (size_t j = 0; j < n; j++) to[j] += sum[j];
    else
        for (size_t j = 0; j < n; j++) to[j] = 0.0f + sum[j];
}

static void dense_weight(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                         at_write write, float *scratch)
{
    enum { BLOCK = 256 }; /* floats that stay in the L1 cache over all rows */
    assert(B > 0);
    (void)scratch;
    for (size_t i = 0; i < I; i += BLOCK) {
        size_t n = I - i < BLOCK ? I - i : BLOCK;
        for (size_t o = 0; o < O; o++) {
            float sum[BLOCK];
            weighted_rows(sum, dy + o, O, x + i, I, B, n);
            put(dw + o * I + i, sum, n, write);
        }
    }
}

static void dense_bias(float *db, const float *dy, size_t B, size_t O, at_write write)
{
    assert(B > 0);
    for (size_t o = 0; o < O; o++) {
        float sum = 0;
        for (size_t n = 0; n < B; n++) sum += dy[n * O + o];
        put(db + o, &sum, 1, write);
    }
}

static void dense_input(float *dx, const float *dy, const float *w, size_t B, size_t I, size_t O)
{
    assert(B > 0);
    for (size_t n = 0; n < B; n++) weighted_rows(dx + n * I, dy + n * O, 1, w, I, O, I);
}

AT_VECTORIZED static void relu_forward(float *z, size_t n)
{
    for (size_t i = 0; i < n; i++) z[i] = z[i] < 0 ? 0.0f : z[i];
}

AT_VECTORIZED static void relu_backward(float *restrict dy, const float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) dy[i] = y[i] > 0 ? dy[i] : 0.0f;
}

/* z <- softmax - one at the label; returns the sum of exponentials, *margin += z[label] - max. */
static float softmax_row(float *z, uint32_t label, size_t C, double *margin)
{
    assert(label < C);
    float largest = z[0], sum = 0;
    for (size_t c = 1; c < C; c++) largest = fmaxf(largest, z[c]);
    *margin += z[label] - largest;
    for (size_t c = 0; c < C; c++) sum += z[c] = expf(z[c] - largest);
    for (size_t c = 0; c < C; c++) z[c] *= 1.0f / sum;
    z[label] -= 1.0f;
    return sum;
}

/* log(a) + log(b) = log(a b): the sums of many rows share one logarithm. */
static double softmax_loss(float *z, const uint32_t *labels, size_t B, size_t C)
{
    double loss = 0, margin = 0, product = 1;
    for (size_t n = 0; n < B; n++) {
        product *= softmax_row(z + n * C, labels[n], C, &margin);
        if (!(product < PRODUCT_MAX)) {
            loss += log(product);
            product = 1;
        }
    }
    return loss + log(product) - margin;
}

const at_kernels at_kernels_portable = {
    .name = "portable",
    .dense_forward = dense_forward,
    .dense_weight = dense_weight,
    .dense_bias = dense_bias,
    .dense_input = dense_input,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .softmax_loss = softmax_loss,
};

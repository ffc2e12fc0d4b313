/* The reference that the fast engines are tested against: one loop per index, sums in double, no
 * optimization. */
#include "learn/engines/kernels.h"

#include <assert.h>
#include <math.h>

static void put(float *to, double sum, at_write write)
{
    *to = (write == AT_WRITE_ADD ? *to : 0.0f) + (float)sum;
}

static void dense_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                          size_t I, size_t O)
{
    assert(B > 0);
    for (size_t n = 0; n < B; n++)
        for (size_t o = 0; o < O; o++) {
            double sum = b[o];
            for (size_t i = 0; i < I; i++) sum += (double)x[n * I + i] * w[o * I + i];
            y[n * O + o] = (float)sum;
        }
}

static void dense_weight(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                         at_write write, float *scratch)
{
    assert(B > 0);
    (void)scratch;
    for (size_t o = 0; o < O; o++)
        for (size_t i = 0; i < I; i++) {
            double sum = 0;
            for (size_t n = 0; n < B; n++) sum += (double)dy[n * O + o] * x[n * I + i];
            put(&dw[o * I + i], sum, write);
        }
}

static void dense_bias(float *db, const float *dy, size_t B, size_t O, at_write write)
{
    assert(B > 0);
    for (size_t o = 0; o < O; o++) {
        double sum = 0;
        for (size_t n = 0; n < B; n++) sum += dy[n * O + o];
        put(&db[o], sum, write);
    }
}

static void dense_input(float *dx, const float *dy, const float *w, size_t B, size_t I, size_t O)
{
    assert(B > 0);
    for (size_t n = 0; n < B; n++)
        for (size_t i = 0; i < I; i++) {
            double sum = 0;
            for (size_t o = 0; o < O; o++) sum += (double)dy[n * O + o] * w[o * I + i];
            dx[n * I + i] = (float)sum;
        }
}

static void relu_forward(float *z, size_t n)
{
    assert(z);
    for (size_t i = 0; i < n; i++)
        if (z[i] < 0) z[i] = 0; /* a NaN stays, so that a diverged run is noticed */
}

static void relu_backward(float *dy, const float *y, size_t n)
{
    assert(dy != y);
    for (size_t i = 0; i < n; i++)
        if (!(y[i] > 0)) dy[i] = 0;
}

static double softmax_loss_row(float *z, uint32_t label, size_t C)
{
    assert(label < C);
    double largest = z[0], sum = 0;
    for (size_t c = 1; c < C; c++) largest = fmax(largest, z[c]);
    for (size_t c = 0; c < C; c++) sum += exp(z[c] - largest);
    double loss = log(sum) - (z[label] - largest);
    for (size_t c = 0; c < C; c++)
        z[c] = (float)(exp(z[c] - largest) / sum - (c == label ? 1.0 : 0.0));
    return loss;
}

static double softmax_loss(float *z, const uint32_t *labels, size_t B, size_t C)
{
    double sum = 0;
    for (size_t n = 0; n < B; n++) sum += softmax_loss_row(z + n * C, labels[n], C);
    return sum;
}

const at_kernels at_kernels_ref = {
    .name = "ref",
    .dense_forward = dense_forward,
    .dense_weight = dense_weight,
    .dense_bias = dense_bias,
    .dense_input = dense_input,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .softmax_loss = softmax_loss,
};

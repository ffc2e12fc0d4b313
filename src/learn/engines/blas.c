/* Dense layers wide enough for a general matrix product, by OpenBLAS (its serial variant). The
 * rest of the table is that of the plain kernels.
 *
 * A product that accumulates (beta = 1) forms the sum over the samples in registers and adds it
 * once, as the contract of at_model_gradient asks, but only while OpenBLAS does not cut the sum
 * into panels. Beyond that many samples the product goes to scratch and is added from there. */
#include "learn/engines/kernels.h"

#include <assert.h>
#include <cblas.h>
#include <string.h>

#include "learn/engines/vectorize.h"

#undef I /* cblas.h brings the imaginary unit of complex.h; here I is a size again */

/* Samples up to which we rely on OpenBLAS to keep the sum in one panel. It promises nothing of the
 * kind; learn_contract.c checks it, and held for each OPENBLAS_CORETYPE that could run on Zen 4. */
enum { PANEL_MAX = 128 };

static void dense_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                          size_t I, size_t O)
{
    assert(B > 0);
    for (size_t n = 0; n < B; n++) memcpy(y + n * O, b, O * sizeof *b);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)B, (blasint)O, (blasint)I, 1.0f,
                x, (blasint)I, w, (blasint)I, 1.0f, y, (blasint)O);
}

static void product_weight(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                           float beta)
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)O, (blasint)I, (blasint)B, 1.0f,
                dy, (blasint)O, x, (blasint)I, beta, dw, (blasint)I);
}

static size_t dense_scratch(size_t B, size_t I, size_t O)
{
    assert(B > 0);
    return B > PANEL_MAX ? I * O : 0;
}

static void dense_weight(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                         at_write write, float *scratch)
{
    assert(B > 0);
    if (write == AT_WRITE_SET) {
        product_weight(dw, dy, x, B, I, O, 0.0f);
    } else if (B <= PANEL_MAX) {
        product_weight(dw, dy, x, B, I, O, 1.0f);
    } else {
        assert(scratch);
        product_weight(scratch, dy, x, B, I, O, 0.0f);
        at_vector_add(dw, scratch, I * O);
    }
}

static void dense_input(float *dx, const float *dy, const float *w, size_t B, size_t I, size_t O)
{
    assert(B > 0);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)B, (blasint)I, (blasint)O, 1.0f,
                dy, (blasint)O, w, (blasint)I, 0.0f, dx, (blasint)I);
}

static void dense_bias(float *db, const float *dy, size_t B, size_t O, at_write write)
{
    at_kernels_plain(AT_ENGINE_FAST)->dense_bias(db, dy, B, O, write);
}

const at_kernels at_kernels_blas = {
    .name = "openblas",
    .dense_forward = dense_forward,
    .dense_weight = dense_weight,
    .dense_bias = dense_bias,
    .dense_input = dense_input,
    .dense_scratch = dense_scratch,
};

/* Wide dense layers on processors with AVX2: the AVX2 kernels for few samples, OpenBLAS for many
 * samples and for dx, whichever is faster. Measured on Zen 4 with 32 samples, 784 inputs and 300
 * outputs: forward 103 against 79 GF/s, weight 109 against 101; dx of 300 inputs and 100 outputs 79
 * against 113. */
#include "learn/engines/avx2.h"

#if defined(__x86_64__)

#include <assert.h>

/* Samples up to which the AVX2 kernels are used; at 128 both are about equally fast. */
enum { SAMPLES_FEW_MAX = 128 };

/* Weights up to which the AVX2 gradient is used: it goes over dw in stripes, which is fast while dw
 * fits the caches. With 3136 inputs and 1024 outputs (13 MB) and 64 samples it reaches 70 against
 * OpenBLAS's 92 GF/s, with 4096 and 384 (6 MB) and 16 samples 107 against 66. */
enum { WEIGHTS_FEW_MAX = 1 << 21 };

static void dense_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                          size_t I, size_t O)
{
    assert(B > 0);
    const at_kernels *k = B <= SAMPLES_FEW_MAX ? &at_kernels_avx2 : &at_kernels_blas;
    k->dense_forward(y, x, w, b, B, I, O);
}

static size_t dense_scratch(size_t B, size_t I, size_t O)
{
    size_t few = at_avx2_packed(B < SAMPLES_FEW_MAX ? B : SAMPLES_FEW_MAX, I);
    size_t many = at_kernels_blas.dense_scratch(B, I, O);
    return few > many ? few : many;
}

static void dense_weight(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                         at_write write, float *scratch)
{
    assert(scratch);
    if (B <= SAMPLES_FEW_MAX && I * O <= WEIGHTS_FEW_MAX)
        at_avx2_weight_wide(dw, dy, x, B, I, O, write, scratch);
    else
        at_kernels_blas.dense_weight(dw, dy, x, B, I, O, write, scratch);
}

static void dense_bias(float *db, const float *dy, size_t B, size_t O, at_write write)
{
    at_kernels_avx2.dense_bias(db, dy, B, O, write);
}

static void dense_input(float *dx, const float *dy, const float *w, size_t B, size_t I, size_t O)
{
    at_kernels_blas.dense_input(dx, dy, w, B, I, O);
}

const at_kernels at_kernels_mixed = {
    .name = "avx2+openblas",
    .dense_forward = dense_forward,
    .dense_weight = dense_weight,
    .dense_bias = dense_bias,
    .dense_input = dense_input,
    .dense_scratch = dense_scratch,
};

#endif

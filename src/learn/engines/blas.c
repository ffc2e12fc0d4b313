/* Dense layers wide enough for a general matrix product, with OpenBLAS (its serial variant).
 *
 * A product that accumulates (beta = 1) computes the sum over the samples in registers and adds it
 * once, as at_model_gradient promises, but only while OpenBLAS does not split the sum into panels.
 * With more samples the product goes to scratch and is added from there. */
#include "learn/engines/blas.h"
#include "learn/engines/kernels.h" /* before cblas.h, which defines I */

#include <assert.h>
#include <cblas.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "learn/engines/activation_kernels.h"

#undef I /* of complex.h; here I is a size */

/* Samples up to which OpenBLAS keeps the sum in one panel. It does not promise that, but
 * tests/unit/learn/contract.c checks it, for every OPENBLAS_CORETYPE that runs on Zen 4. */
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
    at_kernels_elementwise(AT_ENGINE_FAST)->dense_bias(db, dy, B, O, write);
}

const at_kernels at_kernels_blas = {
    .name = "openblas",
    .dense_forward = dense_forward,
    .dense_weight = dense_weight,
    .dense_bias = dense_bias,
    .dense_input = dense_input,
    .dense_scratch = dense_scratch,
};

/* Bytes that OpenBLAS maps at its first product that is not small, and keeps. */
static const size_t BUFFER_SIZE = (size_t)128 << 20;

bool at_blas_reserve(void)
{
    enum { N = 128 }; /* OpenBLAS takes products of up to 100 * 100 * 100 for small */
    static bool done;
    if (done) return true;
    float *zeros = calloc((size_t)3 * N * N, sizeof *zeros);
    if (!zeros) return false;
    void *room =
        mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        free(zeros);
        return false;
    }
    munmap(room, BUFFER_SIZE);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1.0f, zeros, N,
                zeros + (size_t)N * N, N, 0.0f, zeros + (size_t)2 * N * N, N);
    free(zeros);
    done = true;
    return true;
}

at_engine_info at_engine_info_get(void)
{
    Dl_info        where;
    bool           found = dladdr((void *)(uintptr_t)openblas_get_config, &where) != 0;
    at_engine_info info = {.blas_config = openblas_get_config(),
                           .blas_core = openblas_get_corename(),
                           .blas_path = found ? where.dli_fname : NULL,
                           .blas_serial = openblas_get_parallel() == OPENBLAS_SEQUENTIAL};
    assert(info.blas_config && info.blas_core);
    return info;
}

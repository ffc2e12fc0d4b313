/* kernels.h - the numeric kernels of one engine, as a table.
 *
 * Kernels are independent of layers and nets: outputs first, then inputs, then sizes, shapes
 * written as (rows, columns), everything row-major and dense. B is the number of samples of this
 * call, I and O are the inputs and outputs of a dense layer, C is the number of classes. An engine
 * fills only the slots that the functions below select it for.
 */
#ifndef AT_LEARN_ENGINES_KERNELS_H
#define AT_LEARN_ENGINES_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "learn/net/model.h"

/* Whether a kernel writes a sum over samples or adds it, with one addition per element. SET gives
 * the bits that ADD gives in a zeroed vector (so never a negative zero). */
typedef enum at_write { AT_WRITE_SET, AT_WRITE_ADD } at_write;

typedef struct at_kernels {
    const char *name;

    /* y (B,O) = x (B,I) * transpose(w (O,I)) + b (O) */
    void (*dense_forward)(float *y, const float *x, const float *w, const float *b, size_t B,
                          size_t I, size_t O);

    /* dw (O,I) from transpose(dy (B,O)) * x (B,I). scratch has dense_scratch floats. */
    void (*dense_weight)(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                         at_write write, float *scratch);

    /* db (O) from the column sums of dy (B,O) */
    void (*dense_bias)(float *db, const float *dy, size_t B, size_t O, at_write write);

    /* dx (B,I) = dy (B,O) * w (O,I) */
    void (*dense_input)(float *dx, const float *dy, const float *w, size_t B, size_t I, size_t O);

    /* Floats of scratch (64-byte aligned) for dense_weight with up to B samples; NULL: none. */
    size_t (*dense_scratch)(size_t B, size_t I, size_t O);

    /* z (n) <- max(z, 0) */
    void (*relu_forward)(float *z, size_t n);

    /* dy (n) <- dy where y (n) is positive, 0 elsewhere */
    void (*relu_backward)(float *dy, const float *y, size_t n);

    /* z (B,C) logits <- gradient of the summed cross-entropy; returns the sum of the losses. */
    double (*softmax_loss)(float *z, const uint32_t *labels, size_t B, size_t C);
} at_kernels;

extern const at_kernels at_kernels_ref;      /* ref.c: plain loops in double precision */
extern const at_kernels at_kernels_portable; /* portable.c: C that compilers vectorize */
extern const at_kernels at_kernels_avx2;     /* avx2.c: intrinsics, for few outputs */
extern const at_kernels at_kernels_blas;     /* blas.c: products by OpenBLAS */
extern const at_kernels at_kernels_mixed;    /* mixed.c: AVX2 for few samples, else OpenBLAS */

/* The kernels for a dense layer of this shape on this processor. */
const at_kernels *at_kernels_dense(at_engine engine, size_t I, size_t O);

/* The kernels for everything that works elementwise or row by row. */
const at_kernels *at_kernels_elementwise(at_engine engine);

#endif

/* kernels.h - the numeric kernels of one engine, as a table.
 *
 * Kernels know nothing of layers or nets: outputs first, then inputs, then sizes, shapes written
 * as (rows, columns), everything row-major and dense. B is the number of samples of this call, I
 * and O the width of a dense layer on either side, C the number of classes. An engine fills
 * the slots it is picked for below, so layers never ask which engine they run on.
 */
#ifndef AT_LEARN_ENGINES_KERNELS_H
#define AT_LEARN_ENGINES_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "learn/net/model.h"

/* What a kernel does with a sum over samples once it has formed it: one addition per element, or
 * none. SET leaves the bits that ADD would leave in a zeroed vector (so never a negative zero). */
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

    /* Floats of scratch (64-byte aligned) that dense_weight needs for up to B samples; NULL for
     * none. */
    size_t (*dense_scratch)(size_t B, size_t I, size_t O);

    /* z (n) <- max(z, 0) */
    void (*relu_forward)(float *z, size_t n);

    /* dy (n) <- dy where y (n) is positive, 0 elsewhere */
    void (*relu_backward)(float *dy, const float *y, size_t n);

    /* z (B,C) logits <- gradient of the summed cross-entropy; returns the sum of the losses. */
    double (*softmax_loss)(float *z, const uint32_t *labels, size_t B, size_t C);
} at_kernels;

extern const at_kernels at_kernels_ref;      /* engine_ref.c: plain loops in double precision */
extern const at_kernels at_kernels_portable; /* engine_portable.c: C that compilers vectorise */
extern const at_kernels at_kernels_avx2;     /* engine_avx2.c: by hand, for few outputs */
extern const at_kernels at_kernels_blas;     /* engine_blas.c: products by OpenBLAS */
extern const at_kernels at_kernels_mixed; /* engine_mixed.c: AVX2 for few samples, else OpenBLAS */

/* The kernels for a dense layer of this shape on this processor. */
const at_kernels *at_kernels_dense(at_engine engine, size_t I, size_t O);

/* The kernels for everything that works element by element or row by row. */
const at_kernels *at_kernels_plain(at_engine engine);

#endif

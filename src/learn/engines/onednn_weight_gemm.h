/* onednn_weight_gemm.h - the weight gradient by matrix products, for windows about as large as the
 * image. oneDNN's own primitive also multiplies with the padding, which is most of such windows. */
#ifndef AT_LEARN_ENGINES_ONEDNN_WEIGHT_GEMM_H
#define AT_LEARN_ENGINES_ONEDNN_WEIGHT_GEMM_H

#include "learn/engines/conv_kernels.h"

typedef struct at_weight_gemm {
    const at_conv_spec     *spec;
    const at_weight_layout *layout;
    uint32_t                rows;
} at_weight_gemm;

/* Whether it supports this convolution and is faster; depends on sizes only. */
bool at_weight_gemm_is_faster(const at_weight_gemm *gemm);

/* Floats of scratch, 64-byte aligned. */
size_t at_weight_gemm_scratch(const at_weight_gemm *gemm);

/* dw, db (NULL: none) <- sums over the samples; both include the padding of the last block. */
void at_weight_gemm_run(const at_weight_gemm *gemm, float *dw, float *db, const float *dy,
                        const float *x, float *scratch);

#endif

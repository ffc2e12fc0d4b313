/* avx2_conv.h - the weight gradient that oneDNN lacks on AVX2: of plain images with one or two
 * channels. */
#ifndef AT_LEARN_ENGINES_AVX2_CONV_H
#define AT_LEARN_ENGINES_AVX2_CONV_H

#include "learn/engines/conv_kernels.h"

typedef struct at_avx2_conv {
    const at_conv_spec     *spec;
    const at_weight_layout *layout;
    at_activation           padded; /* x including its padding */
    uint32_t                rows;
} at_avx2_conv;

/* Whether this convolution is supported. */
bool at_avx2_conv_supports(const at_conv_spec *spec, const at_weight_layout *layout);

/* dw, db (NULL: none) <- sums over the samples. */
void at_avx2_conv_weight(const at_avx2_conv *conv, float *dw, float *db, const float *dy,
                         const float *x);

#endif

/* avx2_conv.h - the weight gradient that oneDNN lacks on AVX2: of plain pictures with one
 * or two channels. */
#ifndef AT_LEARN_ENGINES_AVX2_CONV_H
#define AT_LEARN_ENGINES_AVX2_CONV_H

#include "learn/engines/conv_kernels.h"

typedef struct at_avx2_conv {
    const at_conv_spec *spec;
    const at_conv_form *form;
    at_activation       wide; /* x with its border of zeros, as it is given */
    uint32_t            rows;
} at_avx2_conv;

/* Whether it can do this one. */
bool at_avx2_conv_can(const at_conv_spec *spec, const at_conv_form *form);

/* dw, db (NULL: none) <- sums over the samples. */
void at_avx2_conv_weight(const at_avx2_conv *conv, float *dw, float *db, const float *dy,
                         const float *x);

#endif

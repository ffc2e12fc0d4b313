/* onednn_taps.h - the weight gradient where windows are about as large as pictures. oneDNN's
 * own also multiplies with the zeros around a picture, which are most of what such windows see. */
#ifndef AT_LEARN_ENGINES_ONEDNN_TAPS_H
#define AT_LEARN_ENGINES_ONEDNN_TAPS_H

#include "learn/engines/conv_kernels.h"

typedef struct at_onednn_taps {
    const at_conv_spec *spec;
    const at_conv_form *form;
    uint32_t            rows;
} at_onednn_taps;

/* Whether it can do this one, and faster; a rule by sizes. */
bool at_onednn_taps_pay(const at_onednn_taps *taps);

/* Floats of scratch that it needs, 64-byte aligned. */
size_t at_onednn_taps_scratch(const at_onednn_taps *taps);

/* dw, db (NULL: none) <- sums over the samples; both as long as whole blocks are. */
void at_onednn_taps_weight(const at_onednn_taps *taps, float *dw, float *db, const float *dy,
                           const float *x, float *scratch);

#endif

/* winograd.h - convolutions with fewer multiplications, after Winograd: F(4x4, 3x3) and F(4x4, 5x5)
 * for stride 1 on blocked images, with AVX2 or AVX-512.
 *
 * A tile of 4x4 outputs takes 36 products per pair of channels instead of 144 with 3x3 windows, and
 * 64 instead of 400 with 5x5 windows, but its inputs and outputs have to be transformed, and
 * rounding errors are larger: see winograd.c.
 */
#ifndef AT_LEARN_ENGINES_WINOGRAD_H
#define AT_LEARN_ENGINES_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>

#include "learn/engines/conv_kernels.h"

typedef struct at_winograd {
    const at_conv_spec     *spec;
    const at_weight_layout *layout;
    uint32_t                rows;
    int                     threads; /* bits do not depend on their number */
} at_winograd;

/* The three passes of a convolution. */
typedef enum at_conv_pass {
    AT_CONV_FORWARD,
    AT_CONV_INPUT,
    AT_CONV_WEIGHT,
    AT_CONV_PASSES
} at_conv_pass;

/* Whether this convolution can be computed here. */
bool at_winograd_supports(const at_winograd *w);

/* Whether a pass is faster than with direct sums on one thread. This is estimated from sizes alone,
 * never measured, so that runs repeat bit for bit. */
bool at_winograd_is_faster(const at_winograd *w, at_conv_pass pass);

/* Bytes of scratch of a pass, 64-byte aligned. */
size_t at_winograd_scratch(const at_winograd *w, at_conv_pass pass);

/* y <- x * weights + b (NULL: none; with the padding of the last block), then ReLU if the spec has
 * it. */
void at_winograd_forward(const at_winograd *w, float *y, const float *x, const float *weights,
                         const float *b, float *scratch);
/* dx <- the gradient of x, from the weights in their own layout. */
void at_winograd_input(const at_winograd *w, float *dx, const float *dy, const float *weights,
                       float *scratch);
/* dw, db (NULL: none) <- sums over the samples; both include the padding of the last block. */
void at_winograd_weight(const at_winograd *w, float *dw, float *db, const float *dy, const float *x,
                        float *scratch);

#endif

/* conv_kernels.h - convolutions of one engine, as a table, and the memory layout of their weights.
 *
 *     at_weight_layout layout;
 *     kernels->choose(&spec, rows, &layout, fail);        once per job: the layout of the weights
 *     kernels->open(&spec, &layout, rows, &conv, fail);   once per process and micro-batch size
 *     kernels->reorder(conv, reordered, w);               once per version of the parameters
 *     kernels->forward(conv, y, x, w, b, scratch);        per micro-batch, and so on
 *
 * Weights and their gradients have the same layout, so that sums, updates and messages are
 * independent of it. One process chooses it at the start of a job, and all others (and all
 * micro-batch sizes) use it.
 */
#ifndef AT_LEARN_ENGINES_CONV_KERNELS_H
#define AT_LEARN_ENGINES_CONV_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "learn/engines/activation.h"

/* A window of a convolution or pool. */
typedef struct at_window {
    uint32_t height, width, stride;
    uint32_t top, left, bottom, right; /* padding, with zeros for convolutions */
} at_window;

/* Completes a window: the whole image if its height is 0; the padding if `same` (so that out =
 * ceil(in / stride), with an odd row at the end as in TensorFlow). Sets the size of `out`, whose
 * channels are those of `in`. AT_ERR_USAGE when the window does not fit, or could cover only
 * padding. */
at_err at_window_fit(at_window *window, bool same, const at_activation *in, at_activation *out,
                     at_fail *fail);

/* Output positions begin .. end-1 along one axis. */
typedef struct at_window_reach {
    size_t begin, end;
} at_window_reach;

/* The output positions for which element `offset` of the window is inside the image; `before` is
 * the padding. For stride 1. */
at_window_reach at_window_reach_of(size_t offset, size_t before, size_t in, size_t out);

/* How many pairs of an output position and an element of the window are inside the image, for
 * stride 1. */
uint64_t at_window_products(const at_window *window, const at_activation *in,
                            const at_activation *out);

typedef struct at_conv_spec {
    at_activation in, out; /* in.block may be 1 for samples */
    at_window     window;
    bool          bias;
    bool          relu;     /* y = max(y, 0) */
    bool          wants_dx; /* false: input() and reorder() are never called */
} at_conv_spec;

/* The memory layout of weights (out, in, h, w): dimension d has stride[d], after the inner blocks
 * (innermost last) were split off. Plain: no inner blocks. */
typedef struct at_weight_layout {
    size_t   floats;   /* with padding */
    uint32_t shape[4]; /* out, in, height, width */
    size_t   stride[4];
    uint32_t inner_count;
    uint32_t inner_size[4];
    uint32_t inner_dim[4]; /* the dimension it splits */
} at_weight_layout;

/* The plain layout (out, in, height, width), row-major. */
at_weight_layout at_weight_layout_plain(const at_conv_spec *spec);

/* Offset of one weight. */
size_t at_weight_layout_offset(const at_weight_layout *layout, uint32_t o, uint32_t i, uint32_t h,
                               uint32_t w);

/* Whether weights are in blocks of both channels as large as those of the images, outputs innermost
 * (oneDNN's OIhw8i8o and OIhw16i16o). */
bool at_weight_layout_is_blocked(const at_weight_layout *layout, const at_conv_spec *spec);

/* Between the plain layout and this one; from_plain zeroes the padding. */
void at_weight_layout_to_plain(const at_weight_layout *layout, float *plain, const float *weights);
void at_weight_layout_from_plain(const at_weight_layout *layout, float *weights,
                                 const float *plain);

typedef struct at_conv at_conv; /* of one engine, for one layer and micro-batch size */

typedef struct at_conv_kernels {
    const char *name;

    /* Channels per block on this processor; 0: the engine does not run here. */
    uint32_t (*block)(void);

    /* Chooses the layout of the weights. AT_ERR_FAILED when it has no fast implementation of this
     * convolution (an engine never silently falls back to a slow one). */
    at_err (*choose)(const at_conv_spec *spec, uint32_t rows, at_weight_layout *layout,
                     at_fail *fail);

    /* Prepares the convolution for exactly `rows` samples. */
    at_err (*open)(const at_conv_spec *spec, const at_weight_layout *layout, uint32_t rows,
                   at_conv **conv, at_fail *fail);
    void (*close)(at_conv *conv); /* accepts NULL */

    /* Bytes of scratch for forward, weight and input, 64-byte aligned. */
    size_t (*scratch)(const at_conv *conv);
    /* Floats of the reordered weights that input() reads; 0 when it reads w itself. */
    size_t (*reordered_size)(const at_conv *conv);
    /* reordered <- w, for input(). */
    void (*reorder)(at_conv *conv, float *reordered, const float *w);

    /* y <- x * w + b (b NULL without bias), then ReLU if the spec has it. */
    void (*forward)(at_conv *conv, float *y, const float *x, const float *w, const float *b,
                    void *scratch);
    /* dw, db <- sums over the samples (written, not added; db NULL without bias). */
    void (*weight)(at_conv *conv, float *dw, float *db, const float *dy, const float *x,
                   void *scratch);
    /* dx <- gradient of x. `reordered` comes from reorder(), or is w if reordered_size() is 0. */
    void (*input)(at_conv *conv, float *dx, const float *dy, const float *reordered, void *scratch);
} at_conv_kernels;

extern const at_conv_kernels at_conv_ref;    /* ref_conv.c: plain loops in double */
extern const at_conv_kernels at_conv_onednn; /* onednn.c */
extern const at_conv_kernels at_conv_exact;  /* the same with direct sums only */

/* Sets how many threads a convolution of at_conv_onednn or at_conv_exact may use; the default of 1
 * starts none. To
 * be called before the first open, by the same thread. The number changes how sums are grouped, so
 * the bits of a job depend on it. */
void at_onednn_threads(int threads);

#endif

/* conv_kernels.h - convolutions of one engine, as a table, and the form in which it keeps weights.
 *
 *     at_conv_form form;
 *     kernels->choose(&spec, rows, &form, fail);        once per job: where does which weight lie
 *     kernels->open(&spec, &form, rows, &conv, fail);   once per process and number of samples
 *     kernels->turn(conv, turned, w);                   once per version of the parameters
 *     kernels->forward(conv, y, x, w, b, scratch);      per micro-batch, and so on
 *
 * Weights and their gradients are element by element in the same form, so that sums, updates and
 * messages need not know it. It is chosen once, at the start of a job, by one process, and all
 * others (other numbers of samples, too) are made to use it.
 */
#ifndef AT_LEARN_ENGINES_CONV_KERNELS_H
#define AT_LEARN_ENGINES_CONV_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "learn/engines/activation.h"
#include "learn/engines/window.h"

typedef struct at_conv_spec {
    at_activation in, out; /* in.block may be 1 for the samples themselves */
    at_window     window;
    bool          bias;
    bool          relu;     /* y = max(y, 0) */
    bool          wants_dx; /* false: input() and turn() are never called */
} at_conv_spec;

/* Where the weight (out, in, h, w) lies: dimension d in steps of stride[d], after the inner blocks
 * (innermost last) were split off. Plain: no inner blocks. */
typedef struct at_conv_form {
    size_t   floats;   /* with padding */
    uint32_t shape[4]; /* out, in, height, width */
    size_t   stride[4];
    uint32_t inner_count;
    uint32_t inner_size[4];
    uint32_t inner_dim[4]; /* which of the four dimensions it splits */
} at_conv_form;

/* The plain form (out, in, height, width), row-major. */
at_conv_form at_conv_form_plain(const at_conv_spec *spec);

/* Offset of one weight. */
size_t at_conv_form_offset(const at_conv_form *form, uint32_t o, uint32_t i, uint32_t h,
                           uint32_t w);

/* Between the plain order and the form; from_plain zeroes the padding. */
void at_conv_form_to_plain(const at_conv_form *form, float *plain, const float *formed);
void at_conv_form_from_plain(const at_conv_form *form, float *formed, const float *plain);

typedef struct at_conv at_conv; /* what an engine keeps for one layer and number of samples */

typedef struct at_conv_kernels {
    const char *name;

    /* Channels a block that this engine wants on this processor; 0: it cannot work here. */
    uint32_t (*block)(void);

    /* The form it wants weights in. AT_ERR_FAILED when it has no fast way to do this convolution
     * (an engine never falls back to something slow in silence). */
    at_err (*choose)(const at_conv_spec *spec, uint32_t rows, at_conv_form *form, at_fail *fail);

    /* Everything that can be done before there are numbers, for exactly `rows` samples. */
    at_err (*open)(const at_conv_spec *spec, const at_conv_form *form, uint32_t rows,
                   at_conv **conv, at_fail *fail);
    void (*close)(at_conv *conv); /* accepts NULL */

    /* Bytes of scratch that forward, weight and input need, 64-byte aligned. */
    size_t (*scratch)(const at_conv *conv);
    /* Floats of the turned weights that input() reads; 0 when it reads w itself. */
    size_t (*turned)(const at_conv *conv);
    /* turned <- w, for input(). */
    void (*turn)(at_conv *conv, float *turned, const float *w);

    /* y <- x * w + b (b NULL without bias), then ReLU when the spec says so. */
    void (*forward)(at_conv *conv, float *y, const float *x, const float *w, const float *b,
                    void *scratch);
    /* dw, db <- sums over the samples (written, not added; db NULL without bias). */
    void (*weight)(at_conv *conv, float *dw, float *db, const float *dy, const float *x,
                   void *scratch);
    /* dx <- gradient by x. `turned` is what turn() made, or w when turned() is 0. */
    void (*input)(at_conv *conv, float *dx, const float *dy, const float *turned, void *scratch);
} at_conv_kernels;

extern const at_conv_kernels at_conv_ref;    /* engine_ref_conv.c: plain loops in double */
extern const at_conv_kernels at_conv_onednn; /* engine_onednn.c */

#endif

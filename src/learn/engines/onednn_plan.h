/* onednn_plan.h - what oneDNN would do for one convolution: the descriptors behind
 * engine_onednn.c. Nothing here computes, compiles or starts a thread. */
#ifndef AT_LEARN_ENGINES_ONEDNN_PLAN_H
#define AT_LEARN_ENGINES_ONEDNN_PLAN_H

#include "base/err.h"
#include "learn/engines/conv_kernels.h"

/* oneDNN's own, of which this header needs no more than the names. */
struct dnnl_engine;
struct dnnl_stream;
struct dnnl_primitive_desc;

typedef struct at_onednn_plan {
    struct dnnl_primitive_desc *forward;
    struct dnnl_primitive_desc *weight; /* NULL: engine_avx2_conv.c does it, or .. */
    struct dnnl_primitive_desc *input;  /* NULL when nobody wants dx */
    struct dnnl_primitive_desc *turn;   /* from the form to that of `input`; NULL: it is the same */
    bool                        taps;   /* .. engine_onednn_taps.c */
    at_activation               wide;   /* what `weight` reads instead of x; zeroed: x as it is */
} at_onednn_plan;

/* This process's engine, which all plans and memory belong to; NULL when oneDNN cannot make one.
 * Then the stream in which everything is executed. */
struct dnnl_engine *at_onednn_engine(void);
struct dnnl_stream *at_onednn_stream(void);

/* AT_ERR_USAGE when the environment variable ANYTIME_CONV is neither empty nor "direct", with which
 * the user forbids Winograd's way. */
at_err at_onednn_check(at_fail *fail);

/* Descriptors of fast implementations only, for weights in this form, or in the one that forward
 * likes best when form is NULL. AT_ERR_FAILED when there are none. */
at_err at_onednn_plan_make(const at_conv_spec *spec, const at_conv_form *form, uint32_t rows,
                           at_onednn_plan *plan, at_fail *fail);
void   at_onednn_plan_drop(at_onednn_plan *plan); /* accepts a zeroed plan */

/* The form of weights that the plan works with. */
at_err at_onednn_plan_form(const at_onednn_plan *plan, const at_conv_spec *spec, at_conv_form *form,
                           at_fail *fail);

#endif

/* engine_onednn_plan.h - what oneDNN would do for one convolution: the descriptors behind
 * engine_onednn.c. Nothing here computes, compiles or starts a thread. */
#ifndef AT_LEARN_ENGINE_ONEDNN_PLAN_H
#define AT_LEARN_ENGINE_ONEDNN_PLAN_H

#include "base/err.h"
#include "learn/conv.h"

#include <dnnl.h>

typedef struct at_onednn_plan {
    dnnl_primitive_desc_t forward, weight;
    dnnl_primitive_desc_t input; /* NULL when nobody wants dx */
    dnnl_primitive_desc_t turn;  /* from the form to what `input` reads; NULL: it reads the form */
} at_onednn_plan;

/* This process's engine, which all plans and memory belong to; NULL when oneDNN cannot make one.
 * Then the stream in which everything is executed. */
dnnl_engine_t at_onednn_engine(void);
dnnl_stream_t at_onednn_stream(void);

/* Descriptors of fast implementations only, for weights in this form, or in one that forward and
 * weight agree on when form is NULL. AT_ERR_FAILED when there are none. */
at_err at_onednn_plan_make(const at_conv_spec *spec, const at_conv_form *form, uint32_t rows,
                           at_onednn_plan *plan, at_fail *fail);
void   at_onednn_plan_drop(at_onednn_plan *plan); /* accepts a zeroed plan */

/* The form of weights that the plan works with. */
at_err at_onednn_plan_form(const at_onednn_plan *plan, at_conv_form *form, at_fail *fail);

#endif

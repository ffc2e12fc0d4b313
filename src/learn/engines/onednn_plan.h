/* onednn_plan.h - chooses the oneDNN implementations of one convolution, as descriptors for
 * onednn.c. Nothing here computes, compiles or starts a thread. */
#ifndef AT_LEARN_ENGINES_ONEDNN_PLAN_H
#define AT_LEARN_ENGINES_ONEDNN_PLAN_H

#include "base/err.h"
#include "base/isa.h"
#include "learn/engines/conv_kernels.h"
#include "learn/engines/winograd.h"

/* Types of oneDNN. */
struct dnnl_engine;
struct dnnl_stream;
struct dnnl_primitive_desc;

typedef struct at_onednn_plan {
    bool                        winograd[AT_CONV_PASSES]; /* passes that winograd.c computes */
    struct dnnl_primitive_desc *forward;     /* its layout of weights counts in any case */
    struct dnnl_primitive_desc *weight;      /* NULL: by avx2_conv.c, winograd.c or .. */
    bool                        weight_gemm; /* .. onednn_weight_gemm.c */
    struct dnnl_primitive_desc *input;       /* NULL: by winograd.c, or dx is not needed */
    struct dnnl_primitive_desc *reorder;     /* to the layout of `input`; NULL: it is the same */
    at_activation               padded; /* what `weight` reads instead of x; zeroed: x itself */
} at_onednn_plan;

/* The engine of this process, which all plans and memory belong to (NULL when oneDNN cannot create
 * one), and the stream in which everything is executed. */
struct dnnl_engine *at_onednn_engine(void);
struct dnnl_stream *at_onednn_stream(void);

/* The instruction set of oneDNN, limited by ANYTIME_ISA and by its own environment variables. */
at_isa at_onednn_isa(void);

/* AT_ERR_USAGE when the environment variable ANYTIME_CONV is neither empty nor "direct", which
 * disables Winograd convolutions, nor "winograd", which uses them wherever they are possible. */
at_err at_onednn_check_environment(at_fail *fail);

/* Chooses fast implementations only, for weights in this layout, or, if it is NULL, in the layout
 * that is best for forward. `exact`: direct sums only. AT_ERR_FAILED when there are none. */
at_err at_onednn_plan_make(const at_conv_spec *spec, const at_weight_layout *layout, uint32_t rows,
                           bool exact, at_onednn_plan *plan, at_fail *fail);
void   at_onednn_plan_free(at_onednn_plan *plan); /* accepts a zeroed plan */

/* The layout of weights in the plan. */
at_err at_onednn_plan_layout(const at_onednn_plan *plan, const at_conv_spec *spec,
                             at_weight_layout *layout, at_fail *fail);

#endif

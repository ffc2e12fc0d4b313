/* Convolutions by oneDNN: its just-in-time compiled direct implementations on blocked activations.
 * Passes for which Winograd's method is faster (onednn_plan.c) are computed by winograd.c.
 *
 * Precision: over the convolutions of the built-in models, on values like those after a ReLU, the
 * largest difference to sums in double, relative to the largest value, is 0.5e-6 for y and dx and
 * 1.3e-6 for dw. Rounding to float alone costs 0.06e-6. */
#include "learn/engines/avx2_conv.h"
#include "learn/engines/conv_kernels.h"
#include "learn/engines/onednn_plan.h"
#include "learn/engines/onednn_weight_gemm.h"

#include <assert.h>
#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 5 };

/* One primitive and the memory objects for its pointers. */
typedef struct task {
    dnnl_primitive_t primitive;
    int              count;
    dnnl_exec_arg_t  args[ARGS_MAX]; /* scratch is the last */
    size_t           scratch;        /* bytes */
} task;

struct at_conv {
    at_conv_spec     spec;
    at_weight_layout layout;
    uint32_t         rows;
    at_activation    padded;                   /* see onednn_plan.h */
    bool             weight_gemm;              /* the same */
    bool             winograd[AT_CONV_PASSES]; /* the same */
    int              threads;
    task             forward, weight, input, reorder;
    size_t           reordered; /* floats */
};

static int threads_max = 1;

void at_onednn_threads(int threads)
{
    assert(threads > 0);
    threads_max = threads;
    omp_set_num_threads(threads);
}

static uint32_t block(void)
{
    at_isa isa = at_onednn_isa();
    return isa == AT_ISA_AVX512 ? 16 : isa == AT_ISA_AVX2 ? 8 : 0;
}

static at_err choose(const at_conv_spec *spec, uint32_t rows, at_weight_layout *layout,
                     at_fail *fail)
{
    at_onednn_plan plan;
    AT_TRY(at_onednn_check_environment(fail));
    AT_TRY(at_onednn_plan_make(spec, NULL, rows, false, &plan, fail));
    at_err err = at_onednn_plan_layout(&plan, spec, layout, fail);
    at_onednn_plan_free(&plan);
    return err;
}

static bool add_arg(task *t, const_dnnl_primitive_desc_t pd, int arg)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
    assert(t->count < ARGS_MAX);
    dnnl_exec_arg_t *to = &t->args[t->count];
    to->arg = arg;
    if (!md || dnnl_memory_create(&to->memory, md, at_onednn_engine(), DNNL_MEMORY_NONE))
        return false;
    t->count++;
    return true;
}

/* Compiles the primitive. `args` ends with 0. A primitive with user scratch takes it last. */
static bool open_task(task *t, const_dnnl_primitive_desc_t pd, const int *args)
{
    if (dnnl_primitive_create(&t->primitive, pd)) return false;
    for (; *args; args++)
        if (!add_arg(t, pd, *args)) return false;
    t->scratch =
        dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
    return t->scratch == 0 || add_arg(t, pd, DNNL_ARG_SCRATCHPAD);
}

static void close_task(task *t)
{
    for (int i = 0; i < t->count; i++) dnnl_memory_destroy(t->args[i].memory);
    if (t->primitive) dnnl_primitive_destroy(t->primitive);
}

/* `pointers` match the args of open_task, then scratch. */
static void run_task(const task *t, void *const *pointers)
{
    dnnl_stream_t stream = at_onednn_stream();
    assert(t->primitive);
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < t->count; i++)
        status |= dnnl_memory_set_data_handle(t->args[i].memory, pointers[i]);
    status |= dnnl_primitive_execute(t->primitive, stream, t->count, t->args);
    status |= dnnl_stream_wait(stream);
    assert(status == dnnl_success); /* open has checked everything */
}

static void close(at_conv *conv)
{
    if (!conv) return;
    close_task(&conv->forward);
    close_task(&conv->weight);
    close_task(&conv->input);
    close_task(&conv->reorder);
    free(conv);
}

static bool open_tasks(at_conv *conv, const at_onednn_plan *plan, bool bias)
{
    const int forward[] = {DNNL_ARG_DST, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, bias ? DNNL_ARG_BIAS : 0,
                           0};
    const int weight[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS,
                          bias ? DNNL_ARG_DIFF_BIAS : 0, 0};
    const int input[] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, 0};
    const int reorder_args[] = {DNNL_ARG_FROM, DNNL_ARG_TO, 0};
    return (plan->winograd[AT_CONV_FORWARD] || open_task(&conv->forward, plan->forward, forward)) &&
           (!plan->weight || open_task(&conv->weight, plan->weight, weight)) &&
           (!plan->input || open_task(&conv->input, plan->input, input)) &&
           (!plan->reorder || open_task(&conv->reorder, plan->reorder, reorder_args));
}

static at_err open_conv(const at_conv_spec *spec, const at_weight_layout *layout, uint32_t rows,
                        bool exact, at_conv **conv, at_fail *fail)
{
    at_onednn_plan plan;
    omp_set_num_threads(threads_max); /* OpenMP keeps it per calling thread */
    AT_TRY(at_onednn_plan_make(spec, layout, rows, exact, &plan, fail));
    *conv = calloc(1, sizeof **conv);
    if (*conv)
        **conv = (at_conv){.spec = *spec,
                           .layout = *layout,
                           .rows = rows,
                           .padded = plan.padded,
                           .weight_gemm = plan.weight_gemm,
                           .threads = threads_max};
    if (*conv) memcpy((*conv)->winograd, plan.winograd, sizeof plan.winograd);
    bool fine = *conv && open_tasks(*conv, &plan, spec->bias);
    if (fine && plan.reorder)
        (*conv)->reordered = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(
                                 plan.input, dnnl_query_weights_md, 0)) /
                             sizeof(float);
    at_onednn_plan_free(&plan);
    if (fine) return AT_OK;
    close(*conv);
    *conv = NULL;
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for a convolution of oneDNN");
}

static at_err open(const at_conv_spec *spec, const at_weight_layout *layout, uint32_t rows,
                   at_conv **conv, at_fail *fail)
{
    return open_conv(spec, layout, rows, false, conv, fail);
}

static at_err open_exact(const at_conv_spec *spec, const at_weight_layout *layout, uint32_t rows,
                         at_conv **conv, at_fail *fail)
{
    return open_conv(spec, layout, rows, true, conv, fail);
}

static size_t rounded(size_t floats)
{
    return (floats * sizeof(float) + 63) / 64 * 64;
}

/* Scratch holds a bias padded to oneDNN's channels, then x with its padding, then oneDNN's own
 * scratch; each only if necessary. */
static size_t bias_size(const at_conv *conv)
{
    bool uneven = conv->spec.out.channels % conv->spec.out.block != 0;
    return conv->spec.bias && uneven ? rounded(conv->spec.out.channels + conv->spec.out.block) : 0;
}

static size_t padded_size(const at_conv *conv)
{
    return conv->padded.channels ? rounded(conv->rows * at_activation_size(&conv->padded)) : 0;
}

static at_weight_gemm gemm_of(const at_conv *conv)
{
    return (at_weight_gemm){&conv->spec, &conv->layout, conv->rows};
}

static size_t gemm_size(const at_conv *conv)
{
    at_weight_gemm gemm = gemm_of(conv);
    return conv->weight_gemm ? rounded(at_weight_gemm_scratch(&gemm)) : 0;
}

static at_winograd winograd_of(const at_conv *conv)
{
    return (at_winograd){&conv->spec, &conv->layout, conv->rows, conv->threads};
}

static size_t winograd_size(const at_conv *conv)
{
    at_winograd w = winograd_of(conv);
    size_t      most = 0;
    for (at_conv_pass pass = 0; pass < AT_CONV_PASSES; pass++) {
        size_t size = conv->winograd[pass] ? at_winograd_scratch(&w, pass) : 0;
        if (size > most) most = size;
    }
    return most;
}

static size_t scratch(const at_conv *conv)
{
    size_t most = conv->forward.scratch; /* only one runs at a time */
    if (winograd_size(conv) > most) most = winograd_size(conv);
    if (conv->weight.scratch > most) most = conv->weight.scratch;
    if (conv->input.scratch > most) most = conv->input.scratch;
    if (gemm_size(conv) > most) most = gemm_size(conv);
    return bias_size(conv) + padded_size(conv) + most;
}

static size_t reordered_size(const at_conv *conv)
{
    return conv->reordered;
}

/* oneDNN takes pointers to inputs without const, but only reads them. */
static void reorder(at_conv *conv, float *reordered, const float *w)
{
    assert(conv->reordered > 0);
    run_task(&conv->reorder, (void *[]){(void *)w, reordered});
}

/* The scratch memory behind `size` bytes; NULL, which is what a convolution gets that needs none,
 * stays NULL. */
static void *after(void *scratch_bytes, size_t size)
{
    return size ? (char *)scratch_bytes + size : scratch_bytes;
}

static void forward(at_conv *conv, float *y, const float *x, const float *w, const float *b,
                    void *scratch_bytes)
{
    float *filled = scratch_bytes;
    size_t size = bias_size(conv);
    void  *rest = after(scratch_bytes, size);
    assert(conv->spec.bias == (b != NULL));
    if (size) {
        memset(filled, 0, size);
        memcpy(filled, b, conv->spec.out.channels * sizeof *b);
    }
    const float *bias = size ? filled : b;
    at_winograd  winograd = winograd_of(conv);
    void        *without[] = {y, (void *)x, (void *)w, rest};
    void        *with[] = {y, (void *)x, (void *)w, (void *)bias, rest};
    if (conv->winograd[AT_CONV_FORWARD])
        at_winograd_forward(&winograd, y, x, w, bias, rest);
    else
        run_task(&conv->forward, b ? with : without);
}

/* Copies x of all samples and adds its padding. */
static void add_padding(const at_conv *conv, float *to, const float *x)
{
    const at_activation *in = &conv->spec.in, *padded = &conv->padded;
    const at_window     *k = &conv->spec.window;
    size_t height = padded->height - k->top < in->height ? padded->height - k->top : in->height;
    size_t width = padded->width - k->left < in->width ? padded->width - k->left : in->width;
    size_t row = (size_t)in->width * in->block, padded_row = (size_t)padded->width * in->block;
    memset(to, 0, conv->rows * at_activation_size(padded) * sizeof *to);
    for (size_t i = 0; i < conv->rows * at_activation_blocks(in); i++) {
        float *at =
            to + i * padded->height * padded_row + k->top * padded_row + k->left * in->block;
        const float *from = x + i * in->height * row;
        for (size_t v = 0; v < height; v++)
            memcpy(at + v * padded_row, from + v * row, width * in->block * sizeof *x);
    }
}

/* Weight gradients for which oneDNN has no primitive, or only a slow one. */
static void weight_without_primitive(at_conv *conv, float *dw, float *db, const float *dy,
                                     const float *x, float *rest)
{
    at_weight_gemm gemm = gemm_of(conv);
    at_winograd    winograd = winograd_of(conv);
    if (conv->winograd[AT_CONV_WEIGHT])
        at_winograd_weight(&winograd, dw, db, dy, x, rest);
    else if (conv->weight_gemm)
        at_weight_gemm_run(&gemm, dw, db, dy, x, rest);
    else
        at_avx2_conv_weight(&(at_avx2_conv){&conv->spec, &conv->layout, conv->padded, conv->rows},
                            dw, db, dy, x);
}

static void weight(at_conv *conv, float *dw, float *db, const float *dy, const float *x,
                   void *scratch_bytes)
{
    size_t size = bias_size(conv);
    float *bias = size ? scratch_bytes : db;
    float *padded = after(scratch_bytes, size);
    void  *rest = after(padded, padded_size(conv));
    assert(conv->spec.bias == (db != NULL));
    if (conv->padded.channels) add_padding(conv, padded, x);
    const float *from = conv->padded.channels ? padded : x;
    void        *without[] = {(void *)from, (void *)dy, dw, rest};
    void        *with[] = {(void *)from, (void *)dy, dw, bias, rest};
    if (conv->weight.primitive)
        run_task(&conv->weight, db ? with : without);
    else
        weight_without_primitive(conv, dw, db ? bias : NULL, dy, from, rest);
    if (size) memcpy(db, bias, conv->spec.out.channels * sizeof *db);
}

static void input(at_conv *conv, float *dx, const float *dy, const float *reordered,
                  void *scratch_bytes)
{
    at_winograd winograd = winograd_of(conv);
    if (conv->winograd[AT_CONV_INPUT])
        at_winograd_input(&winograd, dx, dy, reordered, scratch_bytes);
    else
        run_task(&conv->input, (void *[]){dx, (void *)dy, (void *)reordered, scratch_bytes});
}

const at_conv_kernels at_conv_onednn = {
    .name = "onednn",
    .block = block,
    .choose = choose,
    .open = open,
    .close = close,
    .scratch = scratch,
    .reordered_size = reordered_size,
    .reorder = reorder,
    .forward = forward,
    .weight = weight,
    .input = input,
};

const at_conv_kernels at_conv_exact = {
    .name = "onednn exact",
    .block = block,
    .choose = choose,
    .open = open_exact,
    .close = close,
    .scratch = scratch,
    .reordered_size = reordered_size,
    .reorder = reorder,
    .forward = forward,
    .weight = weight,
    .input = input,
};

/* Convolutions by oneDNN: its just-in-time compiled implementations on pictures in blocks, direct
 * ones everywhere, and on AVX-512 Winograd's F(4x4, 3x3) where it pays (engine_onednn_plan.c).
 *
 * How exact they are: over the convolutions of the published models, on numbers like those behind a
 * ReLU, the largest difference to sums in double is 0.5e-6 of the largest number for y and dx when
 * computed directly and 3e-6 by Winograd; 1.3e-6 for dw either way (root of the mean square:
 * 0.2e-6, 1.2e-6, 0.8e-6). Rounding to float alone costs 0.06e-6. */
#include "learn/engines/onednn.h"

#include "learn/engines/avx2_conv.h"
#include "learn/engines/conv_kernels.h"
#include "learn/engines/onednn_plan.h"
#include "learn/engines/onednn_taps.h"

#include <assert.h>
#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 5 };

/* One primitive and the memory objects that its pointers are put into. */
typedef struct task {
    dnnl_primitive_t primitive;
    int              count;
    dnnl_exec_arg_t  args[ARGS_MAX]; /* scratch is the last */
    size_t           scratch;        /* bytes */
} task;

struct at_conv {
    at_conv_spec  spec;
    at_conv_form  form;
    uint32_t      rows;
    at_activation wide; /* see engine_onednn_plan.h */
    bool          taps; /* the same */
    task          forward, weight, input, turn;
    size_t        turned; /* floats */
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
    unsigned isa = dnnl_get_effective_cpu_isa();
    if ((isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core) return 16;
    return (isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2 ? 8 : 0;
}

static at_err choose(const at_conv_spec *spec, uint32_t rows, at_conv_form *form, at_fail *fail)
{
    at_onednn_plan plan;
    AT_TRY(at_onednn_check(fail));
    AT_TRY(at_onednn_plan_make(spec, NULL, rows, &plan, fail));
    at_err err = at_onednn_plan_form(&plan, spec, form, fail);
    at_onednn_plan_drop(&plan);
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

/* `pointers` are as many as open_task had args, and then scratch. */
static void run_task(const task *t, void *const *pointers)
{
    dnnl_stream_t stream = at_onednn_stream();
    assert(t->primitive);
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < t->count; i++)
        status |= dnnl_memory_set_data_handle(t->args[i].memory, pointers[i]);
    status |= dnnl_primitive_execute(t->primitive, stream, t->count, t->args);
    status |= dnnl_stream_wait(stream);
    assert(status == dnnl_success); /* nothing is left to go wrong after open */
}

static void close(at_conv *conv)
{
    if (!conv) return;
    close_task(&conv->forward);
    close_task(&conv->weight);
    close_task(&conv->input);
    close_task(&conv->turn);
    free(conv);
}

static bool open_tasks(at_conv *conv, const at_onednn_plan *plan, bool bias)
{
    const int forward[] = {DNNL_ARG_DST, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, bias ? DNNL_ARG_BIAS : 0,
                           0};
    const int weight[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS,
                          bias ? DNNL_ARG_DIFF_BIAS : 0, 0};
    const int input[] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, 0};
    const int turn[] = {DNNL_ARG_FROM, DNNL_ARG_TO, 0};
    return open_task(&conv->forward, plan->forward, forward) &&
           (!plan->weight || open_task(&conv->weight, plan->weight, weight)) &&
           (!plan->input || open_task(&conv->input, plan->input, input)) &&
           (!plan->turn || open_task(&conv->turn, plan->turn, turn));
}

static at_err open(const at_conv_spec *spec, const at_conv_form *form, uint32_t rows,
                   at_conv **conv, at_fail *fail)
{
    at_onednn_plan plan;
    omp_set_num_threads(threads_max); /* which OpenMP keeps for each thread of the caller */
    AT_TRY(at_onednn_plan_make(spec, form, rows, &plan, fail));
    *conv = calloc(1, sizeof **conv);
    if (*conv)
        **conv = (at_conv){
            .spec = *spec, .form = *form, .rows = rows, .wide = plan.wide, .taps = plan.taps};
    bool fine = *conv && open_tasks(*conv, &plan, spec->bias);
    if (fine && plan.turn)
        (*conv)->turned = dnnl_memory_desc_get_size(
                              dnnl_primitive_desc_query_md(plan.input, dnnl_query_weights_md, 0)) /
                          sizeof(float);
    at_onednn_plan_drop(&plan);
    if (fine) return AT_OK;
    close(*conv);
    *conv = NULL;
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "oneDNN has no memory for a convolution");
}

static size_t rounded(size_t floats)
{
    return (floats * sizeof(float) + 63) / 64 * 64;
}

/* Scratch holds a bias as long as oneDNN's channels, then x with its border, then what oneDNN asks
 * for. Each is there only when it is needed. */
static size_t bias_size(const at_conv *conv)
{
    bool uneven = conv->spec.out.channels % conv->spec.out.block != 0;
    return conv->spec.bias && uneven ? rounded(conv->spec.out.channels + conv->spec.out.block) : 0;
}

static size_t wide_size(const at_conv *conv)
{
    return conv->wide.channels ? rounded(conv->rows * at_activation_size(&conv->wide)) : 0;
}

static at_onednn_taps taps_of(const at_conv *conv)
{
    return (at_onednn_taps){&conv->spec, &conv->form, conv->rows};
}

static size_t taps_size(const at_conv *conv)
{
    at_onednn_taps taps = taps_of(conv);
    return conv->taps ? rounded(at_onednn_taps_scratch(&taps)) : 0;
}

static size_t scratch(const at_conv *conv)
{
    size_t most = conv->forward.scratch; /* no two of them run at the same time */
    if (conv->weight.scratch > most) most = conv->weight.scratch;
    if (conv->input.scratch > most) most = conv->input.scratch;
    if (taps_size(conv) > most) most = taps_size(conv);
    return bias_size(conv) + wide_size(conv) + most;
}

static size_t turned_floats(const at_conv *conv)
{
    return conv->turned;
}

/* oneDNN takes pointers to inputs without const, but does not write there. */
static void turn(at_conv *conv, float *turned, const float *w)
{
    assert(conv->turned > 0);
    run_task(&conv->turn, (void *[]){(void *)w, turned});
}

static void forward(at_conv *conv, float *y, const float *x, const float *w, const float *b,
                    void *scratch_bytes)
{
    float *filled = scratch_bytes;
    size_t size = bias_size(conv);
    void  *rest = (char *)scratch_bytes + size;
    assert(conv->spec.bias == (b != NULL));
    if (size) {
        memset(filled, 0, size);
        memcpy(filled, b, conv->spec.out.channels * sizeof *b);
    }
    void *without[] = {y, (void *)x, (void *)w, rest};
    void *with[] = {y, (void *)x, (void *)w, size ? filled : (void *)b, rest};
    run_task(&conv->forward, b ? with : without);
}

/* x of all samples, within the border that padding describes. */
static void widen(const at_conv *conv, float *to, const float *x)
{
    const at_activation *in = &conv->spec.in, *wide = &conv->wide;
    const at_window     *k = &conv->spec.window;
    size_t height = wide->height - k->top < in->height ? wide->height - k->top : in->height;
    size_t width = wide->width - k->left < in->width ? wide->width - k->left : in->width;
    size_t row = (size_t)in->width * in->block, wide_row = (size_t)wide->width * in->block;
    memset(to, 0, conv->rows * at_activation_size(wide) * sizeof *to);
    for (size_t i = 0; i < conv->rows * at_activation_blocks(in); i++) {
        float *at = to + i * wide->height * wide_row + k->top * wide_row + k->left * in->block;
        const float *from = x + i * in->height * row;
        for (size_t v = 0; v < height; v++)
            memcpy(at + v * wide_row, from + v * row, width * in->block * sizeof *x);
    }
}

/* The weight gradient that oneDNN has no primitive for, or a slow one. */
static void weight_by_hand(at_conv *conv, float *dw, float *db, const float *dy, const float *x,
                           float *rest)
{
    at_onednn_taps taps = taps_of(conv);
    if (conv->taps)
        at_onednn_taps_weight(&taps, dw, db, dy, x, rest);
    else
        at_avx2_conv_weight(&(at_avx2_conv){&conv->spec, &conv->form, conv->wide, conv->rows}, dw,
                            db, dy, x);
}

static void weight(at_conv *conv, float *dw, float *db, const float *dy, const float *x,
                   void *scratch_bytes)
{
    size_t size = bias_size(conv);
    float *bias = size ? scratch_bytes : db;
    float *wide = (float *)((char *)scratch_bytes + size);
    void  *rest = (char *)wide + wide_size(conv);
    assert(conv->spec.bias == (db != NULL));
    if (conv->wide.channels) widen(conv, wide, x);
    const float *from = conv->wide.channels ? wide : x;
    void        *without[] = {(void *)from, (void *)dy, dw, rest};
    void        *with[] = {(void *)from, (void *)dy, dw, bias, rest};
    if (conv->weight.primitive)
        run_task(&conv->weight, db ? with : without);
    else
        weight_by_hand(conv, dw, db ? bias : NULL, dy, from, rest);
    if (size) memcpy(db, bias, conv->spec.out.channels * sizeof *db);
}

static void input(at_conv *conv, float *dx, const float *dy, const float *turned,
                  void *scratch_bytes)
{
    run_task(&conv->input, (void *[]){dx, (void *)dy, (void *)turned, scratch_bytes});
}

const at_conv_kernels at_conv_onednn = {
    .name = "onednn",
    .block = block,
    .choose = choose,
    .open = open,
    .close = close,
    .scratch = scratch,
    .turned = turned_floats,
    .turn = turn,
    .forward = forward,
    .weight = weight,
    .input = input,
};

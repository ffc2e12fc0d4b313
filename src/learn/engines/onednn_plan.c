/* Activations are in our blocks, or plain. Padding channels of the last block are ordinary channels
 * to oneDNN: they stay zero because their weights and gradients are zero, and oneDNN has fewer
 * implementations for uneven numbers of channels. Weights have the layout of the fastest forward
 * implementation for which a fast weight gradient has the same layout. The input gradient usually
 * needs the two channel indices swapped, so weights are reordered for it once per version. With a
 * layout that no fast implementation supports, oneDNN silently falls back to its reference
 * implementation, hundreds of times slower: therefore the name of every implementation is
 * checked. */
#include "learn/engines/onednn_plan.h"

#include "base/isa.h"
#include "learn/engines/avx2_conv.h"
#include "learn/engines/onednn_weight_gemm.h"

#include <assert.h>
#include <dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* Created once and never destroyed. */
static dnnl_engine_t engine;
static dnnl_stream_t stream;
static once_flag     once = ONCE_FLAG_INIT;

static void limit(void)
{
    if (at_isa_is_limited()) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
}

at_isa at_onednn_isa(void)
{
    static once_flag limited = ONCE_FLAG_INIT;
    call_once(&limited, limit); /* oneDNN accepts it only before anything else */
    unsigned isa = dnnl_get_effective_cpu_isa();
    if ((isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core) return AT_ISA_AVX512;
    return (isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2 ? AT_ISA_AVX2 : AT_ISA_PORTABLE;
}

static void make_engine(void)
{
    at_onednn_isa();
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
    if (engine && dnnl_stream_create(&stream, engine, dnnl_stream_default_flags)) engine = NULL;
}

dnnl_engine_t at_onednn_engine(void)
{
    call_once(&once, make_engine);
    return engine;
}

dnnl_stream_t at_onednn_stream(void)
{
    assert(engine);
    return stream;
}

/* The value of ANYTIME_CONV, or NULL. */
static const char *requested_algorithm(void)
{
    const char *value = getenv("ANYTIME_CONV");
    return value && *value ? value : NULL;
}

static bool is_requested(const char *name)
{
    const char *algorithm = requested_algorithm();
    return algorithm && strcmp(algorithm, name) == 0;
}

at_err at_onednn_check_environment(at_fail *fail)
{
    if (!requested_algorithm() || is_requested("direct") || is_requested("winograd")) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "unset it, or set it to \"direct\" or \"winograd\"",
                       "invalid environment variable ANYTIME_CONV=%s", requested_algorithm());
}

/* The descriptors that the three primitives of a convolution share. */
typedef struct conv_desc {
    dnnl_memory_desc_t x, w, b, y;
    dnnl_dims_t        strides, before, after;
} conv_desc;

static dnnl_dim_t whole_channels(const at_activation *shape)
{
    return (dnnl_dim_t)(at_activation_blocks(shape) * shape->block);
}

static bool describe_activation(dnnl_memory_desc_t *md, const at_activation *shape, uint32_t rows)
{
    dnnl_dims_t       dims = {rows, whole_channels(shape), shape->height, shape->width};
    dnnl_format_tag_t tag = shape->block == 16  ? dnnl_nChw16c
                            : shape->block == 8 ? dnnl_nChw8c
                                                : dnnl_nchw;
    assert(shape->block == 16 || shape->block == 8 || shape->block == 1);
    return dnnl_memory_desc_init_by_tag(md, 4, dims, dnnl_f32, tag) == dnnl_success;
}

static void describe_layout(dnnl_memory_desc_t *md, const at_weight_layout *layout)
{
    *md = (dnnl_memory_desc_t){.ndims = 4, .data_type = dnnl_f32, .format_kind = dnnl_blocked};
    dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    blocking->inner_nblks = (int)layout->inner_count;
    dnnl_dim_t whole[4] = {1, 1, 1, 1};
    for (uint32_t k = 0; k < layout->inner_count; k++) {
        blocking->inner_blks[k] = layout->inner_size[k];
        blocking->inner_idxs[k] = layout->inner_dim[k];
        whole[layout->inner_dim[k]] *= layout->inner_size[k];
    }
    for (int d = 0; d < 4; d++) {
        blocking->strides[d] = (dnnl_dim_t)layout->stride[d];
        md->dims[d] = (layout->shape[d] + whole[d] - 1) / whole[d] * whole[d];
        md->padded_dims[d] = md->dims[d];
    }
    assert(dnnl_memory_desc_get_size(md) == layout->floats * sizeof(float));
}

static bool describe(conv_desc *s, const at_conv_spec *spec, const at_weight_layout *layout,
                     uint32_t rows)
{
    const at_window *k = &spec->window;
    dnnl_dims_t      weights = {whole_channels(&spec->out), whole_channels(&spec->in), k->height,
                                k->width};
    dnnl_dims_t      biases = {whole_channels(&spec->out)};
    *s = (conv_desc){.strides = {k->stride, k->stride},
                     .before = {k->top, k->left},
                     .after = {k->bottom, k->right}};
    bool fine =
        describe_activation(&s->x, &spec->in, rows) && describe_activation(&s->y, &spec->out, rows);
    if (spec->bias)
        fine = fine && !dnnl_memory_desc_init_by_tag(&s->b, 1, biases, dnnl_f32, dnnl_x);
    if (layout)
        describe_layout(&s->w, layout);
    else
        fine =
            fine && !dnnl_memory_desc_init_by_tag(&s->w, 4, weights, dnnl_f32, dnnl_format_tag_any);
    return fine;
}

/* Scratch is supplied by the caller; a ReLU is fused into the forward convolution. */
static dnnl_primitive_attr_t make_attr(bool relu)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t       ops = NULL;
    bool                  fine = dnnl_primitive_attr_create(&attr) == dnnl_success &&
                !dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (fine && relu)
        fine = dnnl_post_ops_create(&ops) == dnnl_success &&
               !dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f) &&
               !dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops) dnnl_post_ops_destroy(ops);
    if (fine) return attr;
    if (attr) dnnl_primitive_attr_destroy(attr);
    return NULL;
}

static const char *name_of(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) || !name)
        return "unknown";
    return name;
}

static bool is_slow(const char *name)
{
    return strncmp(name, "ref", 3) == 0 || strstr(name, "gemm:ref") || strstr(name, "simple");
}

/* The first implementation that oneDNN offers, or NULL if it is slow. */
static dnnl_primitive_desc_t make_first(const dnnl_convolution_desc_t *desc, bool relu,
                                        const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_attr_t attr = make_attr(relu);
    if (!attr) return NULL;
    dnnl_status_t status = dnnl_primitive_desc_create(&pd, desc, attr, at_onednn_engine(), hint);
    dnnl_primitive_attr_destroy(attr);
    if (status != dnnl_success) return NULL;
    if (!is_slow(name_of(pd))) return pd;
    dnnl_primitive_desc_destroy(pd);
    return NULL;
}

static dnnl_primitive_desc_t make_forward(const conv_desc *s, bool relu)
{
    dnnl_convolution_desc_t desc;
    if (dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct,
                                           &s->x, &s->w, s->b.ndims ? &s->b : NULL, &s->y,
                                           s->strides, s->before, s->after))
        return NULL;
    return make_first(&desc, relu, NULL);
}

static dnnl_primitive_desc_t make_weight(const conv_desc *s, const_dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t desc;
    if (dnnl_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &s->x, &s->w,
                                                    s->b.ndims ? &s->b : NULL, &s->y, s->strides,
                                                    s->before, s->after))
        return NULL;
    return make_first(&desc, false, forward);
}

static dnnl_primitive_desc_t make_input(const conv_desc *s, const_dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t desc;
    dnnl_memory_desc_t      any;
    if (dnnl_memory_desc_init_by_tag(&any, 4, s->w.dims, dnnl_f32, dnnl_format_tag_any) ||
        dnnl_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &s->x, &any, &s->y,
                                                 s->strides, s->before, s->after))
        return NULL;
    return make_first(&desc, false, forward);
}

/* The conversion of weights to the layout of `input`, if necessary. False on failure. */
static bool make_reorder(const conv_desc *s, at_onednn_plan *plan)
{
    const dnnl_memory_desc_t *to =
        dnnl_primitive_desc_query_md(plan->input, dnnl_query_weights_md, 0);
    if (dnnl_memory_desc_equal(&s->w, to)) return true;
    dnnl_engine_t e = at_onednn_engine();
    return dnnl_reorder_primitive_desc_create(&plan->reorder, &s->w, e, to, e, NULL) ==
           dnnl_success;
}

/* The input including its padding, as far as windows reach. */
static at_activation with_padding(const at_conv_spec *spec)
{
    const at_window *k = &spec->window;
    at_activation    padded = spec->in;
    padded.height = (spec->out.height - 1) * k->stride + k->height;
    padded.width = (spec->out.width - 1) * k->stride + k->width;
    return padded;
}

/* The weight gradient in the layout of s->w. oneDNN's AVX2 implementation supports neither windows
 * larger than the image nor plain images without exactly three channels. */
static bool choose_weight(const conv_desc *s, const at_conv_spec *spec, uint32_t rows,
                          at_onednn_plan *plan)
{
    at_weight_layout layout;
    if (plan->winograd[AT_CONV_WEIGHT] || plan->weight_gemm) return true;
    plan->weight = make_weight(s, plan->forward);
    if (plan->weight) return true;
    conv_desc padded = *s;
    plan->padded = with_padding(spec);
    memset(padded.before, 0, sizeof padded.before);
    memset(padded.after, 0, sizeof padded.after);
    if (at_onednn_plan_layout(plan, spec, &layout, NULL) == AT_OK &&
        at_avx2_conv_supports(spec, &layout))
        return true;
    if (!describe_activation(&padded.x, &plan->padded, rows)) return false;
    dnnl_primitive_desc_t hint = make_forward(&padded, false);
    if (hint) plan->weight = make_weight(&padded, hint);
    if (hint) dnnl_primitive_desc_destroy(hint);
    return plan->weight != NULL;
}

/* Chooses the passes that oneDNN does not compute. */
static void choose_algorithms(at_onednn_plan *plan, const at_winograd *w, bool exact)
{
    bool forced = is_requested("winograd");
    bool possible = !exact && !is_requested("direct") && at_winograd_supports(w);
    for (at_conv_pass pass = 0; pass < AT_CONV_PASSES; pass++)
        plan->winograd[pass] = possible && (forced || at_winograd_is_faster(w, pass));
    plan->weight_gemm = !plan->winograd[AT_CONV_WEIGHT] &&
                        at_weight_gemm_is_faster(&(at_weight_gemm){w->spec, w->layout, w->rows});
}

/* Fills the plan; returns what has no fast implementation, or NULL. */
static const char *make_all(conv_desc *s, const at_conv_spec *spec, uint32_t rows,
                            at_onednn_plan *plan)
{
    plan->forward = make_forward(s, spec->relu);
    if (!plan->forward) return "forward pass";
    s->w = *dnnl_primitive_desc_query_md(plan->forward, dnnl_query_weights_md, 0);
    if (!choose_weight(s, spec, rows, plan)) return "weight gradient";
    if (!spec->wants_dx || plan->winograd[AT_CONV_INPUT]) return NULL;
    plan->input = make_input(s, plan->forward);
    return plan->input && make_reorder(s, plan) ? NULL : "input gradient";
}

static at_err refuse(const at_conv_spec *spec, uint32_t rows, const char *what, at_fail *fail)
{
    const at_window *k = &spec->window;
    return at_fail_set(fail, AT_ERR_FAILED, "the reference engine can do it, slowly",
                       "oneDNN has no fast %s for a convolution of %u samples from %ux%ux%u to "
                       "%ux%ux%u with %ux%u windows, stride %u and padding %u,%u,%u,%u",
                       what, rows, spec->in.channels, spec->in.height, spec->in.width,
                       spec->out.channels, spec->out.height, spec->out.width, k->height, k->width,
                       k->stride, k->top, k->left, k->bottom, k->right);
}

at_err at_onednn_plan_make(const at_conv_spec *spec, const at_weight_layout *layout, uint32_t rows,
                           bool exact, at_onednn_plan *plan, at_fail *fail)
{
    conv_desc s;
    assert(rows > 0);
    *plan = (at_onednn_plan){0};
    if (!at_onednn_engine() || !describe(&s, spec, layout, rows))
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "oneDNN cannot describe a convolution");
    if (layout) /* else the layout must suit every algorithm */
        choose_algorithms(plan, &(at_winograd){.spec = spec, .layout = layout, .rows = rows},
                          exact);
    const char *missing = make_all(&s, spec, rows, plan);
    if (!missing) return AT_OK;
    at_onednn_plan_free(plan);
    return refuse(spec, rows, missing, fail);
}

void at_onednn_plan_free(at_onednn_plan *plan)
{
    dnnl_primitive_desc_t all[] = {plan->forward, plan->weight, plan->input, plan->reorder};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) dnnl_primitive_desc_destroy(all[i]);
    *plan = (at_onednn_plan){0};
}

at_err at_onednn_plan_layout(const at_onednn_plan *plan, const at_conv_spec *spec,
                             at_weight_layout *layout, at_fail *fail)
{
    const dnnl_memory_desc_t *md =
        dnnl_primitive_desc_query_md(plan->forward, dnnl_query_weights_md, 0);
    const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    assert(md->ndims == 4);
    if (md->format_kind != dnnl_blocked || blocking->inner_nblks > 4 || md->offset0 != 0 ||
        md->extra.flags != dnnl_memory_extra_flag_none)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "oneDNN uses an unknown layout of weights");
    *layout = at_weight_layout_plain(spec); /* for its shape, without padding */
    layout->floats = dnnl_memory_desc_get_size(md) / sizeof(float);
    layout->inner_count = (uint32_t)blocking->inner_nblks;
    for (int d = 0; d < 4; d++) layout->stride[d] = (size_t)blocking->strides[d];
    for (uint32_t k = 0; k < layout->inner_count; k++) {
        layout->inner_size[k] = (uint32_t)blocking->inner_blks[k];
        layout->inner_dim[k] = (uint32_t)blocking->inner_idxs[k];
    }
    return AT_OK;
}

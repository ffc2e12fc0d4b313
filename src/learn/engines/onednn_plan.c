/* Pictures lie as we say, in blocks or plain. Channels that fill up the last block are channels
 * like any other to oneDNN: they stay zero because their weights and gradients are, and it has
 * fewer ways to treat an uneven number of them. Weights lie as the fastest forward implementation
 * wants them, provided that a fast implementation of the weight gradient writes the same form. The
 * input gradient usually wants the two channel indices the other way round: for it, weights are
 * turned once a version. Weights in a form that an implementation does not like would silently get
 * the reference implementation, hundreds of times slower: every name is looked at. */
#include "learn/engines/onednn_plan.h"

#include "learn/engines/avx2_conv.h"
#include "learn/engines/onednn_taps.h"

#include <assert.h>
#include <dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* Made once and never destroyed: what they hold is nothing, and ends with the process. */
static dnnl_engine_t engine;
static dnnl_stream_t stream;
static once_flag     once = ONCE_FLAG_INIT;

static void make_engine(void)
{
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

/* What the user says about the way of convolutions: NULL, or a word. */
static const char *wanted_way(void)
{
    const char *value = getenv("ANYTIME_CONV");
    return value && *value ? value : NULL;
}

static bool is_direct(const char *way)
{
    return way && strcmp(way, "direct") == 0;
}

at_err at_onednn_check(at_fail *fail)
{
    const char *way = wanted_way();
    if (!way || is_direct(way)) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "unset it, or set it to \"direct\"",
                       "the environment variable ANYTIME_CONV is \"%s\"", way);
}

/* What all three primitives of a convolution are described by. */
typedef struct shape {
    dnnl_memory_desc_t x, w, b, y;
    dnnl_dims_t        strides, before, after;
    struct {
        bool forward, weight, input;
    } winograd; /* which of them should be tried that way first */
} shape;

static dnnl_dim_t whole_channels(const at_activation *form)
{
    return (dnnl_dim_t)(at_activation_blocks(form) * form->block);
}

static bool describe_picture(dnnl_memory_desc_t *md, const at_activation *form, uint32_t rows)
{
    dnnl_dims_t       dims = {rows, whole_channels(form), form->height, form->width};
    dnnl_format_tag_t tag = form->block == 16  ? dnnl_nChw16c
                            : form->block == 8 ? dnnl_nChw8c
                                               : dnnl_nchw;
    assert(form->block == 16 || form->block == 8 || form->block == 1);
    return dnnl_memory_desc_init_by_tag(md, 4, dims, dnnl_f32, tag) == dnnl_success;
}

static void describe_form(dnnl_memory_desc_t *md, const at_conv_form *form)
{
    *md = (dnnl_memory_desc_t){.ndims = 4, .data_type = dnnl_f32, .format_kind = dnnl_blocked};
    dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    blocking->inner_nblks = (int)form->inner_count;
    dnnl_dim_t whole[4] = {1, 1, 1, 1};
    for (uint32_t k = 0; k < form->inner_count; k++) {
        blocking->inner_blks[k] = form->inner_size[k];
        blocking->inner_idxs[k] = form->inner_dim[k];
        whole[form->inner_dim[k]] *= form->inner_size[k];
    }
    for (int d = 0; d < 4; d++) {
        blocking->strides[d] = (dnnl_dim_t)form->stride[d];
        md->dims[d] = (form->shape[d] + whole[d] - 1) / whole[d] * whole[d];
        md->padded_dims[d] = md->dims[d];
    }
    assert(dnnl_memory_desc_get_size(md) == form->floats * sizeof(float));
}

static bool describe(shape *s, const at_conv_spec *spec, const at_conv_form *form, uint32_t rows)
{
    const at_window *k = &spec->window;
    dnnl_dims_t      weights = {whole_channels(&spec->out), whole_channels(&spec->in), k->height,
                                k->width};
    dnnl_dims_t      biases = {whole_channels(&spec->out)};
    *s = (shape){.strides = {k->stride, k->stride},
                 .before = {k->top, k->left},
                 .after = {k->bottom, k->right}};
    bool fine =
        describe_picture(&s->x, &spec->in, rows) && describe_picture(&s->y, &spec->out, rows);
    if (spec->bias)
        fine = fine && !dnnl_memory_desc_init_by_tag(&s->b, 1, biases, dnnl_f32, dnnl_x);
    if (form)
        describe_form(&s->w, form);
    else
        fine =
            fine && !dnnl_memory_desc_init_by_tag(&s->w, 4, weights, dnnl_f32, dnnl_format_tag_any);
    return fine;
}

/* Scratch comes from us; a ReLU is part of the forward convolution. */
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

/* The first implementation that oneDNN offers, if it is a fast one; else NULL. */
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

/* By Winograd if that is wanted and there is such an implementation, else directly. */
static dnnl_primitive_desc_t make_fast(dnnl_convolution_desc_t *desc, bool winograd, bool relu,
                                       const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd = NULL;
    assert(desc->alg_kind == dnnl_convolution_direct);
    if (winograd) {
        desc->alg_kind = dnnl_convolution_winograd;
        pd = make_first(desc, relu, hint);
        desc->alg_kind = dnnl_convolution_direct;
    }
    return pd ? pd : make_first(desc, relu, hint);
}

static dnnl_primitive_desc_t make_forward(const shape *s, bool relu)
{
    dnnl_convolution_desc_t desc;
    if (dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct,
                                           &s->x, &s->w, s->b.ndims ? &s->b : NULL, &s->y,
                                           s->strides, s->before, s->after))
        return NULL;
    return make_fast(&desc, s->winograd.forward, relu, NULL);
}

static dnnl_primitive_desc_t make_weight(const shape *s, const_dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t desc;
    if (dnnl_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &s->x, &s->w,
                                                    s->b.ndims ? &s->b : NULL, &s->y, s->strides,
                                                    s->before, s->after))
        return NULL;
    return make_fast(&desc, s->winograd.weight, false, forward);
}

static dnnl_primitive_desc_t make_input(const shape *s, const_dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t desc;
    dnnl_memory_desc_t      any;
    if (dnnl_memory_desc_init_by_tag(&any, 4, s->w.dims, dnnl_f32, dnnl_format_tag_any) ||
        dnnl_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &s->x, &any, &s->y,
                                                 s->strides, s->before, s->after))
        return NULL;
    return make_fast(&desc, s->winograd.input, false, forward);
}

/* Between two forms of weights, if they differ. False when it cannot be done. */
static bool make_turn(const shape *s, at_onednn_plan *plan)
{
    const dnnl_memory_desc_t *to =
        dnnl_primitive_desc_query_md(plan->input, dnnl_query_weights_md, 0);
    if (dnnl_memory_desc_equal(&s->w, to)) return true;
    dnnl_engine_t e = at_onednn_engine();
    return dnnl_reorder_primitive_desc_create(&plan->turn, &s->w, e, to, e, NULL) == dnnl_success;
}

/* The input as the weight gradient sees it when its border of zeros is part of the picture: just
 * what the window touches. */
static at_activation widened(const at_conv_spec *spec)
{
    const at_window *k = &spec->window;
    at_activation    wide = spec->in;
    wide.height = (spec->out.height - 1) * k->stride + k->height;
    wide.width = (spec->out.width - 1) * k->stride + k->width;
    return wide;
}

/* A way to form the weight gradient in the form of s->w. The AVX2 implementation does not like
 * windows that are larger than the picture, nor plain pictures without exactly three channels. */
static bool make_weight_way(const shape *s, const at_conv_spec *spec, uint32_t rows,
                            at_onednn_plan *plan)
{
    at_conv_form form;
    if (plan->taps) return true;
    plan->weight = make_weight(s, plan->forward);
    if (plan->weight) return true;
    shape wide = *s;
    wide.winograd.forward = wide.winograd.weight = false;
    plan->wide = widened(spec);
    memset(wide.before, 0, sizeof wide.before);
    memset(wide.after, 0, sizeof wide.after);
    if (at_onednn_plan_form(plan, spec, &form, NULL) == AT_OK && at_avx2_conv_can(spec, &form))
        return true;
    if (!describe_picture(&wide.x, &plan->wide, rows)) return false;
    dnnl_primitive_desc_t hint = make_forward(&wide, false);
    if (hint) plan->weight = make_weight(&wide, hint);
    if (hint) dnnl_primitive_desc_destroy(hint);
    return plan->weight != NULL;
}

/* Winograd's way forms tiles of 4x4 places of a 3x3 window from 36 products instead of 144, but the
 * transforms before and after slow it down: a tile costs what about 9 places cost directly, and
 * the transform of the weights as much as 16 tiles. With few channels to sum over, transforms are
 * most of the work. The rule knows sizes only, never times, so that runs repeat bit for bit. */
static bool winograd_pays(const at_conv_spec *spec, uint32_t rows)
{
    enum { TILE = 4, PLACES_OF_A_TILE = 9, TILES_OF_WEIGHTS = 16 };
    const at_activation *out = &spec->out;
    const at_window     *k = &spec->window;
    uint64_t             tiles =
        (uint64_t)rows * ((out->height + TILE - 1) / TILE) * ((out->width + TILE - 1) / TILE);
    return k->height == 3 && k->width == 3 && k->stride == 1 && !is_direct(wanted_way()) &&
           (tiles + TILES_OF_WEIGHTS) * PLACES_OF_A_TILE < rows * at_activation_area(out);
}

static void choose_ways(shape *s, const at_conv_spec *spec, uint32_t rows)
{
    enum { SUMMED_MIN = 32 };
    bool pays = winograd_pays(spec, rows);
    bool many_in = whole_channels(&spec->in) >= SUMMED_MIN;
    bool many_out = whole_channels(&spec->out) >= SUMMED_MIN;
    s->winograd.forward = pays && many_in;
    s->winograd.input = pays && many_out;
    s->winograd.weight = pays && (many_in || many_out);
}

/* Fills the plan; says what there is no fast way for, or NULL. */
static const char *make_all(shape *s, const at_conv_spec *spec, uint32_t rows, at_onednn_plan *plan)
{
    plan->forward = make_forward(s, spec->relu);
    if (!plan->forward) return "forward pass";
    s->w = *dnnl_primitive_desc_query_md(plan->forward, dnnl_query_weights_md, 0);
    if (!make_weight_way(s, spec, rows, plan)) return "gradient by weights";
    if (!spec->wants_dx) return NULL;
    plan->input = make_input(s, plan->forward);
    return plan->input && make_turn(s, plan) ? NULL : "gradient by inputs";
}

static at_err refuse(const at_conv_spec *spec, uint32_t rows, const char *what, at_fail *fail)
{
    const at_window *k = &spec->window;
    return at_fail_set(fail, AT_ERR_FAILED, "the reference engine can do it, slowly",
                       "oneDNN has no fast %s for a convolution of %u samples of %ux%ux%u to "
                       "%ux%ux%u by windows of %ux%u with stride %u and padding %u,%u,%u,%u",
                       what, rows, spec->in.channels, spec->in.height, spec->in.width,
                       spec->out.channels, spec->out.height, spec->out.width, k->height, k->width,
                       k->stride, k->top, k->left, k->bottom, k->right);
}

at_err at_onednn_plan_make(const at_conv_spec *spec, const at_conv_form *form, uint32_t rows,
                           at_onednn_plan *plan, at_fail *fail)
{
    shape s;
    assert(rows > 0);
    *plan = (at_onednn_plan){0};
    if (!at_onednn_engine() || !describe(&s, spec, form, rows))
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "oneDNN cannot describe a convolution");
    if (form) { /* else it is to suit every way */
        choose_ways(&s, spec, rows);
        plan->taps = at_onednn_taps_pay(&(at_onednn_taps){spec, form, rows});
    }
    const char *missing = make_all(&s, spec, rows, plan);
    if (!missing) return AT_OK;
    at_onednn_plan_drop(plan);
    return refuse(spec, rows, missing, fail);
}

void at_onednn_plan_drop(at_onednn_plan *plan)
{
    dnnl_primitive_desc_t all[] = {plan->forward, plan->weight, plan->input, plan->turn};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) dnnl_primitive_desc_destroy(all[i]);
    *plan = (at_onednn_plan){0};
}

at_err at_onednn_plan_form(const at_onednn_plan *plan, const at_conv_spec *spec, at_conv_form *form,
                           at_fail *fail)
{
    const dnnl_memory_desc_t *md =
        dnnl_primitive_desc_query_md(plan->forward, dnnl_query_weights_md, 0);
    const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    assert(md->ndims == 4);
    if (md->format_kind != dnnl_blocked || blocking->inner_nblks > 4 || md->offset0 != 0 ||
        md->extra.flags != dnnl_memory_extra_flag_none)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "oneDNN keeps weights in an unknown form");
    *form = at_conv_form_plain(spec); /* for the shape, which knows no padding */
    form->floats = dnnl_memory_desc_get_size(md) / sizeof(float);
    form->inner_count = (uint32_t)blocking->inner_nblks;
    for (int d = 0; d < 4; d++) form->stride[d] = (size_t)blocking->strides[d];
    for (uint32_t k = 0; k < form->inner_count; k++) {
        form->inner_size[k] = (uint32_t)blocking->inner_blks[k];
        form->inner_dim[k] = (uint32_t)blocking->inner_idxs[k];
    }
    return AT_OK;
}

#include "learn/net/net.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/text.h"

enum {
    VIEW_ALIGN = 16,        /* floats: parameters of a layer start at a cache line */
    PLAIN_CHANNELS_MAX = 3, /* convolutions read samples with up to 3 channels unblocked */
};

static size_t aligned(size_t floats)
{
    return (floats + VIEW_ALIGN - 1) / VIEW_ALIGN * VIEW_ALIGN;
}

at_net *at_net_new(at_engine engine, at_shape shape, uint32_t rows, bool reference_conv)
{
    assert(shape.features > 0);
    assert(rows > 0);
    at_net *net = calloc(1, sizeof *net);
    if (!net) return NULL;
    net->engine = engine;
    net->shape = shape;
    net->rows = rows;
    net->block = engine == AT_ENGINE_REF || reference_conv ? 0 : at_conv_onednn.block();
    net->conv = net->block == 0             ? &at_conv_ref
                : engine == AT_ENGINE_EXACT ? &at_conv_exact
                                            : &at_conv_onednn;
    if (net->block == 0) net->block = at_conv_ref.block();
    return net;
}

void at_net_free(at_net *net)
{
    if (!net) return;
    free(net->text);
    free(net);
}

static at_activation shape_of(const at_net *net, int32_t from)
{
    assert(from < (int32_t)net->count);
    if (from >= 0) return net->layer[from].out;
    const at_shape *s = &net->shape;
    if (s->channels == 0) return (at_activation){s->features, 1, 1, 1};
    return (at_activation){s->channels, s->height, s->width, 1};
}

at_activation at_net_output(const at_net *net)
{
    return shape_of(net, (int32_t)net->count - 1);
}

int32_t at_net_keep_output(at_net *net)
{
    if (net->count == 0) return AT_FROM_SAMPLES;
    net->layer[net->count - 1].kept = true;
    return (int32_t)net->count - 1;
}

at_conv_spec at_net_conv_spec(const at_layer *layer)
{
    assert(layer->kind == &at_layer_conv);
    return (at_conv_spec){.in = layer->in,
                          .out = layer->out,
                          .window = layer->spec.window,
                          .bias = layer->spec.bias,
                          .relu = layer->spec.relu,
                          .wants_dx = layer->wants_dx};
}

void at_net_layer_name(const at_layer *layer, char name[AT_LAYER_NAME_SIZE])
{
    assert(layer->kind);
    if (layer->spec.name)
        snprintf(name, AT_LAYER_NAME_SIZE, "%.30s", layer->spec.name);
    else
        snprintf(name, AT_LAYER_NAME_SIZE, "%s%u", layer->kind->name, layer->number);
}

/* Fuses a ReLU into the layer before it, if that layer can clip and has no other reader. */
static bool fuse_relu(at_net *net, const at_layer_spec *spec)
{
    if (spec->kind != &at_layer_relu || spec->from < 0) return false;
    at_layer *before = &net->layer[spec->from];
    bool      last = spec->from + 1 == (int32_t)net->count;
    if (!last || before->kept || before->spec.relu || !before->kind->fuses_relu) return false;
    before->spec.relu = true;
    return true;
}

/* The conversion layer to insert between an activation and its reader; NULL for none. */
static const at_layer_kind *conversion(const at_net *net, const at_layer_kind *reader,
                                       const at_activation *shape)
{
    if (net->block == 1) return NULL; /* everything is plain */
    if (shape->block > 1) return reader->takes_blocks ? NULL : &at_layer_flatten;
    bool many = reader == &at_layer_conv && shape->channels > PLAIN_CHANNELS_MAX;
    return reader->takes_plain && !many ? NULL : &at_layer_reorder;
}

static at_err check_width(const at_layer *layer, at_fail *fail)
{
    size_t in, out;
    bool   fits = at_size_product(layer->in.channels, at_activation_area(&layer->in), &in) &&
                at_size_product(layer->out.channels, at_activation_area(&layer->out), &out);
    if (fits && in <= AT_NET_WIDTH_MAX && out <= AT_NET_WIDTH_MAX) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "a layer may have at most %d inputs and outputs",
                       AT_NET_WIDTH_MAX);
}

/* Numbers of a tensor without padding; false on overflow: dimensions are below 2^24, but up to four
 * of them are multiplied. */
static bool tensor_numbers(const at_layer_tensor *tensor, size_t *numbers)
{
    assert(tensor->dims >= 1 && tensor->dims <= 4);
    *numbers = 1;
    for (uint32_t d = 0; d < tensor->dims; d++)
        if (!at_size_product(*numbers, tensor->shape[d], numbers)) return false;
    return *numbers <= AT_NET_PARAMS_MAX;
}

/* Places the layer's tensors after those of earlier layers, separately for parameters and for
 * statistics, which at_net_finish puts after all parameters. */
static at_err place(at_net *net, at_layer *layer, at_fail *fail)
{
    at_layer_tensor rows[AT_LAYER_TENSORS_MAX];
    size_t          count = layer->kind->tensors ? layer->kind->tensors(layer, rows) : 0;
    layer->params_at = aligned(net->trained);
    layer->stats_at = net->stats;
    for (size_t i = 0; i < count; i++) {
        size_t numbers;
        if (!tensor_numbers(&rows[i], &numbers) || net->trained > AT_NET_PARAMS_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, "make its layers narrower",
                               "the model has more than %d parameters", AT_NET_PARAMS_MAX);
        if (rows[i].role == AT_ROLE_STAT) {
            layer->stats += numbers;
            net->stats += numbers;
        } else {
            layer->params += rows[i].layout ? rows[i].layout->floats : numbers;
            net->params += numbers;
        }
    }
    if (layer->params) net->trained = layer->params_at + layer->params;
    return AT_OK;
}

static const at_kernels *pick_kernels(const at_net *net, const at_layer *layer)
{
    if (layer->kind != &at_layer_dense) return at_kernels_elementwise(net->engine);
    return at_kernels_dense(net->engine, at_activation_numbers(&layer->in),
                            at_activation_numbers(&layer->out));
}

/* The number of the next layer of a kind, from 1, for default names. */
static uint32_t number_of(const at_net *net, const at_layer_kind *kind)
{
    uint32_t number = 1;
    for (size_t i = 0; i < net->count; i++) number += net->layer[i].kind == kind;
    return number;
}

static at_err choose_layout(const at_net *net, at_layer *layer, at_fail *fail)
{
    layer->conv = net->conv;
    if (layer->kind != &at_layer_conv) return AT_OK;
    at_conv_spec spec = at_net_conv_spec(layer);
    return net->conv->choose(&spec, net->rows, &layer->layout, fail);
}

/* Whether `from` or a layer before it has parameters. */
static bool trains(const at_net *net, int32_t from)
{
    return from >= 0 && net->layer[from].trains;
}

/* Fills in everything about one layer. */
static at_err set_up(at_net *net, at_layer *layer, at_fail *fail)
{
    const at_layer_spec *spec = &layer->spec;
    layer->in = shape_of(net, spec->from);
    layer->out.block = layer->kind->gives_plain    ? 1
                       : layer->kind->gives_blocks ? net->block
                                                   : layer->in.block;
    AT_TRY(layer->kind->shape(layer, fail));
    AT_TRY(check_width(layer, fail));
    layer->number = number_of(net, layer->kind);
    layer->wants_dx = trains(net, spec->from);
    if (layer->wants_dx && layer->kind->samples_only)
        return at_fail_set(fail, AT_ERR_USAGE, "write it before the first layer with parameters",
                           "it converts samples, but a layer before it has parameters");
    layer->kernels = pick_kernels(net, layer);
    layer->elementwise = at_kernels_elementwise(net->engine);
    AT_TRY(choose_layout(net, layer, fail));
    AT_TRY(place(net, layer, fail));
    bool second = layer->kind->has_other && trains(net, spec->other);
    layer->trains = layer->params > 0 || layer->wants_dx || second;
    return AT_OK;
}

static bool same_shape(const at_activation *a, const at_activation *b)
{
    return a->channels == b->channels && a->height == b->height && a->width == b->width &&
           a->block == b->block;
}

/* Both inputs of a sum must have the same shape. */
static at_err check_other(const at_net *net, const at_layer_spec *spec, at_fail *fail)
{
    if (!spec->kind->has_other) return AT_OK;
    at_activation a = shape_of(net, spec->from), b = shape_of(net, spec->other);
    if (same_shape(&a, &b)) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "give the block a `shortcut` that makes the two shapes equal",
                       "the block ends with %ux%ux%u, but its shortcut with %ux%ux%u", a.channels,
                       a.height, a.width, b.channels, b.height, b.width);
}

static at_err convert(at_net *net, int32_t *from, const at_layer_kind *reader, at_fail *fail)
{
    at_activation        shape = shape_of(net, *from);
    const at_layer_kind *kind = conversion(net, reader, &shape);
    if (!kind) return AT_OK;
    AT_TRY(at_net_add(net, (at_layer_spec){.kind = kind, .from = *from}, fail));
    *from = (int32_t)net->count - 1;
    return AT_OK;
}

/* Some layers after a ReLU mask its gradient in their own backward, which saves a pass. */
static void share_mask(at_net *net, at_layer *layer)
{
    int32_t from = layer->spec.from;
    if (!layer->kind->masks_relu || from < 0) return;
    at_layer *before = &net->layer[from];
    layer->masks_input = before->spec.relu && !before->kept && from + 1 == (int32_t)net->count;
    before->relu_done = layer->masks_input;
}

static at_err append(at_net *net, at_layer_spec spec, at_fail *fail)
{
    AT_TRY(convert(net, &spec.from, spec.kind, fail));
    if (spec.kind->has_other) AT_TRY(convert(net, &spec.other, spec.kind, fail));
    AT_TRY(check_other(net, &spec, fail));
    if (net->count == AT_NET_LAYERS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "a model may have at most %d layers",
                           AT_NET_LAYERS_MAX);
    at_layer *layer = &net->layer[net->count];
    *layer = (at_layer){.kind = spec.kind, .spec = spec};
    AT_TRY(set_up(net, layer, fail));
    share_mask(net, layer);
    net->count++;
    return AT_OK;
}

at_err at_net_add(at_net *net, at_layer_spec spec, at_fail *fail)
{
    int32_t last = (int32_t)net->count - 1;
    assert(spec.kind && spec.kind->shape);
    if (spec.from == AT_FROM_LAST) spec.from = last;
    if (spec.other == AT_FROM_LAST) spec.other = last;
    if (fuse_relu(net, &spec)) return AT_OK;
    at_err err = append(net, spec, fail);
    if (!err || !fail) return err;
    if (spec.line) return at_fail_wrap(fail, "line %u: %s", spec.line, spec.kind->name);
    return at_fail_wrap(fail, "%s", spec.kind->name);
}

at_err at_net_finish(at_net *net, at_fail *fail)
{
    if (net->count == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "add at least one layer", "the net has no layers");
    at_activation out = at_net_output(net);
    if (out.block > 1) {
        AT_TRY(at_net_add(net, (at_layer_spec){.kind = &at_layer_flatten, .from = AT_FROM_LAST},
                          fail));
        out = at_net_output(net);
    }
    size_t numbers = at_activation_numbers(&out);
    if (numbers < net->shape.classes)
        return at_fail_set(fail, AT_ERR_USAGE, "write `dense classes` as the last layer",
                           "the last layer has %zu outputs (%ux%ux%u), but there are %u classes",
                           numbers, out.channels, out.height, out.width, net->shape.classes);
    if (!net->layer[net->count - 1].trains)
        return at_fail_set(fail, AT_ERR_USAGE, "add a conv or dense layer",
                           "nothing to train: no layer has parameters");
    net->trained = aligned(net->trained);
    net->flat = net->trained + net->stats;
    assert(net->flat >= net->params + net->stats);
    return AT_OK;
}

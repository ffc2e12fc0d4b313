/* The ONNX operators of each kind of layer. A new kind is one function and one line of the table.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model_io/onnx_graph.h"

typedef at_onnx_value write_layer(at_onnx_graph *graph, const at_layer *layer, at_onnx_value x);

/* ---- flat values and images ------------------------------------------------------------------ */

at_onnx_value at_onnx_flatten(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    if (x.flat) return x;
    Onnx__NodeProto *node = at_onnx_node(g, layer, "Flatten", "flat");
    at_onnx_add_input(node, x.name);
    at_onnx_int(g, node, "axis", 1);
    return (at_onnx_value){at_onnx_output(node), true};
}

/* A dimension of 0 is copied from the input: the batch size stays open. */
static at_onnx_value reshape(at_onnx_graph *g, const at_layer *layer, at_onnx_value x,
                             const char *suffix, const int64_t *shape, size_t dims)
{
    char             name[32] = "";
    Onnx__NodeProto *node = at_onnx_node(g, layer, "Reshape", suffix);
    assert(strlen(suffix) + sizeof "_shape" <= sizeof name);
    assert(shape[0] == 0);
    snprintf(name, sizeof name, "%s_shape", suffix);
    at_onnx_add_input(node, x.name);
    at_onnx_add_input(node, at_onnx_int_constant(g, layer, name, shape, dims));
    return (at_onnx_value){at_onnx_output(node), dims == 2};
}

static at_onnx_value to_image(at_onnx_graph *g, const at_layer *layer, at_onnx_value x,
                              const char *suffix, const at_activation *form)
{
    int64_t shape[] = {0, form->channels, form->height, form->width};
    return reshape(g, layer, x, suffix, shape, 4);
}

static at_onnx_value as_image(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    return x.flat ? to_image(g, layer, x, "picture", &layer->in) : x;
}

/* ---- layers with weights --------------------------------------------------------------------- */

static at_onnx_value write_dense(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    x = at_onnx_flatten(g, layer, x);
    Onnx__NodeProto *node = at_onnx_node(g, layer, "Gemm", "y");
    at_onnx_add_input(node, x.name);
    at_onnx_add_input(node, at_onnx_weight(g, layer, "weight"));
    at_onnx_add_input(node, at_onnx_weight(g, layer, "bias"));
    at_onnx_int(g, node, "transB", 1);
    return (at_onnx_value){at_onnx_output(node), true};
}

static void set_window(at_onnx_graph *g, Onnx__NodeProto *node, const at_window *w)
{
    int64_t shape[] = {w->height, w->width}, strides[] = {w->stride, w->stride};
    int64_t pads[] = {w->top, w->left, w->bottom, w->right};
    assert(w->height > 0 && w->width > 0);
    at_onnx_ints(g, node, "kernel_shape", shape, 2);
    at_onnx_ints(g, node, "strides", strides, 2);
    at_onnx_ints(g, node, "pads", pads, 4);
}

static at_onnx_value write_conv(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    x = as_image(g, layer, x);
    Onnx__NodeProto *node = at_onnx_node(g, layer, "Conv", "y");
    at_onnx_add_input(node, x.name);
    at_onnx_add_input(node, at_onnx_weight(g, layer, "weight"));
    if (layer->spec.bias) at_onnx_add_input(node, at_onnx_weight(g, layer, "bias"));
    set_window(g, node, &layer->spec.window);
    return (at_onnx_value){at_onnx_output(node), false};
}

static at_onnx_value write_bn(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    static const char *const tensors[] = {"weight", "bias", "running_mean", "running_var"};
    Onnx__NodeProto         *node = at_onnx_node(g, layer, "BatchNormalization", "y");
    at_onnx_add_input(node, x.name);
    for (int i = 0; i < 4; i++) at_onnx_add_input(node, at_onnx_weight(g, layer, tensors[i]));
    at_onnx_float(g, node, "epsilon", (float)layer->spec.epsilon);
    return (at_onnx_value){at_onnx_output(node), x.flat};
}

/* Per channel: x * weight, or x + bias. */
static at_onnx_value by_channel(at_onnx_graph *g, const at_layer *layer, at_onnx_value x,
                                const char *op, const char *suffix, const char *weight)
{
    int64_t          shape[] = {1, layer->in.channels, 1, 1};
    Onnx__NodeProto *node = at_onnx_node(g, layer, op, suffix);
    at_onnx_add_input(node, x.name);
    at_onnx_add_input(node, at_onnx_weight_as(g, layer, weight, shape, x.flat ? 2 : 4));
    return (at_onnx_value){at_onnx_output(node), x.flat};
}

/* Mean and deviation of a group are those of one channel of an image with one channel per group,
 * for which every version of ONNX has an operator. */
static at_onnx_value normalize_groups(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    uint32_t groups = layer->spec.groups;
    int64_t  shape[] = {0, groups, -1};
    float   *ones = at_arena_get(&g->arena, groups, sizeof *ones);
    float   *zeros = at_arena_get(&g->arena, groups, sizeof *zeros);
    assert(ones && zeros);
    for (uint32_t i = 0; i < groups; i++) ones[i] = 1;
    x = reshape(g, layer, x, "groups", shape, 3);
    Onnx__NodeProto *node = at_onnx_node(g, layer, "InstanceNormalization", "normal");
    at_onnx_add_input(node, x.name);
    at_onnx_add_input(node, at_onnx_float_constant(g, layer, "ones", ones, groups));
    at_onnx_add_input(node, at_onnx_float_constant(g, layer, "zeros", zeros, groups));
    at_onnx_float(g, node, "epsilon", (float)layer->spec.epsilon);
    return (at_onnx_value){at_onnx_output(node), false};
}

static at_onnx_value write_gn(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    bool    flat = x.flat;
    int64_t shape[] = {0, layer->in.channels};
    x = normalize_groups(g, layer, x);
    x = flat ? reshape(g, layer, x, "channels", shape, 2)
             : to_image(g, layer, x, "channels", &layer->in);
    x = by_channel(g, layer, x, "Mul", "scaled", "weight");
    return by_channel(g, layer, x, "Add", "y", "bias");
}

/* ---- layers without weights ------------------------------------------------------------------ */

static at_onnx_value write_relu(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    Onnx__NodeProto *node = at_onnx_node(g, layer, "Relu", "relu");
    at_onnx_add_input(node, x.name);
    return (at_onnx_value){at_onnx_output(node), x.flat};
}

static at_onnx_value write_maxpool(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    x = as_image(g, layer, x);
    Onnx__NodeProto *node = at_onnx_node(g, layer, "MaxPool", "y");
    at_onnx_add_input(node, x.name);
    set_window(g, node, &layer->spec.window);
    return (at_onnx_value){at_onnx_output(node), false};
}

static bool covers_image(const at_layer *layer)
{
    const at_window *w = &layer->spec.window;
    bool             padded = w->top || w->left || w->bottom || w->right;
    return w->height == layer->in.height && w->width == layer->in.width && !padded;
}

static at_onnx_value write_avgpool(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    x = as_image(g, layer, x);
    bool             whole = covers_image(layer);
    Onnx__NodeProto *node =
        at_onnx_node(g, layer, whole ? "GlobalAveragePool" : "AveragePool", "y");
    at_onnx_add_input(node, x.name);
    if (!whole) {
        set_window(g, node, &layer->spec.window);
        at_onnx_int(g, node, "count_include_pad", 0);
    }
    return (at_onnx_value){at_onnx_output(node), false};
}

static at_onnx_value write_nothing(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    (void)g;
    (void)layer;
    return x;
}

static at_onnx_value write_flatten(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    return at_onnx_flatten(g, layer, x);
}

static at_onnx_value write_reshape(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    return to_image(g, layer, x, "y", &layer->out);
}

/* Large enough that floor(from * scale) is `to`. */
static float scale_of(uint32_t from, uint32_t to)
{
    float scale = (float)to / (float)from;
    assert(from > 0 && to > 0);
    while (floorf((float)from * scale) < (float)to) scale = nextafterf(scale, INFINITY);
    return scale;
}

static at_onnx_value write_resize(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    x = as_image(g, layer, x);
    float            scales[] = {1, 1, scale_of(layer->in.height, layer->out.height),
                                 scale_of(layer->in.width, layer->out.width)};
    Onnx__NodeProto *node = at_onnx_node(g, layer, "Resize", "y");
    at_onnx_add_input(node, x.name);
    at_onnx_add_input(node, at_onnx_text(g, "%s", "")); /* no region of interest */
    at_onnx_add_input(node, at_onnx_float_constant(g, layer, "scales", scales, 4));
    at_onnx_string(g, node, "mode", "linear");
    at_onnx_string(g, node, "coordinate_transformation_mode", "half_pixel");
    return (at_onnx_value){at_onnx_output(node), false};
}

static at_onnx_value write_rgb(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    if (layer->in.channels == layer->out.channels) return x;
    Onnx__NodeProto *node = at_onnx_node(g, layer, "Concat", "y");
    x = as_image(g, layer, x);
    for (uint32_t i = 0; i < layer->out.channels; i++) at_onnx_add_input(node, x.name);
    at_onnx_int(g, node, "axis", 1);
    return (at_onnx_value){at_onnx_output(node), false};
}

static at_onnx_value value_of(const at_onnx_graph *g, int32_t from)
{
    assert(from >= AT_FROM_SAMPLES && from < (int32_t)g->net->count);
    return from == AT_FROM_SAMPLES ? g->input : g->value[from];
}

/* The two inputs have the same shape, but one of them may be flat. */
static at_onnx_value write_add(at_onnx_graph *g, const at_layer *layer, at_onnx_value x)
{
    at_onnx_value other = value_of(g, layer->spec.other);
    if (x.flat != other.flat) {
        x = as_image(g, layer, x);
        other = other.flat ? to_image(g, layer, other, "other", &layer->in) : other;
    }
    Onnx__NodeProto *node = at_onnx_node(g, layer, "Add", "y");
    at_onnx_add_input(node, x.name);
    at_onnx_add_input(node, other.name);
    return (at_onnx_value){at_onnx_output(node), x.flat};
}

/* ---- table ----------------------------------------------------------------------------------- */

static const struct {
    const at_layer_kind *kind;
    write_layer         *write;
} kinds[] = {
    {&at_layer_dense, write_dense},     {&at_layer_relu, write_relu},
    {&at_layer_conv, write_conv},       {&at_layer_maxpool, write_maxpool},
    {&at_layer_avgpool, write_avgpool}, {&at_layer_bn, write_bn},
    {&at_layer_gn, write_gn},           {&at_layer_dropout, write_nothing},
    {&at_layer_add, write_add},         {&at_layer_flatten, write_flatten},
    {&at_layer_reorder, write_nothing}, {&at_layer_reshape, write_reshape},
    {&at_layer_resize, write_resize},   {&at_layer_rgb, write_rgb},
};

at_err at_onnx_layer(at_onnx_graph *g, size_t index, at_fail *fail)
{
    const at_layer *layer = &g->net->layer[index];
    at_onnx_value   x = value_of(g, layer->spec.from);
    size_t          i = 0, count = sizeof kinds / sizeof *kinds;
    while (i < count && kinds[i].kind != layer->kind) i++;
    if (i == count)
        return at_fail_set(fail, AT_ERR_USAGE, "export it as safetensors",
                           "a layer of kind %s has no ONNX operator", layer->kind->name);
    g->value[index] = kinds[i].write(g, layer, x);
    if (layer->spec.relu) g->value[index] = write_relu(g, layer, g->value[index]);
    return AT_OK;
}

#include "model_io/onnx_graph.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
    NODES_PER_LAYER = 7,        /* group norm of a flat value, with its ReLU */
    INITIALIZERS_PER_LAYER = 8, /* the same */
    INPUTS_MAX = 5,             /* batch norm */
    ATTRIBUTES_MAX = 6,
    TEXT_MAX = 96,
    BYTES_PER_LAYER = 32 << 10, /* for nodes, names and small lists; about half is used */
};

at_err at_onnx_graph_init(at_onnx_graph *g, const at_net *net, at_fail *fail)
{
    size_t layers = net->count + 1; /* one more for nodes outside layers */
    size_t constants = 0;           /* bytes of the ones and zeros of group norms, twice */
    *g = (at_onnx_graph){.net = net,
                         .nodes_max = layers * NODES_PER_LAYER,
                         .initializers_max = layers * INITIALIZERS_PER_LAYER};
    for (size_t i = 0; i < net->count; i++)
        constants += 4 * sizeof(float) * net->layer[i].spec.groups;
    if (!at_arena_init(&g->arena, layers * BYTES_PER_LAYER + constants))
        return at_fail_memory_for(fail, "for the ONNX file");
    g->node = at_arena_get(&g->arena, g->nodes_max, sizeof *g->node);
    g->initializer = at_arena_get(&g->arena, g->initializers_max, sizeof *g->initializer);
    assert(g->node && g->initializer);
    return AT_OK;
}

void at_onnx_graph_deinit(at_onnx_graph *g)
{
    at_arena_deinit(&g->arena);
    *g = (at_onnx_graph){0};
}

/* Never fails: the arena is large enough for any net with this many layers. */
static void *take(at_onnx_graph *g, size_t count, size_t size)
{
    void *place = at_arena_get(&g->arena, count, size);
    assert(place);
    return place;
}

char *at_onnx_text(at_onnx_graph *g, const char *format, ...)
{
    char    text[TEXT_MAX];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    assert(length >= 0 && (size_t)length < sizeof text);
    return memcpy(take(g, 1, (size_t)length + 1), text, (size_t)length + 1);
}

static char *name_of(at_onnx_graph *g, const at_layer *layer, const char *suffix)
{
    char name[AT_LAYER_NAME_SIZE];
    at_net_layer_name(layer, name);
    return at_onnx_text(g, "%s.%s", name, suffix);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

Onnx__NodeProto *at_onnx_node(at_onnx_graph *g, const at_layer *layer, const char *op,
                              const char *suffix)
{
    Onnx__NodeProto *node = take(g, 1, sizeof *node);
    onnx__node_proto__init(node);
    assert(g->nodes < g->nodes_max);
    g->node[g->nodes++] = node;
    node->op_type = at_onnx_text(g, "%s", op);
    node->input = take(g, INPUTS_MAX, sizeof *node->input);
    node->output = take(g, 1, sizeof *node->output);
    node->output[0] = name_of(g, layer, suffix);
    node->n_output = 1;
    node->name = node->output[0];
    node->attribute = take(g, ATTRIBUTES_MAX, sizeof(void *));
    return node;
}

void at_onnx_add_input(Onnx__NodeProto *node, char *name)
{
    assert(node->n_input < INPUTS_MAX && name);
    node->input[node->n_input++] = name;
}

char *at_onnx_output(const Onnx__NodeProto *node)
{
    assert(node->n_output == 1);
    return node->output[0];
}

static Onnx__AttributeProto *attribute(at_onnx_graph *g, Onnx__NodeProto *node, const char *name,
                                       Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = take(g, 1, sizeof *a);
    onnx__attribute_proto__init(a);
    assert(node->n_attribute < ATTRIBUTES_MAX);
    node->attribute[node->n_attribute++] = a;
    a->name = at_onnx_text(g, "%s", name);
    a->has_type = true;
    a->type = type;
    return a;
}

void at_onnx_int(at_onnx_graph *g, Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = attribute(g, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = true;
    a->i = value;
}

void at_onnx_float(at_onnx_graph *g, Onnx__NodeProto *node, const char *name, float value)
{
    Onnx__AttributeProto *a =
        attribute(g, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = true;
    a->f = value;
}

void at_onnx_string(at_onnx_graph *g, Onnx__NodeProto *node, const char *name, const char *word)
{
    Onnx__AttributeProto *a =
        attribute(g, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = true;
    a->s.len = strlen(word);
    a->s.data = (uint8_t *)at_onnx_text(g, "%s", word);
}

void at_onnx_ints(at_onnx_graph *g, Onnx__NodeProto *node, const char *name, const int64_t *value,
                  size_t count)
{
    Onnx__AttributeProto *a = attribute(g, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = count;
    a->ints = memcpy(take(g, count, sizeof *value), value, count * sizeof *value);
}

/* ---- weights and constants ------------------------------------------------------------------- */

static char *initializer(at_onnx_graph *g, char *name, int32_t type, const int64_t *shape,
                         size_t dims, const void *bytes, size_t size)
{
    Onnx__TensorProto *tensor = take(g, 1, sizeof *tensor);
    onnx__tensor_proto__init(tensor);
    assert(g->initializers < g->initializers_max);
    g->initializer[g->initializers++] = tensor;
    tensor->name = name;
    tensor->has_data_type = true;
    tensor->data_type = type;
    tensor->n_dims = dims;
    tensor->dims = memcpy(take(g, dims, sizeof *shape), shape, dims * sizeof *shape);
    tensor->has_raw_data = true;
    tensor->raw_data.len = size;
    tensor->raw_data.data = (uint8_t *)(uintptr_t)bytes; /* packing only reads it */
    return name;
}

static const at_tensor *find(const at_onnx_graph *g, const char *name)
{
    for (size_t i = 0; i < g->tensors_count; i++)
        if (strcmp(g->tensors[i].name, name) == 0) return &g->tensors[i];
    assert(!"every layer has the tensors of its kind");
    return NULL;
}

char *at_onnx_weight_as(at_onnx_graph *g, const at_layer *layer, const char *suffix,
                        const int64_t *shape, size_t dims)
{
    char            *name = name_of(g, layer, suffix);
    const at_tensor *tensor = find(g, name);
    size_t           numbers = 1, wanted = 1;
    for (size_t d = 0; d < tensor->dims; d++) numbers *= tensor->shape[d];
    for (size_t d = 0; d < dims; d++) wanted *= (size_t)shape[d];
    assert(numbers == wanted);
    return initializer(g, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, shape, dims,
                       g->plain + tensor->at, numbers * sizeof(float));
}

char *at_onnx_weight(at_onnx_graph *g, const at_layer *layer, const char *suffix)
{
    const at_tensor *tensor = find(g, name_of(g, layer, suffix));
    int64_t          shape[4];
    for (size_t d = 0; d < tensor->dims; d++) shape[d] = tensor->shape[d];
    return at_onnx_weight_as(g, layer, suffix, shape, tensor->dims);
}

char *at_onnx_int_constant(at_onnx_graph *g, const at_layer *layer, const char *suffix,
                           const int64_t *value, size_t count)
{
    int64_t  shape = (int64_t)count;
    int64_t *copy = memcpy(take(g, count, sizeof *value), value, count * sizeof *value);
    return initializer(g, name_of(g, layer, suffix), ONNX__TENSOR_PROTO__DATA_TYPE__INT64, &shape,
                       1, copy, count * sizeof *value);
}

char *at_onnx_float_constant(at_onnx_graph *g, const at_layer *layer, const char *suffix,
                             const float *value, size_t count)
{
    int64_t shape = (int64_t)count;
    float  *copy = take(g, count, sizeof *copy);
    if (count) memcpy(copy, value, count * sizeof *copy);
    return initializer(g, name_of(g, layer, suffix), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &shape,
                       1, copy, count * sizeof *copy);
}

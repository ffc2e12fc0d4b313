/* A net as TensorBoard's graph: samples, layer after layer, loss. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "record/sinks/tfevents.h"
#include "tensorboard.pb-c.h"

enum { ATTRIBUTES = 3, DIMS = 4, INPUTS = 2, ENDS = 3 /* samples, labels, loss */ };

/* One node and everything it points to. */
typedef struct node {
    Tb__Node            message;
    Tb__AttributeEntry  entry[ATTRIBUTES], *entries[ATTRIBUTES];
    Tb__Attribute       attribute[ATTRIBUTES];
    Tb__Attribute__List list;
    Tb__Shape           shape, *shapes[1];
    Tb__Shape__Dim      dim[DIMS], *dims[DIMS];
    char               *inputs[INPUTS];
} node;

static void name_node(node *n, const char *name, const char *op)
{
    tb__node__init(&n->message);
    n->message.name = (char *)name;
    n->message.op = (char *)op;
    n->message.input = n->inputs;
    n->message.attr = n->entries;
}

static void add_input(node *n, const char *name)
{
    assert(n->message.n_input < INPUTS);
    n->inputs[n->message.n_input++] = (char *)name;
}

static Tb__Attribute *add_attribute(node *n, const char *key)
{
    size_t index = n->message.n_attr++;
    assert(index < ATTRIBUTES);
    tb__attribute_entry__init(&n->entry[index]);
    tb__attribute__init(&n->attribute[index]);
    n->entry[index].key = (char *)key;
    n->entry[index].value = &n->attribute[index];
    n->entries[index] = &n->entry[index];
    return &n->attribute[index];
}

/* The shape of its output, as the edges of the picture show it; first the samples of a batch. */
static void add_shape(node *n, const uint32_t shape[3])
{
    Tb__Attribute *attribute = add_attribute(n, "_output_shapes");
    size_t         dims = shape[1] * shape[2] == 1 ? 2 : DIMS; /* or a line of numbers */
    tb__shape__init(&n->shape);
    tb__attribute__list__init(&n->list);
    for (size_t i = 0; i < dims; i++) {
        tb__shape__dim__init(&n->dim[i]);
        n->dim[i].size = i == 0 ? -1 : (int64_t)shape[i - 1];
        n->dims[i] = &n->dim[i];
    }
    n->shape.dim = n->dims;
    n->shape.n_dim = dims;
    n->shapes[0] = &n->shape;
    n->list.shape = n->shapes;
    n->list.n_shape = 1;
    attribute->value_case = TB__ATTRIBUTE__VALUE_LIST;
    attribute->list = &n->list;
}

static void add_text(node *n, const char *key, const char *text)
{
    Tb__Attribute *attribute = add_attribute(n, key);
    attribute->value_case = TB__ATTRIBUTE__VALUE_S;
    attribute->s = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static void add_number(node *n, const char *key, uint64_t number)
{
    Tb__Attribute *attribute = add_attribute(n, key);
    attribute->value_case = TB__ATTRIBUTE__VALUE_I;
    attribute->i = (int64_t)number;
}

static void describe(node *n, const at_run_layer *layers, size_t index)
{
    const at_run_layer *layer = &layers[index];
    name_node(n, layer->name, layer->kind);
    for (int i = 0; i < INPUTS; i++) {
        if (layer->from[i] == AT_RUN_LAYER_NONE) continue;
        assert(layer->from[i] < (int32_t)index); /* a layer reads what is before it */
        add_input(n, layer->from[i] < 0 ? "samples" : layers[layer->from[i]].name);
    }
    add_shape(n, layer->shape);
    if (*layer->detail) add_text(n, "detail", layer->detail);
    if (layer->parameters > 0) add_number(n, "parameters", layer->parameters);
}

static void describe_ends(node *ends, const at_run_layer *last)
{
    name_node(&ends[0], "samples", "Placeholder");
    name_node(&ends[1], "labels", "Placeholder");
    name_node(&ends[2], "loss", "softmax cross-entropy");
    add_input(&ends[2], last->name);
    add_input(&ends[2], "labels");
}

/* The message holds the graph as bytes of another message. */
static at_err put_graph(at_tfevents *file, const Tb__GraphDef *graph, at_fail *fail)
{
    size_t   size = tb__graph_def__get_packed_size(graph);
    uint8_t *bytes = malloc(size);
    if (!bytes) return at_fail_memory_for(fail, "for the graph");
    tb__graph_def__pack(graph, bytes);
    Tb__Event event = TB__EVENT__INIT;
    event.what_case = TB__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = (ProtobufCBinaryData){size, bytes};
    at_err err = at_tfevents_put(file, 0, &event, fail);
    free(bytes);
    return err;
}

at_err at_tfevents_graph(at_tfevents *file, const at_run_layer *layers, size_t count, at_fail *fail)
{
    assert(count >= 1);
    Tb__GraphDef           graph = TB__GRAPH_DEF__INIT;
    Tb__GraphDef__Versions versions = TB__GRAPH_DEF__VERSIONS__INIT;
    size_t                 all = count + ENDS;
    node                  *nodes = calloc(all, sizeof *nodes);
    Tb__Node             **places = calloc(all, sizeof *places);
    at_err                 err = nodes && places ? AT_OK : AT_ERR_FAILED;
    if (err) at_fail_set(fail, err, NULL, "not enough memory for the graph");
    if (!err) {
        for (size_t i = 0; i < count; i++) describe(&nodes[i], layers, i);
        describe_ends(nodes + count, &layers[count - 1]);
        for (size_t i = 0; i < all; i++) places[i] = &nodes[i].message;
        versions.producer = 1;
        graph.versions = &versions;
        graph.node = places;
        graph.n_node = all;
        err = put_graph(file, &graph, fail);
    }
    free(places);
    free(nodes);
    return err;
}

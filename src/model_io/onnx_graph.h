/* onnx_graph.h - builds the graph of an ONNX file. Internal to model_io/onnx*.c.
 *
 * Nodes and strings are allocated from one arena; weights are referenced, not copied. A value is
 * the named input or output of a node: an image (batch, channels, height, width), or flat (batch,
 * numbers).
 */
#ifndef AT_MODEL_IO_ONNX_GRAPH_H
#define AT_MODEL_IO_ONNX_GRAPH_H

#include <stdbool.h>

#include "base/arena.h"
#include "learn/net/net.h"
#include "onnx.pb-c.h"

typedef struct at_onnx_value {
    char *name;
    bool  flat;
} at_onnx_value;

typedef struct at_onnx_graph {
    const at_net       *net;
    const at_tensor    *tensors; /* layout of `plain` */
    size_t              tensors_count;
    const float        *plain;
    at_arena            arena;
    Onnx__NodeProto   **node;
    Onnx__TensorProto **initializer;
    size_t              nodes, initializers, nodes_max, initializers_max;
    at_onnx_value       input;
    at_onnx_value       value[AT_NET_LAYERS_MAX]; /* output of each layer */
} at_onnx_graph;

/* Allocates the graph of a net. AT_ERR_FAILED: out of memory. */
at_err at_onnx_graph_init(at_onnx_graph *graph, const at_net *net, at_fail *fail);
/* Releases it; accepts a zeroed one. */
void at_onnx_graph_deinit(at_onnx_graph *graph);

/* Formats a string into the arena. */
char *at_onnx_text(at_onnx_graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends a node with one output, LAYER.suffix. */
Onnx__NodeProto *at_onnx_node(at_onnx_graph *graph, const at_layer *layer, const char *op,
                              const char *suffix);
/* Adds an input; the name is borrowed. */
void at_onnx_add_input(Onnx__NodeProto *node, char *name);
/* The name of a node's output. */
char *at_onnx_output(const Onnx__NodeProto *node);

/* Add an attribute to a node. */
void at_onnx_int(at_onnx_graph *graph, Onnx__NodeProto *node, const char *name, int64_t value);
void at_onnx_float(at_onnx_graph *graph, Onnx__NodeProto *node, const char *name, float value);
void at_onnx_string(at_onnx_graph *graph, Onnx__NodeProto *node, const char *name,
                    const char *word);
void at_onnx_ints(at_onnx_graph *graph, Onnx__NodeProto *node, const char *name,
                  const int64_t *value, size_t count);

/* Adds a weight of a layer ("weight", "bias") as an initializer; returns its name. */
char *at_onnx_weight(at_onnx_graph *graph, const at_layer *layer, const char *name);
/* The same in another shape of the same size. */
char *at_onnx_weight_as(at_onnx_graph *graph, const at_layer *layer, const char *name,
                        const int64_t *shape, size_t dims);
/* Add a constant vector, LAYER.suffix; return its name. The numbers are copied. */
char *at_onnx_int_constant(at_onnx_graph *graph, const at_layer *layer, const char *suffix,
                           const int64_t *value, size_t count);
char *at_onnx_float_constant(at_onnx_graph *graph, const at_layer *layer, const char *suffix,
                             const float *value, size_t count);

/* Appends the nodes of one layer and sets its value. AT_ERR_USAGE when its kind has no operator. */
at_err at_onnx_layer(at_onnx_graph *graph, size_t index, at_fail *fail);

/* The value in flat form; appends a node if necessary. */
at_onnx_value at_onnx_flatten(at_onnx_graph *graph, const at_layer *layer, at_onnx_value value);

#endif

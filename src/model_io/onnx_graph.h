/* onnx_graph.h - the graph of an ONNX file while it grows. Internal to world/onnx*.c.
 *
 * Nodes and texts come from one arena; numbers of weights stay where they are and are only pointed
 * at. A value is what flows between nodes; it goes by its name and is either a picture (batch,
 * channels, height, width) or a line of numbers (batch, numbers).
 */
#ifndef AT_MODEL_IO_ONNX_GRAPH_H
#define AT_MODEL_IO_ONNX_GRAPH_H

#include <stdbool.h>

#include "base/arena.h"
#include "learn/net/net.h"
#include "onnx.pb-c.h"

typedef struct at_onnx_value {
    char *name;
    bool  line;
} at_onnx_value;

typedef struct at_onnx_graph {
    const at_net       *net;
    const at_tensor    *tensors; /* what lies where in `plain` */
    size_t              tensors_count;
    const float        *plain;
    at_arena            arena;
    Onnx__NodeProto   **node;
    Onnx__TensorProto **initializer;
    size_t              nodes, initializers, nodes_max, initializers_max;
    at_onnx_value       input;
    at_onnx_value       value[AT_NET_LAYERS_MAX]; /* what comes out of each layer */
} at_onnx_graph;

/* Room for the graph of a net. AT_ERR_FAILED: no memory. */
at_err at_onnx_graph_init(at_onnx_graph *graph, const at_net *net, at_fail *fail);
/* Releases it; accepts a zeroed one. */
void at_onnx_graph_deinit(at_onnx_graph *graph);

/* A copy in the arena, printf-like. */
char *at_onnx_text(at_onnx_graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends a node with one output, LAYER.suffix. */
Onnx__NodeProto *at_onnx_node(at_onnx_graph *graph, const at_layer *layer, const char *op,
                              const char *suffix);
/* Adds an input; the name is borrowed. */
void at_onnx_reads(Onnx__NodeProto *node, char *name);
/* The name of its output. */
char *at_onnx_output(const Onnx__NodeProto *node);

/* Attributes of a node. */
void at_onnx_int(at_onnx_graph *graph, Onnx__NodeProto *node, const char *name, int64_t value);
void at_onnx_float(at_onnx_graph *graph, Onnx__NodeProto *node, const char *name, float value);
void at_onnx_word(at_onnx_graph *graph, Onnx__NodeProto *node, const char *name, const char *word);
void at_onnx_ints(at_onnx_graph *graph, Onnx__NodeProto *node, const char *name,
                  const int64_t *value, size_t count);

/* A weight of a layer ("weight", "bias") as an initializer, in its own shape; its name. */
char *at_onnx_weight(at_onnx_graph *graph, const at_layer *layer, const char *name);
/* The same in another shape with as many numbers. */
char *at_onnx_weight_as(at_onnx_graph *graph, const at_layer *layer, const char *name,
                        const int64_t *shape, size_t dims);
/* Numbers that are no weights: LAYER.suffix. They are copied. */
char *at_onnx_whole(at_onnx_graph *graph, const at_layer *layer, const char *suffix,
                    const int64_t *value, size_t count);
char *at_onnx_reals(at_onnx_graph *graph, const at_layer *layer, const char *suffix,
                    const float *value, size_t count);

/* Appends what one layer computes and sets its value. AT_ERR_USAGE when there is no operator for
 * its kind. */
at_err at_onnx_layer(at_onnx_graph *graph, size_t index, at_fail *fail);

/* The value as a line of numbers, through a node of its own if need be. */
at_onnx_value at_onnx_as_line(at_onnx_graph *graph, const at_layer *layer, at_onnx_value value);

#endif

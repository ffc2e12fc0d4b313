/* graph.h - buffer plan of a net: which buffers its layers read and write.
 *
 * Forward, every output that backward reads has its own buffer; layers that can work in place share
 * the buffer of the layer before them. Backward, the gradient of an output lives only from the
 * layer that writes it to the one that reads it, so a few buffers are reused. A net that is only
 * scored reuses output buffers, too. The plan is made once.
 */
#ifndef AT_LEARN_NET_GRAPH_H
#define AT_LEARN_NET_GRAPH_H

#include "learn/net/net.h"

enum { AT_NO_BUFFER = -1 };

/* into += from; first into <- copy, unless copy is AT_NO_BUFFER. */
typedef struct at_graph_sum {
    int32_t into, from, copy;
} at_graph_sum;

typedef struct at_graph_step {
    int32_t y;       /* forward: its output; may be the buffer of the layer before */
    int32_t dy;      /* backward: gradient of its output; AT_NO_BUFFER: not needed */
    int32_t dy_copy; /* buffer to copy to dy first, because dy has other readers, or AT_NO_BUFFER */
    int32_t dx;      /* backward: gradient of its input, or AT_NO_BUFFER */
    int32_t dx_copy; /* buffer to copy to dx first, before backward adds to it, or AT_NO_BUFFER */
    at_write     dx_write;
    at_graph_sum sum[2]; /* `sums` additions after its backward */
    uint32_t     sums;
} at_graph_step;

typedef struct at_graph {
    size_t        count; /* of layers */
    at_graph_step step[AT_NET_LAYERS_MAX];
    size_t        outputs, gradients;          /* number of buffers of each kind */
    size_t        output[AT_NET_LAYERS_MAX];   /* floats per sample of each */
    size_t        gradient[AT_NET_LAYERS_MAX]; /* the same; gradient[0] is the logits' buffer,
                                                  * which dy of the last layer overwrites */
} at_graph;

/* NULL: no memory. */
at_graph *at_graph_new(const at_net *net, at_model_use use);
void      at_graph_free(at_graph *graph); /* accepts NULL */

#endif

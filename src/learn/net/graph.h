/* graph.h - which buffers the layers of a net work in.
 *
 * On the way forward every output that is read on the way back has a buffer of its own; layers that
 * can work in place share the one before them. On the way back gradients of outputs live only from
 * the layer that writes them to the one that reads them, so a few buffers take turns. A net that is
 * only scored lets its outputs take turns, too. All of this is worked out once.
 */
#ifndef AT_LEARN_NET_GRAPH_H
#define AT_LEARN_NET_GRAPH_H

#include "learn/net/net.h"

enum { AT_NO_BUFFER = -1 };

/* into += from, after into <- copy where that is a buffer. */
typedef struct at_graph_sum {
    int32_t into, from, copy;
} at_graph_sum;

typedef struct at_graph_step {
    int32_t      y;       /* forward: its output; may be that of the layer before */
    int32_t      dy;      /* backward: gradient by its output; AT_NO_BUFFER: not asked for */
    int32_t      dy_copy; /* dy is still read by others: work on a copy, here */
    int32_t      dx;      /* backward: gradient by its input, or AT_NO_BUFFER */
    int32_t      dx_copy; /* buffer that dx is a copy of before anything is added, or none */
    at_write     dx_write;
    at_graph_sum sum[2]; /* to be done after its backward, `sums` of them */
    uint32_t     sums;
} at_graph_step;

typedef struct at_graph {
    size_t        count; /* of layers */
    at_graph_step step[AT_NET_LAYERS_MAX];
    size_t        outputs, gradients;          /* number of buffers of each kind */
    size_t        output[AT_NET_LAYERS_MAX];   /* floats a sample of each */
    size_t        gradient[AT_NET_LAYERS_MAX]; /* gradient[0] is the logits' buffer: dy of the
                                                  * last layer is written in its place */
} at_graph;

/* Works it out; NULL: no memory. */
at_graph *at_graph_new(const at_net *net, at_use use);
void      at_graph_free(at_graph *graph); /* accepts NULL */

#endif

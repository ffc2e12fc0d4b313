/* model_parts.h - internals of at_model, shared by model.c (forward and backward), model_plan.c
 * (tensors, sizes, descriptions) and model_convs.c (its open convolutions). */
#ifndef AT_LEARN_NET_MODEL_PARTS_H
#define AT_LEARN_NET_MODEL_PARTS_H

#include "base/arena.h"
#include "learn/net/graph.h"

enum { AT_CONVS_SIZES_MAX = 8 };

/* The convolutions of all layers for one micro-batch size. */
typedef struct at_conv_set {
    uint32_t  rows;      /* micro-batch size; 0: unused */
    uint64_t  used;      /* clock of its last use; the oldest set is evicted */
    uint64_t  version;   /* of the parameters that `reordered` was computed from */
    at_conv **conv;      /* per layer; NULL: not a convolution */
    float   **reordered; /* per layer: weights for the input gradient; NULL: not needed */
} at_conv_set;

typedef struct at_convs {
    at_conv_set   set[AT_CONVS_SIZES_MAX];
    at_conv_set  *current;
    uint64_t      clock, version;
    const at_net *net;
    at_model_use  use;
    void         *scratch;
    size_t        scratch_size;
    bool          none; /* the net has no convolutions */
} at_convs;

/* Opens the convolutions of a net for micro-batches of `rows` samples. */
at_err at_convs_open(at_convs *convs, const at_net *net, uint32_t rows, at_model_use use,
                     at_fail *fail);
void   at_convs_close(at_convs *convs); /* accepts a zeroed one */

/* Selects the set for `count` samples, opening it if necessary. */
void at_convs_select(at_convs *convs, uint32_t count);
/* Reorders weights for the backward pass, once per version; returns whether it did. */
bool at_convs_reorder(at_convs *convs, const float *params);
/* Fills in the convolution of a layer's pass. */
void at_convs_attach(const at_convs *convs, size_t layer, at_layer_pass *pass);

struct at_model {
    at_net           *net;
    uint32_t          rows_max;
    at_model_use      use;
    bool              training;  /* in the current pass */
    uint64_t          noise;     /* seed of dropout */
    double            smoothing; /* part of each label that is spread over all classes */
    at_gradient_watch watch;
    at_graph         *graph; /* NULL: nothing is allocated */
    at_arena          arena;
    float            *y[AT_NET_LAYERS_MAX];
    float            *dy[AT_NET_LAYERS_MAX];
    void             *saved[AT_NET_LAYERS_MAX]; /* per layer, from forward to backward */
    void             *scratch;
    at_convs          convs;
};

#endif

/* net.h - a net: a list of layers over one flat vector. Families build it, the model runs it.
 *
 *     at_net net = {.engine = engine, .features = 784, .classes = 10};
 *     at_net_add(&net, (at_layer){.kind = &at_layer_dense, .out = 10}, fail);
 */
#ifndef AT_LEARN_NET_H
#define AT_LEARN_NET_H

#include "base/err.h"
#include "learn/layer.h"
#include "learn/model.h"

enum {
    AT_NET_LAYERS_MAX = 128,
    AT_NET_WIDTH_MAX = 1 << 24, /* so that the product of two widths fits easily in 64 bits */
    AT_NET_PARAMS_MAX = 1 << 30 /* 4 GB of floats */
};

typedef struct at_net {
    at_engine engine;
    uint32_t  features, classes;
    size_t    count, params;
    at_layer  layer[AT_NET_LAYERS_MAX];
} at_net;

/* Numbers a sample has behind the last layer so far. */
uint32_t at_net_width(const at_net *net);

/* Appends a layer of which kind, out (0 = as wide as in) and start are given; fills in the rest.
 * AT_ERR_USAGE when the net grows past a limit above. */
at_err at_net_add(at_net *net, at_layer layer, at_fail *fail);

/* The families, each in its own file family_NAME.c. */
at_err at_family_softmax(at_net *net, const char *args, at_fail *fail);
at_err at_family_mlp(at_net *net, const char *args, at_fail *fail);

#endif

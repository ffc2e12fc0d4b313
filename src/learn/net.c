#include "learn/net.h"

#include <assert.h>

uint32_t at_net_width(const at_net *net)
{
    return net->count ? net->layer[net->count - 1].out : net->features;
}

static const at_kernels *pick(const at_net *net, const at_layer *layer)
{
    if (layer->kind != &at_layer_dense) return at_kernels_plain(net->engine);
    return at_kernels_dense(net->engine, layer->in, layer->out);
}

at_err at_net_add(at_net *net, at_layer layer, at_fail *fail)
{
    layer.in = at_net_width(net);
    if (!layer.out) layer.out = layer.in;
    assert(layer.in > 0);
    if (layer.kind->in_place) assert(net->count > 0); /* the samples are not ours to change */
    if (layer.kind->in_place) assert(layer.in == layer.out);

    if (net->count == AT_NET_LAYERS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "a model has at most %d layers",
                           AT_NET_LAYERS_MAX);
    if (layer.in > AT_NET_WIDTH_MAX || layer.out > AT_NET_WIDTH_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "a layer has at most %d inputs and outputs",
                           AT_NET_WIDTH_MAX);
    layer.kernels = pick(net, &layer);
    layer.params_at = net->params;
    layer.params = layer.kind->params ? layer.kind->params(&layer) : 0;
    if (layer.params > AT_NET_PARAMS_MAX - net->params)
        return at_fail_set(fail, AT_ERR_USAGE, "make its layers narrower",
                           "the model has more than %d parameters", AT_NET_PARAMS_MAX);
    net->params += layer.params;
    net->layer[net->count++] = layer;
    return AT_OK;
}

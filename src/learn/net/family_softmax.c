/* Softmax regression: one dense layer. The loss is convex, so zero is as good a start as any. */
#include "learn/net/net.h"

#include <assert.h>

at_err at_family_softmax(at_net *net, const char *args, at_fail *fail)
{
    assert(net->count == 0);
    if (args)
        return at_fail_set(fail, AT_ERR_USAGE, "write softmax alone",
                           "model softmax takes no numbers, but got \"%s\"", args);
    at_layer_spec dense = {
        .kind = &at_layer_dense, .from = AT_FROM_LAST, .units = net->shape.classes, .bias = true};
    return at_net_add(net, dense, fail);
}

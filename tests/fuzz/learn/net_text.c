/* Fuzz target: any bytes as a .net text.
 *
 * The first byte selects the samples: images of 3x32x32 or 1x28x28, or flat vectors of 100; the
 * rest is the text. Only the reference engine plans convolutions, so that findings are about the
 * text and the shapes.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc \
 *         tests/fuzz/learn/net_text.c $(find src/learn src/base -name '[a-z]*.c') \
 *         BUILD/models.c -ldnnl -lopenblas -lcrypto -ljansson -lm
 *
 * With tests/fuzz/driver.c and any compiler it runs over given files instead.
 */
#include "learn/net/net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const at_shape shapes[] = {{3072, 10, 3, 32, 32}, {784, 10, 1, 28, 28}, {100, 10, 0, 0, 0}};

/* An accepted net must be consistent. */
static void check_net(const at_net *net)
{
    assert(net->count > 0 && net->count <= AT_NET_LAYERS_MAX);
    assert(net->params > 0 && net->flat >= net->params + net->stats);
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        assert(layer->spec.from < (int32_t)i);
        assert(at_activation_numbers(&layer->in) > 0 && at_activation_numbers(&layer->out) > 0);
        assert(layer->params_at + layer->params <= net->trained);
    }
    at_activation out = at_net_output(net);
    assert(at_activation_numbers(&out) >= net->shape.classes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    at_net_info info;
    at_fail     fail = {0};
    char       *text = calloc(1, size);
    at_net     *net = at_net_new(AT_ENGINE_REF, shapes[data[0] % 3], 4, true);
    assert(text && net);
    memcpy(text, data + 1, size - 1);
    at_err err = at_net_parse(net, "fuzz", text, &fail);
    if (err)
        assert(fail.err == err && fail.text[0]);
    else
        check_net(net);
    fail = (at_fail){0};
    err = at_net_info_parse("fuzz", text, &info, &fail);
    assert(!err == !fail.text[0]);
    assert(strlen(info.summary) < sizeof info.summary);
    at_net_free(net);
    free(text);
    return 0;
}

/* Models that are built from arguments instead of a .net text: one table row per family. */
#include "learn/net/net.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Softmax regression: one dense layer. The loss is convex, so it starts at zero. */
static at_err build_softmax(at_net *net, const char *args, at_fail *fail)
{
    assert(net->count == 0);
    if (args)
        return at_fail_set(fail, AT_ERR_USAGE, "write just softmax",
                           "model softmax takes no arguments (got \"%s\")", args);
    at_layer_spec dense = {
        .kind = &at_layer_dense, .from = AT_FROM_LAST, .units = net->shape.classes, .bias = true};
    return at_net_add(net, dense, fail);
}

/* Linear regression: one dense layer with one output. Convex too. */
static at_err build_linear(at_net *net, const char *args, at_fail *fail)
{
    assert(net->count == 0);
    assert(net->shape.classes == 0);
    if (args)
        return at_fail_set(fail, AT_ERR_USAGE, "write just linear",
                           "model linear takes no arguments (got \"%s\")", args);
    at_layer_spec dense = {.kind = &at_layer_dense, .from = AT_FROM_LAST, .units = 1, .bias = true};
    return at_net_add(net, dense, fail);
}

/* Parses the width at *text and moves *text past its comma, or to NULL at the end. */
static at_err take_width(const char **text, uint32_t *width, at_fail *fail)
{
    char        word[24];
    const char *comma = strchr(*text, ',');
    size_t      length = comma ? (size_t)(comma - *text) : strlen(*text);
    int64_t     value = 0;
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), *text);
    if (length >= sizeof word || !at_text_whole(word, &value) || value < 1 ||
        value > AT_NET_WIDTH_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, "for example mlp:300,100",
                           "model mlp: invalid layer width \"%s\" (1 to %d)", word,
                           AT_NET_WIDTH_MAX);
    *width = (uint32_t)value;
    *text = comma ? comma + 1 : NULL;
    return AT_OK;
}

static at_err add_dense(at_net *net, uint32_t out, at_fail *fail)
{
    at_layer_spec dense = {.kind = &at_layer_dense,
                           .from = AT_FROM_LAST,
                           .units = out,
                           .bias = true,
                           .init = {.kind = AT_INIT_GLOROT}};
    return at_net_add(net, dense, fail);
}

/* Multi-layer perceptron: dense layers with ReLU between them. */
static at_err build_mlp(at_net *net, const char *args, at_fail *fail)
{
    assert(net->count == 0);
    if (!args || !*args)
        return at_fail_set(fail, AT_ERR_USAGE, "for example mlp:300,100",
                           "model mlp needs the widths of its hidden layers");
    at_layer_spec relu = {.kind = &at_layer_relu, .from = AT_FROM_LAST};
    while (args) {
        uint32_t width = 0;
        AT_TRY(take_width(&args, &width, fail));
        AT_TRY(add_dense(net, width, fail));
        AT_TRY(at_net_add(net, relu, fail));
    }
    return add_dense(net, net->shape.classes, fail);
}

static void write_softmax(const char *args, at_text *text)
{
    assert(!args);
    at_text_add(text, "dense classes start=zero\n");
}

static void write_mlp(const char *args, at_text *text)
{
    uint32_t width;
    while (args && !take_width(&args, &width, NULL)) at_text_add(text, "dense %u\nrelu\n", width);
    at_text_add(text, "dense classes\n");
}

const at_model_family at_model_families[] = {
    {"softmax", "softmax", "softmax regression: one dense layer", build_softmax, false,
     write_softmax},
    {"mlp", "mlp:H1,H2,..", "dense layers of these widths with ReLU between them", build_mlp, false,
     write_mlp},
    {"linear", "linear", "linear regression: one dense layer, real-valued labels, squared loss",
     build_linear, true, NULL},
};
const size_t at_model_families_count = sizeof at_model_families / sizeof *at_model_families;

const at_model_family *at_model_family_find(const char *name)
{
    size_t length = strcspn(name, ":");
    for (size_t i = 0; i < at_model_families_count; i++) {
        const at_model_family *family = &at_model_families[i];
        if (strlen(family->name) == length && !strncmp(family->name, name, length)) return family;
    }
    return NULL;
}

bool at_model_is_regression(const char *name)
{
    const at_model_family *family = at_model_family_find(name);
    return family && family->regression;
}

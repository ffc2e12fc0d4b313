/* A model is a net and the scratch memory to run it: one buffer of activations per layer that does
 * not work in place, two buffers of gradients of activations that take turns on the way back, and
 * whatever scratch the kernels ask for. All of it is reserved by at_model_new. */
#include "learn/model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "learn/net.h"

struct at_model {
    at_net   net;
    uint32_t rows_max;
    at_arena arena;
    float   *y[AT_NET_LAYERS_MAX]; /* output of each layer */
    float   *dy[2];
    float   *scratch;
};

static at_err unknown_family(const char *name, at_fail *fail)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX];
    char        known[256];
    at_text     list = at_text_in(known, sizeof known);
    assert(at_model_families_count <= NAMES_MAX);
    for (size_t i = 0; i < at_model_families_count; i++) {
        names[i] = at_model_families[i].name;
        at_text_add(&list, "%s%s", i ? ", " : "models are ", at_model_families[i].usage);
    }
    const char *nearest = at_text_nearest(name, names, at_model_families_count);
    if (!nearest) return at_fail_set(fail, AT_ERR_USAGE, known, "there is no model \"%s\"", name);
    return at_fail_set(fail, AT_ERR_USAGE, known, "there is no model \"%s\"; did you mean %s?",
                       name, nearest);
}

/* Splits NAME[:ARGS] and lets the family append its layers. */
static at_err build(at_net *net, const char *text, at_fail *fail)
{
    char        name[64];
    const char *colon = strchr(text, ':');
    size_t      length = colon ? (size_t)(colon - text) : strlen(text);
    if (length >= sizeof name) length = sizeof name - 1;
    memcpy(name, text, length);
    name[length] = '\0';
    for (size_t i = 0; i < at_model_families_count; i++)
        if (!strcmp(name, at_model_families[i].name))
            return at_model_families[i].build(net, colon ? colon + 1 : NULL, fail);
    return unknown_family(name, fail);
}

static size_t width_max(const at_net *net)
{
    size_t most = 0;
    for (size_t i = 0; i < net->count; i++)
        if (net->layer[i].out > most) most = net->layer[i].out;
    return most;
}

static size_t scratch_floats(const at_net *net, uint32_t rows_max)
{
    size_t most = 0;
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        size_t          n = layer->kind->scratch ? layer->kind->scratch(layer, rows_max) : 0;
        if (n > most) most = n;
    }
    return most;
}

/* Bytes of all buffers, each rounded up as the arena does. Widths stay below 2^24, layers below
 * 2^7 and rows below 2^32, so only the last multiplication could overflow. */
static bool memory_size(const at_model *model, size_t *size)
{
    const at_net *net = &model->net;
    size_t        floats_row = 2 * width_max(net), floats, each = 64;
    for (size_t i = 0; i < net->count; i++) floats_row += net->layer[i].out;
    if (!at_size_product(floats_row, model->rows_max, &floats)) return false;
    if (!at_size_product(floats + scratch_floats(net, model->rows_max), sizeof(float), size))
        return false;
    *size += each * (net->count + 4);
    return true;
}

static at_err reserve(at_model *model, at_fail *fail)
{
    const at_net *net = &model->net;
    size_t        size = 0, rows = model->rows_max;
    if (!memory_size(model, &size) || !at_arena_init(&model->arena, size))
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller micro-batch",
                           "no memory to run the model on %zu samples at a time", rows);
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        model->y[i] = layer->kind->in_place
                          ? model->y[i - 1]
                          : at_arena_get(&model->arena, rows * layer->out, sizeof(float));
        assert(model->y[i]);
    }
    for (size_t i = 0; i < 2; i++)
        model->dy[i] = at_arena_get(&model->arena, rows * width_max(net), sizeof(float));
    model->scratch =
        at_arena_get(&model->arena, scratch_floats(net, model->rows_max), sizeof(float));
    assert(model->dy[0] && model->dy[1] && model->scratch);
    return AT_OK;
}

at_err at_model_new(const char *name, at_shape shape, at_engine engine, uint32_t rows_max,
                    at_model **model, at_fail *fail)
{
    assert(shape.features > 0);
    assert(rows_max > 0);
    *model = NULL;
    if (shape.classes < 2)
        return at_fail_set(fail, AT_ERR_USAGE, "use data with at least two classes",
                           "there is nothing to learn from %u class%s", shape.classes,
                           shape.classes == 1 ? "" : "es");
    at_model *m = calloc(1, sizeof *m);
    if (!m) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the model");
    m->rows_max = rows_max;
    m->net = (at_net){.engine = engine, .features = shape.features, .classes = shape.classes};
    at_err err = build(&m->net, name, fail);
    if (!err) err = reserve(m, fail);
    if (err) {
        at_model_free(m);
        return err;
    }
    assert(at_net_width(&m->net) == shape.classes);
    *model = m;
    return AT_OK;
}

void at_model_free(at_model *model)
{
    if (!model) return;
    at_arena_deinit(&model->arena);
    free(model);
}

size_t at_model_params(const at_model *model)
{
    return model->net.params;
}

static uint64_t layer_mults(const at_layer *layer)
{
    return layer->kind->mults ? layer->kind->mults(layer) : 0;
}

uint64_t at_model_mults(const at_model *model)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->net.count; i++) sum += layer_mults(&model->net.layer[i]);
    return sum;
}

/* The engine of the layer with the most work gives the model its name. */
const char *at_model_engine(const at_model *model)
{
    const at_layer *most = &model->net.layer[0];
    assert(model->net.count > 0);
    for (size_t i = 1; i < model->net.count; i++)
        if (layer_mults(&model->net.layer[i]) > layer_mults(most)) most = &model->net.layer[i];
    return most->kernels->name;
}

/* Each layer draws from its own stream, so that a change to one leaves the others as they were. */
void at_model_init(const at_model *model, float *params, uint64_t seed)
{
    assert(params);
    for (size_t i = 0; i < model->net.count; i++) {
        const at_layer *layer = &model->net.layer[i];
        at_rng          rng = at_rng_stream(seed, 0, AT_STREAM_INIT, i);
        if (layer->kind->init) layer->kind->init(layer, params + layer->params_at, &rng);
    }
}

/* Runs all layers; the logits are the last one's output. */
static float *forward(at_model *model, const float *params, const float *x, uint32_t count)
{
    assert(count > 0);
    assert(count <= model->rows_max);
    for (size_t i = 0; i < model->net.count; i++) {
        const at_layer *layer = &model->net.layer[i];
        at_pass         pass = {.count = count,
                                .params = params + layer->params_at,
                                .x = i ? model->y[i - 1] : x,
                                .y = model->y[i]};
        layer->kind->forward(layer, &pass);
    }
    return model->y[model->net.count - 1];
}

/* From dy, the gradient of the loss by the logits, back to the parameters. */
static void backward(at_model *model, float *gradient, at_write write, float *dy,
                     const float *params, const float *x, uint32_t count)
{
    assert(gradient);
    assert(gradient != params);
    for (size_t i = model->net.count, turn = 0; i-- > 0;) {
        const at_layer *layer = &model->net.layer[i];
        at_pass         pass = {.count = count,
                                .params = params + layer->params_at,
                                .x = i ? model->y[i - 1] : x,
                                .y = model->y[i],
                                .dy = dy,
                                .gradient = gradient + layer->params_at,
                                .write = write,
                                .scratch = model->scratch};
        if (layer->kind->in_place)
            pass.dx = dy;
        else if (i)
            pass.dx = model->dy[turn++ % 2];
        layer->kind->backward(layer, &pass);
        dy = pass.dx;
    }
}

static double run(at_model *model, float *gradient, at_write write, const float *params,
                  const float *x, const uint32_t *labels, uint32_t count)
{
    const at_kernels *k = at_kernels_plain(model->net.engine);
    assert((uintptr_t)x % 32 == 0);
    float *logits = forward(model, params, x, count);
    double loss_sum = k->softmax_loss(logits, labels, count, model->net.classes);
    backward(model, gradient, write, logits, params, x, count);
    return loss_sum;
}

double at_model_gradient(at_model *model, float *gradient, const float *params, const float *x,
                         const uint32_t *labels, uint32_t count)
{
    return run(model, gradient, AT_WRITE_ADD, params, x, labels, count);
}

double at_model_gradient_set(at_model *model, float *gradient, const float *params, const float *x,
                             const uint32_t *labels, uint32_t count)
{
    return run(model, gradient, AT_WRITE_SET, params, x, labels, count);
}

/* How many classes come before the label when sorted by logit; of equals the first comes first. A
 * NaN comes before everything, so a diverged model is never right. */
static size_t label_rank(const float *z, uint32_t label, uint32_t classes)
{
    assert(label < classes);
    size_t rank = z[label] != z[label] ? classes : 0;
    for (uint32_t c = 0; c < classes; c++)
        if (!(z[c] <= z[label]) || (c < label && z[c] == z[label])) rank++;
    return rank;
}

void at_model_score(at_model *model, at_score *score, const float *params, const float *x,
                    const uint32_t *labels, uint32_t count)
{
    const at_kernels *k = at_kernels_plain(model->net.engine);
    uint32_t          classes = model->net.classes;
    assert(score->correct <= score->count);
    float *logits = forward(model, params, x, count);
    for (uint32_t n = 0; n < count; n++) {
        size_t rank = label_rank(logits + (size_t)n * classes, labels[n], classes);
        score->correct += rank == 0;
        score->correct_top5 += rank < 5;
    }
    score->count += count;
    score->loss_sum += k->softmax_loss(logits, labels, count, classes);
}

size_t at_model_layers(const at_model *model, at_layer_info *rows, size_t max)
{
    if (max) assert(rows);
    for (size_t i = 0; i < model->net.count && i < max; i++) {
        const at_layer *layer = &model->net.layer[i];
        rows[i] = (at_layer_info){.in = layer->in,
                                  .out = layer->out,
                                  .params_at = layer->params_at,
                                  .params = layer->params,
                                  .mults = layer_mults(layer)};
        snprintf(rows[i].kind, sizeof rows[i].kind, "%s", layer->kind->name);
    }
    return model->net.count;
}

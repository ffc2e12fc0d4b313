/* Runs a model: forward and backward passes over its net. All memory is allocated by
 * at_model_allocate: buffers of the graph, what layers save from forward to backward, scratch, and
 * convolutions; only a micro-batch of a new size opens convolutions later. */
#include "learn/net/model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/label.h"
#include "learn/engines/activation_kernels.h"
#include "learn/engines/blas.h"
#include "learn/engines/kernels.h"
#include "learn/net/graph.h"
#include "learn/net/model_parts.h"
#include "learn/net/net.h"

static size_t most_scratch(const at_net *net, uint32_t rows)
{
    size_t most = 0;
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        size_t          size = layer->kind->scratch ? layer->kind->scratch(layer, rows) : 0;
        if (size > most) most = size;
    }
    return most;
}

static size_t saved_size(const at_layer *layer, uint32_t rows)
{
    return layer->kind->saved ? layer->kind->saved(layer, rows) : 0;
}

/* Bytes that reserve() takes from the arena, including its rounding. Widths stay below 2^24 and
 * layers below 2^10, so only products with rows can overflow. */
static bool memory_size(const at_model *model, size_t *size)
{
    const at_graph *graph = model->graph;
    size_t          floats_row = 0, bytes, each = 64, parts = 2;
    for (size_t i = 0; i < graph->outputs; i++) floats_row += graph->output[i];
    for (size_t i = 1; i < graph->gradients; i++) floats_row += graph->gradient[i];
    if (!at_size_product(floats_row * sizeof(float), model->rows_max, &bytes)) return false;
    for (size_t i = 0; model->use == AT_USE_TRAIN && i < model->net->count; i++)
        bytes += saved_size(&model->net->layer[i], model->rows_max) + each;
    parts += graph->outputs + graph->gradients;
    *size = bytes + most_scratch(model->net, model->rows_max) + each * parts;
    return true;
}

static float *floats(at_model *model, size_t each)
{
    float *buffer = at_arena_get(&model->arena, each * model->rows_max, sizeof(float));
    assert(buffer);
    return buffer;
}

static at_err reserve(at_model *model, at_fail *fail)
{
    const at_graph *graph = model->graph;
    const at_net   *net = model->net;
    size_t          size = 0, rows = model->rows_max;
    if (!memory_size(model, &size) || !at_arena_init(&model->arena, size))
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller micro-batch",
                           "no memory to run the model on %zu samples at a time", rows);
    for (size_t i = 0; i < graph->outputs; i++) model->y[i] = floats(model, graph->output[i]);
    model->dy[0] = model->y[graph->step[net->count - 1].y];
    for (size_t i = 1; i < graph->gradients; i++) model->dy[i] = floats(model, graph->gradient[i]);
    for (size_t i = 0; model->use == AT_USE_TRAIN && i < net->count; i++)
        model->saved[i] =
            at_arena_get(&model->arena, 1, saved_size(&net->layer[i], (uint32_t)rows));
    model->scratch = at_arena_get(&model->arena, 1, most_scratch(net, (uint32_t)rows));
    assert(model->scratch);
    return AT_OK;
}

/* Only kernels that use OpenBLAS need scratch. */
static bool uses_blas(const at_net *net)
{
    for (size_t i = 0; i < net->count; i++)
        if (net->layer[i].kind == &at_layer_dense && net->layer[i].kernels->dense_scratch)
            return true;
    return false;
}

at_err at_model_allocate(at_model *model, uint32_t rows_max, at_model_use use, at_fail *fail)
{
    assert(rows_max > 0);
    at_model_release(model);
    model->rows_max = rows_max;
    model->use = use;
    model->graph = at_graph_new(model->net, use);
    if (!model->graph) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the model");
    at_err err = reserve(model, fail);
    if (!err) err = at_convs_open(&model->convs, model->net, rows_max, use, fail);
    if (!err && uses_blas(model->net) && !at_blas_reserve())
        err = at_fail_memory_for(fail, "for the products of OpenBLAS");
    if (err) at_model_release(model);
    return err;
}

void at_model_release(at_model *model)
{
    at_convs_close(&model->convs);
    at_arena_deinit(&model->arena);
    at_graph_free(model->graph);
    model->graph = NULL;
}

void at_model_install(at_model *model, const float *params)
{
    assert(params);
    (void)params; /* read by the first backward pass */
    model->convs.version++;
}

void at_model_noise(at_model *model, uint64_t key)
{
    model->noise = key;
}

void at_model_smooth_labels(at_model *model, double part)
{
    assert(part >= 0 && part <= 1);
    model->smoothing = part;
}

void at_model_watch(at_model *model, at_gradient_watch watch)
{
    model->watch = watch;
}

static const float *output_of(const at_model *model, int32_t layer, const float *x)
{
    return layer < 0 ? x : model->y[model->graph->step[layer].y];
}

/* What forward and backward have in common. */
static at_layer_pass pass_of(const at_model *model, size_t i, const float *params, const float *x,
                             uint32_t count)
{
    const at_layer *layer = &model->net->layer[i];
    return (at_layer_pass){.count = count,
                           .training = model->training,
                           .params = params + layer->params_at,
                           .stats = params + model->net->trained + layer->stats_at,
                           .x = output_of(model, layer->spec.from, x),
                           .other = layer->kind->has_other ? output_of(model, layer->spec.other, x)
                                                           : NULL,
                           .y = model->y[model->graph->step[i].y],
                           .scratch = model->scratch,
                           .saved = model->saved[i],
                           .noise = model->noise};
}

/* Runs all layers; the logits are the last one's output. */
static float *forward(at_model *model, const float *params, const float *x, uint32_t count,
                      bool training)
{
    assert(model->graph);
    assert(count > 0);
    assert(count <= model->rows_max);
    model->training = training;
    at_convs_select(&model->convs, count);
    for (size_t i = 0; i < model->net->count; i++) {
        const at_layer *layer = &model->net->layer[i];
        at_layer_pass   pass = pass_of(model, i, params, x, count);
        at_convs_attach(&model->convs, i, &pass);
        layer->kind->forward(layer, &pass);
    }
    return model->y[model->graph->step[model->net->count - 1].y];
}

static void copy_buffer(at_model *model, int32_t to, int32_t from, size_t n)
{
    if (from != AT_NO_BUFFER) memcpy(model->dy[to], model->dy[from], n * sizeof(float));
}

static void add_gradients(at_model *model, const at_graph_step *step, size_t n)
{
    for (uint32_t i = 0; i < step->sums; i++) {
        const at_graph_sum *sum = &step->sum[i];
        copy_buffer(model, sum->into, sum->copy, n);
        at_vector_add(model->dy[sum->into], model->dy[sum->from], n);
    }
}

static void backward_layer(at_model *model, size_t i, at_layer_pass *pass)
{
    const at_layer      *layer = &model->net->layer[i];
    const at_graph_step *step = &model->graph->step[i];
    size_t               in = pass->count * at_activation_size(&layer->in);
    size_t               out = pass->count * at_activation_size(&layer->out);
    copy_buffer(model, step->dy, step->dy_copy, out);
    pass->dy = model->dy[step->dy];
    if (step->dx != AT_NO_BUFFER) {
        copy_buffer(model, step->dx, step->dx_copy, in);
        pass->dx = model->dy[step->dx];
        pass->dx_write = step->dx_write;
    }
    layer->kind->backward(layer, pass);
    add_gradients(model, step, in);
}

/* Padding before the parameters of a layer was written first, so it is final, too. */
static void tell(const at_model *model, size_t from)
{
    assert(from <= model->net->trained);
    if (model->watch.final) model->watch.final(model->watch.self, from);
}

/* Starts with the gradient of the logits, which has replaced them in their buffer. Returns false
 * when a layer found values that are not finite. */
static bool backward(at_model *model, float *gradient, at_write write, const float *params,
                     const float *x, uint32_t count)
{
    assert(gradient);
    assert(gradient != params);
    bool   broken = false, fresh = at_convs_reorder(&model->convs, params);
    size_t from = model->net->trained;
    for (size_t i = model->net->count; i-- > 0;) {
        const at_layer *layer = &model->net->layer[i];
        if (!layer->trains) continue;
        at_layer_pass pass = pass_of(model, i, params, x, count);
        at_convs_attach(&model->convs, i, &pass);
        pass.gradient = gradient + layer->params_at;
        pass.stats_sums = gradient + model->net->trained + layer->stats_at;
        pass.write = write;
        pass.fresh = fresh;
        pass.broken = &broken;
        pass.watch = model->watch;
        backward_layer(model, i, &pass);
        if (layer->params) from = layer->params_at;
        tell(model, from);
    }
    return !broken;
}

/* Zeroes the padding between the parameters of layers, which nothing else writes. */
static void clear_padding(const at_model *model, float *gradient)
{
    const at_net *net = model->net;
    size_t        end = 0;
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        if (!layer->params) continue;
        memset(gradient + end, 0, (layer->params_at - end) * sizeof *gradient);
        end = layer->params_at + layer->params;
    }
    memset(gradient + end, 0, (net->trained - end) * sizeof *gradient);
}

static uint32_t logits_width(const at_model *model)
{
    at_activation out = at_net_output(model->net);
    return (uint32_t)at_activation_numbers(&out);
}

/* With the label spread over C classes, the loss of one sample is, for logits z and label y,
 *     (1 - e) (log Z - z_y) + e (log Z - mean z)  =  loss without smoothing + e (z_y - mean z),
 * and its gradient is that without smoothing plus e - e / C at the label and minus e / C elsewhere.
 * The kernel turns logits into gradients in place, so the first part comes before it. */
static double smoothed_loss(const at_model *model, const float *z, const uint32_t *labels,
                            uint32_t count)
{
    uint32_t width = logits_width(model);
    double   sum = 0;
    for (uint32_t n = 0; n < count; n++, z += width) {
        double mean = 0;
        for (uint32_t c = 0; c < width; c++) mean += (double)z[c] / width;
        assert(labels[n] < width);
        sum += (double)z[labels[n]] - mean;
    }
    return model->smoothing * sum;
}

static void smooth_gradient(const at_model *model, float *z, const uint32_t *labels, uint32_t count)
{
    uint32_t width = logits_width(model);
    float    part = (float)model->smoothing, each = (float)(model->smoothing / width);
    for (uint32_t n = 0; n < count; n++, z += width) {
        for (uint32_t c = 0; c < width; c++) z[c] -= each;
        z[labels[n]] += part;
    }
}

static bool is_regression(const at_model *model)
{
    return model->net->shape.classes == 0;
}

/* z (count) predictions <- their gradient; returns the sum of the losses. */
static double squared_loss(float *z, const uint32_t *labels, uint32_t count)
{
    double sum = 0;
    for (uint32_t n = 0; n < count; n++) {
        float off = z[n] - at_label_real(labels[n]);
        sum += 0.5 * (double)off * (double)off;
        z[n] = off;
    }
    return sum;
}

/* Replaces outputs by their gradients. */
static double take_loss(const at_model *model, float *logits, const uint32_t *labels,
                        uint32_t count)
{
    const at_kernels *k = at_kernels_elementwise(model->net->engine);
    bool              smooth = model->smoothing > 0;
    assert(!is_regression(model) || logits_width(model) == 1);
    if (is_regression(model)) return squared_loss(logits, labels, count);
    double more = smooth ? smoothed_loss(model, logits, labels, count) : 0;
    double sum = k->softmax_loss(logits, labels, count, logits_width(model));
    if (!smooth) return sum;
    smooth_gradient(model, logits, labels, count);
    return sum + more;
}

static double train(at_model *model, float *gradient, at_write write, const float *params,
                    const float *x, const uint32_t *labels, uint32_t count)
{
    assert(model->use == AT_USE_TRAIN);
    assert((uintptr_t)x % 32 == 0);
    float *logits = forward(model, params, x, count, true);
    double loss_sum = take_loss(model, logits, labels, count);
    if (write == AT_WRITE_SET) clear_padding(model, gradient);
    return backward(model, gradient, write, params, x, count) ? loss_sum : (double)NAN;
}

double at_model_gradient(at_model *model, float *gradient, const float *params, const float *x,
                         const uint32_t *labels, uint32_t count)
{
    return train(model, gradient, AT_WRITE_ADD, params, x, labels, count);
}

double at_model_gradient_set(at_model *model, float *gradient, const float *params, const float *x,
                             const uint32_t *labels, uint32_t count)
{
    return train(model, gradient, AT_WRITE_SET, params, x, labels, count);
}

/* The rank of the label by logit, from 0; ties go to the lower class. A NaN ranks before
 * everything, so a diverged model is never right. */
static size_t label_rank(const float *z, uint32_t label, uint32_t classes)
{
    assert(label < classes);
    size_t rank = z[label] != z[label] ? classes : 0;
    for (uint32_t c = 0; c < classes; c++)
        if (!(z[c] <= z[label]) || (c < label && z[c] == z[label])) rank++;
    return rank;
}

/* What only classifiers and what only regression models have. */
static void score_labels(at_score *score, const float *logits, const uint32_t *labels,
                         uint32_t count, uint32_t classes)
{
    for (uint32_t n = 0; classes == 0 && n < count; n++) {
        double label = (double)at_label_real(labels[n]);
        score->label_sum += label;
        score->label_squares += label * label;
    }
    for (uint32_t n = 0; classes > 0 && n < count; n++) {
        size_t rank = label_rank(logits + (size_t)n * classes, labels[n], classes);
        score->correct += rank == 0;
        score->correct_top5 += rank < 5;
    }
    for (uint32_t n = 0; classes == 2 && score->margins && n < count; n++)
        score->margins[n] = logits[2 * (size_t)n + 1] - logits[2 * (size_t)n];
}

void at_model_score(at_model *model, at_score *score, const float *params, const float *x,
                    const uint32_t *labels, uint32_t count)
{
    uint32_t classes = is_regression(model) ? 0 : logits_width(model);
    assert(score->correct <= score->count);
    float *logits = forward(model, params, x, count, false);
    score_labels(score, logits, labels, count, classes);
    score->classes = classes;
    score->regression = is_regression(model);
    score->count += count;
    score->loss_sum += take_loss(model, logits, labels, count);
}

/* Softmax; there may be more logits than classes. */
static void to_probabilities(float *out, const float *z, uint32_t classes, uint32_t width)
{
    float  most = z[0];
    double sum = 0;
    for (uint32_t c = 1; c < width; c++) most = z[c] > most ? z[c] : most;
    for (uint32_t c = 0; c < width; c++) sum += exp((double)z[c] - most);
    for (uint32_t c = 0; c < classes; c++) out[c] = (float)(exp((double)z[c] - most) / sum);
}

void at_model_predict(at_model *model, float *probabilities, const float *params, const float *x,
                      uint32_t count)
{
    uint32_t     classes = model->net->shape.classes, width = logits_width(model);
    const float *logits = forward(model, params, x, count, false);
    assert(classes <= width);
    if (is_regression(model)) memcpy(probabilities, logits, count * sizeof *probabilities);
    for (size_t n = 0; classes > 0 && n < count; n++)
        to_probabilities(probabilities + n * classes, logits + n * width, classes, width);
}

#include "learn/net/graph.h"

#include <assert.h>
#include <stdlib.h>

/* Buffers with reference counts; free ones are reused. */
typedef struct pool {
    size_t  *size; /* floats per sample; grows with its users */
    size_t   count;
    uint32_t users[AT_NET_LAYERS_MAX];
} pool;

/* The best-fitting free buffer, or a new one. */
static int32_t take(pool *p, size_t size)
{
    size_t best = p->count;
    for (size_t i = 0; i < p->count; i++) {
        if (p->users[i] > 0) continue;
        bool better = best == p->count ||
                      (p->size[best] < size ? p->size[i] > p->size[best]
                                            : p->size[i] >= size && p->size[i] < p->size[best]);
        if (better) best = i;
    }
    assert(best < AT_NET_LAYERS_MAX);
    if (best == p->count) p->size[p->count++] = 0;
    if (p->size[best] < size) p->size[best] = size;
    p->users[best] = 1;
    return (int32_t)best;
}

static void drop(pool *p, int32_t buffer)
{
    assert(p->users[buffer] > 0);
    p->users[buffer]--;
}

/* Whether backward reads the layer's own output, so that nothing may overwrite it. */
static bool needs_y(const at_layer *layer)
{
    return layer->kind->needs_y || (layer->spec.relu && !layer->relu_done);
}

static bool works_in_place(const at_net *net, const at_layer *layer)
{
    if (!layer->kind->in_place || layer->spec.from < 0) return false;
    const at_layer *before = &net->layer[layer->spec.from];
    return !before->kept && !needs_y(before);
}

static void plan_outputs_training(at_graph *graph, const at_net *net)
{
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        if (works_in_place(net, layer)) {
            graph->step[i].y = graph->step[layer->spec.from].y;
        } else {
            graph->step[i].y = (int32_t)graph->outputs;
            graph->output[graph->outputs++] = at_activation_size(&layer->out);
        }
    }
}

/* The last layer that reads each output, without a backward pass. */
static void find_last_readers(const at_net *net, size_t *last)
{
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        last[i] = net->count;
        if (layer->spec.from >= 0) last[layer->spec.from] = i;
        if (layer->kind->has_other && layer->spec.other >= 0) last[layer->spec.other] = i;
    }
}

static void plan_outputs_scoring(at_graph *graph, const at_net *net)
{
    size_t last[AT_NET_LAYERS_MAX];
    pool   p = {.size = graph->output};
    find_last_readers(net, last);
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        int32_t         from = layer->spec.from, other = layer->spec.other;
        bool            ends = from >= 0 && last[from] == i;
        if (ends && layer->kind->in_place) {
            graph->step[i].y = graph->step[from].y;
        } else {
            graph->step[i].y = take(&p, at_activation_size(&layer->out));
            if (ends) drop(&p, graph->step[from].y);
        }
        if (layer->kind->has_other && other >= 0 && other != from && last[other] == i)
            drop(&p, graph->step[other].y);
    }
    graph->outputs = p.count;
}

/* The plan of the backward pass; of[i] is the buffer with the gradient of layer i's output. */
typedef struct backward_plan {
    const at_net *net;
    at_graph     *graph;
    pool          pool;
    int32_t       of[AT_NET_LAYERS_MAX];
} backward_plan;

/* Gives the gradient of layer `to`'s output a buffer without other readers, because it is about to
 * be added to. Returns the buffer to copy from first, or AT_NO_BUFFER. */
static int32_t make_exclusive(backward_plan *b, int32_t to)
{
    int32_t now = b->of[to];
    if (b->pool.users[now] == 1) return AT_NO_BUFFER;
    b->of[to] = take(&b->pool, at_activation_size(&b->net->layer[to].out));
    drop(&b->pool, now);
    return now;
}

/* Passes the gradient in `buffer` on to the output of `to`: by reference if it is the first. */
static void pass_on(backward_plan *b, at_graph_step *step, int32_t to, int32_t buffer)
{
    if (to < 0 || !b->net->layer[to].trains) return;
    if (b->of[to] == AT_NO_BUFFER) {
        b->of[to] = buffer;
        b->pool.users[buffer]++;
        return;
    }
    int32_t copy = make_exclusive(b, to);
    step->sum[step->sums++] = (at_graph_sum){.into = b->of[to], .from = buffer, .copy = copy};
}

/* A layer that changes dy in place needs a copy when dy has other readers. */
static void copy_shared_dy(backward_plan *b, at_graph_step *step, const at_layer *layer)
{
    bool changes = (layer->spec.relu && !layer->relu_done) || layer->kind->in_place;
    if (b->pool.users[step->dy] == 1 || !changes) return;
    drop(&b->pool, step->dy);
    step->dy_copy = step->dy;
    step->dy = take(&b->pool, at_activation_size(&layer->out));
}

static void plan_dx(backward_plan *b, at_graph_step *step, const at_layer *layer)
{
    int32_t from = layer->spec.from;
    size_t  size = at_activation_size(&layer->in);
    if (b->of[from] == AT_NO_BUFFER) {
        bool in_place = layer->kind->in_place && b->pool.users[step->dy] == 1;
        step->dx = in_place ? step->dy : take(&b->pool, size);
        if (in_place) b->pool.users[step->dx]++; /* one for dy, released below, one for dx */
        b->of[from] = step->dx;
        return;
    }
    int32_t copy = make_exclusive(b, from);
    if (layer->kind->adds_dx) {
        step->dx = b->of[from];
        step->dx_copy = copy;
        step->dx_write = AT_WRITE_ADD;
        return;
    }
    step->dx = take(&b->pool, size);
    step->sum[step->sums++] = (at_graph_sum){.into = b->of[from], .from = step->dx, .copy = copy};
    drop(&b->pool, step->dx);
}

static void plan_backward(backward_plan *b, size_t i)
{
    const at_layer *layer = &b->net->layer[i];
    at_graph_step  *step = &b->graph->step[i];
    if (!layer->trains) return;
    assert(b->of[i] != AT_NO_BUFFER);
    step->dy = b->of[i];
    copy_shared_dy(b, step, layer);
    if (layer->kind->has_other) {
        pass_on(b, step, layer->spec.from, step->dy);
        pass_on(b, step, layer->spec.other, step->dy);
    } else if (layer->wants_dx) {
        plan_dx(b, step, layer);
    }
    drop(&b->pool, step->dy);
}

static void plan_gradients(at_graph *graph, const at_net *net)
{
    backward_plan b = {.net = net, .graph = graph, .pool = {.size = graph->gradient}};
    for (size_t i = 0; i < net->count; i++) b.of[i] = AT_NO_BUFFER;
    b.of[net->count - 1] = take(&b.pool, at_activation_size(&net->layer[net->count - 1].out));
    assert(b.of[net->count - 1] == 0);
    b.pool.users[0]++; /* never reuse the logits' buffer: it may be too small */
    for (size_t i = net->count; i-- > 0;) plan_backward(&b, i);
    graph->gradients = b.pool.count;
}

at_graph *at_graph_new(const at_net *net, at_model_use use)
{
    assert(net->count > 0);
    at_graph *graph = calloc(1, sizeof *graph);
    if (!graph) return NULL;
    graph->count = net->count;
    for (size_t i = 0; i < net->count; i++) {
        at_graph_step *step = &graph->step[i];
        step->dy = step->dx = step->dy_copy = step->dx_copy = AT_NO_BUFFER;
    }
    if (use == AT_USE_TRAIN) {
        plan_outputs_training(graph, net);
        plan_gradients(graph, net);
    } else {
        plan_outputs_scoring(graph, net);
    }
    return graph;
}

void at_graph_free(at_graph *graph)
{
    free(graph);
}

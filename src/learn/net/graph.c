#include "learn/net/graph.h"

#include <assert.h>
#include <stdlib.h>

/* Buffers that are given back and used again. */
typedef struct pool {
    size_t  *size; /* floats a sample; grows with its users */
    size_t   count;
    uint32_t users[AT_NET_LAYERS_MAX];
} pool;

/* The free buffer whose size suits best, or a new one. */
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

/* Backward looks at the layer's own output, so nothing may change it. */
static bool needs_y(const at_layer *layer)
{
    return layer->kind->needs_y || (layer->spec.relu && !layer->relu_done);
}

static bool in_place_training(const at_net *net, const at_layer *layer)
{
    if (!layer->kind->in_place || layer->spec.from < 0) return false;
    const at_layer *before = &net->layer[layer->spec.from];
    return !before->kept && !needs_y(before);
}

static void plan_outputs(at_graph *graph, const at_net *net)
{
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        if (in_place_training(net, layer)) {
            graph->step[i].y = graph->step[layer->spec.from].y;
        } else {
            graph->step[i].y = (int32_t)graph->outputs;
            graph->output[graph->outputs++] = at_activation_size(&layer->out);
        }
    }
}

/* Who reads each output last, when there is no way back. */
static void find_last_readers(const at_net *net, size_t *last)
{
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        last[i] = net->count;
        if (layer->spec.from >= 0) last[layer->spec.from] = i;
        if (layer->kind->has_other && layer->spec.other >= 0) last[layer->spec.other] = i;
    }
}

static void plan_outputs_once(at_graph *graph, const at_net *net)
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

/* The way back. `of` says in which buffer the gradient by each layer's output is. */
typedef struct way_back {
    const at_net *net;
    at_graph     *graph;
    pool          pool;
    int32_t       of[AT_NET_LAYERS_MAX];
} way_back;

/* Makes sure that nobody else reads the buffer of the gradient by the output of `to`, which is
 * about to be added to. Returns the buffer whose content must be copied to it first, or none. */
static int32_t own(way_back *b, int32_t to)
{
    int32_t now = b->of[to];
    if (b->pool.users[now] == 1) return AT_NO_BUFFER;
    b->of[to] = take(&b->pool, at_activation_size(&b->net->layer[to].out));
    drop(&b->pool, now);
    return now;
}

/* The gradient in `buffer` also belongs to the output of `to`: by name only if it is the first. */
static void hand_on(way_back *b, at_graph_step *step, int32_t to, int32_t buffer)
{
    if (to < 0 || !b->net->layer[to].trains) return;
    if (b->of[to] == AT_NO_BUFFER) {
        b->of[to] = buffer;
        b->pool.users[buffer]++;
        return;
    }
    int32_t copy = own(b, to);
    step->sum[step->sums++] = (at_graph_sum){.into = b->of[to], .from = buffer, .copy = copy};
}

/* Masking dy in place, or writing dx over it, would spoil it for others who read it. */
static void guard_dy(way_back *b, at_graph_step *step, const at_layer *layer)
{
    bool changes = (layer->spec.relu && !layer->relu_done) || layer->kind->in_place;
    if (b->pool.users[step->dy] == 1 || !changes) return;
    drop(&b->pool, step->dy);
    step->dy_copy = step->dy;
    step->dy = take(&b->pool, at_activation_size(&layer->out));
}

static void plan_dx(way_back *b, at_graph_step *step, const at_layer *layer)
{
    int32_t from = layer->spec.from;
    size_t  size = at_activation_size(&layer->in);
    if (b->of[from] == AT_NO_BUFFER) {
        bool over = layer->kind->in_place && b->pool.users[step->dy] == 1;
        step->dx = over ? step->dy : take(&b->pool, size);
        if (over) b->pool.users[step->dx]++; /* one for dy, given back below, one for dx */
        b->of[from] = step->dx;
        return;
    }
    int32_t copy = own(b, from);
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

static void plan_back(way_back *b, size_t i)
{
    const at_layer *layer = &b->net->layer[i];
    at_graph_step  *step = &b->graph->step[i];
    if (!layer->trains) return;
    assert(b->of[i] != AT_NO_BUFFER);
    step->dy = b->of[i];
    guard_dy(b, step, layer);
    if (layer->kind->has_other) {
        hand_on(b, step, layer->spec.from, step->dy);
        hand_on(b, step, layer->spec.other, step->dy);
    } else if (layer->wants_dx) {
        plan_dx(b, step, layer);
    }
    drop(&b->pool, step->dy);
}

static void plan_gradients(at_graph *graph, const at_net *net)
{
    way_back b = {.net = net, .graph = graph, .pool = {.size = graph->gradient}};
    for (size_t i = 0; i < net->count; i++) b.of[i] = AT_NO_BUFFER;
    b.of[net->count - 1] = take(&b.pool, at_activation_size(&net->layer[net->count - 1].out));
    assert(b.of[net->count - 1] == 0);
    b.pool.users[0]++; /* the logits' buffer is not ours to use again: it may be too small */
    for (size_t i = net->count; i-- > 0;) plan_back(&b, i);
    graph->gradients = b.pool.count;
}

at_graph *at_graph_new(const at_net *net, at_use use)
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
        plan_outputs(graph, net);
        plan_gradients(graph, net);
    } else {
        plan_outputs_once(graph, net);
    }
    return graph;
}

void at_graph_free(at_graph *graph)
{
    free(graph);
}

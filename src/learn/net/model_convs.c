/* Open convolutions of a model: one set per micro-batch size, the least recently used is
 * evicted. */
#include <assert.h>
#include <stdlib.h>

#include "learn/net/model_parts.h"

static void close_set(at_conv_set *set, const at_net *net)
{
    for (size_t i = 0; set->conv && i < net->count; i++)
        if (set->conv[i]) net->layer[i].conv->close(set->conv[i]);
    for (size_t i = 0; set->reordered && i < net->count; i++) free(set->reordered[i]);
    free(set->conv);
    free(set->reordered);
    *set = (at_conv_set){0};
}

static float *new_floats(size_t count)
{
    return aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
}

static bool grow_scratch(at_convs *convs, size_t size)
{
    if (size <= convs->scratch_size) return true;
    free(convs->scratch);
    convs->scratch_size = (size + 63) / 64 * 64;
    convs->scratch = aligned_alloc(64, convs->scratch_size);
    return convs->scratch != NULL;
}

static at_err no_memory(uint32_t rows, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FAILED, "use a smaller micro-batch",
                       "no memory for the convolutions of %u samples", rows);
}

static at_err open_layer(at_convs *convs, at_conv_set *set, const at_net *net, size_t i,
                         at_fail *fail)
{
    const at_layer *layer = &net->layer[i];
    if (layer->kind != &at_layer_conv) return AT_OK;
    at_conv_spec spec = at_net_conv_spec(layer);
    if (convs->use == AT_USE_SCORE) spec.wants_dx = false;
    AT_TRY(layer->conv->open(&spec, &layer->layout, set->rows, &set->conv[i], fail));
    size_t floats = spec.wants_dx ? layer->conv->reordered_size(set->conv[i]) : 0;
    if (floats) set->reordered[i] = new_floats(floats);
    if ((floats && !set->reordered[i]) || !grow_scratch(convs, layer->conv->scratch(set->conv[i])))
        return no_memory(set->rows, fail);
    convs->none = false;
    return AT_OK;
}

static at_err open_set(at_convs *convs, at_conv_set *set, const at_net *net, uint32_t rows,
                       at_fail *fail)
{
    *set = (at_conv_set){.rows = rows, .used = ++convs->clock};
    set->conv = calloc(net->count, sizeof *set->conv);
    set->reordered = calloc(net->count, sizeof *set->reordered);
    at_err err = set->conv && set->reordered ? AT_OK : no_memory(rows, fail);
    for (size_t i = 0; !err && i < net->count; i++) err = open_layer(convs, set, net, i, fail);
    if (err) close_set(set, net);
    return err;
}

at_err at_convs_open(at_convs *convs, const at_net *net, uint32_t rows, at_model_use use,
                     at_fail *fail)
{
    *convs = (at_convs){.use = use, .none = true, .version = 1, .net = net};
    convs->current = &convs->set[0];
    return open_set(convs, convs->current, net, rows, fail);
}

void at_convs_close(at_convs *convs)
{
    for (size_t i = 0; i < AT_CONVS_SIZES_MAX; i++) close_set(&convs->set[i], convs->net);
    free(convs->scratch);
    *convs = (at_convs){0};
}

/* The set of that size, or else the one to evict: unused, or least recently used. */
static at_conv_set *find(at_convs *convs, uint32_t rows)
{
    at_conv_set *oldest = &convs->set[0];
    for (size_t i = 0; i < AT_CONVS_SIZES_MAX; i++) {
        at_conv_set *set = &convs->set[i];
        if (set->rows == rows) return set;
        if (set->used < oldest->used) oldest = set;
    }
    return oldest;
}

void at_convs_select(at_convs *convs, uint32_t count)
{
    assert(count > 0);
    if (convs->none || convs->current->rows == count) return;
    at_conv_set *set = find(convs, count);
    if (set->rows != count) {
        close_set(set, convs->net);
        at_err err = open_set(convs, set, convs->net, count, NULL);
        assert(!err); /* other sizes of this net worked: only memory can be missing */
    }
    set->used = ++convs->clock;
    convs->current = set;
}

bool at_convs_reorder(at_convs *convs, const float *params)
{
    at_conv_set *set = convs->current;
    if (convs->none || set->version == convs->version) return false;
    for (size_t i = 0; i < convs->net->count; i++) {
        const at_layer *layer = &convs->net->layer[i];
        if (set->reordered[i])
            layer->conv->reorder(set->conv[i], set->reordered[i], params + layer->params_at);
    }
    set->version = convs->version;
    return true;
}

void at_convs_attach(const at_convs *convs, size_t layer, at_layer_pass *pass)
{
    if (convs->none) return;
    pass->conv = convs->current->conv[layer];
    pass->reordered = convs->current->reordered[layer];
    pass->conv_scratch = convs->scratch;
}

#include "world/core/net_layers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "learn/net/net.h"

_Static_assert((int)AT_RUN_LAYER_SAMPLES == (int)AT_FROM_SAMPLES, "both count layers from 0");

static void describe(at_run_layer *row, const at_layer *layer, const at_layer_info *info)
{
    bool has_other = layer->kind->has_other;
    *row = (at_run_layer){.from = {layer->spec.from, AT_RUN_LAYER_NONE},
                          .shape = {info->out[0], info->out[1], info->out[2]},
                          .parameters = info->params};
    if (has_other) row->from[1] = layer->spec.other;
    at_net_layer_name(layer, row->name);
    snprintf(row->kind, sizeof row->kind, "%s", info->kind);
    snprintf(row->detail, sizeof row->detail, "%s", info->detail);
}

at_run_layer *at_layers_of(const at_task *task, uint32_t *count)
{
    *count = 0;
    if (!task->net) return NULL;
    const at_net  *net = at_model_net(task->net);
    at_layer_info *infos = calloc(net->count, sizeof *infos);
    at_run_layer  *rows = calloc(net->count, sizeof *rows);
    if (infos && rows) {
        size_t told = at_model_layers(task->net, infos, net->count);
        assert(told == net->count);
        for (size_t i = 0; i < told; i++) describe(&rows[i], &net->layer[i], &infos[i]);
        *count = (uint32_t)told;
    }
    free(infos);
    if (*count > 0) return rows;
    free(rows);
    return NULL;
}

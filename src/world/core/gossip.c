#include "world/core/gossip.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* ---- start and end --------------------------------------------------------------------------- */

static at_err new_nodes(at_gossip *gossip, float *vectors, size_t stride, at_fail *fail)
{
    const at_world_context *context = gossip->context;
    uint32_t                nodes = gossip->graph.nodes;
    size_t                  params = context->task->params, size;
    AT_TRY(at_gossip_power_init(&gossip->power, nodes, fail));
    gossip->node = calloc(nodes, sizeof *gossip->node);
    gossip->w = calloc(nodes, sizeof *gossip->w);
    if (at_size_product(nodes * sizeof(float), stride, &size))
        gossip->messages = aligned_alloc(64, size);
    gossip->averaged = calloc(nodes, sizeof *gossip->averaged);
    if (!gossip->node || !gossip->w || !gossip->messages || !gossip->averaged)
        return at_fail_memory_for(fail, "for the messages of %u workers", nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        float *w = vectors + i * stride;
        memcpy(w, gossip->mean, params * sizeof *w);
        gossip->w[i] = w;
        AT_TRY(at_gossip_node_init(&gossip->node[i], at_plan_mixing(context->plan).form,
                                   context->learning, w, gossip->messages + i * stride, params,
                                   fail));
    }
    return AT_OK;
}

at_err at_gossip_init(at_gossip *gossip, const at_world_context *context, float *mean,
                      float *vectors, size_t stride, at_fail *fail)
{
    const at_plan *plan = context->plan;
    at_mixing      mixing = at_plan_mixing(plan);
    assert(plan->mix->owned_by_workers);
    *gossip = (at_gossip){.context = context, .mean = mean, .changed = true};
    AT_TRY(at_graph_init(&gossip->graph, mixing.graph, plan->workers_max, mixing.matrix,
                         context->seed, fail));
    if (vectors) assert(stride >= context->task->params && stride % 16 == 0);
    if (vectors) AT_TRY(new_nodes(gossip, vectors, stride, fail));
    for (uint32_t i = 0; i < plan->workers_max; i++) at_graph_set_present(&gossip->graph, i, false);
    return AT_OK;
}

void at_gossip_deinit(at_gossip *gossip)
{
    for (uint32_t i = 0; gossip->node && i < gossip->graph.nodes; i++)
        at_gossip_node_deinit(&gossip->node[i]);
    at_graph_deinit(&gossip->graph);
    at_gossip_power_deinit(&gossip->power);
    free(gossip->node);
    free(gossip->w);
    free(gossip->messages);
    free(gossip->averaged);
    *gossip = (at_gossip){0};
}

/* ---- who is there ---------------------------------------------------------------------------- */

void at_gossip_join(at_gossip *gossip, at_node worker)
{
    assert(worker >= 1 && worker <= gossip->graph.nodes);
    at_graph_set_present(&gossip->graph, worker - 1, true);
    gossip->changed = true;
    if (gossip->node)
        memcpy(gossip->node[worker - 1].w, gossip->mean, gossip->node->params * sizeof(float));
}

void at_gossip_lose(at_gossip *gossip, at_node worker)
{
    assert(worker >= 1 && worker <= gossip->graph.nodes);
    at_graph_set_present(&gossip->graph, worker - 1, false);
    gossip->changed = true;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* The gradient of a node in this step; NULL: it has none. */
static const at_piece *piece_of(const at_action *action, at_node worker)
{
    for (uint32_t i = 0; i < action->as.apply.count; i++)
        if (action->as.apply.pieces[i].worker == worker) return &action->as.apply.pieces[i];
    return NULL;
}

static void begin_all(at_gossip *gossip, const at_gossip_step *step, const at_action *action,
                      const at_gradients *gradients)
{
    for (uint32_t i = 0; i < gossip->graph.nodes; i++) {
        const at_piece *piece = gossip->graph.present[i] ? piece_of(action, i + 1) : NULL;
        const float    *gradient =
            piece ? gradients->at(gradients->self, piece->worker, piece->slot) : NULL;
        at_gossip_begin(&gossip->node[i], step, gradient, piece ? piece->samples : 0);
    }
}

double at_gossip_apply(at_gossip *gossip, const at_action *action, const at_gradients *gradients)
{
    at_mixing      mixing = at_plan_mixing(gossip->context->plan);
    at_gossip_step step = {.form = mixing.form,
                           .equal = mixing.equal,
                           .step = action->as.apply.step,
                           .samples_used = action->as.apply.samples_used,
                           .lr_factor = action->as.apply.lr_factor};
    double         lr = 0;
    assert(!action->as.apply.folded); /* every node needs its own gradient */
    if (gossip->changed && gossip->node)
        at_gossip_power_set(&gossip->power, &gossip->graph, mixing.rounds);
    gossip->changed = false;
    if (!gossip->node) return lr;
    begin_all(gossip, &step, action, gradients);
    at_gossip_power_mix(&gossip->power, gossip->node, gossip->node->params);
    for (uint32_t i = 0; i < gossip->graph.nodes; i++)
        if (gossip->graph.present[i]) lr = at_gossip_end(&gossip->node[i], &step);
    memcpy(gossip->averaged, gossip->graph.present, gossip->graph.nodes * sizeof(bool));
    gossip->disagreement = at_gossip_mean(gossip->mean, gossip->w, gossip->averaged,
                                          gossip->graph.nodes, gossip->node->params);
    return lr;
}

/* ---- looking at it --------------------------------------------------------------------------- */

/* `mean` is the score of the mean model, which is every worker's when they agree. */
void at_gossip_score(const at_gossip *gossip, at_score *score, bool scores)
{
    const at_task *task = gossip->context->task;
    const at_score mean = *score;
    at_score       worst = {0};
    double         sum = 0;
    uint32_t       workers = 0;
    assert(gossip->node);
    for (uint32_t i = 0; scores && i < gossip->graph.nodes; i++) {
        at_score one = {0};
        if (!gossip->averaged[i]) continue;
        if (gossip->disagreement > 0)
            task->score(task->self, &one, gossip->w[i], 0, task->test_samples);
        else
            one = mean;
        sum += one.loss_sum / (double)one.count;
        workers++;
        if (worst.count == 0 || !(one.loss_sum <= worst.loss_sum)) worst = one;
    }
    score->apart = true;
    score->disagreement = gossip->disagreement;
    score->workers_loss = workers > 0 ? sum / workers : NAN;
    score->worst_loss = worst.count > 0 ? worst.loss_sum / (double)worst.count : NAN;
    score->worst_accuracy = worst.count > 0 ? (double)worst.correct / (double)worst.count : NAN;
}

void at_gossip_describe(const at_gossip *gossip, char *text, size_t size)
{
    at_mixing mixing = at_plan_mixing(gossip->context->plan);
    double    value = at_graph_second_eigenvalue(&gossip->graph);
    assert(size > 0);
    if (value < 0 || value >= 1)
        snprintf(text, size,
                 "note: the graph %s does not connect all workers: parts of them will train models "
                 "of their own",
                 mixing.graph);
    else
        snprintf(text, size,
                 "gossip over %s: second eigenvalue %.3f, so %u rounds leave %.2g %% of a "
                 "disagreement",
                 mixing.graph, value, mixing.rounds, 100 * pow(value, mixing.rounds));
}

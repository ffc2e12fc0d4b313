#include "world/core/gossip.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "model_io/checkpoint.h"

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

/* ---- checkpoints ----------------------------------------------------------------------------- */

uint32_t at_gossip_vectors(const at_plan *plan, const at_learning *learning)
{
    if (!plan->mix->owned_by_workers) return 0;
    return 1 + learning->optim->states + (at_plan_mixing(plan).form == AT_MIX_DA ? 2 : 0);
}

/* The vectors of a node in the order of at_gossip_vectors; NULL: a state of its optimizer. */
static float *vector_of(const at_gossip_node *node, uint32_t which)
{
    uint32_t states = node->updater.learning->optim->states;
    if (which == 0) return node->w;
    if (which <= states) return NULL;
    assert(node->dual && which <= states + 2);
    return which == states + 1 ? node->dual : node->start;
}

void at_gossip_vector(const at_gossip *gossip, uint32_t node, uint32_t which, float *to)
{
    const at_gossip_node *from = &gossip->node[node];
    const float          *vector = vector_of(from, which);
    assert(node < gossip->graph.nodes);
    if (vector)
        memcpy(to, vector, from->params * sizeof *to);
    else
        at_updater_moment(&from->updater, which - 1, to);
}

/* `scratch` has room for one vector, whose padding stays as it is. */
static at_err resume_node(at_gossip *gossip, uint32_t i, uint32_t vectors, float *scratch,
                          at_fail *fail)
{
    const at_world_context *context = gossip->context;
    at_gossip_node         *node = &gossip->node[i];
    for (uint32_t which = 0; which < vectors; which++) {
        at_gossip_vector(gossip, i, which, scratch);
        AT_TRY(at_checkpoint_own(context->resume, context->task, i, which, scratch, fail));
        if (vector_of(node, which))
            memcpy(vector_of(node, which), scratch, node->params * sizeof *scratch);
        else
            at_updater_set_moment(&node->updater, which - 1, scratch);
    }
    gossip->restored[i] = true;
    return AT_OK;
}

/* Says that the workers' own parameters are not resumed; the checkpoint has `saved` of them. */
static void note_mean(at_gossip *gossip, uint32_t saved)
{
    uint32_t nodes = gossip->graph.nodes;
    if (saved > 0 && saved != nodes)
        snprintf(gossip->note, sizeof gossip->note,
                 "note: the checkpoint has the parameters of %u workers, and there are %u: all "
                 "workers start from their mean",
                 saved, nodes);
    else
        snprintf(gossip->note, sizeof gossip->note,
                 "note: the workers' own parameters are not resumed: all workers start from their "
                 "mean");
}

static at_err resume_nodes(at_gossip *gossip, at_fail *fail)
{
    const at_world_context *context = gossip->context;
    uint32_t                vectors = at_gossip_vectors(context->plan, context->learning);
    uint32_t                nodes = gossip->graph.nodes, saved, each;
    at_err                  err = AT_OK;
    at_checkpoint_own_count(context->resume, &saved, &each);
    if (saved == nodes && each == vectors) {
        float *scratch = malloc((gossip->node->params + 1) * sizeof *scratch);
        if (!scratch) return at_fail_memory(fail);
        for (uint32_t i = 0; !err && i < nodes; i++)
            err = resume_node(gossip, i, vectors, scratch, fail);
        free(scratch);
    } else
        note_mean(gossip, saved);
    return err;
}

/* ---- start ----------------------------------------------------------------------------------- */

at_err at_gossip_init(at_gossip *gossip, const at_world_context *context, float *mean,
                      float *vectors, size_t stride, at_fail *fail)
{
    const at_plan *plan = context->plan;
    at_mixing      mixing = at_plan_mixing(plan);
    assert(plan->mix->owned_by_workers);
    *gossip = (at_gossip){.context = context, .mean = mean, .changed = true};
    AT_TRY(at_graph_init(&gossip->graph, mixing.graph, plan->workers_max, mixing.matrix,
                         context->seed, fail));
    gossip->rounds = calloc(plan->workers_max, sizeof *gossip->rounds);
    gossip->restored = calloc(plan->workers_max, sizeof *gossip->restored);
    if (!gossip->rounds || !gossip->restored) return at_fail_memory(fail);
    if (vectors) assert(stride >= context->task->params && stride % 16 == 0);
    if (vectors) AT_TRY(new_nodes(gossip, vectors, stride, fail));
    if (vectors && context->resume) AT_TRY(resume_nodes(gossip, fail));
    if (!vectors && context->resume && !context->task->timing_only) note_mean(gossip, 0);
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
    free(gossip->rounds);
    free(gossip->restored);
    *gossip = (at_gossip){0};
}

/* ---- who is there ---------------------------------------------------------------------------- */

void at_gossip_join(at_gossip *gossip, at_node worker)
{
    assert(worker >= 1 && worker <= gossip->graph.nodes);
    at_graph_set_present(&gossip->graph, worker - 1, true);
    gossip->changed = true;
    bool restored = gossip->restored[worker - 1];
    gossip->restored[worker - 1] = false;
    if (gossip->node && !restored)
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

/* In virtual time: the rounds that each node makes in mixing->time. Without memory for that, one
 * each. */
static void count_rounds(at_gossip *gossip, const at_mixing *mixing)
{
    uint32_t n = gossip->graph.nodes;
    at_ns   *times = calloc(4 * (size_t)n, sizeof *times);
    for (uint32_t i = 0; i < n; i++) gossip->rounds[i] = 1;
    if (!times) return;
    for (uint32_t i = 0; i < n; i++)
        if (gossip->graph.present[i]) times[i] = gossip->sends(gossip->self, i);
    gossip->lasts =
        at_gossip_rounds_in_time(&gossip->graph, times, mixing->time, gossip->rounds, times + n);
    free(times);
}

/* Who is there has changed: who averages with whom, and how often. */
static void set_power(at_gossip *gossip, const at_mixing *mixing)
{
    bool unequal = mixing->time > 0 && gossip->sends;
    if (unequal) count_rounds(gossip, mixing);
    if (!gossip->node) return;
    if (unequal)
        at_gossip_power_set_unequal(&gossip->power, &gossip->graph, gossip->rounds);
    else
        at_gossip_power_set(&gossip->power, &gossip->graph, mixing->time > 0 ? 1 : mixing->rounds);
}

/* All rounds in one pass or, in real time and for a time, one per pass. */
static void average(at_gossip *gossip, const at_mixing *mixing)
{
    at_ns until = mixing->time > 0 && !gossip->sends ? at_clock_now() + mixing->time : 0;
    do at_gossip_power_mix(&gossip->power, gossip->node, gossip->node->params);
    while (until > 0 && at_clock_now() < until);
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
    if (gossip->changed) set_power(gossip, &mixing);
    gossip->changed = false;
    if (!gossip->node) return lr;
    begin_all(gossip, &step, action, gradients);
    average(gossip, &mixing);
    for (uint32_t i = 0; i < gossip->graph.nodes; i++)
        if (gossip->graph.present[i]) lr = at_gossip_end(&gossip->node[i], &step);
    memcpy(gossip->averaged, gossip->graph.present, gossip->graph.nodes * sizeof(bool));
    gossip->disagreement = at_gossip_mean(gossip->mean, gossip->w, gossip->averaged,
                                          gossip->graph.nodes, gossip->node->params);
    return lr;
}

/* ---- looking at it --------------------------------------------------------------------------- */

/* The mean loss of these parameters on the first samples of every worker's sequence, a thousand in
 * all or so. Computing a gradient is the only way to see training samples; `scratch` takes it. */
static double loss_of(const at_gossip *gossip, const float *params, float *scratch)
{
    enum { SAMPLES = 1024 };
    const at_world_context *context = gossip->context;
    const at_task          *task = context->task;
    uint32_t                n = gossip->graph.nodes, each = SAMPLES / n > 0 ? SAMPLES / n : 1;
    uint32_t                most = context->plan->micro_batch;
    at_point                point = {.params = params, .version = AT_VERSION_NONE - 1};
    double                  sum = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t at = 0; at < each; at += most) {
            at_draw draw = {.worker = i + 1, .position = at, .count = each - at};
            if (draw.count > most) draw.count = most;
            sum += task->gradient(task->self, scratch, true, point, &draw);
        }
    return sum / ((double)each * n);
}

static void score_training(const at_gossip *gossip, at_score *score)
{
    uint32_t count = 0;
    float   *scratch = gossip->node->mean; /* unused between steps */
    double   sum = 0, least = INFINITY, most = -INFINITY;
    for (uint32_t i = 0; i < gossip->graph.nodes; i++) {
        if (!gossip->averaged[i]) continue;
        double loss = loss_of(gossip, gossip->w[i], scratch);
        sum += loss;
        least = fmin(least, loss);
        most = isnan(loss) ? loss : fmax(most, loss);
        count++;
    }
    if (count == 0) return;
    score->trained = true;
    score->train_loss = sum / count;
    score->train_loss_min = least;
    score->train_loss_max = most;
    score->train_loss_model = loss_of(gossip, gossip->mean, scratch);
}

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
    if (scores && task->net) score_training(gossip, score); /* a user's function is not called */
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
    else if (mixing.time > 0)
        snprintf(text, size,
                 "gossip over %s: second eigenvalue %.3f, so each round in %.3g s leaves %.2g %% "
                 "of a disagreement",
                 mixing.graph, value, at_seconds(mixing.time), 100 * value);
    else
        snprintf(text, size,
                 "gossip over %s: second eigenvalue %.3f, so %u rounds leave %.2g %% of a "
                 "disagreement",
                 mixing.graph, value, mixing.rounds, 100 * pow(value, mixing.rounds));
}

#include "world/update.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "world/update_sparse.h"

/* Room that costs memory only when it is written to. */
static float *new_room(size_t n)
{
    size_t size;
    if (!at_size_product(n, sizeof(float), &size) || size > SIZE_MAX - 128) return NULL;
    return aligned_alloc(64, (size + 63) / 64 * 64 + 64);
}

static float *new_vector(size_t n, float value)
{
    float *vector = new_room(n);
    for (size_t i = 0; vector && i < n; i++) vector[i] = value;
    return vector;
}

/* What of each stretch stays the same from step to step. */
static bool list_updates(at_updater *u)
{
    const at_learning *l = u->learning;
    u->updates_count = l->stretches ? l->stretches_count : 1;
    u->updates = calloc(u->updates_count, sizeof *u->updates);
    if (!u->updates) return false;
    for (size_t i = 0; i < u->updates_count; i++) {
        at_stretch_update *update = &u->updates[i];
        update->at = l->stretches ? l->stretches[i].at : 0;
        update->count = l->stretches ? l->stretches[i].count : u->params;
        update->statistics = l->stretches && l->stretches[i].group < 0;
        if (update->statistics) update->keep = l->stretches[i].keep;
        assert(update->at + update->count <= u->params);
    }
    return true;
}

at_err at_updater_init(at_updater *u, const at_learning *learning, float *w, size_t params,
                       uint32_t pieces_max, at_fail *fail)
{
    const at_optim *optim = learning->optim;
    assert(learning->groups <= AT_GROUPS_MAX);
    *u = (at_updater){.learning = learning, .params = params, .w = w, .sources_max = pieces_max};
    if (learning->sparse)
        return at_sparse_update_new(learning, w, params, pieces_max, &u->sparse, fail);
    bool enough = list_updates(u);
    for (uint32_t i = 0; i < optim->states; i++) {
        u->state[i] = new_vector(params, optim->state_start);
        enough = enough && u->state[i];
    }
    u->folded = new_room(params);
    u->sources = calloc(pieces_max, sizeof *u->sources);
    u->weights = calloc(pieces_max, sizeof *u->weights);
    if (enough && u->folded && u->sources && u->weights) return AT_OK;
    at_updater_deinit(u);
    return at_fail_set(fail, AT_ERR_FAILED, "use a smaller model",
                       "not enough memory for the optimiser's state of %zu parameters", params);
}

void at_updater_deinit(at_updater *u)
{
    free(u->updates);
    free(u->state[0]);
    free(u->state[1]);
    free(u->folded);
    free(u->sources);
    free(u->weights);
    at_sparse_update_free(u->sparse);
    *u = (at_updater){0};
}

/* In blocks, so that a sum of many small squares stays exact enough. */
static double squared_norm(const float *v, size_t n)
{
    enum { BLOCK = 1024 };
    double norm2 = 0;
    for (size_t at = 0; at < n; at += BLOCK) {
        double block = 0;
        for (size_t i = at; i < n && i < at + BLOCK; i++) block += (double)v[i] * v[i];
        norm2 += block;
    }
    return norm2;
}

/* Of the mean gradient of one piece. */
static double norm2_of(const at_updater *u, const at_piece *piece, const float *gradient)
{
    double samples = piece->samples;
    assert(samples >= 1);
    return squared_norm(gradient, u->learning->trained) / (samples * samples);
}

void at_updater_add(at_updater *u, const at_piece *piece, const at_gradients *gradients)
{
    if (u->sparse) {
        at_sparse_update_add(u->sparse, piece, gradients, u->wants_norms);
        return;
    }
    const float *both[2] = {u->folded, gradients->at(gradients->self, piece->worker, piece->slot)};
    const float  weights[2] = {1, (float)piece->weight};
    if (u->folded_any)
        at_sum(u->folded, both, weights, 2, u->params);
    else
        at_sum(u->folded, both + 1, weights + 1, 1, u->params);
    if (!u->folded_any) u->weight_folded = 0;
    u->weight_folded += piece->weight * piece->samples;
    u->folded_any = true;
    if (u->wants_norms) u->norm2_added += norm2_of(u, piece, both[1]);
}

/* Lists the gradients of a step; the weights only matter, and only cost, under `scale`. */
static uint32_t list_sources(at_updater *u, const at_action *apply, const at_gradients *gradients,
                             bool *weighted)
{
    if (apply->as.apply.folded) {
        assert(u->folded_any);
        u->sources[0] = u->folded;
        u->folded_any = false;
        *weighted = false;
        return 1;
    }
    uint32_t count = apply->as.apply.count;
    assert(count <= u->sources_max);
    *weighted = false;
    for (uint32_t i = 0; i < count; i++) {
        const at_piece *piece = &apply->as.apply.pieces[i];
        u->sources[i] = gradients->at(gradients->self, piece->worker, piece->slot);
        u->weights[i] = (float)piece->weight;
        *weighted = *weighted || u->weights[i] < 1;
    }
    return count;
}

/* Sums the gradients first, which the optimiser otherwise does by the way, and measures. Returns
 * how many sources are left: the sum. */
static uint32_t measure(at_updater *u, const at_action *apply, uint32_t count, bool *weighted)
{
    double pieces = apply->as.apply.count, samples = (double)apply->as.apply.samples;
    if (!apply->as.apply.folded) {
        for (uint32_t i = 0; i < count; i++)
            u->norm2_added += norm2_of(u, &apply->as.apply.pieces[i], u->sources[i]);
        at_sum(u->folded, u->sources, *weighted ? u->weights : NULL, count, u->params);
        u->sources[0] = u->folded;
        *weighted = false;
    }
    u->norm2_piece = u->norm2_added / pieces;
    u->norm2_step = squared_norm(u->folded, u->learning->trained) / (samples * samples);
    u->norm2_added = 0;
    return 1;
}

/* How many samples the statistics of a step are the sums of; a weight makes a sample count less. */
static double samples_weighted(const at_updater *u, const at_action *apply)
{
    if (apply->as.apply.folded) return u->weight_folded;
    double sum = 0;
    for (uint32_t i = 0; i < apply->as.apply.count; i++)
        sum += apply->as.apply.pieces[i].weight * apply->as.apply.pieces[i].samples;
    return sum;
}

static double rate_of(const at_rate *rate, const at_action *apply)
{
    return at_schedule_rate(&rate->schedule, (double)apply->as.apply.samples_used) *
           apply->as.apply.lr_factor;
}

/* What changes from step to step. Returns the learning rate of the parameters of no group. */
static double set_updates(at_updater *u, const at_action *apply)
{
    const at_learning *l = u->learning;
    float              scale = 1.0f / (float)apply->as.apply.samples;
    for (size_t i = 0; i < u->updates_count; i++) {
        at_stretch_update *update = &u->updates[i];
        if (update->statistics) {
            update->how.scale = (float)(1.0 / samples_weighted(u, apply));
            continue;
        }
        const at_rate *rate = &l->rate[l->stretches ? l->stretches[i].group : (int32_t)l->groups];
        update->how = (at_update){.lr = (float)rate_of(rate, apply),
                                  .weight_decay = (float)rate->weight_decay,
                                  .momentum = rate->momentum,
                                  .scale = scale,
                                  .step = apply->as.apply.step};
    }
    return rate_of(&l->rate[l->groups], apply);
}

double at_updater_apply(at_updater *u, const at_action *apply, const at_gradients *gradients)
{
    assert(apply->kind == AT_ACT_APPLY);
    assert(apply->as.apply.samples > 0); /* an empty step is never applied */
    if (u->sparse) {
        if (u->wants_norms)
            at_sparse_update_measure(u->sparse, apply, gradients, &u->norm2_step, &u->norm2_piece);
        return at_sparse_update_apply(u->sparse, apply, gradients);
    }
    bool     weighted;
    uint32_t count = list_sources(u, apply, gradients, &weighted);
    double   lr = set_updates(u, apply);
    if (u->wants_norms) count = measure(u, apply, count, &weighted);
    at_optim_apply_stretches(u->learning->optim, u->w, u->state[0], u->state[1], u->sources,
                             weighted ? u->weights : NULL, count, u->updates, u->updates_count);
    return lr;
}

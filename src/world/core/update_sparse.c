#include "world/core/update_sparse.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "learn/sparse/sparse.h"

/* Below this the scale is multiplied into the weights, in one pass over all of them; rare, even in
 * very long runs. */
static const float SCALE_MIN = 0x1p-40f;
/* Impossible while hogwild workers write all the time: there the decay stops here. */
static const float SCALE_FLOOR = 0x1p-90f;

struct at_sparse_update {
    const at_learning *learning;
    float             *w; /* flat, see learn/sparse/sparse.h */
    uint64_t           dimension;
    at_sparse_cell    *cells;  /* (dimension + 1); only touched pages are in memory */
    at_pairs          *folded; /* gradients added so far in the open step, already weighted */
    uint64_t           folded_max;
    double             norm2_added;
};

static double rate_at(const at_learning *l, uint64_t samples_used, uint64_t steps, double factor)
{
    assert(factor > 0);
    return at_schedule_now(&l->rate[0].schedule, (double)samples_used, (double)steps) * factor;
}

/* Space for the most pairs that an open step can have; pages are allocated when first written. */
static bool reserve(at_sparse_update *u, uint32_t pieces_max, size_t slot_floats)
{
    assert(pieces_max >= 1);
    assert(slot_floats >= 1);
    size_t floats, size;
    bool   fits = at_size_product(slot_floats, pieces_max, &floats) &&
                at_size_product(floats, sizeof(float), &size) && size < SIZE_MAX / 2;
    u->folded = fits ? malloc(size + sizeof *u->folded) : NULL;
    u->folded_max = fits ? size / sizeof(at_pair) : 0;
    u->cells = calloc(u->dimension + 1, sizeof *u->cells);
    if (!u->folded || !u->cells) return false;
    u->folded->count = 0;
    return true;
}

at_err at_sparse_update_new(const at_learning *learning, float *w, size_t params,
                            uint32_t pieces_max, at_sparse_update **out, at_fail *fail)
{
    assert(w);
    assert(learning->sparse);
    assert(params > AT_SPARSE_EXTRA);
    assert(learning->groups == 0);
    at_sparse_update *u = calloc(1, sizeof *u);
    *out = u;
    if (!u) return at_fail_memory(fail);
    u->learning = learning;
    u->w = w;
    u->dimension = params - AT_SPARSE_EXTRA;
    *at_sparse_rate(w, u->dimension) = (float)rate_at(learning, 0, 0, 1);
    if (learning->updates_in_place || reserve(u, pieces_max, learning->slot_floats)) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, "use a smaller --batch or fewer workers",
                       "not enough memory for %u gradients of up to %zu bytes each", pieces_max,
                       learning->slot_floats * sizeof(float));
}

void at_sparse_update_free(at_sparse_update *u)
{
    if (!u) return;
    free(u->cells);
    free(u->folded);
    free(u);
}

static const at_pairs *pairs_of(const at_gradients *gradients, const at_piece *piece)
{
    assert(piece->worker >= 1);
    return (const at_pairs *)(const void *)gradients->at(gradients->self, piece->worker,
                                                         piece->slot);
}

/* Squared norm of the mean gradient of one piece. */
static double norm2_of(at_sparse_update *u, const at_pairs *pairs, uint32_t samples)
{
    assert(samples >= 1);
    at_sparse_collect(u->cells, pairs->pair, pairs->count, 1);
    return at_sparse_norm2(u->cells, pairs->pair, pairs->count) / ((double)samples * samples);
}

void at_sparse_update_add(at_sparse_update *u, const at_piece *piece, const at_gradients *gradients,
                          bool measure)
{
    assert(piece->samples >= 1);
    assert(piece->weight >= 0);
    if (u->learning->updates_in_place) return;
    const at_pairs *pairs = pairs_of(gradients, piece);
    float           weight = (float)piece->weight;
    at_pair        *to = u->folded->pair + u->folded->count;
    assert(pairs->count <= u->folded_max - u->folded->count);
    if (piece->weight < 1)
        for (uint64_t i = 0; i < pairs->count; i++)
            to[i] = (at_pair){pairs->pair[i].index, weight * pairs->pair[i].value};
    else
        memcpy(to, pairs->pair, pairs->count * sizeof *to);
    u->folded->count += pairs->count;
    if (measure) u->norm2_added += norm2_of(u, pairs, piece->samples);
}

/* The gradients of a step by index; NULL after the last. */
static const at_pairs *source(at_sparse_update *u, const at_action *apply,
                              const at_gradients *gradients, uint32_t index, float *weight)
{
    assert(!u->learning->updates_in_place); /* its gradients are not kept */
    *weight = 1;
    if (apply->as.apply.folded) return index == 0 ? u->folded : NULL;
    if (index >= apply->as.apply.count) return NULL;
    const at_piece *piece = &apply->as.apply.pieces[index];
    *weight = (float)piece->weight;
    return pairs_of(gradients, piece);
}

static void collect(at_sparse_update *u, const at_action *apply, const at_gradients *gradients)
{
    assert(u->cells);
    const at_pairs *pairs;
    float           weight;
    for (uint32_t i = 0; (pairs = source(u, apply, gradients, i, &weight)); i++)
        at_sparse_collect(u->cells, pairs->pair, pairs->count, weight);
}

void at_sparse_update_measure(at_sparse_update *u, const at_action *apply,
                              const at_gradients *gradients, double *norm2_step,
                              double *norm2_piece)
{
    const at_pairs *pairs;
    float           weight;
    double          samples = (double)apply->as.apply.samples, sum = 0;
    assert(apply->as.apply.count >= 1);
    *norm2_step = *norm2_piece = 0;
    if (u->learning->updates_in_place) return;
    for (uint32_t i = 0; !apply->as.apply.folded && i < apply->as.apply.count; i++) {
        const at_piece *piece = &apply->as.apply.pieces[i];
        u->norm2_added += norm2_of(u, pairs_of(gradients, piece), piece->samples);
    }
    collect(u, apply, gradients);
    for (uint32_t i = 0; (pairs = source(u, apply, gradients, i, &weight)); i++)
        sum += at_sparse_norm2(u->cells, pairs->pair, pairs->count);
    *norm2_step = sum / (samples * samples);
    *norm2_piece = u->norm2_added / apply->as.apply.count;
    u->norm2_added = 0;
}

/* Shrinks all weights. */
static void decay(at_sparse_update *u, double factor)
{
    float *scale = at_sparse_scale(u->w, u->dimension);
    assert(*scale > 0);
    if (factor >= 1) return;
    *scale *= factor > 0x1p-20 ? (float)factor : 0x1p-20f; /* lr * decay may reach 1 */
    if (u->learning->updates_in_place) {
        if (*scale < SCALE_FLOOR) *scale = SCALE_FLOOR;
    } else if (*scale < SCALE_MIN) {
        for (uint64_t i = 0; i <= u->dimension; i++) u->w[i] *= *scale;
        *scale = 1;
    }
    assert(*scale > 0);
}

static void sgd(at_sparse_update *u, const at_action *apply, const at_gradients *gradients,
                double step)
{
    assert(apply->as.apply.samples >= 1);
    const at_pairs *pairs;
    float           weight;
    step /= (double)apply->as.apply.samples;
    for (uint32_t i = 0; (pairs = source(u, apply, gradients, i, &weight)); i++)
        at_sparse_descend(u->w, pairs->pair, pairs->count, (float)(step * (double)weight));
}

static void adagrad(at_sparse_update *u, const at_action *apply, const at_gradients *gradients,
                    double step)
{
    assert(apply->as.apply.samples >= 1);
    assert(u->learning->optim->states == 1);
    const at_pairs     *pairs;
    float               weight;
    at_adagrad_settings how = {.mean = (float)(1.0 / (double)apply->as.apply.samples),
                               .step = (float)step,
                               .start = u->learning->optim->state_start};
    collect(u, apply, gradients);
    for (uint32_t i = 0; (pairs = source(u, apply, gradients, i, &weight)); i++)
        at_sparse_adagrad(u->w, u->cells, pairs->pair, pairs->count, &how);
}

/* Workers make one update per sample: applies the decay once per sample and sets the next rate. */
static void follow_workers(at_sparse_update *u, const at_action *apply, double lr)
{
    assert(u->learning->updates_in_place);
    uint64_t samples = apply->as.apply.samples, used = apply->as.apply.samples_used + samples;
    double   each = 1 - lr * u->learning->rate[0].weight_decay;
    decay(u, pow(each > 0 ? each : 0, (double)samples));
    *at_sparse_rate(u->w, u->dimension) =
        (float)rate_at(u->learning, used, apply->as.apply.step, apply->as.apply.lr_factor);
}

double at_sparse_update_apply(at_sparse_update *u, const at_action *apply,
                              const at_gradients *gradients)
{
    assert(apply->kind == AT_ACT_APPLY);
    const at_learning *l = u->learning;
    double             lr = rate_at(l, apply->as.apply.samples_used, apply->as.apply.step - 1,
                                    apply->as.apply.lr_factor);
    if (l->updates_in_place) {
        follow_workers(u, apply, lr);
        return lr;
    }
    decay(u, 1 - lr * l->rate[0].weight_decay);
    double step = lr / (double)*at_sparse_scale(u->w, u->dimension);
    if (l->optim->states == 0)
        sgd(u, apply, gradients, step);
    else
        adagrad(u, apply, gradients, step);
    u->folded->count = 0;
    return lr;
}

void at_sparse_update_squares(const at_sparse_update *u, float *squares)
{
    const float *shared = u->learning->shared_state;
    assert(shared || u->cells);
    for (uint64_t i = 0; i <= u->dimension; i++)
        squares[i] = shared ? shared[i] : u->cells[i].squares;
}

void at_sparse_update_set_squares(at_sparse_update *u, const float *squares)
{
    float *shared = u->learning->shared_state;
    assert(shared || u->cells);
    for (uint64_t i = 0; i <= u->dimension; i++)
        if (shared)
            shared[i] = squares[i];
        else
            u->cells[i].squares = squares[i];
}

void at_sparse_update_resume(at_sparse_update *u, uint64_t samples_used, uint64_t steps)
{
    *at_sparse_rate(u->w, u->dimension) = (float)rate_at(u->learning, samples_used, steps, 1);
}

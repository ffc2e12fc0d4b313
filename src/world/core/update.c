#include "world/core/update.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "learn/engines/activation_kernels.h"
#include "world/core/update_sparse.h"
#include "world/process/child.h"

/* ---- memory ---------------------------------------------------------------------------------- */

enum { LINE = 64 }; /* bytes of a cache line */

/* Hands out parts of one block in order; without a base it only adds up sizes. */
typedef struct layout {
    unsigned char *base;
    size_t         used;
    bool           overflow;
} layout;

static void *part(layout *l, size_t count, size_t size_each)
{
    assert(l->used % LINE == 0); /* every part starts a cache line */
    size_t size;
    void  *start = l->base ? l->base + l->used : NULL;
    bool   fits = at_size_product(count, size_each, &size) && size <= SIZE_MAX / 2 - l->used;
    if (!fits) l->overflow = true;
    if (fits) l->used += (size + LINE - 1) / LINE * LINE;
    return start;
}

static size_t blocks_of(const at_updater *u)
{
    return (u->params + AT_UPDATER_BLOCK - 1) / AT_UPDATER_BLOCK;
}

static void lay_out(at_updater *u, layout *l)
{
    assert(u->learning->optim->states <= sizeof u->state / sizeof *u->state);
    assert(u->sources_max >= 2);
    size_t sources = u->sources_max;
    for (uint32_t i = 0; i < u->learning->optim->states; i++)
        u->state[i] = part(l, u->params, sizeof(float));
    u->folded = part(l, u->params, sizeof(float));
    u->work = part(l, 1, sizeof *u->work);
    u->updates = part(l, u->updates_count, sizeof *u->updates);
    u->early = part(l, sources, sizeof *u->early);
    u->sources = part(l, sources, sizeof *u->sources);
    u->weights = part(l, sources, sizeof *u->weights);
    u->shares = part(l, sources, sizeof *u->shares);
    u->norm2_sums = part(l, blocks_of(u), sizeof *u->norm2_sums);
    u->norm2_pieces = part(l, blocks_of(u), sizeof *u->norm2_pieces);
}

/* Sets the fields of each range that stay the same in every step. */
static void list_updates(at_updater *u)
{
    assert(u->updates);
    const at_learning *l = u->learning;
    for (size_t i = 0; i < u->updates_count; i++) {
        at_param_range_update *update = &u->updates[i];
        *update = (at_param_range_update){.count = u->params};
        if (!l->ranges) continue;
        update->at = l->ranges[i].at;
        update->count = l->ranges[i].count;
        update->statistics = l->ranges[i].group < 0;
        if (update->statistics) update->keep = l->ranges[i].keep;
        assert(update->at + update->count <= u->params);
    }
}

/* Pages are allocated when first written. */
static at_err allocate(at_updater *u, bool shared, at_fail *fail)
{
    assert(!u->memory);
    layout all = {0};
    lay_out(u, &all);
    if (!all.overflow)
        u->memory = shared ? at_child_share(all.used, fail) : aligned_alloc(LINE, all.used);
    if (!u->memory)
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller model",
                           "not enough memory for the optimizer state of %zu parameters",
                           u->params);
    u->shared_size = shared ? all.used : 0;
    all.base = u->memory;
    all.used = 0;
    lay_out(u, &all);
    assert(!all.overflow);
    assert(all.used == u->shared_size || !shared); /* as large as before */
    return AT_OK;
}

/* Shared memory starts zeroed; untouched pages cost nothing. */
static void fill(float *vector, size_t n, float value, bool shared)
{
    if (shared && value == 0) return;
    for (size_t i = 0; i < n; i++) vector[i] = value;
}

static at_err init(at_updater *u, const at_learning *learning, float *w, size_t params,
                   uint32_t pieces_max, bool shared, at_fail *fail)
{
    assert(w || params == 0); /* 0: only time is simulated */
    assert(pieces_max >= 1);
    assert(learning->groups <= AT_GROUPS_MAX);
    *u = (at_updater){.learning = learning, .params = params, .w = w};
    u->sources_max = pieces_max > 2 ? pieces_max : 2; /* ADD sums two */
    u->updates_count = learning->ranges ? learning->ranges_count : 1;
    AT_TRY(at_past_params_init(&u->past, learning->stale, params, learning->trained, fail));
    AT_TRY(allocate(u, shared, fail));
    list_updates(u);
    for (uint32_t k = 0; k < learning->optim->states; k++)
        fill(u->state[k], params, learning->optim->state_start, shared);
    return AT_OK;
}

at_err at_updater_init(at_updater *u, const at_learning *learning, float *w, size_t params,
                       uint32_t pieces_max, at_fail *fail)
{
    assert(learning->optim);
    if (!learning->sparse) return init(u, learning, w, params, pieces_max, false, fail);
    *u = (at_updater){.learning = learning, .params = params, .w = w};
    return at_sparse_update_new(learning, w, params, pieces_max, &u->sparse, fail);
}

at_err at_updater_init_shared(at_updater *u, const at_learning *learning, float *w, size_t params,
                              uint32_t pieces_max, at_fail *fail)
{
    assert(!learning->sparse);
    return init(u, learning, w, params, pieces_max, true, fail);
}

void at_updater_deinit(at_updater *u)
{
    assert(u->memory || u->shared_size == 0);
    if (u->shared_size > 0)
        munmap(u->memory, u->shared_size);
    else
        free(u->memory);
    at_sparse_update_free(u->sparse);
    at_past_params_deinit(&u->past);
    *u = (at_updater){0};
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Sum of squares of n floats from `at` on, without running statistics. */
static double squares(const at_updater *u, const float *v, size_t at, size_t n)
{
    double sum = 0;
    for (size_t i = at; i < at + n && i < u->learning->trained; i++) sum += (double)v[i] * v[i];
    return sum;
}

/* The sum of the step's gradients: one that needs no adding up is read where it is. */
static const float *sum_of(const at_updater *u)
{
    assert(u->work->count >= 1);
    return u->work->count == 1 && !u->work->weighted ? u->sources[0] : u->folded;
}

static void gauge_block(const at_updater *u, size_t at, size_t n)
{
    size_t trained = u->learning->trained, left = at < trained ? trained - at : 0;
    assert(at % AT_UPDATER_BLOCK == 0);
    u->norm2_sums[at / AT_UPDATER_BLOCK] = at_sum_squares(sum_of(u) + at, n < left ? n : left);
}

/* Norms are summed per block and then over blocks in order: the result does not depend on which
 * process did which block, and rounding errors stay small. */
static void measure_block(const at_updater *u, size_t at, size_t n)
{
    assert(at % AT_UPDATER_BLOCK == 0);
    assert(n <= AT_UPDATER_BLOCK);
    double sum = 0;
    for (uint32_t i = 0; i < u->work->count; i++)
        if (u->shares[i] > 0) sum += squares(u, u->sources[i], at, n) * u->shares[i];
    u->norm2_pieces[at / AT_UPDATER_BLOCK] = sum;
    u->norm2_sums[at / AT_UPDATER_BLOCK] = squares(u, sum_of(u), at, n);
}

static void measure(const at_updater *u, at_slice slice)
{
    for (size_t at = 0; at < slice.count; at += AT_UPDATER_BLOCK) {
        size_t left = slice.count - at, n = left < AT_UPDATER_BLOCK ? left : AT_UPDATER_BLOCK;
        if (u->work->measures) measure_block(u, slice.first + at, n);
        if (u->work->gauges) gauge_block(u, slice.first + at, n);
    }
}

/* Its groups have their own numbers; of ours only the scales are used. */
static void update_torch(const at_updater *u, const float *const *sources, const float *weights,
                         uint32_t count, at_slice slice)
{
    const at_torch_learning *torch = u->learning->torch;
    at_torch_update          update = {.kind = torch->kind,
                                       .params = u->w,
                                       .state = {u->state[0], u->state[1]},
                                       .gradients = sources,
                                       .weights = weights,
                                       .gradients_count = count,
                                       .groups = torch->group,
                                       .ranges = torch->ranges,
                                       .ranges_count = torch->ranges_count};
    for (size_t i = 0; i < u->updates_count; i++) {
        const at_param_range_update *range = &u->updates[i];
        if (range->statistics) {
            update.mean_buffers = range->how.scale;
        } else {
            update.mean = range->how.scale;
            update.step = range->how.step;
        }
    }
    if (update.mean_buffers == 0) update.mean_buffers = update.mean;
    at_torch_update_slice(&update, slice);
}

/* Running statistics are averaged; the rest follows the outer rule. */
static void apply_outer(const at_updater *u, const float *change, size_t at, size_t n)
{
    const at_plan *plan = u->learning->outer;
    size_t         trained = u->learning->trained, left = at < trained ? trained - at : 0;
    size_t         first = n < left ? n : left;
    at_outer_step  step = {.count = first, .params = u->w + at, .change = change};
    assert(plan->outer->apply);
    if (plan->outer->keeps_momentum) step.momentum = u->state[0] + at;
    plan->outer->apply(plan, &step);
    for (size_t i = first; i < n; i++) u->w[at + i] += change[i];
}

/* One block at a time: the mean change, then the step. */
static void update_outer(const at_updater *u, const float *const *sources, const float *weights,
                         uint32_t count, at_slice slice)
{
    float       change[AT_SUM_BLOCK];
    const float scale = (float)(1 / u->work->divisor);
    assert(u->work->divisor > 0);
    for (size_t at = 0; at < slice.count;) {
        size_t n = at_sum_block_size(at, slice.count);
        at_sum_block(change, sources, weights, count, slice.first + at, n);
        for (size_t i = 0; i < n; i++) change[i] *= scale;
        apply_outer(u, change, slice.first + at, n);
        at += n;
    }
}

/* Norms need the sum of the gradients first; without them the optimizer adds up on the fly. */
void at_updater_slice(const at_updater *u, at_slice slice)
{
    const at_update_work *work = u->work;
    const float          *weights = work->weighted ? u->weights : NULL;
    const float *const   *sources = u->sources;
    const float          *sum = sum_of(u);
    uint32_t              count = work->count;
    bool                  norms = work->measures || work->gauges;
    assert(count >= 1);
    assert(count <= u->sources_max);
    assert(slice.first % AT_UPDATER_BLOCK == 0);
    assert(slice.first <= u->params);
    assert(slice.count <= u->params - slice.first);
    if (sum == u->folded && !work->folded && (work->adds || norms))
        at_sum_slice(u->folded, sources, weights, count, slice);
    if (norms) {
        measure(u, slice);
        sources = &sum;
        weights = NULL;
        count = 1;
    }
    if (work->adds || work->gauges) return;
    if (u->learning->torch) {
        update_torch(u, sources, weights, count, slice);
        return;
    }
    if (u->learning->outer) {
        update_outer(u, sources, weights, count, slice);
        return;
    }
    at_optim_apply_slice(u->learning->optim, u->w, u->state[0], u->state[1], sources, weights,
                         count, u->updates, u->updates_count, slice);
}

at_update_result at_updater_result(const at_updater *u, at_slice slice)
{
    size_t first = slice.first / AT_UPDATER_BLOCK;
    size_t blocks = (slice.count + AT_UPDATER_BLOCK - 1) / AT_UPDATER_BLOCK;
    assert(slice.first % AT_UPDATER_BLOCK == 0);
    assert(!u->work->adds);
    if (!u->work->gauges) return (at_update_result){u->w + slice.first, slice.count};
    return (at_update_result){(float *)(void *)(u->norm2_sums + first),
                              blocks * (sizeof(double) / sizeof(float))};
}

uint32_t at_updater_changes(const at_updater *u, float *vectors[AT_UPDATER_CHANGES_MAX])
{
    uint32_t count = 0;
    if (u->work->gauges) return 0; /* a sum that is computed again comes out the same */
    if (u->work->adds) {
        vectors[count++] = u->folded;
        return count;
    }
    vectors[count++] = u->w;
    for (uint32_t i = 0; i < u->learning->optim->states; i++) vectors[count++] = u->state[i];
    assert(count <= AT_UPDATER_CHANGES_MAX);
    return count;
}

/* ---- ADD and APPLY --------------------------------------------------------------------------- */

static double total(const double *blocks, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += blocks[i];
    return sum;
}

/* Computes all slices, here or in the helpers. */
static void run_slices(at_updater *u, const at_piece *pieces, uint32_t count, bool measures)
{
    assert(count >= 1);
    assert(u->work->count >= 1);
    assert(u->work->count <= u->sources_max);
    u->work->measures = measures;
    if (u->helpers.run)
        u->helpers.run(u->helpers.self, pieces, count);
    else
        at_updater_slice(u, (at_slice){0, u->params});
    if (measures) u->norm2_added += total(u->norm2_pieces, blocks_of(u));
}

static void set_source(at_updater *u, uint32_t i, const float *source, double weight,
                       uint32_t samples)
{
    assert(i < u->sources_max);
    assert(source || u->params == 0);
    assert(weight >= 0);
    u->sources[i] = source;
    u->weights[i] = (float)weight;
    u->shares[i] = samples > 0 ? 1 / ((double)samples * samples) : 0;
}

/* The weight of a change in the mean; 0 for gradients, which are divided by their samples. */
static double share_of(const at_updater *u, const at_piece *piece)
{
    const at_plan *plan = u->learning->outer;
    return plan ? at_plan_change_weight(plan, piece->samples) : 0;
}

void at_updater_add(at_updater *u, const at_piece *piece, const at_gradients *gradients)
{
    assert(piece->worker >= 1);
    assert(piece->weight >= 0);
    if (u->sparse) {
        at_sparse_update_add(u->sparse, piece, gradients, u->wants_norms);
        return;
    }
    uint32_t count = 0;
    assert(piece->samples >= 1);
    if (!u->folded_any) u->weight_folded = u->divisor_folded = 0;
    if (u->folded_any) set_source(u, count++, u->folded, 1, 0);
    const float *gradient = gradients->at(gradients->self, piece->worker, piece->slot);
    gradient = at_past_params_correct(&u->past, piece, gradient, u->w);
    set_source(u, count++, gradient, piece->weight, piece->samples);
    *u->work = (at_update_work){.count = count, .weighted = true, .adds = true};
    u->weight_folded += piece->weight * piece->samples;
    u->divisor_folded += share_of(u, piece);
    u->folded_any = true;
    run_slices(u, piece, 1, u->wants_norms);
}

static const float *gradient_of(const at_gradients *gradients, const at_piece *piece)
{
    assert(piece->samples >= 1);
    return gradients->at(gradients->self, piece->worker, piece->slot);
}

/* How many of the pieces are summed up already: all that were, or none. */
static uint32_t matching(const at_updater *u, const at_piece *pieces, uint32_t count)
{
    assert(u->early_count != 1);
    if (u->early_count > count) return 0;
    for (uint32_t i = 0; i < u->early_count; i++)
        if (u->early[i].worker != pieces[i].worker || u->early[i].slot != pieces[i].slot ||
            u->early[i].sequence != pieces[i].sequence ||
            u->early[i].incarnation != pieces[i].incarnation || pieces[i].weight < 1)
            return 0;
    return u->early_count;
}

/* Norms and clipping need all gradients of a step at once. A weight that is not 1 may still change
 * when the step closes. */
static bool sums_early(const at_updater *u, const at_piece *pieces, uint32_t count)
{
    if (u->sparse || u->params == 0 || u->wants_norms || u->learning->clip > 0 || u->summed)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (pieces[i].weight < 1) return false;
    return count >= 2 && count <= u->sources_max;
}

void at_updater_sum_early(at_updater *u, const at_piece *pieces, uint32_t count,
                          const at_gradients *gradients)
{
    if (!sums_early(u, pieces, count)) return;
    assert(!u->folded_any); /* gradients that are added on arrival are in `folded` */
    uint32_t done = matching(u, pieces, count);
    if (done == count) return;
    if (done == 0) {
        const float *two[] = {gradient_of(gradients, &pieces[0]),
                              gradient_of(gradients, &pieces[1])};
        at_sum_slice(u->folded, two, NULL, 2, (at_slice){0, u->params});
        done = 2;
    }
    for (; done < count; done++)
        at_vector_add(u->folded, gradient_of(gradients, &pieces[done]), u->params);
    memcpy(u->early, pieces, count * sizeof *pieces);
    u->early_count = count;
}

/* The source that stands for the gradients summed up already; returns how many those are. */
static uint32_t take_early(at_updater *u, const at_action *apply)
{
    uint32_t done = matching(u, apply->as.apply.pieces, apply->as.apply.count);
    u->early_count = 0;
    if (done == 0) return 0;
    set_source(u, 0, u->folded, 1, 0);
    u->work->count = apply->as.apply.count - done + 1;
    u->work->folded = u->work->count == 1;
    return done;
}

/* Lists the gradients of a step; weights are used only when one is below 1. */
static void list_sources(at_updater *u, const at_action *apply, const at_gradients *gradients)
{
    assert(apply->as.apply.count >= 1);
    bool     single = apply->as.apply.folded || u->summed;
    uint32_t count = single ? 1 : apply->as.apply.count;
    *u->work = (at_update_work){.count = count, .folded = apply->as.apply.folded};
    if (u->summed) {
        assert(!apply->as.apply.folded);
        assert(!u->wants_norms);
        set_source(u, 0, u->summed, 1, 0);
        return;
    }
    if (apply->as.apply.folded) {
        assert(u->folded_any);
        set_source(u, 0, u->folded, 1, 0);
        u->folded_any = false;
        return;
    }
    uint32_t done = take_early(u, apply), first = done > 0 ? 1 : 0;
    for (uint32_t i = done; i < count; i++) {
        const at_piece *piece = &apply->as.apply.pieces[i];
        uint32_t        to = first + i - done;
        set_source(u, to, gradient_of(gradients, piece), piece->weight, piece->samples);
        u->work->weighted = u->work->weighted || u->weights[to] < 1;
    }
}

static double sum_of_shares(const at_updater *u, const at_action *apply)
{
    double sum = 0;
    if (apply->as.apply.folded) return u->divisor_folded;
    for (uint32_t i = 0; i < apply->as.apply.count; i++)
        sum += share_of(u, &apply->as.apply.pieces[i]);
    return sum;
}

/* Samples of a step, each multiplied by its weight; the running statistics are sums over them. */
static double samples_weighted(const at_updater *u, const at_action *apply)
{
    if (apply->as.apply.folded) return u->weight_folded;
    double sum = 0;
    for (uint32_t i = 0; i < apply->as.apply.count; i++)
        sum += apply->as.apply.pieces[i].weight * apply->as.apply.pieces[i].samples;
    assert(sum > 0);
    return sum;
}

static double rate_of(const at_rate *rate, const at_action *apply)
{
    assert(apply->as.apply.lr_factor > 0);
    return at_schedule_now(&rate->schedule, (double)apply->as.apply.samples_used,
                           (double)apply->as.apply.step - 1) *
           apply->as.apply.lr_factor;
}

/* Sets the fields of each range that change with the step. Returns the learning rate of parameters
 * outside all groups. */
static double set_updates(at_updater *u, const at_action *apply)
{
    assert(u->learning->groups <= AT_GROUPS_MAX);
    const at_learning *l = u->learning;
    float              scale = 1.0f / (float)apply->as.apply.samples;
    for (size_t i = 0; i < u->updates_count; i++) {
        at_param_range_update *update = &u->updates[i];
        assert(!l->ranges || l->ranges[i].group <= (int32_t)l->groups);
        if (update->statistics) {
            update->how.scale = (float)(1.0 / samples_weighted(u, apply));
            continue;
        }
        const at_rate *rate = &l->rate[l->ranges ? l->ranges[i].group : (int32_t)l->groups];
        update->how = (at_update){.lr = (float)rate_of(rate, apply),
                                  .weight_decay = (float)rate->weight_decay,
                                  .momentum = rate->momentum,
                                  .scale = scale,
                                  .step = apply->as.apply.step,
                                  .number = l->number};
    }
    return rate_of(&l->rate[l->groups], apply);
}

/* The first pass over the slices: adds up the gradients and, if their mean is too long, makes the
 * second one scale it down. A norm that is not finite clips nothing: the run has diverged. */
static void clip(at_updater *u, const at_action *apply)
{
    double samples = (double)apply->as.apply.samples, most = u->learning->clip;
    assert(most > 0);
    u->work->gauges = true;
    run_slices(u, apply->as.apply.pieces, apply->as.apply.count, u->wants_norms);
    double norm = sqrt(total(u->norm2_sums, blocks_of(u))) / samples;
    for (size_t i = 0; i < u->updates_count && norm > most && isfinite(norm); i++)
        if (!u->updates[i].statistics) u->updates[i].how.scale = (float)(most / norm / samples);
    set_source(u, 0, sum_of(u), 1, 0);
    *u->work = (at_update_work){.count = 1, .folded = true};
}

double at_updater_apply(at_updater *u, const at_action *apply, const at_gradients *gradients)
{
    assert(apply->kind == AT_ACT_APPLY);
    assert(apply->as.apply.step >= 1);
    assert(apply->as.apply.count >= 1);
    assert(apply->as.apply.samples > 0); /* an empty step is never applied */
    if (u->sparse) {
        if (u->wants_norms)
            at_sparse_update_measure(u->sparse, apply, gradients, &u->norm2_step, &u->norm2_piece);
        return at_sparse_update_apply(u->sparse, apply, gradients);
    }
    if (u->params == 0) return set_updates(u, apply); /* only time is simulated */
    list_sources(u, apply, gradients);
    at_past_params_keep(&u->past, u->w, apply->as.apply.step);
    if (u->learning->outer) u->work->divisor = sum_of_shares(u, apply);
    double lr = set_updates(u, apply), samples = (double)apply->as.apply.samples;
    bool   clips = u->learning->clip > 0;
    if (clips) clip(u, apply);
    run_slices(u, apply->as.apply.pieces, apply->as.apply.count, u->wants_norms && !clips);
    if (!u->wants_norms) return lr;
    u->norm2_piece = u->norm2_added / apply->as.apply.count;
    u->norm2_step = total(u->norm2_sums, blocks_of(u)) / (samples * samples);
    u->norm2_added = 0;
    return lr;
}

void at_updater_moment(const at_updater *u, uint32_t which, float *moment)
{
    assert(which < u->learning->optim->states);
    if (u->sparse)
        at_sparse_update_squares(u->sparse, moment);
    else
        memcpy(moment, u->state[which], u->params * sizeof *moment);
}

void at_updater_set_moment(at_updater *u, uint32_t which, const float *moment)
{
    assert(which < u->learning->optim->states);
    if (u->sparse)
        at_sparse_update_set_squares(u->sparse, moment);
    else
        memcpy(u->state[which], moment, u->params * sizeof *moment);
}

void at_updater_resume(at_updater *u, uint64_t samples_used, uint64_t steps)
{
    if (u->sparse) at_sparse_update_resume(u->sparse, samples_used, steps);
}

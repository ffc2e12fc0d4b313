/* The table of optimisers, and the step they share: sum the gradients block by block, and update
 * each block while its sum is in the L1 cache. */
#include "learn/optim/optim.h"

#include <assert.h>
#include <string.h>

#include "learn/engines/vectorize.h"
#include "learn/optim/optim_kinds.h"

/* A sum and three or four other vectors of this many floats fit into 32 kB together. */
enum { BLOCK = 1024 };

const at_optim *const at_optims[] = {
    &at_optim_sgd,  &at_optim_momentum, &at_optim_rmsprop,
    &at_optim_adam, &at_optim_adagrad,  &at_optim_dual_averaging,
    NULL,
};

const at_optim *at_optim_find(const char *name)
{
    assert(name);
    for (const at_optim *const *kind = at_optims; *kind; kind++)
        if (!strcmp((*kind)->name, name)) return *kind;
    return NULL;
}

AT_VECTORISED static void scale(float *restrict dst, const float *restrict src, float weight,
                                size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = src[i] * weight;
}

AT_VECTORISED static void add_scaled(float *restrict dst, const float *restrict src, float weight,
                                     size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] += src[i] * weight;
}

/* The slice of n elements from `at` on of the sum. */
static void sum_slice(float *dst, const float *const *src, const float *weights, size_t count,
                      size_t at, size_t n)
{
    if (weights)
        scale(dst, src[0] + at, weights[0], n);
    else
        memcpy(dst, src[0] + at, n * sizeof *dst);
    for (size_t s = 1; s < count; s++) {
        if (weights)
            add_scaled(dst, src[s] + at, weights[s], n);
        else
            at_vector_add(dst, src[s] + at, n);
    }
}

static size_t block_size(size_t at, size_t n)
{
    assert(at < n);
    return n - at < BLOCK ? n - at : BLOCK;
}

void at_sum_slice(float *dst, const float *const *src, const float *weights, size_t count,
                  at_slice slice)
{
    assert(count > 0);
    for (size_t at = 0; at < slice.count; at += BLOCK) {
        size_t first = slice.first + at;
        sum_slice(dst + first, src, weights, count, first, block_size(at, slice.count));
    }
}

void at_sum(float *dst, const float *const *src, const float *weights, size_t count, size_t n)
{
    at_sum_slice(dst, src, weights, count, (at_slice){0, n});
}

/* Where an update works: the vectors from their begin. */
typedef struct vectors {
    const at_optim     *optim;
    float              *w, *s0, *s1;
    const float *const *src;
    const float        *weights;
    size_t              count;
} vectors;

/* Updates n parameters from `at` on by the gradient g (n). */
static void update(const vectors *v, const float *g, size_t at, size_t n, const at_update *how)
{
    v->optim->update(v->w + at, g, v->s0 ? v->s0 + at : NULL, v->s1 ? v->s1 + at : NULL, n, how);
}

static void train(const vectors *v, size_t first, size_t n, const at_update *how)
{
    assert(how->step > 0);
    assert((v->optim->states > 0) == (v->s0 != NULL));
    assert((v->optim->states > 1) == (v->s1 != NULL));
    if (v->count == 1 && !v->weights) { /* nothing to sum: the block is the source itself */
        update(v, v->src[0] + first, first, n, how);
        return;
    }
    for (size_t at = 0; at < n; at += BLOCK) {
        float  sum[BLOCK];
        size_t size = block_size(at, n);
        sum_slice(sum, v->src, v->weights, v->count, first + at, size);
        update(v, sum, first + at, size, how);
    }
}

/* Keep and the rest make exactly one, so that what does not change stays what it is. */
AT_VECTORISED static void follow(float *restrict s, const float *restrict sum, float scale,
                                 float keep, size_t n)
{
    float rest = 1.0f - keep;
    for (size_t i = 0; i < n; i++) s[i] = keep * s[i] + rest * (scale * sum[i]);
}

static void follow_statistics(const vectors *v, const at_param_range_update *range)
{
    assert(range->keep >= 0 && range->keep <= 1);
    for (size_t at = 0; at < range->count; at += BLOCK) {
        float  sum[BLOCK];
        size_t size = block_size(at, range->count), first = range->at + at;
        sum_slice(sum, v->src, v->weights, v->count, first, size);
        follow(v->w + first, sum, range->how.scale, range->keep, size);
    }
}

void at_optim_apply(const at_optim *optim, float *w, float *s0, float *s1, const float *const *src,
                    const float *weights, size_t count, size_t n, const at_update *how)
{
    assert(count > 0);
    train(&(vectors){optim, w, s0, s1, src, weights, count}, 0, n, how);
}

/* What of a range lies in a slice; its count is 0 when nothing does. */
static at_param_range_update cut(const at_param_range_update *range, at_slice slice)
{
    assert(slice.first <= SIZE_MAX - slice.count);
    at_param_range_update part = *range;
    size_t                end = slice.first + slice.count;
    size_t                stretch_end = range->at + range->count;
    if (part.at < slice.first) part.at = slice.first;
    if (stretch_end < end) end = stretch_end;
    part.count = end > part.at ? end - part.at : 0;
    return part;
}

void at_optim_apply_slice(const at_optim *optim, float *w, float *s0, float *s1,
                          const float *const *src, const float *weights, size_t count,
                          const at_param_range_update *ranges, size_t ranges_count, at_slice slice)
{
    vectors v = {optim, w, s0, s1, src, weights, count};
    assert(count > 0);
    for (size_t i = 0; i < ranges_count; i++) {
        at_param_range_update part = cut(&ranges[i], slice);
        if (part.count == 0) continue;
        if (part.statistics)
            follow_statistics(&v, &part);
        else
            train(&v, part.at, part.count, &part.how);
    }
}

void at_optim_apply_ranges(const at_optim *optim, float *w, float *s0, float *s1,
                           const float *const *src, const float *weights, size_t count,
                           const at_param_range_update *ranges, size_t ranges_count)
{
    at_optim_apply_slice(optim, w, s0, s1, src, weights, count, ranges, ranges_count,
                         (at_slice){0, SIZE_MAX});
}

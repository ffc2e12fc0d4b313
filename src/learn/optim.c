/* The table of optimisers, and the step they share: sum the gradients block by block, and update
 * each block while its sum is in the L1 cache. */
#include "learn/optim.h"

#include <assert.h>
#include <string.h>

#include "learn/optim_kinds.h"
#include "learn/vector.h"

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

AT_VECTORISED static void add(float *restrict dst, const float *restrict src, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] += src[i];
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
            add(dst, src[s] + at, n);
    }
}

static size_t block_size(size_t at, size_t n)
{
    assert(at < n);
    return n - at < BLOCK ? n - at : BLOCK;
}

void at_sum(float *dst, const float *const *src, const float *weights, size_t count, size_t n)
{
    assert(count > 0);
    for (size_t at = 0; at < n; at += BLOCK)
        sum_slice(dst + at, src, weights, count, at, block_size(at, n));
}

void at_optim_apply(const at_optim *optim, float *w, float *s0, float *s1, const float *const *src,
                    const float *weights, size_t count, size_t n, const at_update *how)
{
    assert(count > 0);
    assert(how->step > 0);
    assert((optim->states > 0) == (s0 != NULL));
    assert((optim->states > 1) == (s1 != NULL));
    if (count == 1 && !weights) { /* nothing to sum: the block is the source itself */
        optim->update(w, src[0], s0, s1, n, how);
        return;
    }
    for (size_t at = 0; at < n; at += BLOCK) {
        float  sum[BLOCK];
        size_t size = block_size(at, n);
        sum_slice(sum, src, weights, count, at, size);
        optim->update(w + at, sum, s0 ? s0 + at : NULL, s1 ? s1 + at : NULL, size, how);
    }
}

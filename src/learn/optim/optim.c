/* The optimizers as one table, and the step they share: sum the gradients block by block, and
 * update each block while its sum is in the L1 cache.
 *
 * Each optimizer is a vectorized loop and an update function that computes the constants of the
 * step. `sum` is the gradient sum; `scale` and `decay` make it the mean gradient. */
#include "learn/optim/optim.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "learn/engines/activation_kernels.h"
#include "learn/engines/vectorize.h"

/* A sum and three or four other vectors of this many floats fit into 32 kB together. */
enum { BLOCK = 1024 };

/* The mean gradient of one parameter, including weight decay. */
static inline float mean_gradient(float w, float sum, const float scale, const float decay)
{
    return scale * sum + decay * w;
}

/* ---- sgd: w <- w - lr g ---------------------------------------------------------------------- */

AT_VECTORIZED static void sgd_loop(float *restrict w, const float *restrict sum, size_t n, float lr,
                                   float scale, float decay)
{
    for (size_t i = 0; i < n; i++) w[i] -= lr * mean_gradient(w[i], sum[i], scale, decay);
}

static void sgd(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(!s0 && !s1);
    sgd_loop(w, g, n, how->lr, how->scale, how->weight_decay);
}

/* ---- momentum (Polyak 1964, in TensorFlow's form): v <- m v + g, w <- w - lr v --------------- */

static const float MOMENTUM_DEFAULT = 0.9f;

AT_VECTORIZED static void momentum_loop(float *restrict w, float *restrict v,
                                        const float *restrict sum, size_t n, float lr, float scale,
                                        float decay, float momentum)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + mean_gradient(w[i], sum[i], scale, decay);
        w[i] -= lr * v[i];
    }
}

static void momentum(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0 && !s1);
    float factor = how->momentum > 0 ? how->momentum : MOMENTUM_DEFAULT;
    momentum_loop(w, s0, g, n, how->lr, how->scale, how->weight_decay, factor);
}

/* ---- rmsprop --------------------------------------------------------------------------------- */

/* Tieleman and Hinton 2012 in TensorFlow's form: epsilon under the root, the mean square starts at
 * 1. s <- 0.9 s + 0.1 g^2, w <- w - lr g / sqrt(s + epsilon). */
static const float RMSPROP_DECAY = 0.9f, RMSPROP_REST = 0.1f, RMSPROP_EPSILON = 1e-10f;

AT_VECTORIZED static void rmsprop_loop(float *restrict w, float *restrict s,
                                       const float *restrict sum, size_t n, float lr, float scale,
                                       float decay)
{
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, decay);
        s[i] = RMSPROP_DECAY * s[i] + RMSPROP_REST * (g * g);
        w[i] -= lr * g / sqrtf(s[i] + RMSPROP_EPSILON);
    }
}

static void rmsprop(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0 && !s1);
    rmsprop_loop(w, s0, g, n, how->lr, how->scale, how->weight_decay);
}

/* ---- adam ------------------------------------------------------------------------------------ */

/* Kingma and Ba 2015, in the form before section 2.1, which TensorFlow uses: with t the step,
 *     m <- 0.9 m + 0.1 g,  v <- 0.999 v + 0.001 g^2,
 *     w <- w - lr sqrt(1 - 0.999^t) / (1 - 0.9^t) * m / (sqrt(v) + epsilon).
 * The complements are written out: 1.0f - 0.999f is off by 5e-5 of its value. */
static const float  BETA1 = 0.9f, REST1 = 0.1f, BETA2 = 0.999f, REST2 = 0.001f;
static const float  ADAM_EPSILON = 1e-8f;
static const double BETA1_EXACT = 0.9, BETA2_EXACT = 0.999; /* for powers, where errors add up */

AT_VECTORIZED static void adam_loop(float *restrict w, float *restrict m, float *restrict v,
                                    const float *restrict sum, size_t n, float lr, float scale,
                                    float decay)
{
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, decay);
        m[i] = BETA1 * m[i] + REST1 * g;
        v[i] = BETA2 * v[i] + REST2 * (g * g);
        w[i] -= lr * m[i] / (sqrtf(v[i]) + ADAM_EPSILON);
    }
}

static void adam(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0 && s1 && how->step > 0);
    double t = (double)how->step;
    double lr = how->lr * sqrt(1.0 - pow(BETA2_EXACT, t)) / (1.0 - pow(BETA1_EXACT, t));
    adam_loop(w, s0, s1, g, n, (float)lr, how->scale, how->weight_decay);
}

/* ---- adagrad (Duchi, Hazan and Singer 2011): a <- a + g^2, w <- w - lr g / sqrt(a) ----------- */

AT_VECTORIZED static void adagrad_loop(float *restrict w, float *restrict a,
                                       const float *restrict sum, size_t n, float lr, float scale,
                                       float decay)
{
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, decay);
        a[i] += g * g;
        w[i] -= lr * g / sqrtf(a[i]);
    }
}

static void adagrad(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0 && !s1);
    adagrad_loop(w, s0, g, n, how->lr, how->scale, how->weight_decay);
}

/* ---- dual averaging -------------------------------------------------------------------------- */

/* Nesterov 2009, Xiao 2010; the optimizer of the Anytime Minibatch papers. With t the step and w0
 * the initial parameters,
 *
 *     z <- z + g,   w <- argmin_w <z, w> + beta(t) |w - w0|^2 / 2  =  w0 - z / beta(t),
 *     beta(t) = sqrt(t) / lr.
 *
 * The papers start from w0 = 0, where nets with hidden layers cannot train, and use beta(t) = K +
 * sqrt(t / mu); here K = 0 and lr stands for sqrt(mu), so that the first step is one of gradient
 * descent. A learning-rate schedule reweights all gradients so far, not only the last one. */
AT_VECTORIZED static void dual_averaging_loop(float *restrict w, float *restrict z,
                                              const float *restrict w0, const float *restrict sum,
                                              size_t n, float rate, float scale, float decay)
{
    for (size_t i = 0; i < n; i++) {
        z[i] += mean_gradient(w[i], sum[i], scale, decay);
        w[i] = w0[i] - rate * z[i];
    }
}

static void dual_averaging(float *w, const float *g, float *s0, float *s1, size_t n,
                           const at_update *how)
{
    assert(s0 && s1 && how->step > 0);
    if (how->step == 1) memcpy(s1, w, n * sizeof *w);
    double rate = how->lr / sqrt((double)how->step); /* 1 / beta(t) */
    dual_averaging_loop(w, s0, s1, g, n, (float)rate, how->scale, how->weight_decay);
}

/* ---- the table ------------------------------------------------------------------------------- */

const at_optim *const at_optims[] = {
    &(const at_optim){
        .name = "sgd",
        .summary = "plain gradient descent",
        .states = 0,
        .lr_default = 0.1,
        .update = sgd,
    },
    &(const at_optim){
        .name = "momentum",
        .summary = "gradient descent with momentum 0.9",
        .states = 1,
        .lr_default = 0.01,
        .update = momentum,
    },
    &(const at_optim){
        .name = "rmsprop",
        .summary = "gradient divided by the root of its mean square, decay 0.9",
        .states = 1,
        .state_start = 1.0f,
        .lr_default = 0.001,
        .update = rmsprop,
    },
    &(const at_optim){
        .name = "adam",
        .summary = "adaptive moments, decays 0.9 and 0.999",
        .states = 2,
        .lr_default = 0.001,
        .update = adam,
    },
    &(const at_optim){
        .name = "adagrad",
        .summary = "gradient divided by the root of the sum of its squares",
        .states = 1,
        .state_start = 0.1f,
        .lr_default = 0.01,
        .update = adagrad,
    },
    &(const at_optim){
        .name = "dual-averaging",
        .summary = "initial parameters minus lr / sqrt(t) times the sum of all gradients",
        .states = 2,
        .lr_default = 1,
        .update = dual_averaging,
    },
    NULL,
};

const at_optim *at_optim_find(const char *name)
{
    assert(name);
    for (const at_optim *const *optim = at_optims; *optim; optim++)
        if (!strcmp((*optim)->name, name)) return *optim;
    return NULL;
}

/* ---- sums of gradients ----------------------------------------------------------------------- */

AT_VECTORIZED static void scale(float *restrict dst, const float *restrict src, float weight,
                                size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = src[i] * weight;
}

AT_VECTORIZED static void add_scaled(float *restrict dst, const float *restrict src, float weight,
                                     size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] += src[i] * weight;
}

/* Elements at .. at+n-1 of the sum. */
static void sum_block(float *dst, const float *const *src, const float *weights, size_t count,
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
        sum_block(dst + first, src, weights, count, first, block_size(at, slice.count));
    }
}

/* ---- updates --------------------------------------------------------------------------------- */

/* The vectors of an update, each from its first element. */
typedef struct vectors {
    const at_optim     *optim;
    float              *w, *s0, *s1;
    const float *const *src;
    const float        *weights;
    size_t              count;
} vectors;

/* Updates parameters at .. at+n-1 with the gradient g (n). */
static void update(const vectors *v, const float *g, size_t at, size_t n, const at_update *how)
{
    v->optim->update(v->w + at, g, v->s0 ? v->s0 + at : NULL, v->s1 ? v->s1 + at : NULL, n, how);
}

static void update_params(const vectors *v, size_t first, size_t n, const at_update *how)
{
    assert(how->step > 0);
    assert((v->optim->states > 0) == (v->s0 != NULL));
    assert((v->optim->states > 1) == (v->s1 != NULL));
    if (v->count == 1 && !v->weights) { /* nothing to sum */
        update(v, v->src[0] + first, first, n, how);
        return;
    }
    for (size_t at = 0; at < n; at += BLOCK) {
        float  sum[BLOCK];
        size_t size = block_size(at, n);
        sum_block(sum, v->src, v->weights, v->count, first + at, size);
        update(v, sum, first + at, size, how);
    }
}

/* keep and rest add up to exactly 1, so that statistics that equal the mean do not drift. */
AT_VECTORIZED static void average_in(float *restrict s, const float *restrict sum, float scale,
                                     float keep, size_t n)
{
    float rest = 1.0f - keep;
    for (size_t i = 0; i < n; i++) s[i] = keep * s[i] + rest * (scale * sum[i]);
}

static void update_statistics(const vectors *v, const at_param_range_update *range)
{
    assert(range->keep >= 0 && range->keep <= 1);
    for (size_t at = 0; at < range->count; at += BLOCK) {
        float  sum[BLOCK];
        size_t size = block_size(at, range->count), first = range->at + at;
        sum_block(sum, v->src, v->weights, v->count, first, size);
        average_in(v->w + first, sum, range->how.scale, range->keep, size);
    }
}

/* The part of a range that lies in a slice; its count is 0 when they do not overlap. */
static at_param_range_update cut(const at_param_range_update *range, at_slice slice)
{
    assert(slice.first <= SIZE_MAX - slice.count);
    at_param_range_update part = *range;
    size_t                end = slice.first + slice.count;
    size_t                range_end = range->at + range->count;
    if (part.at < slice.first) part.at = slice.first;
    if (range_end < end) end = range_end;
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
            update_statistics(&v, &part);
        else
            update_params(&v, part.at, part.count, &part.how);
    }
}

void at_optim_apply_ranges(const at_optim *optim, float *w, float *s0, float *s1,
                           const float *const *src, const float *weights, size_t count,
                           const at_param_range_update *ranges, size_t ranges_count)
{
    at_optim_apply_slice(optim, w, s0, s1, src, weights, count, ranges, ranges_count,
                         (at_slice){0, SIZE_MAX});
}

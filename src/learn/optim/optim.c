/* The optimizers as one table, and the step they share: sum the gradients block by block, and
 * update each block while its sum is in the L1 cache.
 *
 * Each optimizer is a vectorized loop and an update function that computes the constants of the
 * step. `sum` is the gradient sum; `scale` and `decay` make it the mean gradient. */
#include "learn/optim/optim.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "learn/engines/vectorize.h"
#include "learn/optim/torch_update.h"

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
    float factor = how->momentum > 0 ? how->momentum : (float)how->number[0];
    momentum_loop(w, s0, g, n, how->lr, how->scale, how->weight_decay, factor);
}

/* ---- nesterov (Nesterov 1983, in PyTorch's form): v <- m v + g, w <- w - lr (g + m v) -------- */

static void nesterov(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0 && !s1);
    at_torch_group group = {.lr = (double)how->lr,
                            .weight_decay = (double)how->weight_decay,
                            .momentum = how->momentum > 0 ? (double)how->momentum : how->number[0],
                            .nesterov = true};
    at_torch_step  step = at_torch_step_of(AT_TORCH_SGD, &group, how->step);
    at_torch_update_block(&step, w, g, how->scale, s0, NULL, n);
}

/* ---- rmsprop --------------------------------------------------------------------------------- */

/* Tieleman and Hinton 2012 in TensorFlow's form: epsilon under the root, the mean square starts at
 * 1. s <- r s + (1 - r) g^2, w <- w - lr g / sqrt(s + epsilon). */
AT_VECTORIZED static void rmsprop_loop(float *restrict w, float *restrict s,
                                       const float *restrict sum, size_t n, float lr, float scale,
                                       float decay, float keep, float rest, float epsilon)
{
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, decay);
        s[i] = keep * s[i] + rest * (g * g);
        w[i] -= lr * g / sqrtf(s[i] + epsilon);
    }
}

static void rmsprop(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0 && !s1);
    rmsprop_loop(w, s0, g, n, how->lr, how->scale, how->weight_decay, (float)how->number[0],
                 (float)(1 - how->number[0]), (float)how->number[1]);
}

/* ---- adam ------------------------------------------------------------------------------------ */

/* Kingma and Ba 2015, in the form before section 2.1, which TensorFlow uses: with t the step, b1
 * and b2 the decays,
 *     m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2,
 *     w <- w - lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon).
 * Complements and powers are computed in double precision: 1.0f - 0.999f is off by 5e-5 of its
 * value, and errors of a power add up. */
typedef struct adam_constants {
    float lr, scale, decay, keep1, rest1, keep2, rest2, epsilon;
} adam_constants;

AT_VECTORIZED static void adam_loop(float *restrict w, float *restrict m, float *restrict v,
                                    const float *restrict sum, size_t n,
                                    const adam_constants *restrict constants)
{
    const adam_constants c = *constants;
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], c.scale, c.decay);
        m[i] = c.keep1 * m[i] + c.rest1 * g;
        v[i] = c.keep2 * v[i] + c.rest2 * (g * g);
        w[i] -= c.lr * m[i] / (sqrtf(v[i]) + c.epsilon);
    }
}

static void adam(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0 && s1 && how->step > 0);
    double t = (double)how->step, beta1 = how->number[0], beta2 = how->number[1];
    double lr = how->lr * sqrt(1.0 - pow(beta2, t)) / (1.0 - pow(beta1, t));
    adam_loop(w, s0, s1, g, n,
              &(adam_constants){.lr = (float)lr,
                                .scale = how->scale,
                                .decay = how->weight_decay,
                                .keep1 = (float)beta1,
                                .rest1 = (float)(1 - beta1),
                                .keep2 = (float)beta2,
                                .rest2 = (float)(1 - beta2),
                                .epsilon = (float)how->number[2]});
}

/* Loshchilov and Hutter 2019, in PyTorch's form: the weights shrink by lr * decay, and the decay
 * does not enter the moments. */
static void adamw(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0 && s1 && how->step > 0);
    at_torch_group group = {.lr = (double)how->lr,
                            .weight_decay = (double)how->weight_decay,
                            .beta1 = how->number[0],
                            .beta2 = how->number[1],
                            .eps = how->number[2]};
    at_torch_step  step = at_torch_step_of(AT_TORCH_ADAMW, &group, how->step);
    at_torch_update_block(&step, w, g, how->scale, s0, s1, n);
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

#define MOMENTUM                     \
    {                                \
        "MOMENTUM", 0.9, 0, 0.999999 \
    }
#define BETAS                        \
    {"BETA1", 0.9, 0, 0.999999},     \
    {                                \
        "BETA2", 0.999, 0, 0.9999999 \
    }
#define EPSILON(normal)             \
    {                               \
        "EPSILON", normal, 1e-30, 1 \
    }

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
        .summary = "gradient descent with momentum",
        .number = {MOMENTUM},
        .states = 1,
        .lr_default = 0.01,
        .update = momentum,
    },
    &(const at_optim){
        .name = "nesterov",
        .summary = "gradient descent with momentum that looks one step ahead",
        .number = {MOMENTUM},
        .states = 1,
        .lr_default = 0.01,
        .update = nesterov,
    },
    &(const at_optim){
        .name = "rmsprop",
        .summary = "gradient divided by the root of its mean square",
        .number = {{"DECAY", 0.9, 0, 0.999999}, EPSILON(1e-10)},
        .states = 1,
        .state_start = 1.0f,
        .lr_default = 0.001,
        .update = rmsprop,
    },
    &(const at_optim){
        .name = "adam",
        .summary = "adaptive moments",
        .number = {BETAS, EPSILON(1e-8)},
        .states = 2,
        .lr_default = 0.001,
        .update = adam,
    },
    &(const at_optim){
        .name = "adamw",
        .summary = "adaptive moments with decoupled weight decay",
        .number = {BETAS, EPSILON(1e-8)},
        .states = 2,
        .lr_default = 0.001,
        .update = adamw,
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

/* ---- text ------------------------------------------------------------------------------------ */

static at_err unknown(const char *name, at_fail *fail)
{
    const char *names[32];
    size_t      count = 0;
    for (; at_optims[count]; count++) names[count] = at_optims[count]->name;
    assert(count <= sizeof names / sizeof *names);
    return at_text_unknown("optimizer", name, names, count, fail);
}

/* "write it as adam:BETA1,BETA2,EPSILON" */
static at_err misspelt(const at_optim *optim, const char *text, at_fail *fail)
{
    char    usage[128];
    at_text hint = at_text_in(usage, sizeof usage);
    at_text_add(&hint, "write it as %s", optim->name);
    for (size_t i = 0; i < AT_OPTIM_NUMBERS_MAX && optim->number[i].name; i++)
        at_text_add(&hint, "%s%s", i ? "," : ":", optim->number[i].name);
    return at_fail_set(fail, AT_ERR_USAGE, usage, "\"%s\" is not a valid optimizer%s", text,
                       optim->number[0].name ? "" : ": it has no numbers to set");
}

static at_err out_of_range(const at_optim *optim, size_t i, double value, at_fail *fail)
{
    const at_optim_number *number = &optim->number[i];
    char                   hint[96];
    snprintf(hint, sizeof hint, "its default is %g", number->normal);
    return at_fail_set(fail, AT_ERR_USAGE, hint,
                       "%s of optimizer %s must be from %g to %.7g (got %g)", number->name,
                       optim->name, number->least, number->most, value);
}

/* The numbers after the colon. */
static at_err parse_numbers(const at_optim *optim, const char *text, const char *args,
                            double *number, at_fail *fail)
{
    for (size_t i = 0;; i++) {
        char   word[32];
        size_t length = strcspn(args, ",");
        if (i == AT_OPTIM_NUMBERS_MAX || !optim->number[i].name || length >= sizeof word)
            return misspelt(optim, text, fail);
        snprintf(word, sizeof word, "%.*s", (int)length, args);
        if (length > 0 && !at_text_real(word, &number[i])) return misspelt(optim, text, fail);
        if (!(number[i] >= optim->number[i].least && number[i] <= optim->number[i].most))
            return out_of_range(optim, i, number[i], fail);
        if (!args[length]) return AT_OK;
        args += length + 1;
    }
}

static void set_defaults(const at_optim *optim, double number[AT_OPTIM_NUMBERS_MAX])
{
    for (size_t i = 0; i < AT_OPTIM_NUMBERS_MAX; i++) number[i] = optim->number[i].normal;
}

at_err at_optim_parse(const char *text, const at_optim **optim, double number[AT_OPTIM_NUMBERS_MAX],
                      at_fail *fail)
{
    char        name[32];
    const char *colon = strchr(text, ':');
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    *optim = at_optim_find(name);
    if (!*optim) return unknown(name, fail);
    set_defaults(*optim, number);
    return colon ? parse_numbers(*optim, text, colon + 1, number, fail) : AT_OK;
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
    double    defaults[AT_OPTIM_NUMBERS_MAX];
    at_update with = *how;
    set_defaults(v->optim, defaults);
    if (!how->number) with.number = defaults;
    if (v->count == 1 && !v->weights) { /* nothing to sum */
        update(v, v->src[0] + first, first, n, &with);
        return;
    }
    for (size_t at = 0; at < n; at += AT_SUM_BLOCK) {
        float  sum[AT_SUM_BLOCK];
        size_t size = at_sum_block_size(at, n);
        at_sum_block(sum, v->src, v->weights, v->count, first + at, size);
        update(v, sum, first + at, size, &with);
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
    for (size_t at = 0; at < range->count; at += AT_SUM_BLOCK) {
        float  sum[AT_SUM_BLOCK];
        size_t size = at_sum_block_size(at, range->count), first = range->at + at;
        at_sum_block(sum, v->src, v->weights, v->count, first, size);
        average_in(v->w + first, sum, range->how.scale, range->keep, size);
    }
}

void at_optim_apply_slice(const at_optim *optim, float *w, float *s0, float *s1,
                          const float *const *src, const float *weights, size_t count,
                          const at_param_range_update *ranges, size_t ranges_count, at_slice slice)
{
    vectors v = {optim, w, s0, s1, src, weights, count};
    assert(count > 0);
    for (size_t i = 0; i < ranges_count; i++) {
        at_param_range_update part = ranges[i];
        at_slice              cut = at_slice_cut(part.at, part.count, slice);
        if (cut.count == 0) continue;
        part.at = cut.first;
        part.count = cut.count;
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

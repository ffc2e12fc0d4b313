/* Formulas in the order of torch.optim's single-tensor functions. Every call of torch on a tensor
 * rounds once per element, so `a.mul_(b)` is a product, `a.add_(b, alpha=c)` is fmaf(b, c, a), and
 * `a.addcmul_(b, c, value=d)` is fmaf(d * b, c, a). Compiled without contraction: each fused
 * operation is written out.
 *
 * The rows of optim.c are not these functions, except for the ones that were added after them:
 * `momentum`, `rmsprop`, `adam` and `adagrad` have TensorFlow's form (epsilon under the root or not
 * at all, accumulators that start at 1 or 0.1, no fused operations), and recorded runs depend on
 * their bits. */
#include "learn/optim/torch_update.h"

#include <assert.h>
#include <math.h>

#include "learn/engines/vectorize.h"

const char *const at_torch_name[AT_TORCH_COUNT] = {
#define X(id, name) [AT_TORCH_##id] = name,
    AT_TORCH_MAP(X)
#undef X
};

/* ---- loops ----------------------------------------------------------------------------------- */

/* The mean gradient of one parameter, including L2 weight decay. Without decay the parameter must
 * not matter, even if it is infinite. */
static inline float mean_gradient(float w, float sum, const float scale, const float decay)
{
    float g = scale * sum;
    return decay != 0 ? fmaf(w, decay, g) : g;
}

AT_VECTORIZED_FMA static void sgd_loop(float *restrict w, const float *restrict sum, size_t n,
                                       float scale, float decay, float rate)
{
    for (size_t i = 0; i < n; i++)
        w[i] = fmaf(mean_gradient(w[i], sum[i], scale, decay), rate, w[i]);
}

AT_VECTORIZED_FMA static void momentum_loop(float *restrict w, float *restrict v,
                                            const float *restrict sum, size_t n, float scale,
                                            float decay, float rate, float momentum)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + mean_gradient(w[i], sum[i], scale, decay);
        w[i] = fmaf(v[i], rate, w[i]);
    }
}

AT_VECTORIZED_FMA static void nesterov_loop(float *restrict w, float *restrict v,
                                            const float *restrict sum, size_t n, float scale,
                                            float decay, float rate, float momentum)
{
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, decay);
        v[i] = momentum * v[i] + g;
        w[i] = fmaf(fmaf(v[i], momentum, g), rate, w[i]);
    }
}

/* Adam and AdamW: one of decay and shrink has no effect (0 or 1). */
AT_VECTORIZED_FMA static void adam_loop(float *restrict w, float *restrict m, float *restrict v,
                                        const float *restrict sum, size_t n, float scale,
                                        const at_torch_step *restrict step)
{
    const at_torch_step c = *step;
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, c.decay);
        m[i] = fmaf(g, c.rest1, c.keep1 * m[i]);
        v[i] = fmaf(c.rest2 * g, g, c.keep2 * v[i]);
        w[i] = c.shrink * w[i] + c.rate * m[i] / (sqrtf(v[i]) / c.correction + c.eps);
    }
}

AT_VECTORIZED_FMA static void rmsprop_loop(float *restrict w, float *restrict s,
                                           const float *restrict sum, size_t n, float scale,
                                           const at_torch_step *restrict step)
{
    const at_torch_step c = *step;
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, c.decay);
        s[i] = fmaf(c.rest2 * g, g, c.keep2 * s[i]);
        w[i] += c.rate * g / (sqrtf(s[i]) + c.eps);
    }
}

AT_VECTORIZED_FMA static void rmsprop_momentum_loop(float *restrict w, float *restrict s,
                                                    float *restrict v, const float *restrict sum,
                                                    size_t n, float scale,
                                                    const at_torch_step *restrict step)
{
    const at_torch_step c = *step;
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, c.decay);
        s[i] = fmaf(c.rest2 * g, g, c.keep2 * s[i]);
        v[i] = c.keep1 * v[i] + g / (sqrtf(s[i]) + c.eps);
        w[i] = fmaf(v[i], c.rate, w[i]);
    }
}

AT_VECTORIZED_FMA static void adagrad_loop(float *restrict w, float *restrict a,
                                           const float *restrict sum, size_t n, float scale,
                                           float decay, float rate, float eps)
{
    for (size_t i = 0; i < n; i++) {
        float g = mean_gradient(w[i], sum[i], scale, decay);
        a[i] = fmaf(g, g, a[i]);
        w[i] += rate * g / (sqrtf(a[i]) + eps);
    }
}

AT_VECTORIZED_FMA static void mean_loop(float *restrict w, const float *restrict sum, size_t n,
                                        float scale)
{
    for (size_t i = 0; i < n; i++) w[i] = scale * sum[i];
}

/* ---- constants of a step --------------------------------------------------------------------- */

static void set_adam(at_torch_step *c, const at_torch_group *group, uint64_t step)
{
    double t = (double)step;
    c->keep1 = (float)group->beta1;
    c->rest1 = (float)(1 - group->beta1);
    c->keep2 = (float)group->beta2;
    c->rest2 = (float)(1 - group->beta2);
    c->rate = (float)-(group->lr / (1 - pow(group->beta1, t)));
    c->correction = (float)sqrt(1 - pow(group->beta2, t));
    if (c->kind == AT_TORCH_ADAM) return;
    c->shrink = (float)(1 - group->lr * group->weight_decay); /* decoupled */
    c->decay = 0;
}

at_torch_step at_torch_step_of(at_torch_kind kind, const at_torch_group *group, uint64_t step)
{
    assert(step > 0);
    at_torch_step c = {.kind = kind,
                       .rate = (float)-group->lr,
                       .decay = (float)group->weight_decay,
                       .shrink = 1,
                       .keep1 = (float)group->momentum,
                       .nesterov = group->nesterov,
                       .eps = (float)group->eps};
    switch (kind) {
    case AT_TORCH_SGD: break;
    case AT_TORCH_ADAM:
    case AT_TORCH_ADAMW: set_adam(&c, group, step); break;
    case AT_TORCH_RMSPROP:
        c.keep2 = (float)group->alpha;
        c.rest2 = (float)(1 - group->alpha);
        break;
    case AT_TORCH_ADAGRAD:
        c.rate = (float)-(group->lr / (1 + ((double)step - 1) * group->lr_decay));
        break;
    case AT_TORCH_COUNT: assert(!"not a kind");
    }
    return c;
}

/* ---- updates --------------------------------------------------------------------------------- */

static void sgd(const at_torch_step *c, float *w, const float *sum, float scale, float *v, size_t n)
{
    assert(v || c->keep1 == 0);
    if (c->keep1 == 0)
        sgd_loop(w, sum, n, scale, c->decay, c->rate);
    else if (c->nesterov)
        nesterov_loop(w, v, sum, n, scale, c->decay, c->rate, c->keep1);
    else
        momentum_loop(w, v, sum, n, scale, c->decay, c->rate, c->keep1);
}

void at_torch_update_block(const at_torch_step *c, float *w, const float *sum, float scale,
                           float *s0, float *s1, size_t n)
{
    assert(w && sum);
    assert(s0 || c->kind == AT_TORCH_SGD);
    switch (c->kind) {
    case AT_TORCH_SGD: sgd(c, w, sum, scale, s0, n); return;
    case AT_TORCH_ADAM:
    case AT_TORCH_ADAMW: adam_loop(w, s0, s1, sum, n, scale, c); return;
    case AT_TORCH_RMSPROP:
        if (c->keep1 > 0)
            rmsprop_momentum_loop(w, s0, s1, sum, n, scale, c);
        else
            rmsprop_loop(w, s0, sum, n, scale, c);
        return;
    case AT_TORCH_ADAGRAD: adagrad_loop(w, s0, sum, n, scale, c->decay, c->rate, c->eps); return;
    case AT_TORCH_COUNT: assert(!"not a kind");
    }
}

/* One gradient needs no sum: it is read where it is. */
static void update_range(const at_torch_update *u, const at_torch_step *c, at_slice part)
{
    bool   single = u->gradients_count == 1 && !u->weights;
    size_t end = part.first + part.count;
    for (size_t at = part.first, n; at < end; at += n) {
        float        scratch[AT_SUM_BLOCK];
        const float *sum = single ? u->gradients[0] + at : scratch;
        n = at_sum_block_size(at - part.first, part.count);
        if (!single) at_sum_block(scratch, u->gradients, u->weights, u->gradients_count, at, n);
        if (!c)
            mean_loop(u->params + at, sum, n, u->mean_buffers);
        else
            at_torch_update_block(c, u->params + at, sum, u->mean,
                                  u->state[0] ? u->state[0] + at : NULL,
                                  u->state[1] ? u->state[1] + at : NULL, n);
    }
}

void at_torch_update_slice(const at_torch_update *u, at_slice slice)
{
    assert(u->gradients_count >= 1);
    for (size_t i = 0; i < u->ranges_count; i++) {
        const at_torch_range *range = &u->ranges[i];
        at_slice              part = at_slice_cut(range->at, range->count, slice);
        if (part.count == 0) continue;
        if (range->group < 0) {
            update_range(u, NULL, part);
            continue;
        }
        at_torch_step c = at_torch_step_of(u->kind, &u->groups[range->group], u->step);
        update_range(u, &c, part);
    }
}

/* ---- what a program asks for ----------------------------------------------------------------- */

uint32_t at_torch_states(at_torch_kind kind, const at_torch_group *groups, size_t groups_count)
{
    static const uint32_t least[AT_TORCH_COUNT] = {
        [AT_TORCH_ADAM] = 2, [AT_TORCH_ADAMW] = 2, [AT_TORCH_RMSPROP] = 1, [AT_TORCH_ADAGRAD] = 1};
    assert(kind < AT_TORCH_COUNT);
    bool momentum = false;
    for (size_t i = 0; i < groups_count; i++) momentum = momentum || groups[i].momentum != 0;
    bool has = kind == AT_TORCH_SGD || kind == AT_TORCH_RMSPROP;
    return least[kind] + (has && momentum ? 1 : 0);
}

at_err at_torch_group_check(at_torch_kind kind, const at_torch_group *g, at_fail *fail)
{
    assert(kind < AT_TORCH_COUNT);
    bool has_momentum = kind == AT_TORCH_SGD || kind == AT_TORCH_RMSPROP;
    bool adam = kind == AT_TORCH_ADAM || kind == AT_TORCH_ADAMW;
    const struct {
        double      value, limit; /* from 0 to below the limit */
        bool        used;
        const char *name;
    } numbers[] = {
        {g->lr, INFINITY, true, "lr"},
        {g->weight_decay, INFINITY, true, "weight_decay"},
        {g->momentum, INFINITY, has_momentum, "momentum"},
        {g->beta1, 1, adam, "betas[0]"},
        {g->beta2, 1, adam, "betas[1]"},
        {g->alpha, INFINITY, kind == AT_TORCH_RMSPROP, "alpha"},
        {g->eps, INFINITY, kind != AT_TORCH_SGD, "eps"},
        {g->lr_decay, INFINITY, kind == AT_TORCH_ADAGRAD, "lr_decay"},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].used && !(numbers[i].value >= 0 && numbers[i].value < numbers[i].limit))
            return at_fail_set(
                fail, AT_ERR_FORMAT, "use a value that torch.optim accepts",
                "%s of optimizer %s must be %s (got %g)", numbers[i].name, at_torch_name[kind],
                numbers[i].limit == 1 ? "at least 0 and below 1" : "a number and at least 0",
                numbers[i].value);
    return AT_OK;
}

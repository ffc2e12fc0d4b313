/* AdaGrad (Duchi, Hazan and Singer 2011): a <- a + g^2, w <- w - lr g / sqrt(a), a from 0.1 on. */
#include "learn/engines/vectorize.h"
#include "learn/optim/optim_kinds.h"

#include <assert.h>
#include <math.h>

AT_VECTORISED static void step(float *restrict w, float *restrict a, const float *restrict sum,
                               size_t n, float lr, float scale, float decay)
{
    for (size_t i = 0; i < n; i++) {
        float g = at_optim_mean(w[i], sum[i], scale, decay);
        a[i] += g * g;
        w[i] -= lr * g / sqrtf(a[i]);
    }
}

static void update(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0);
    assert(!s1);
    step(w, s0, g, n, how->lr, how->scale, how->weight_decay);
}

const at_optim at_optim_adagrad = {
    .name = "adagrad",
    .summary = "gradient over the root of the sum of its squares",
    .states = 1,
    .state_start = 0.1f,
    .lr_default = 0.01,
    .update = update,
};

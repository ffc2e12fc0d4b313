/* Plain stochastic gradient descent: w <- w - lr g. */
#include "learn/engines/vectorize.h"
#include "learn/optim/optim_kinds.h"

#include <assert.h>

AT_VECTORISED static void step(float *restrict w, const float *restrict sum, size_t n, float lr,
                               float scale, float decay)
{
    for (size_t i = 0; i < n; i++) w[i] -= lr * at_optim_mean(w[i], sum[i], scale, decay);
}

static void update(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(!s0);
    assert(!s1);
    step(w, g, n, how->lr, how->scale, how->weight_decay);
}

const at_optim at_optim_sgd = {
    .name = "sgd",
    .summary = "plain gradient descent",
    .states = 0,
    .lr_default = 0.1,
    .update = update,
};

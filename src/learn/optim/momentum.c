/* Heavy-ball momentum (Polyak 1964, in TensorFlow's form): v <- m v + g, w <- w - lr v. */
#include "learn/engines/vectorize.h"
#include "learn/optim/optim_kinds.h"

#include <assert.h>

static const float MOMENTUM = 0.9f; /* unless the update says otherwise */

AT_VECTORISED static void step(float *restrict w, float *restrict v, const float *restrict sum,
                               size_t n, float lr, float scale, float decay, float momentum)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + at_optim_mean(w[i], sum[i], scale, decay);
        w[i] -= lr * v[i];
    }
}

static void update(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0);
    assert(!s1);
    float momentum = how->momentum > 0 ? how->momentum : MOMENTUM;
    step(w, s0, g, n, how->lr, how->scale, how->weight_decay, momentum);
}

const at_optim at_optim_momentum = {
    .name = "momentum",
    .summary = "gradient descent with momentum 0.9",
    .states = 1,
    .lr_default = 0.01,
    .update = update,
};

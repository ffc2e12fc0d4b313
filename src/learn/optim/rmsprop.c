/* RMSProp (Tieleman and Hinton 2012, in TensorFlow's form: epsilon under the root, the mean square
 * starts at one): s <- 0.9 s + 0.1 g^2, w <- w - lr g / sqrt(s + epsilon). */
#include "learn/engines/vectorize.h"
#include "learn/optim/optim_kinds.h"

#include <assert.h>
#include <math.h>

static const float DECAY = 0.9f, REST = 0.1f, EPSILON = 1e-10f;

AT_VECTORISED static void step(float *restrict w, float *restrict s, const float *restrict sum,
                               size_t n, float lr, float scale, float decay)
{
    for (size_t i = 0; i < n; i++) {
        float g = at_optim_mean(w[i], sum[i], scale, decay);
        s[i] = DECAY * s[i] + REST * (g * g);
        w[i] -= lr * g / sqrtf(s[i] + EPSILON);
    }
}

static void update(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0);
    assert(!s1);
    step(w, s0, g, n, how->lr, how->scale, how->weight_decay);
}

const at_optim at_optim_rmsprop = {
    .name = "rmsprop",
    .summary = "gradient over the root of its mean square, decay 0.9",
    .states = 1,
    .state_start = 1.0f,
    .lr_default = 0.001,
    .update = update,
};

/* Adam (Kingma and Ba 2015, the form before section 2.1, which TensorFlow uses): with t the step,
 *     m <- 0.9 m + 0.1 g,  v <- 0.999 v + 0.001 g^2,
 *     w <- w - lr sqrt(1 - 0.999^t) / (1 - 0.9^t) * m / (sqrt(v) + epsilon). */
#include "learn/engines/vectorize.h"
#include "learn/optim/optim_kinds.h"

#include <assert.h>
#include <math.h>

/* The complements are written out: 1.0f - 0.999f is off by 5e-5 of its value. */
static const float  BETA1 = 0.9f, REST1 = 0.1f, BETA2 = 0.999f, REST2 = 0.001f, EPSILON = 1e-8f;
static const double BETA1_EXACT = 0.9, BETA2_EXACT = 0.999; /* for powers, whose errors add up */

AT_VECTORISED static void step(float *restrict w, float *restrict m, float *restrict v,
                               const float *restrict sum, size_t n, float lr, float scale,
                               float decay)
{
    for (size_t i = 0; i < n; i++) {
        float g = at_optim_mean(w[i], sum[i], scale, decay);
        m[i] = BETA1 * m[i] + REST1 * g;
        v[i] = BETA2 * v[i] + REST2 * (g * g);
        w[i] -= lr * m[i] / (sqrtf(v[i]) + EPSILON);
    }
}

static void update(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0);
    assert(s1);
    assert(how->step > 0);
    double t = (double)how->step;
    double lr = how->lr * sqrt(1.0 - pow(BETA2_EXACT, t)) / (1.0 - pow(BETA1_EXACT, t));
    step(w, s0, s1, g, n, (float)lr, how->scale, how->weight_decay);
}

const at_optim at_optim_adam = {
    .name = "adam",
    .summary = "adaptive moments, decays 0.9 and 0.999",
    .states = 2,
    .lr_default = 0.001,
    .update = update,
};

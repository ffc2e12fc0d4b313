/* Dual averaging (Nesterov 2009; Xiao 2010), the optimiser of the Anytime Minibatch papers: with t
 * the step and w0 the initial parameters
 *
 *     z <- z + g,   w <- argmin_w <z, w> + beta(t) |w - w0|^2 / 2  =  w0 - z / beta(t),
 *     beta(t) = sqrt(t) / lr.
 *
 * The papers start from w0 = 0, where nets with hidden layers cannot learn, and have beta(t) = K +
 * sqrt(t / mu); here K = 0 and lr stands for sqrt(mu), so that the first step is one of gradient
 * descent. A schedule of the learning rate weighs all gradients so far anew, not only the last. */
#include "learn/engines/vectorize.h"
#include "learn/optim/optim_kinds.h"

#include <assert.h>
#include <math.h>
#include <string.h>

AT_VECTORISED static void step(float *restrict w, float *restrict z, const float *restrict w0,
                               const float *restrict sum, size_t n, float rate, float scale,
                               float decay)
{
    for (size_t i = 0; i < n; i++) {
        z[i] += at_optim_mean(w[i], sum[i], scale, decay);
        w[i] = w0[i] - rate * z[i];
    }
}

static void update(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how)
{
    assert(s0);
    assert(s1);
    assert(how->step > 0);
    if (how->step == 1) memcpy(s1, w, n * sizeof *w);
    double rate = how->lr / sqrt((double)how->step); /* 1 / beta(t) */
    step(w, s0, s1, g, n, (float)rate, how->scale, how->weight_decay);
}

const at_optim at_optim_dual_averaging = {
    .name = "dual-averaging",
    .summary = "initial parameters minus the sum of all gradients times lr over the root of t",
    .states = 2,
    .lr_default = 1,
    .update = update,
};

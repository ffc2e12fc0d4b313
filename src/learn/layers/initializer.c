/* Initial weights. GLOROT: Glorot and Bengio 2010, equation 16; HE: He et al. 2015, equation 10. */
#include "learn/layers/layer.h"

#include <assert.h>
#include <math.h>

static void fill_const(float *to, size_t n, double number)
{
    for (size_t i = 0; i < n; i++) to[i] = (float)number;
}

static void fill_uniform(float *to, size_t n, double limit, at_rng *rng)
{
    for (size_t i = 0; i < n; i++) to[i] = (float)(limit * (2.0 * at_rng_uniform(rng) - 1.0));
}

static void fill_normal(float *to, size_t n, double deviation, at_rng *rng)
{
    for (size_t i = 0; i < n; i++) to[i] = (float)(deviation * at_rng_normal(rng));
}

/* Redraws what is beyond two deviations: 1 in 20. */
static void fill_truncated(float *to, size_t n, double deviation, at_rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        double draw;
        do draw = at_rng_normal(rng);
        while (fabs(draw) > 2.0);
        to[i] = (float)(deviation * draw);
    }
}

void at_initializer_fill(at_initializer init, float *plain, size_t n, double fan_in, double fan_out,
                         at_rng *rng)
{
    assert(fan_in > 0);
    assert(fan_out > 0);
    switch (init.kind) {
    case AT_INIT_ZERO: fill_const(plain, n, 0); return;
    case AT_INIT_GLOROT: fill_uniform(plain, n, sqrt(6.0 / (fan_in + fan_out)), rng); return;
    case AT_INIT_HE: fill_normal(plain, n, sqrt(2.0 / fan_in), rng); return;
    case AT_INIT_NORMAL: fill_normal(plain, n, init.number, rng); return;
    case AT_INIT_TRUNCATED: fill_truncated(plain, n, init.number, rng); return;
    case AT_INIT_CONST: fill_const(plain, n, init.number); return;
    }
    assert(!"unknown initializer");
}

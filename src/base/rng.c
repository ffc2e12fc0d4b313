#include "base/rng.h"

#include <assert.h>
#include <math.h>

static const uint64_t GOLDEN = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio, odd */

at_rng at_rng_stream(uint64_t seed, uint64_t node, at_rng_purpose purpose, uint64_t round)
{
    uint64_t key = at_rng_mix(seed + GOLDEN);
    key = at_rng_mix(key + GOLDEN * (node + 1));
    key = at_rng_mix(key + GOLDEN * ((uint64_t)purpose + 1));
    key = at_rng_mix(key + GOLDEN * (round + 1));
    return (at_rng){key};
}

uint64_t at_rng_next(at_rng *rng)
{
    return at_rng_mix(rng->state += GOLDEN);
}

double at_rng_uniform(at_rng *rng)
{
    return (double)(at_rng_next(rng) >> 11) * 0x1p-53;
}

uint64_t at_rng_below(at_rng *rng, uint64_t bound)
{
    assert(bound > 0);
    uint64_t reject_below = -bound % bound; /* 2^64 mod bound: the biased tail */
    for (;;) {
        uint64_t draw = at_rng_next(rng);
        if (draw >= reject_below) return draw % bound;
    }
}

double at_rng_normal(at_rng *rng) /* Box and Muller, the cosine branch only */
{
    double radius = sqrt(-2.0 * log(1.0 - at_rng_uniform(rng)));
    double angle = 6.283185307179586 * at_rng_uniform(rng);
    return radius * cos(angle);
}

/* rng.h - named random streams.
 *
 * A stream is derived from (seed, node, purpose, round), so that an added draw in one place does
 * not change draws in another, and every strategy meets the same delays for the same seed in every
 * world. There is no global generator and no seeding from the clock.
 *
 *     at_rng r = at_rng_stream(seed, worker, AT_RNG_PURPOSE_PACE, round);
 *     double sleep_s = at_rng_normal(&r);
 */
#ifndef AT_BASE_RNG_H
#define AT_BASE_RNG_H

#include <stdint.h>

typedef enum at_rng_purpose {
    AT_RNG_PURPOSE_INIT,      /* initial parameters */
    AT_RNG_PURPOSE_SHUFFLE,   /* sample order */
    AT_RNG_PURPOSE_PACE,      /* straggler models: delays of computation */
    AT_RNG_PURPOSE_NETWORK,   /* --comm-delay: delays of messages */
    AT_RNG_PURPOSE_SYNTHETIC, /* synthetic data sets */
    AT_RNG_PURPOSE_TEST,      /* tests and benchmarks */
    AT_RNG_PURPOSE_PREP,      /* random augmentation of samples: crops, flips */
    AT_RNG_PURPOSE_NOISE,     /* dropout */
    AT_RNG_PURPOSE_SIZE,      /* --straggler-batch: sizes of rounds */
    AT_RNG_PURPOSE_JITTER     /* --jitter: durations of micro-batches */
} at_rng_purpose;

typedef struct at_rng {
    uint64_t state;
} at_rng;

/* The stream of these four numbers; different numbers give independent streams. */
at_rng at_rng_stream(uint64_t seed, uint64_t node, at_rng_purpose purpose, uint64_t round);

/* The next 64 random bits. */
uint64_t at_rng_next(at_rng *rng);

/* Uniform in [0, 1), 53 bits. */
double at_rng_uniform(at_rng *rng);

/* Uniform in 0 .. bound-1 without bias; bound > 0. */
uint64_t at_rng_below(at_rng *rng, uint64_t bound);

/* Standard normal. Always consumes exactly two draws. */
double at_rng_normal(at_rng *rng);

/* Hashes a 64-bit number; the building block of streams and permutations. It is the finalizer of
 * splitmix64. */
static inline uint64_t at_rng_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

#endif

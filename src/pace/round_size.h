/* round_size.h - rounds whose size is drawn (--straggler-batch).
 *
 * A straggler that computes less instead of taking longer: every worker reports after about the
 * same time, with a random number of samples. Experiments with weighted averaging use these laws;
 * n is the size that the strategy orders:
 *
 *   bernoulli:P,N   n with probability P, else N (at most n)
 *   gauss:SD        normal with mean n and deviation SD, at least 1, at most n + 5 SD
 *   rotate          n for one worker, 1 for all others; the next round it is the next worker's turn
 *
 * A size depends on (seed, worker, round) only, so every strategy meets the same sizes in every
 * world.
 */
#ifndef AT_PACE_ROUND_SIZE_H
#define AT_PACE_ROUND_SIZE_H

#include <stdint.h>

#include "base/err.h"

typedef enum at_round_law {
    AT_ROUND_AS_ORDERED,
    AT_ROUND_BERNOULLI,
    AT_ROUND_GAUSS,
    AT_ROUND_ROTATE
} at_round_law;

/* A law with its numbers; zeroed: rounds are as ordered. */
typedef struct at_round_size {
    at_round_law law;
    double       probability; /* bernoulli */
    uint32_t     other;       /* bernoulli: N */
    double       deviation;   /* gauss */
    uint64_t     seed;
    uint32_t     workers; /* rotate */
} at_round_size;

/* Parses a law; NULL and "none": rounds are as ordered. AT_ERR_USAGE with the option's syntax. */
at_err at_round_size_parse(const char *text, uint64_t seed, uint32_t workers, at_round_size *size,
                           at_fail *fail);

/* The size of a worker's round that was ordered to have `ordered` samples; at least 1. */
uint32_t at_round_size_draw(const at_round_size *size, uint32_t worker, uint64_t round,
                            uint32_t ordered);

/* The largest size that can be drawn. */
uint32_t at_round_size_max(const at_round_size *size, uint32_t ordered);

#endif

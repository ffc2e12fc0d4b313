/* avx2_pool.h - what the two files of at_pools_avx2 share. */
#ifndef AT_LEARN_ENGINES_AVX2_POOL_H
#define AT_LEARN_ENGINES_AVX2_POOL_H

#include "learn/engines/avx2.h"
#include "learn/engines/pool_kernels.h"

#if defined(__x86_64__)

/* 8 channels of one place of dx. */
TILE void put(float *dx, __m256 sum, at_write write)
{
    __m256 before = write == AT_WRITE_ADD ? _mm256_loadu_ps(dx) : _mm256_setzero_ps();
    _mm256_storeu_ps(dx, _mm256_add_ps(before, sum));
}

/* Slots of at_pools_avx2 that live in engine_avx2_means.c. */
void at_avx2_mean_forward(const at_pool *pool, float *y, const float *x, size_t count);
void at_avx2_mean_backward(const at_pool *pool, float *dx, const float *dy, size_t count,
                           at_write write, float *scratch);

#endif

#endif

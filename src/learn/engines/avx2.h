/* avx2.h - shared by the AVX2 kernels: vectors of 8 floats, masks, sums of lanes.
 *
 * AVX2 marks functions compiled for AVX2 and FMA whatever the build's target is; TILE marks those
 * that are always inlined with constant sizes, so that their loops unroll and their small arrays
 * become registers.
 */
#ifndef AT_LEARN_ENGINES_AVX2_H
#define AT_LEARN_ENGINES_AVX2_H

#include <stddef.h>
#include <stdint.h>

#include "learn/engines/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define TILE static inline __attribute__((always_inline, target("avx2,fma")))

/* An unrolled loop over i < n; n is a constant once the tile is inlined, and at most 8. */
#define EACH(i, n) _Pragma("GCC unroll 8") for (size_t i = 0; i < (n); i++)

enum { LANES = 8 };

/* All ones in the first n lanes (n <= 8). */
TILE __m256i mask_first(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

/* The sum of all lanes, always in the same order. */
TILE float sum_lanes(__m256 v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Transposes 8x8 values: swaps single lanes, then pairs, then halves. */
TILE void transpose(__m256 v[LANES])
{
    __m256 two[LANES], four[LANES];
    EACH(i, 4)
    {
        two[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
        two[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
    }
    EACH(i, 2)
    EACH(j, 2)
    {
        __m256 a = two[4 * i + j], b = two[4 * i + j + 2];
        four[4 * i + 2 * j] = _mm256_shuffle_ps(a, b, 0x44);
        four[4 * i + 2 * j + 1] = _mm256_shuffle_ps(a, b, 0xee);
    }
    EACH(i, 4)
    {
        v[i] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x31);
    }
}

/* dense_weight for layers with many outputs: first packs x into scratch (at_avx2_packed floats). */
size_t at_avx2_packed(size_t B, size_t I);
void   at_avx2_weight_wide(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                           at_write write, float *scratch);

#endif

#endif

#include "data/prep/widen.h"

#include <assert.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

static const float SCALE = 1.0f / 255.0f;

void at_widen_portable(float *restrict x, const unsigned char *restrict bytes, size_t count)
{
    assert(count == 0 || (x && bytes));
    for (size_t i = 0; i < count; i++) x[i] = (float)bytes[i] * SCALE;
}

#ifdef __x86_64__

__attribute__((target("avx2"))) static void
widen_avx2(float *restrict x, const unsigned char *restrict bytes, size_t count)
{
    const __m256 scale = _mm256_set1_ps(SCALE);
    size_t       i = 0;
    for (; i + 16 <= count; i += 16) {
        __m128i both = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        __m256i low = _mm256_cvtepu8_epi32(both);
        __m256i high = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(both, both));
        _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_cvtepi32_ps(low), scale));
        _mm256_storeu_ps(x + i + 8, _mm256_mul_ps(_mm256_cvtepi32_ps(high), scale));
    }
    assert(count - i < 16);
    at_widen_portable(x + i, bytes + i, count - i);
}

at_widen *at_widen_best(void)
{
    return __builtin_cpu_supports("avx2") ? widen_avx2 : at_widen_portable;
}

#else

at_widen *at_widen_best(void)
{
    return at_widen_portable;
}

#endif

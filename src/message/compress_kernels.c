#include "message/compress_kernels.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { GROUP = AT_COMPRESS_GROUP };

#define SIGN       0x80000000u
#define INFINITE   0x7f800000u
#define FP16_MAX   65504.0f
#define BF16_MAX   0x7f7f0000u /* the largest finite one, as float32 */
#define FP16_LEAST 0x38800000u /* 2^-14: smaller ones are subnormal in fp16 */

/* ---- portable -------------------------------------------------------------------------------- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds the last `drop` bits away, to nearest, ties to even. */
static uint32_t round_off(uint32_t bits, unsigned drop)
{
    uint32_t half = (1u << (drop - 1)) - 1;
    assert(drop >= 1 && drop < 31);
    return (bits + half + ((bits >> drop) & 1)) >> drop;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value), size = bits & ~SIGN;
    if (size > INFINITE) return (uint16_t)(bits >> 16 | 0x40); /* a quiet NaN */
    if (size < INFINITE && size > BF16_MAX) size = BF16_MAX;
    return (uint16_t)((bits & SIGN) >> 16 | round_off(size, 16));
}

static float from_bf16(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

static uint16_t to_fp16(float value)
{
    uint32_t bits = bits_of(value), size = bits & ~SIGN, sign = (bits & SIGN) >> 16;
    if (size > INFINITE) return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size == INFINITE) return (uint16_t)(sign | 0x7c00);
    if (size > bits_of(FP16_MAX)) size = bits_of(FP16_MAX);
    if (size >= FP16_LEAST) return (uint16_t)(sign | (round_off(size, 13) - (112u << 10)));
    /* Adding 0.5 shifts a subnormal number to where its last bit is the last bit of a float. */
    return (uint16_t)(sign | (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)));
}

static float from_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fffu;
    if (size > 0x7c00) return float_of(sign | INFINITE | 0x400000 | (size & 0x3ff) << 13);
    if (size == 0x7c00) return float_of(sign | INFINITE);
    if (size >= 0x400) return float_of(sign | ((size << 13) + (112u << 23)));
    return float_of(sign | bits_of((float)size * 0x1p-24f));
}

static float lacking(float value, float sent)
{
    return (bits_of(sent) & ~SIGN) < INFINITE ? value - sent : 0;
}

#define PORTABLE(kind)                                                                        \
    static void narrow_##kind(uint16_t *to, const float *from, size_t count)                  \
    {                                                                                         \
        for (size_t i = 0; i < count; i++) to[i] = to_##kind(from[i]);                        \
    }                                                                                         \
    static void narrow_with_residual_##kind(uint16_t *to, const float *from, float *residual, \
                                            size_t count)                                     \
    {                                                                                         \
        for (size_t i = 0; i < count; i++) {                                                  \
            float value = from[i] + residual[i];                                              \
            to[i] = to_##kind(value);                                                         \
            residual[i] = lacking(value, from_##kind(to[i]));                                 \
        }                                                                                     \
    }                                                                                         \
    static void widen_##kind(float *to, const uint16_t *from, size_t count)                   \
    {                                                                                         \
        for (size_t i = 0; i < count; i++) to[i] = from_##kind(from[i]);                      \
    }

PORTABLE(fp16)
PORTABLE(bf16)

static uint32_t large_ones(const float *v, uint32_t least)
{
    uint32_t mask = 0;
    for (unsigned i = 0; i < GROUP; i++) mask |= (uint32_t)((bits_of(v[i]) & ~SIGN) >= least) << i;
    return mask;
}

static const at_compress_kernels portable = {
    .fp16 = {narrow_fp16, narrow_with_residual_fp16, widen_fp16},
    .bf16 = {narrow_bf16, narrow_with_residual_bf16, widen_bf16},
    .large_ones = large_ones};

#ifdef __x86_64__

/* ---- AVX2 and AVX-512 ------------------------------------------------------------------------ */

/* The loops over whole vectors; the rest is portable. LANES, VECTOR, HALVES and the operations
 * LOAD, STORE, LOAD_HALVES, STORE_HALVES, ADD, LACKING, TO_.. and FROM_.. are those of the set. */
#define LOOPS(set, kind)                                                                        \
    set##_TARGET static void set##_narrow_##kind(uint16_t *to, const float *from, size_t count) \
    {                                                                                           \
        size_t i = 0;                                                                           \
        for (; i + set##_LANES <= count; i += set##_LANES)                                      \
            set##_store_halves(to + i, set##_to_##kind(set##_load(from + i)));                  \
        narrow_##kind(to + i, from + i, count - i);                                             \
    }                                                                                           \
    set##_TARGET static void set##_narrow_with_residual_##kind(uint16_t *to, const float *from, \
                                                               float *residual, size_t count)   \
    {                                                                                           \
        size_t i = 0;                                                                           \
        for (; i + set##_LANES <= count; i += set##_LANES) {                                    \
            set##_vector value = set##_add(set##_load(from + i), set##_load(residual + i));     \
            set##_halves half = set##_to_##kind(value);                                         \
            set##_store_halves(to + i, half);                                                   \
            set##_store(residual + i, set##_lacking(value, set##_from_##kind(half)));           \
        }                                                                                       \
        narrow_with_residual_##kind(to + i, from + i, residual + i, count - i);                 \
    }                                                                                           \
    set##_TARGET static void set##_widen_##kind(float *to, const uint16_t *from, size_t count)  \
    {                                                                                           \
        size_t i = 0;                                                                           \
        for (; i + set##_LANES <= count; i += set##_LANES)                                      \
            set##_store(to + i, set##_from_##kind(set##_load_halves(from + i)));                \
        widen_##kind(to + i, from + i, count - i);                                              \
    }

#define AVX2_TARGET   __attribute__((target("avx2,f16c")))
#define AVX512_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c")))
#define AVX2_INLINE   AVX2_TARGET static inline
#define AVX512_INLINE AVX512_TARGET static inline

enum { AVX2_LANES = 8, AVX512_LANES = 16 };
typedef __m256  AVX2_vector;
typedef __m128i AVX2_halves;
typedef __m512  AVX512_vector;
typedef __m256i AVX512_halves;

AVX2_INLINE __m256 AVX2_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

AVX2_INLINE void AVX2_store(float *to, __m256 v)
{
    _mm256_storeu_ps(to, v);
}

AVX2_INLINE __m128i AVX2_load_halves(const uint16_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

AVX2_INLINE void AVX2_store_halves(uint16_t *to, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)to, v);
}

AVX2_INLINE __m256 AVX2_add(__m256 a, __m256 b)
{
    return _mm256_add_ps(a, b);
}

AVX2_INLINE __m256 AVX2_size(__m256 v)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

AVX2_INLINE __m256 AVX2_is_finite(__m256 v)
{
    return _mm256_cmp_ps(AVX2_size(v), _mm256_set1_ps(__builtin_inff()), _CMP_LT_OQ);
}

AVX2_INLINE __m256 AVX2_lacking(__m256 value, __m256 sent)
{
    return _mm256_and_ps(AVX2_is_finite(sent), _mm256_sub_ps(value, sent));
}

/* Finite values are limited to `most`; others stay. */
AVX2_INLINE __m256 AVX2_limit(__m256 v, float most)
{
    __m256 low = _mm256_max_ps(_mm256_set1_ps(-most), v);
    return _mm256_blendv_ps(v, _mm256_min_ps(_mm256_set1_ps(most), low), AVX2_is_finite(v));
}

AVX2_INLINE __m128i AVX2_to_fp16(__m256 v)
{
    return _mm256_cvtps_ph(AVX2_limit(v, FP16_MAX), _MM_FROUND_TO_NEAREST_INT);
}

AVX2_INLINE __m256 AVX2_from_fp16(__m128i half)
{
    return _mm256_cvtph_ps(half);
}

AVX2_INLINE __m128i AVX2_to_bf16(__m256 v)
{
    __m256i bits = _mm256_castps_si256(AVX2_limit(v, float_of(BF16_MAX)));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_add_epi32(bits, half);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256  number = _mm256_cmp_ps(v, v, _CMP_ORD_Q);
    __m256i all = _mm256_blendv_epi8(quiet, rounded, _mm256_castps_si256(number));
    __m256i high = _mm256_srli_epi32(all, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

AVX2_INLINE __m256 AVX2_from_bf16(__m128i half)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

LOOPS(AVX2, fp16)
LOOPS(AVX2, bf16)

AVX2_TARGET static uint32_t AVX2_large_ones(const float *v, uint32_t least)
{
    const __m256i below = _mm256_set1_epi32((int)least - 1); /* both are positive as int32 */
    uint32_t      mask = 0;
    assert(least >= 1 && least <= INT32_MAX);
    for (unsigned i = 0; i < GROUP; i += AVX2_LANES) {
        __m256i size = _mm256_castps_si256(AVX2_size(AVX2_load(v + i)));
        __m256  is = _mm256_castsi256_ps(_mm256_cmpgt_epi32(size, below));
        mask |= (uint32_t)_mm256_movemask_ps(is) << i;
    }
    return mask;
}

AVX512_INLINE __m512 AVX512_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

AVX512_INLINE void AVX512_store(float *to, __m512 v)
{
    _mm512_storeu_ps(to, v);
}

AVX512_INLINE __m256i AVX512_load_halves(const uint16_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

AVX512_INLINE void AVX512_store_halves(uint16_t *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)to, v);
}

AVX512_INLINE __m512 AVX512_add(__m512 a, __m512 b)
{
    return _mm512_add_ps(a, b);
}

AVX512_INLINE __mmask16 AVX512_is_finite(__m512 v)
{
    return _mm512_cmp_ps_mask(_mm512_abs_ps(v), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
}

AVX512_INLINE __m512 AVX512_lacking(__m512 value, __m512 sent)
{
    return _mm512_maskz_sub_ps(AVX512_is_finite(sent), value, sent);
}

AVX512_INLINE __m512 AVX512_limit(__m512 v, float most)
{
    __m512 low = _mm512_max_ps(_mm512_set1_ps(-most), v);
    return _mm512_mask_min_ps(v, AVX512_is_finite(v), _mm512_set1_ps(most), low);
}

AVX512_INLINE __m256i AVX512_to_fp16(__m512 v)
{
    /* Without optimization, gcc's form of this without a mask has a sign that it warns of. */
    return _mm512_maskz_cvtps_ph(0xffff, AVX512_limit(v, FP16_MAX), _MM_FROUND_TO_NEAREST_INT);
}

AVX512_INLINE __m512 AVX512_from_fp16(__m256i half)
{
    return _mm512_cvtph_ps(half);
}

AVX512_INLINE __m256i AVX512_to_bf16(__m512 v)
{
    __m512i   bits = _mm512_castps_si512(AVX512_limit(v, float_of(BF16_MAX)));
    __m512i   odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i   half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    __m512i   quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    __mmask16 number = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);
    __m512i   all = _mm512_mask_add_epi32(quiet, number, bits, half);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16));
}

AVX512_INLINE __m512 AVX512_from_bf16(__m256i half)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

LOOPS(AVX512, fp16)
LOOPS(AVX512, bf16)

AVX512_TARGET static uint32_t AVX512_large_ones(const float *v, uint32_t least)
{
    const __m512i limit = _mm512_set1_epi32((int)least);
    uint32_t      mask = 0;
    assert(least >= 1 && least <= INT32_MAX);
    for (unsigned i = 0; i < GROUP; i += AVX512_LANES) {
        __m512i size = _mm512_castps_si512(_mm512_abs_ps(AVX512_load(v + i)));
        mask |= (uint32_t)_mm512_cmpge_epu32_mask(size, limit) << i;
    }
    return mask;
}

#define KERNELS(set)                                                                    \
    {                                                                                   \
        .fp16 = {set##_narrow_fp16, set##_narrow_with_residual_fp16, set##_widen_fp16}, \
        .bf16 = {set##_narrow_bf16, set##_narrow_with_residual_bf16, set##_widen_bf16}, \
        .large_ones = set##_large_ones                                                  \
    }

static const at_compress_kernels avx2 = KERNELS(AVX2), avx512 = KERNELS(AVX512);

/* Not __builtin_cpu_supports, which does not know the name f16c in clang 14. */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

const at_compress_kernels *at_compress_kernels_for(at_isa isa)
{
    assert(isa <= AT_ISA_AVX512);
    if (isa == AT_ISA_PORTABLE || !has_f16c()) return &portable;
    return isa == AT_ISA_AVX512 ? &avx512 : &avx2;
}

#else

const at_compress_kernels *at_compress_kernels_for(at_isa isa)
{
    assert(isa == AT_ISA_PORTABLE);
    return &portable;
}

#endif

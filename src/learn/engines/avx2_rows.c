/* What works element by element or row by row, for AVX2: ReLU and the softmax cross-entropy. */
#include "learn/engines/avx2.h"

#if defined(__x86_64__)

#include <assert.h>
#include <math.h>
#include <stdbool.h>

/* Multiplied sums are kept below this before their logarithm is taken: the next factor is at most
 * the number of classes, far from overflow. */
static const double PRODUCT_MAX = 1e200;

AVX2 void at_avx2_relu_forward(float *z, size_t n)
{
    const __m256 zero = _mm256_setzero_ps();
    size_t       i = 0;
    /* The second operand is what maxps returns for a NaN: it stays visible. */
    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(z + i, _mm256_max_ps(zero, _mm256_loadu_ps(z + i)));
    for (; i < n; i++) z[i] = z[i] < 0 ? 0.0f : z[i];
}

AVX2 void at_avx2_relu_backward(float *dy, const float *y, size_t n)
{
    const __m256 zero = _mm256_setzero_ps();
    size_t       i = 0;
    for (; i + LANES <= n; i += LANES) {
        __m256 live = _mm256_cmp_ps(_mm256_loadu_ps(y + i), zero, _CMP_GT_OQ);
        _mm256_storeu_ps(dy + i, _mm256_and_ps(live, _mm256_loadu_ps(dy + i)));
    }
    for (; i < n; i++) dy[i] = y[i] > 0 ? dy[i] : 0.0f;
}

/* exp(v) for v <= 0. v = n ln 2 + r with |r| <= ln 2 / 2; the Taylor polynomial of degree 7 is then
 * off by less than r^8 / 8! = 5e-9, a tenth of the last bit. Below -87 the result is 1e-38. */
TILE __m256 exp_negative(__m256 v)
{
    v = _mm256_max_ps(_mm256_set1_ps(-87.0f), v); /* a NaN in v survives as second operand */
    __m256 n = _mm256_round_ps(_mm256_mul_ps(v, _mm256_set1_ps(0x1.715476p+0f)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e400p-1f), v); /* ln 2, upper bits */
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20f), r);       /* and the rest */
    __m256 sum = _mm256_set1_ps(1.0f / 5040);
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f / 720));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f / 120));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f / 24));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f / 6));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(0.5f));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f));
    __m256i power = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23); /* 2^n: into the exponent */
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(sum), power));
}

TILE float max_lanes(__m256 v)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* Logits from c on, minus infinity behind the last one. */
TILE __m256 load_logits(const float *z, size_t c, size_t C)
{
    if (c + LANES <= C) return _mm256_loadu_ps(z + c);
    __m256i mask = mask_first(C - c);
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), _mm256_maskload_ps(z + c, mask),
                            _mm256_castsi256_ps(mask));
}

TILE void store_logits(float *z, __m256 v, size_t c, size_t C)
{
    if (c + LANES <= C)
        _mm256_storeu_ps(z + c, v);
    else
        _mm256_maskstore_ps(z + c, mask_first(C - c), v);
}

/* z <- softmax - one at the label; returns the sum of exponentials, *margin += z[label] - max. */
TILE float softmax_row(float *z, uint32_t label, size_t C, double *margin)
{
    __m256 top = _mm256_set1_ps(-INFINITY), sum = _mm256_setzero_ps();
    for (size_t c = 0; c < C; c += LANES) top = _mm256_max_ps(top, load_logits(z, c, C));
    float largest = max_lanes(top);
    *margin += z[label] - largest;
    for (size_t c = 0; c < C; c += LANES) {
        __m256 e = exp_negative(_mm256_sub_ps(load_logits(z, c, C), _mm256_set1_ps(largest)));
        if (c + LANES > C) e = _mm256_and_ps(e, _mm256_castsi256_ps(mask_first(C - c)));
        sum = _mm256_add_ps(sum, e);
        store_logits(z, e, c, C);
    }
    float  total = sum_lanes(sum);
    __m256 scale = _mm256_set1_ps(1.0f / total);
    for (size_t c = 0; c < C; c += LANES)
        store_logits(z, _mm256_mul_ps(load_logits(z, c, C), scale), c, C);
    z[label] -= 1.0f;
    return total;
}

/* The same for 8 to 16 classes, without memory in between: two vectors that overlap cover the row,
 * so nothing is masked but the second one's share of the sum. */
TILE float softmax_row_short(float *z, uint32_t label, size_t C, double *margin, __m256i fresh)
{
    assert(C >= LANES);
    assert(C <= 2 * LANES);
    __m256 a = _mm256_loadu_ps(z), b = _mm256_loadu_ps(z + C - LANES);
    float  largest = max_lanes(_mm256_max_ps(a, b));
    *margin += z[label] - largest;
    a = exp_negative(_mm256_sub_ps(a, _mm256_set1_ps(largest)));
    b = exp_negative(_mm256_sub_ps(b, _mm256_set1_ps(largest)));
    float  total = sum_lanes(_mm256_add_ps(a, _mm256_and_ps(b, _mm256_castsi256_ps(fresh))));
    __m256 scale = _mm256_set1_ps(1.0f / total);
    _mm256_storeu_ps(z, _mm256_mul_ps(a, scale));
    _mm256_storeu_ps(z + C - LANES, _mm256_mul_ps(b, scale));
    z[label] -= 1.0f;
    return total;
}

/* log(a) + log(b) = log(a b): the sums of many rows share one logarithm. */
AVX2 double at_avx2_softmax_loss(float *z, const uint32_t *labels, size_t B, size_t C)
{
    double  loss = 0, margin = 0, product = 1;
    bool    is_short = C >= LANES && C <= 2 * LANES;
    __m256i fresh = is_short ? _mm256_xor_si256(mask_first(2 * LANES - C), _mm256_set1_epi32(-1))
                             : _mm256_setzero_si256(); /* lanes that only the second vector has */
    for (size_t n = 0; n < B; n++) {
        assert(labels[n] < C);
        product *= is_short ? softmax_row_short(z + n * C, labels[n], C, &margin, fresh)
                            : softmax_row(z + n * C, labels[n], C, &margin);
        if (!(product < PRODUCT_MAX)) {
            loss += log(product);
            product = 1;
        }
    }
    return loss + log(product) - margin;
}

#endif

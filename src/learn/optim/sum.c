#include "learn/optim/sum.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "learn/engines/activation_kernels.h"
#include "learn/engines/vectorize.h"

at_slice at_slice_cut(size_t at, size_t count, at_slice slice)
{
    assert(slice.first <= SIZE_MAX - slice.count);
    assert(at <= SIZE_MAX - count);
    size_t end = slice.first + slice.count, first = at > slice.first ? at : slice.first;
    if (at + count < end) end = at + count;
    return (at_slice){first, end > first ? end - first : 0};
}

size_t at_sum_block_size(size_t at, size_t n)
{
    assert(at < n);
    return n - at < AT_SUM_BLOCK ? n - at : AT_SUM_BLOCK;
}

AT_VECTORIZED static void scale(float *restrict dst, const float *restrict src, float weight,
                                size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = src[i] * weight;
}

AT_VECTORIZED static void add_scaled(float *restrict dst, const float *restrict src, float weight,
                                     size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] += src[i] * weight;
}

void at_sum_block(float *dst, const float *const *src, const float *weights, size_t count,
                  size_t at, size_t n)
{
    assert(count > 0);
    if (weights)
        scale(dst, src[0] + at, weights[0], n);
    else
        memcpy(dst, src[0] + at, n * sizeof *dst);
    for (size_t s = 1; s < count; s++) {
        if (weights)
            add_scaled(dst, src[s] + at, weights[s], n);
        else
            at_vector_add(dst, src[s] + at, n);
    }
}

void at_sum_slice(float *dst, const float *const *src, const float *weights, size_t count,
                  at_slice slice)
{
    assert(count > 0);
    for (size_t at = 0; at < slice.count; at += AT_SUM_BLOCK) {
        size_t first = slice.first + at;
        at_sum_block(dst + first, src, weights, count, first, at_sum_block_size(at, slice.count));
    }
}

/* As numbers without sign the bits of floats are in order of magnitude, and those that are not
 * finite come last. */
AT_VECTORIZED static uint32_t largest_bits(const uint32_t *bits, size_t n)
{
    enum { LANES = 64 };
    uint32_t lane[LANES] = {0}, largest = 0;
    size_t   whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            uint32_t magnitude = bits[i + k] << 1;
            lane[k] = lane[k] > magnitude ? lane[k] : magnitude;
        }
    for (size_t i = whole; i < n; i++) lane[0] = lane[0] > bits[i] << 1 ? lane[0] : bits[i] << 1;
    for (size_t k = 0; k < LANES; k++) largest = largest > lane[k] ? largest : lane[k];
    return largest;
}

size_t at_first_nonfinite(const float *v, size_t n)
{
    const uint32_t infinity = 0x7f800000u << 1;
    assert(v || n == 0);
    if (largest_bits((const uint32_t *)(const void *)v, n) < infinity) return n;
    size_t at = 0;
    while (isfinite(v[at])) at++;
    return at;
}

/* Lanes that are summed separately let the compiler use vectors without reordering anything. */
AT_VECTORIZED double at_sum_squares(const float *v, size_t n)
{
    enum { LANES = 16 };
    double lane[LANES] = {0}, sum = 0;
    size_t whole = n / LANES * LANES;
    assert(v || n == 0);
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++) lane[k] += (double)v[i + k] * v[i + k];
    for (size_t k = 0; k < LANES; k++) sum += lane[k];
    for (size_t i = whole; i < n; i++) sum += (double)v[i] * v[i];
    return sum;
}

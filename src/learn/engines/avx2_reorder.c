/* Between blocks of channels and the plain order, with AVX2: tiles of 8x8 are transposed in
 * registers. Tiles at the borders are padded with zeros when read and truncated when written;
 * blocks are always written whole, which zeroes their unused channels. */
#include "learn/engines/activation_kernels.h"
#include "learn/engines/avx2.h"

#if defined(__x86_64__)

#include <assert.h>

/* The part of a tile that is in memory; its rows are `stride` floats apart. */
typedef struct tile {
    size_t stride, rows, columns;
} tile;

TILE void store_first(float *to, __m256 v, size_t n)
{
    if (n == LANES) {
        _mm256_storeu_ps(to, v);
        return;
    }
    __m128 rest = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(to, rest);
        rest = _mm256_extractf128_ps(v, 1);
    }
    if (n & 2) _mm_storel_pi((__m64 *)(to + (n & 4)), rest);
    if (n & 1) _mm_store_ss(to + n - 1, n & 2 ? _mm_movehl_ps(rest, rest) : rest);
}

TILE void load_tile(__m256 v[LANES], const float *from, tile t)
{
    __m256i mask = mask_first(t.columns);
    EACH(i, LANES)
    v[i] = i < t.rows ? _mm256_maskload_ps(from + i * t.stride, mask) : _mm256_setzero_ps();
}

TILE void transpose_tile(float *to, tile into, const float *from, tile outof)
{
    __m256 v[LANES];
    load_tile(v, from, outof);
    transpose(v);
    EACH(i, LANES)
    if (i < into.rows) store_first(to + i * into.stride, v[i], into.columns);
}

static size_t at_most_lanes(size_t left)
{
    return left < LANES ? left : LANES;
}

AVX2 static void to_plain(float *plain, const float *x, size_t area, size_t block, size_t used)
{
    assert(block % LANES == 0 && used <= block);
    for (size_t b = 0; b < used; b += LANES)
        for (size_t i = 0; i < area; i += LANES) {
            size_t positions = at_most_lanes(area - i), channels = at_most_lanes(used - b);
            transpose_tile(plain + b * area + i, (tile){area, channels, positions},
                           x + i * block + b, (tile){block, positions, LANES});
        }
}

AVX2 static void from_plain(float *y, const float *plain, size_t area, size_t block, size_t used)
{
    assert(block % LANES == 0 && used <= block);
    for (size_t i = 0; i < area; i += LANES)
        for (size_t b = 0; b < block; b += LANES) {
            size_t positions = at_most_lanes(area - i),
                   channels = b < used ? at_most_lanes(used - b) : 0;
            transpose_tile(y + i * block + b, (tile){block, positions, LANES},
                           channels ? plain + b * area + i : plain,
                           (tile){area, channels, positions});
        }
}

const at_reorder_kernels at_reorder_avx2 = {.to_plain = to_plain, .from_plain = from_plain};

#endif

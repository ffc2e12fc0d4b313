#include "message/compress_topk.h"

#include <assert.h>
#include <string.h>

enum {
    GROUP = AT_COMPRESS_GROUP,
    LEADING = 11, /* bits of an absolute value: eight of the exponent and three more, */
    NEXT = 10,    /* the next ones, */
    LAST = 10,    /* and the rest */
    COUNTERS = 4  /* in turn, so that equal values in a row do not wait for each other */
};
_Static_assert(LEADING + NEXT + LAST == 31, "all bits but the sign");
_Static_assert(AT_TOPK_BLOCK % GROUP == 0, "no group is in two blocks");

#define INFINITE 0x7f800000u

static uint32_t size_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffffu;
}

size_t at_topk_blocks(size_t floats)
{
    return floats / AT_TOPK_BLOCK + (floats % AT_TOPK_BLOCK > 0);
}

void at_topk_add(float *sum, const float *vector, size_t floats)
{
    assert(sum != vector);
    for (size_t i = 0; i < floats; i++) sum[i] += vector[i];
}

/* ---- the smallest value to keep -------------------------------------------------------------- */

/* Which of the floats i .. i+31 are as large. */
static uint32_t large_ones(const at_compress_kernels *kernels, const float *v, size_t floats,
                           size_t i, uint32_t least)
{
    uint32_t mask = 0;
    assert(i < floats);
    if (i + GROUP <= floats) return least > 0 ? kernels->large_ones(v + i, least) : UINT32_MAX;
    for (unsigned k = 0; k < floats - i; k++) mask |= (uint32_t)(size_bits(v[i + k]) >= least) << k;
    return mask;
}

/* The bin of the value that `kept` values are not smaller than. Takes those in larger bins from
 * *kept. */
static uint32_t find_bin(const uint32_t *count, uint32_t bins, size_t *kept)
{
    uint32_t bin = bins - 1;
    for (; count[bin] < *kept; bin--) {
        assert(bin > 0); /* there are at least as many values */
        *kept -= count[bin];
    }
    return bin;
}

static uint32_t leading_bits(const float *v, size_t floats, size_t *kept)
{
    uint32_t count[COUNTERS][1 << LEADING] = {0};
    size_t   i = 0;
    for (; i + COUNTERS <= floats; i += COUNTERS)
        for (size_t k = 0; k < COUNTERS; k++) count[k][size_bits(v[i + k]) >> (NEXT + LAST)]++;
    for (; i < floats; i++) count[0][size_bits(v[i]) >> (NEXT + LAST)]++;
    for (size_t bin = 0; bin < 1 << LEADING; bin++)
        for (size_t k = 1; k < COUNTERS; k++) count[0][bin] += count[k][bin];
    return find_bin(count[0], 1 << LEADING, kept) << (NEXT + LAST);
}

/* Ten more bits of the value that begins with the bits of `prefix` above them. */
static uint32_t more_bits(const at_compress_kernels *kernels, const float *v, size_t floats,
                          uint32_t prefix, unsigned shift, size_t *kept)
{
    uint32_t count[1 << NEXT] = {0};
    assert(shift == LAST || shift == 0);
    for (size_t i = 0; i < floats; i += GROUP) {
        uint32_t mask = large_ones(kernels, v, floats, i, prefix);
        for (; mask; mask &= mask - 1) {
            uint32_t bits = size_bits(v[i + (size_t)__builtin_ctz(mask)]) - prefix;
            if (bits >> shift < 1 << NEXT) count[bits >> shift]++;
        }
    }
    return prefix | find_bin(count, 1 << NEXT, kept) << shift;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Places of the three parts. */
typedef struct parts {
    uint32_t *count;
    uint16_t *position, *value;
} parts;

static parts parts_of(void *bytes, size_t floats, size_t kept)
{
    uint32_t *count = bytes;
    uint16_t *position = (uint16_t *)(count + at_topk_blocks(floats));
    return (parts){.count = count, .position = position, .value = position + kept};
}

/* More values than could be sent are not finite: they would stay in the vector forever. */
static void clear_infinite(const at_compress_kernels *kernels, float *v, size_t floats)
{
    for (size_t i = 0; i < floats; i += GROUP) {
        uint32_t mask = large_ones(kernels, v, floats, i, INFINITE);
        for (; mask; mask &= mask - 1) v[i + (size_t)__builtin_ctz(mask)] = 0;
    }
}

/* `ties`: how many of the values equal to the smallest are sent. */
static void write(const at_compress_kernels *kernels, parts to, float *v, size_t floats,
                  uint32_t smallest, size_t ties)
{
    size_t at = 0;
    memset(to.count, 0, at_topk_blocks(floats) * sizeof *to.count);
    for (size_t i = 0; i < floats; i += GROUP) {
        uint32_t mask = large_ones(kernels, v, floats, i, smallest);
        for (; mask; mask &= mask - 1) {
            size_t k = i + (size_t)__builtin_ctz(mask);
            bool   equal = size_bits(v[k]) == smallest;
            if (equal && ties == 0) continue;
            ties -= equal;
            float value = v[k];
            v[k] = 0;
            kernels->bf16.narrow_with_residual(&to.value[at], &value, &v[k], 1);
            to.position[at++] = (uint16_t)(k % AT_TOPK_BLOCK);
            to.count[k / AT_TOPK_BLOCK]++;
        }
    }
}

void at_topk_pack(const at_compress_kernels *kernels, void *bytes, float *v, size_t floats,
                  size_t kept)
{
    size_t ties = kept;
    assert(floats <= UINT32_MAX);
    assert(kept <= floats);
    if (kept == 0) return;
    uint32_t smallest = leading_bits(v, floats, &ties);
    smallest = more_bits(kernels, v, floats, smallest, LAST, &ties);
    smallest = more_bits(kernels, v, floats, smallest, 0, &ties);
    write(kernels, parts_of(bytes, floats, kept), v, floats, smallest, ties);
    if (smallest >= INFINITE) clear_infinite(kernels, v, floats);
}

/* Positions of one block must increase and be in it. */
static bool unpack_block(float *v, size_t floats, const uint16_t *position, const uint16_t *value,
                         size_t count)
{
    size_t next = 0;
    assert(floats <= AT_TOPK_BLOCK);
    for (size_t i = 0; i < count; i++) {
        if (position[i] < next || position[i] >= floats) return false;
        uint32_t bits = (uint32_t)value[i] << 16;
        memcpy(&v[position[i]], &bits, sizeof bits);
        next = (size_t)position[i] + 1;
    }
    return true;
}

bool at_topk_unpack(float *v, size_t floats, const void *bytes, size_t kept)
{
    size_t          blocks = at_topk_blocks(floats), at = 0;
    const uint32_t *count = bytes;
    const uint16_t *position = (const uint16_t *)(count + blocks), *value = position + kept;
    memset(v, 0, floats * sizeof *v);
    for (size_t block = 0; block < blocks; block++) {
        size_t begin = block * AT_TOPK_BLOCK, rest = floats - begin;
        if (count[block] > kept - at) return false;
        if (!unpack_block(v + begin, rest < AT_TOPK_BLOCK ? rest : AT_TOPK_BLOCK, position + at,
                          value + at, count[block]))
            return false;
        at += count[block];
    }
    return at == kept;
}

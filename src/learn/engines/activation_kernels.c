#include "learn/engines/activation_kernels.h"

#include "base/isa.h"
#include "learn/engines/vectorize.h"

#include <assert.h>
#include <string.h>

AT_VECTORIZED void at_vector_add(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += from[i];
}

static float clipped(float v, bool relu)
{
    return relu && v < 0 ? 0.0f : v;
}

/* Each chunk is read before it is written, so that y may be x or other. */
AT_VECTORIZED void at_add_forward(float *y, const float *x, const float *other, size_t n, bool relu)
{
    enum { CHUNK = 64 };
    float  sum[CHUNK];
    size_t whole = n - n % CHUNK;
    for (size_t i = 0; i < whole; i += CHUNK) {
        for (size_t j = 0; j < CHUNK; j++) sum[j] = clipped(x[i + j] + other[i + j], relu);
        for (size_t j = 0; j < CHUNK; j++) y[i + j] = sum[j];
    }
    for (size_t i = whole; i < n; i++) y[i] = clipped(x[i] + other[i], relu);
}

static void to_plain(float *restrict plain, const float *restrict x, size_t area, size_t block,
                     size_t used)
{
    for (size_t b = 0; b < used; b++)
        for (size_t i = 0; i < area; i++) plain[b * area + i] = x[i * block + b];
}

static void from_plain(float *restrict y, const float *restrict plain, size_t area, size_t block,
                       size_t used)
{
    for (size_t i = 0; i < area; i++)
        for (size_t b = 0; b < block; b++) y[i * block + b] = b < used ? plain[b * area + i] : 0.0f;
}

const at_reorder_kernels at_reorder_plain = {.to_plain = to_plain, .from_plain = from_plain};

#if defined(__x86_64__)
static const at_reorder_kernels *reorder_for(const at_activation *blocked)
{
    bool avx2 = at_isa_here() >= AT_ISA_AVX2;
    return avx2 && blocked->block % 8 == 0 ? &at_reorder_avx2 : &at_reorder_plain;
}
#else
static const at_reorder_kernels *reorder_for(const at_activation *blocked)
{
    assert(blocked->block > 0);
    return &at_reorder_plain;
}
#endif

/* Whether blocked and plain order are the same. */
static bool same_order(const at_activation *shape)
{
    return shape->block == 1 ||
           (at_activation_area(shape) == 1 && shape->channels % shape->block == 0);
}

static size_t channels_in(const at_activation *shape, size_t block_index)
{
    size_t left = shape->channels - block_index * shape->block;
    return left < shape->block ? left : shape->block;
}

void at_blocks_to_plain(const at_activation *blocked, float *plain, const float *x, size_t count)
{
    size_t area = at_activation_area(blocked), block = blocked->block;
    if (same_order(blocked)) {
        memcpy(plain, x, count * at_activation_size(blocked) * sizeof *x);
        return;
    }
    const at_reorder_kernels *reorder = reorder_for(blocked);
    for (size_t n = 0; n < count; n++)
        for (size_t i = 0; i < at_activation_blocks(blocked); i++, x += area * block) {
            size_t used = channels_in(blocked, i);
            reorder->to_plain(plain, x, area, block, used);
            plain += used * area;
        }
}

void at_blocks_from_plain(const at_activation *blocked, float *y, const float *plain, size_t count)
{
    size_t area = at_activation_area(blocked), block = blocked->block;
    if (same_order(blocked)) {
        memcpy(y, plain, count * at_activation_size(blocked) * sizeof *y);
        return;
    }
    const at_reorder_kernels *reorder = reorder_for(blocked);
    for (size_t n = 0; n < count; n++)
        for (size_t i = 0; i < at_activation_blocks(blocked); i++, y += area * block) {
            size_t used = channels_in(blocked, i);
            reorder->from_plain(y, plain, area, block, used);
            plain += used * area;
        }
}

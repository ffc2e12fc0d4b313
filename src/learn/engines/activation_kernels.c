#include "learn/engines/activation_kernels.h"

#include <assert.h>
#include <string.h>

#include "learn/engines/vectorize.h"

static float clipped(float v, bool relu)
{
    return relu && v < 0 ? 0.0f : v;
}

/* Each range is read before it is written, so that y may be x, or x and other. */
AT_VECTORISED void at_sum_forward(float *y, const float *x, const float *other, size_t n, bool relu)
{
    enum { STRETCH = 64 };
    float  sum[STRETCH];
    size_t whole = n - n % STRETCH;
    for (size_t i = 0; i < whole; i += STRETCH) {
        for (size_t j = 0; j < STRETCH; j++) sum[j] = clipped(x[i + j] + other[i + j], relu);
        for (size_t j = 0; j < STRETCH; j++) y[i + j] = sum[j];
    }
    for (size_t i = whole; i < n; i++) y[i] = clipped(x[i] + other[i], relu);
}

/* One block of one sample: (area, block) and (used, area), `used` channels in it. */
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

const at_turns at_turns_plain = {.to_plain = to_plain, .from_plain = from_plain};

#if defined(__x86_64__)
static const at_turns *turns_for(const at_activation *blocked)
{
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return avx2 && blocked->block % 8 == 0 ? &at_turns_avx2 : &at_turns_plain;
}
#else
static const at_turns *turns_for(const at_activation *blocked)
{
    assert(blocked->block > 0);
    return &at_turns_plain;
}
#endif

/* Whether both orders are the same. */
static bool alike(const at_activation *form)
{
    return form->block == 1 || (at_activation_area(form) == 1 && form->channels % form->block == 0);
}

static size_t used_in(const at_activation *form, size_t block_index)
{
    size_t left = form->channels - block_index * form->block;
    return left < form->block ? left : form->block;
}

void at_blocks_to_plain(const at_activation *blocked, float *plain, const float *x, size_t count)
{
    size_t area = at_activation_area(blocked), block = blocked->block;
    if (alike(blocked)) {
        memcpy(plain, x, count * at_activation_size(blocked) * sizeof *x);
        return;
    }
    const at_turns *turn = turns_for(blocked);
    for (size_t n = 0; n < count; n++)
        for (size_t i = 0; i < at_activation_blocks(blocked); i++, x += area * block) {
            size_t used = used_in(blocked, i);
            turn->to_plain(plain, x, area, block, used);
            plain += used * area;
        }
}

void at_blocks_from_plain(const at_activation *blocked, float *y, const float *plain, size_t count)
{
    size_t area = at_activation_area(blocked), block = blocked->block;
    if (alike(blocked)) {
        memcpy(y, plain, count * at_activation_size(blocked) * sizeof *y);
        return;
    }
    const at_turns *turn = turns_for(blocked);
    for (size_t n = 0; n < count; n++)
        for (size_t i = 0; i < at_activation_blocks(blocked); i++, y += area * block) {
            size_t used = used_in(blocked, i);
            turn->from_plain(y, plain, area, block, used);
            plain += used * area;
        }
}

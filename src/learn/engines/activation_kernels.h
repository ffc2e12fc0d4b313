/* activation_kernels.h - kernels that add up pictures, or put their numbers in another order. */
#ifndef AT_LEARN_ENGINES_ACTIVATION_KERNELS_H
#define AT_LEARN_ENGINES_ACTIVATION_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "learn/engines/activation.h"

/* y (n) <- x (n) + other (n), then clipped at zero when `relu`; y may be any of them. */
void at_sum_forward(float *y, const float *x, const float *other, size_t n, bool relu);

/* Between blocks and the plain order, `count` samples. What fills up the last block is made
 * zero. */
void at_blocks_to_plain(const at_activation *blocked, float *plain, const float *x, size_t count);
void at_blocks_from_plain(const at_activation *blocked, float *y, const float *plain, size_t count);

/* The same for one block of one sample, between (area, block) and (used, area): `used` of its
 * channels are there. */
typedef struct at_turns {
    void (*to_plain)(float *plain, const float *x, size_t area, size_t block, size_t used);
    void (*from_plain)(float *y, const float *plain, size_t area, size_t block, size_t used);
} at_turns;
extern const at_turns at_turns_plain; /* pictures.c: plain loops, any block */
extern const at_turns at_turns_avx2;  /* engine_avx2_turn.c: by hand, blocks of 8 and 16 */

#endif

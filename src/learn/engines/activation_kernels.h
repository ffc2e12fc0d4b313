/* activation_kernels.h - kernels that add activations, or convert between plain and blocked
 * order. */
#ifndef AT_LEARN_ENGINES_ACTIVATION_KERNELS_H
#define AT_LEARN_ENGINES_ACTIVATION_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "learn/engines/activation.h"

/* to (n) <- to + from; the two do not overlap. */
void at_vector_add(float *restrict to, const float *restrict from, size_t n);

/* y (n) <- x (n) + other (n), clipped at zero if `relu`; y may be x or other. */
void at_add_forward(float *y, const float *x, const float *other, size_t n, bool relu);

/* Between blocks and the plain order, `count` samples. Padding of the last block is zeroed. */
void at_blocks_to_plain(const at_activation *blocked, float *plain, const float *x, size_t count);
void at_blocks_from_plain(const at_activation *blocked, float *y, const float *plain, size_t count);

/* The same for one block of one sample, between (area, block) and (used, area); the other channels
 * of the block are padding. */
typedef struct at_reorder_kernels {
    void (*to_plain)(float *plain, const float *x, size_t area, size_t block, size_t used);
    void (*from_plain)(float *y, const float *plain, size_t area, size_t block, size_t used);
} at_reorder_kernels;
extern const at_reorder_kernels at_reorder_plain; /* activation_kernels.c: plain loops, any block */
extern const at_reorder_kernels at_reorder_avx2;  /* avx2_reorder.c: blocks of 8 and 16 */

#endif

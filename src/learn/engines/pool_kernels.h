/* pool_kernels.h - max and average pools: each window becomes one value per channel.
 *
 *     at_window_fit(&pool.window, same, &pool.in, &pool.out, fail);
 *     at_pools_for(&pool)->max_forward(&pool, y, argmax, x, count, masks);
 *
 * All kernels work on `count` samples in blocks of channels (learn/engines/activation.h), keep the
 * padding of the last block zero, and give the same bits for every block and processor.
 */
#ifndef AT_LEARN_ENGINES_POOL_KERNELS_H
#define AT_LEARN_ENGINES_POOL_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "learn/engines/activation.h"
#include "learn/engines/conv_kernels.h"
#include "learn/engines/kernels.h"

/* A window that at_window_fit accepted, and the activations on both sides. */
typedef struct at_pool {
    at_activation in, out;
    at_window     window;
} at_pool;

/* Positions of the largest window of a max pool: they are saved as bytes, and one value is NONE. */
enum { AT_POOL_WINDOW_MAX = 255, AT_POOL_NONE = 255 };

typedef struct at_pool_kernels {
    const char *name;

    /* y <- the largest x in each window, without padding. `argmax`, unless it is NULL, gets the
     * position of the first maximum in its window (row by row) for each element of y, or NONE if
     * `masks` and the maximum is not positive. */
    void (*max_forward)(const at_pool *pool, float *y, uint8_t *argmax, const float *x,
                        size_t count, bool masks);

    /* dx <- for each position, the sum of dy over the windows, in row order, that have it as
     * argmax. */
    void (*max_backward)(const at_pool *pool, float *dx, const float *dy, const uint8_t *argmax,
                         size_t count, at_write write);

    /* y <- the mean of x in each window, without padding. */
    void (*avg_forward)(const at_pool *pool, float *y, const float *x, size_t count);

    /* dx <- for each position, its shares of dy. scratch has at_avgpool_scratch floats. */
    void (*avg_backward)(const at_pool *pool, float *dx, const float *dy, size_t count,
                         at_write write, float *scratch);
} at_pool_kernels;

extern const at_pool_kernels at_pools_plain; /* pool_kernels.c: plain loops, any block */
extern const at_pool_kernels at_pools_avx2;  /* avx2_pool.c: blocks of 8 and 16 */

/* The fastest kernels for this pool on this processor. */
const at_pool_kernels *at_pools_for(const at_pool *pool);

/* Floats of scratch for avg_backward, for any number of samples. */
size_t at_avgpool_scratch(const at_pool *pool);

/* A range along one axis: first .. end-1. */
typedef struct at_axis_range {
    size_t first, end;
} at_axis_range;

/* The rows of a window of `size` rows that are inside the image (of `height` rows), for output row
 * `o`. */
static inline at_axis_range at_axis_range_inside(size_t o, size_t size, size_t stride, size_t top,
                                                 size_t height)
{
    size_t begin = o * stride; /* in the padded image */
    size_t left = height + top - begin;
    return (at_axis_range){.first = begin < top ? top - begin : 0,
                           .end = left < size ? left : size};
}

/* The output rows (of `outs`) whose windows cover row `i` of the image. */
static inline at_axis_range at_axis_range_covering(size_t i, size_t size, size_t stride, size_t top,
                                                   size_t outs)
{
    size_t row = i + top; /* in the padded image */
    size_t last = row / stride + 1;
    return (at_axis_range){.first = row < size ? 0 : (row - size) / stride + 1,
                           .end = last < outs ? last : outs};
}

#endif

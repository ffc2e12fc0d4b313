/* pool_kernels.h - pools: windows that move over pictures, and what is under them becomes one
 * number.
 *
 *     at_window_fit(&pool.window, same, &pool.in, &pool.out, fail);
 *     at_pools_for(&pool)->max_forward(&pool, y, place, x, count, masks);
 *
 * All kernels work on `count` samples in the blocks that the forms name
 * (learn/engines/activation.h), keep what fills up the last block zero, and give the same bits
 * for every block and processor.
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

/* A pool: a window that at_window_fit accepted, and the pictures on both sides. */
typedef struct at_pool {
    at_activation in, out;
    at_window     window;
} at_pool;

/* Places of the largest window of a max pool: they are kept in bytes, and one value is NONE. */
enum { AT_POOL_PLACES_MAX = 255, AT_POOL_NONE = 255 };

typedef struct at_pool_kernels {
    const char *name;

    /* y <- the largest x under each window; padding never wins, the first of equals does. When
     * `place` is not NULL it learns, element by element like y, where under the window that was
     * (row by row), or NONE if `masks` and the largest is not positive. */
    void (*max_forward)(const at_pool *pool, float *y, uint8_t *place, const float *x, size_t count,
                        bool masks);

    /* dx <- the sum of dy over the windows, in row order, whose place this is. */
    void (*max_backward)(const at_pool *pool, float *dx, const float *dy, const uint8_t *place,
                         size_t count, at_write write);

    /* y <- the mean of x under each window; padding does not count. */
    void (*mean_forward)(const at_pool *pool, float *y, const float *x, size_t count);

    /* dx <- the sum of dy's shares. scratch has at_pool_mean_scratch floats. */
    void (*mean_backward)(const at_pool *pool, float *dx, const float *dy, size_t count,
                          at_write write, float *scratch);
} at_pool_kernels;

extern const at_pool_kernels at_pools_plain; /* pool.c: plain loops, any block */
extern const at_pool_kernels at_pools_avx2;  /* engine_avx2_pools.c: by hand, blocks of 8 and 16 */

/* The fastest kernels for this pool on this processor. */
const at_pool_kernels *at_pools_for(const at_pool *pool);

/* Floats of scratch that mean_backward needs, whatever the number of samples. */
size_t at_pool_mean_scratch(const at_pool *pool);

/* The places of one axis that a window or a place of it touches: first .. end-1. */
typedef struct at_axis_range {
    size_t first, end;
} at_axis_range;

/* Which of the window's `size` rows lie in the picture (of `height` rows), at output row `o`. */
static inline at_axis_range at_axis_range_inside(size_t o, size_t size, size_t stride, size_t top,
                                                 size_t height)
{
    size_t begin = o * stride; /* in the padded picture */
    size_t left = height + top - begin;
    return (at_axis_range){.first = begin < top ? top - begin : 0,
                           .end = left < size ? left : size};
}

/* Which output rows (of `outs`) have a window that covers the picture's row `i`. */
static inline at_axis_range at_axis_range_covering(size_t i, size_t size, size_t stride, size_t top,
                                                   size_t outs)
{
    size_t row = i + top; /* in the padded picture */
    size_t last = row / stride + 1;
    return (at_axis_range){.first = row < size ? 0 : (row - size) / stride + 1,
                           .end = last < outs ? last : outs};
}

#endif

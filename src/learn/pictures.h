/* pictures.h - kernels on pictures that multiply no weights: pools, sums, and other orders.
 *
 * Every kernel works on `count` samples in the blocks that the forms name (learn/picture.h), keeps
 * what fills up the last block zero, and gives the same bits for every block and processor.
 */
#ifndef AT_LEARN_PICTURES_H
#define AT_LEARN_PICTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "learn/conv.h"
#include "learn/kernels.h"
#include "learn/picture.h"

/* Works out the window of a pool: the whole picture when its height is 0, the padding when `same`.
 * Then the places it can take: out's channels, height and width. AT_ERR_USAGE with half a sentence
 * about both when it does not fit, or when it could lie in padding alone. */
at_err at_window_fit(at_window *window, bool same, const at_picture_form *in, at_picture_form *out,
                     at_fail *fail);

/* A pool: a window that at_window_fit accepted, and the pictures on both sides. */
typedef struct at_pool {
    at_picture_form in, out;
    at_window       window;
} at_pool;

/* Places of the largest window of a max pool: places are kept in bytes, and one value is NONE. */
enum { AT_POOL_PLACES_MAX = 255, AT_POOL_NONE = 255 };

/* y <- the largest x in each window; padding never wins, the first of equals does. When `place` is
 * not NULL it learns, like y element by element, where in the window that was (row by row), or NONE
 * if `masks` and the largest is not positive. */
void at_pool_max_forward(const at_pool *pool, float *y, uint8_t *place, const float *x,
                         size_t count, bool masks);

/* dx <- the sum of dy over the windows, in row order, whose place this is. */
void at_pool_max_backward(const at_pool *pool, float *dx, const float *dy, const uint8_t *place,
                          size_t count, at_write write);

/* y <- the mean of x over each window; padding does not count. */
void at_pool_mean_forward(const at_pool *pool, float *y, const float *x, size_t count);

/* dx <- the sum of dy's shares. scratch has at_pool_mean_scratch floats. */
void   at_pool_mean_backward(const at_pool *pool, float *dx, const float *dy, size_t count,
                             at_write write, float *scratch);
size_t at_pool_mean_scratch(const at_pool *pool);

/* y (n) <- x (n) + other (n), then clipped at zero when `relu`; y may be any of them. */
void at_sum_forward(float *y, const float *x, const float *other, size_t n, bool relu);

/* Between blocks and the plain order. */
void at_blocks_to_plain(const at_picture_form *blocked, float *plain, const float *x, size_t count);
void at_blocks_from_plain(const at_picture_form *blocked, float *y, const float *plain,
                          size_t count);

/* The places of one axis that a window or a place of it touches: first .. end-1. */
typedef struct at_span {
    size_t first, end;
} at_span;

/* Which of the window's `size` rows lie in the picture (of `height` rows), at output row `o`. */
static inline at_span at_span_inside(size_t o, size_t size, size_t stride, size_t top,
                                     size_t height)
{
    size_t begin = o * stride; /* in the padded picture */
    size_t left = height + top - begin;
    return (at_span){.first = begin < top ? top - begin : 0, .end = left < size ? left : size};
}

/* Which output rows (of `outs`) have a window that covers the picture's row `i`. */
static inline at_span at_span_covering(size_t i, size_t size, size_t stride, size_t top,
                                       size_t outs)
{
    size_t row = i + top; /* in the padded picture */
    size_t last = row / stride + 1;
    return (at_span){.first = row < size ? 0 : (row - size) / stride + 1,
                     .end = last < outs ? last : outs};
}

/* The same by hand for AVX2, blocks of 8 and 16 (pictures_avx2.c). */
bool at_pool_avx2(const at_pool *pool); /* false: use the others */
void at_pool_avx2_max_forward(const at_pool *pool, float *y, uint8_t *place, const float *x,
                              size_t count, bool masks);
void at_pool_avx2_max_backward(const at_pool *pool, float *dx, const float *dy,
                               const uint8_t *place, size_t count, at_write write);

#endif

/* sum.h - sums of gradients over slices of the flat vector.
 *
 * Sums are elementwise and in the order of their sources, so how a vector is cut changes no bit.
 */
#ifndef AT_LEARN_OPTIM_SUM_H
#define AT_LEARN_OPTIM_SUM_H

#include <stddef.h>

/* A sum and three or four other vectors of this many floats fit into 32 kB together. */
enum { AT_SUM_BLOCK = 1024 };

/* A slice of the flat vector. */
typedef struct at_slice {
    size_t first, count;
} at_slice;

/* The part of range at .. at+count-1 that lies in a slice; its count is 0 when they do not
 * overlap. */
at_slice at_slice_cut(size_t at, size_t count, at_slice slice);

/* Size of the block that begins `at` floats into a vector of n. */
size_t at_sum_block_size(size_t at, size_t n);

/* A slice of dst = ((src[0] + src[1]) + src[2]) + ..., in this order; count >= 1. Each source is
 * first multiplied by weights[i] unless weights is NULL. */
void at_sum_slice(float *dst, const float *const *src, const float *weights, size_t count,
                  at_slice slice);

/* The same for elements at .. at+n-1, written to dst[0 .. n-1]. */
void at_sum_block(float *dst, const float *const *src, const float *weights, size_t count,
                  size_t at, size_t n);

/* The index of the first of n floats that is infinite or not a number; n: all are finite. */
size_t at_first_nonfinite(const float *v, size_t n);

/* Sum of the squares of n floats, in double precision and always in the same order. */
double at_sum_squares(const float *v, size_t n);

#endif

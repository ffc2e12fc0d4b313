/* sparse_row.h - inline functions that the loops over sparse rows share. Internal to learn/. */
#ifndef AT_LEARN_SPARSE_SPARSE_ROW_H
#define AT_LEARN_SPARSE_SPARSE_ROW_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "learn/sparse/sparse.h"

enum {
    AT_ROW_LINE = 16,       /* numbers in a cache line */
    AT_ROW_WEIGHTS = 6,     /* prefetch distance of weights, in rows */
    AT_ROW_NUMBERS = 20,    /* the same of indices and values */
    AT_ROW_NEAR = 2,        /* prefetch into the L2 cache: L1 has too few outstanding misses */
    AT_ROW_SMALL = 1 << 13, /* weights that fit the L1 cache */
};

/* Prefetches the numbers of a vector that one of the next rows after row n of the list needs. */
static inline void at_row_prefetch_weights(const at_csr *rows, const at_csr_list *list,
                                           const float *w, uint32_t n)
{
    if (n + AT_ROW_WEIGHTS >= list->count + list->ahead) return;
    uint64_t row = list->row[n + AT_ROW_WEIGHTS], end = rows->starts[row + 1];
    for (uint64_t k = rows->starts[row]; k < end; k++)
        __builtin_prefetch(w + rows->indices[k], 0, AT_ROW_NEAR);
}

/* Prefetches for the rows after row n of the list: farthest ahead the starts of rows, then indices
 * and values, then weights, because each needs the one before. */
static inline void at_row_prefetch(const at_csr *rows, const at_csr_list *list, const float *w,
                                   uint32_t n, bool small)
{
    uint32_t total = list->count + list->ahead;
    if (n + AT_SPARSE_AHEAD < total) {
        uint64_t row = list->row[n + AT_SPARSE_AHEAD];
        __builtin_prefetch(rows->starts + row);
        __builtin_prefetch(rows->labels + row);
    }
    if (n + AT_ROW_NUMBERS < total) {
        uint64_t row = list->row[n + AT_ROW_NUMBERS], end = rows->starts[row + 1];
        for (uint64_t k = rows->starts[row]; k < end; k += AT_ROW_LINE) {
            __builtin_prefetch(rows->indices + k, 0, AT_ROW_NEAR);
            __builtin_prefetch(rows->values + k, 0, AT_ROW_NEAR);
        }
        __builtin_prefetch(rows->indices + end - 1, 0, AT_ROW_NEAR);
        __builtin_prefetch(rows->values + end - 1, 0, AT_ROW_NEAR);
    }
    if (!small) at_row_prefetch_weights(rows, list, w, n);
}

/* Eight accumulators: additions to one would have to wait for each other. */
static inline float at_row_dot(const float *w, const uint32_t *indices, const float *values,
                               uint64_t count)
{
    float    a[8] = {0};
    uint64_t k = 0;
    for (; k + 8 <= count; k += 8)
#pragma GCC unroll 8
        for (uint64_t j = 0; j < 8; j++) a[j] += w[indices[k + j]] * values[k + j];
    for (; k < count; k++) a[k & 7] += w[indices[k]] * values[k];
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

/* e^-|z| to 2 units in the last place; |z| is limited to 80. */
static inline float at_row_exp(float z)
{
    const float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it drops the fraction */
    float       a = z < 0 ? z : -z;
    a = a > -80.0f ? a : -80.0f; /* also for NaN */
    float   n = (a * log2e + round) - round;
    float   f = (a - n * ln2_high) - n * ln2_low;
    int32_t bits = ((int32_t)n + 127) * (1 << 23);
    float   power, f2 = f * f;
    float   low = (1.0f + f) + f2 * (0.5f + f * (1.0f / 6));
    float   high = (1.0f / 24 + f * (1.0f / 120)) + f2 * (1.0f / 720 + f * (1.0f / 5040));
    memcpy(&power, &bits, sizeof power);
    return (low + f2 * f2 * high) * power;
}

/* sigmoid(z) from e = e^-|z|. */
static inline float at_row_sigmoid(float z, float e)
{
    return (z < 0 ? e : 1.0f) / (1.0f + e);
}

/* A sum of losses log(1 + e^-|z|) + max(z, 0) - label * z. Logarithms are taken of products
 * of many factors, each from 1 to 2, of which a double can hold a thousand. */
typedef struct at_row_losses {
    double   sum, product;
    uint32_t factors;
} at_row_losses;

/* Adds the loss of one row with e = e^-|z|. */
static inline void at_row_loss(at_row_losses *losses, float z, float e, uint32_t label)
{
    losses->sum += (double)((z > 0 ? z : 0) - (float)label * z);
    losses->product *= 1.0 + (double)e;
    if (++losses->factors < 1000) return;
    losses->sum += log(losses->product);
    losses->product = 1;
    losses->factors = 0;
}

/* The squared loss of a prediction that is off by this much. */
static inline double at_row_squared_loss(float off)
{
    return 0.5 * (double)off * (double)off;
}

/* The sum of all losses added so far. */
static inline double at_row_losses_sum(const at_row_losses *losses)
{
    return losses->sum + log(losses->product);
}

#endif

#include "learn/sparse/hogwild.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/label.h"
#include "learn/sparse/sparse_row.h"

enum { SAMPLED_ROWS = 1 << 14 }; /* to find hot features */

/* ---- hot features ---------------------------------------------------------------------------- */

/* numbers[feature] <- HOT and its index, or how often it was seen. */
static const uint32_t HOT = 0x80000000u;

static void count_features(at_hot_features *hot, uint32_t *numbers, const at_csr *rows,
                           uint64_t rows_count, uint32_t one_in)
{
    uint64_t sampled = rows_count < SAMPLED_ROWS ? rows_count : SAMPLED_ROWS;
    assert(sampled >= 1);
    for (uint64_t n = 0; n < sampled; n++) {
        uint64_t row = n * (rows_count / sampled);
        for (uint64_t k = rows->starts[row]; k < rows->starts[row + 1]; k++) {
            uint32_t *number = &numbers[rows->indices[k]];
            if (*number & HOT || ++*number <= sampled / one_in || hot->count == AT_HOT_FEATURES_MAX)
                continue;
            *number = HOT | hot->count;
            hot->feature[hot->count++] = rows->indices[k];
        }
    }
}

bool at_hot_features_find(at_hot_features *hot, const at_csr *rows, uint64_t rows_count,
                          uint64_t dimension, uint32_t one_in)
{
    uint64_t  all = rows->starts[rows_count];
    size_t    size;
    uint32_t *numbers = calloc(dimension, sizeof *numbers); /* only touched pages use memory */
    assert(rows_count >= 1 && one_in >= 1);
    *hot = (at_hot_features){.base = at_sparse_floats(dimension)};
    assert(hot->base + AT_HOT_FEATURES_MAX <= UINT32_MAX);
    if (at_size_product(all, sizeof *hot->indices, &size)) hot->indices = malloc(size + 1);
    if (numbers && hot->indices) {
        count_features(hot, numbers, rows, rows_count, one_in);
        for (uint64_t k = rows->starts[0]; k < all; k++) {
            uint32_t feature = rows->indices[k], number = numbers[feature];
            hot->indices[k] = number & HOT ? (uint32_t)hot->base + (number & ~HOT) : feature;
        }
    }
    free(numbers);
    return numbers && hot->indices;
}

void at_hot_features_deinit(at_hot_features *hot)
{
    free(hot->indices);
    *hot = (at_hot_features){0};
}

/* Atomic addition; returns the new sum. */
static float add_shared(float *sum, float more)
{
    float before, after;
    __atomic_load(sum, &before, __ATOMIC_RELAXED);
    do after = before + more;
    while (
        !__atomic_compare_exchange(sum, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return after;
}

static void copy_hot(at_hogwild *h, const float *w)
{
    assert(!h->copied);
    for (uint32_t i = 0; i < h->hot->count; i++) h->own[i] = h->shared[i] = w[h->hot->feature[i]];
    h->copied = true;
}

/* Adds and reads in one step, so that a cache line of another core is fetched once. */
static void merge_hot(at_hogwild *h, float *w)
{
    assert(h->copied);
    for (uint32_t i = 0; i < h->hot->count; i++) {
        float more = h->part * (h->own[i] - h->shared[i]);
        h->own[i] = h->shared[i] = add_shared(w + h->hot->feature[i], more);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Two arrays of weights, the second of which starts with number `base`. Addresses are those of
 * weight 0, which is not in the second array. */
typedef struct two_arrays {
    uintptr_t cold, hot;
    uint32_t  base;
} two_arrays;

/* Branchless: a branch would be unpredictable. */
static inline float *weight_at(const two_arrays *p, uint32_t index)
{
    uintptr_t begin = index < p->base ? p->cold : p->hot;
    return (float *)(begin + index * sizeof(float));
}

/* The state of a loop over rows. */
typedef struct descent {
    at_row_losses losses;
    float         bias, scale, step; /* step: learning rate / scale */
    bool          squared;           /* the loss */
} descent;

/* The step of a row with this dot product: the factor of its values. Also updates bias and loss. */
static inline float row_step(descent *d, float dot, uint32_t label)
{
    float z = d->scale * (d->bias + dot), off;
    if (d->squared) {
        off = z - at_label_real(label);
        d->losses.sum += at_row_squared_loss(off);
    } else {
        float e = at_row_exp(z);
        at_row_loss(&d->losses, z, e, label);
        off = at_row_sigmoid(z, e) - (float)label;
    }
    float factor = d->step * off;
    d->bias -= factor;
    return factor;
}

static inline void row_exclusive(descent *d, float *restrict w, const uint32_t *restrict indices,
                                 const float *restrict values, uint64_t count, uint32_t label)
{
    float factor = row_step(d, at_row_dot(w, indices, values, count), label);
    for (uint64_t k = 0; k < count; k++) w[indices[k]] -= factor * values[k];
}

/* Eight accumulators, as in at_row_dot. */
static inline void row_shared(descent *d, const two_arrays *p, const uint32_t *indices,
                              const float *values, uint64_t count, uint32_t label)
{
    float    a[8] = {0};
    uint64_t k = 0;
    for (; k + 8 <= count; k += 8)
#pragma GCC unroll 8
        for (uint64_t j = 0; j < 8; j++) a[j] += *weight_at(p, indices[k + j]) * values[k + j];
    for (; k < count; k++) a[k & 7] += *weight_at(p, indices[k]) * values[k];
    float dot = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
    float factor = row_step(d, dot, label);
    for (k = 0; k < count; k++) *weight_at(p, indices[k]) -= factor * values[k];
}

static void rows_exclusive(descent *d, const at_csr *rows, const at_csr_list *list, float *w,
                           bool small)
{
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t row = list->row[n], first = rows->starts[row];
        at_row_prefetch(rows, list, w, n, small);
        row_exclusive(d, w, rows->indices + first, rows->values + first,
                      rows->starts[row + 1] - first, rows->labels[row]);
    }
}

static void rows_shared(descent *d, at_hogwild *h, const at_csr *rows, const at_csr_list *list,
                        float *w, bool small)
{
    at_csr renumbered = *rows;
    renumbered.indices = h->hot->indices;
    if (!h->copied) copy_hot(h, w);
    const two_arrays p = {(uintptr_t)w, (uintptr_t)h->own - h->hot->base * sizeof(float),
                          (uint32_t)h->hot->base};
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t row = list->row[n], first = rows->starts[row];
        at_row_prefetch(&renumbered, list, w, n, small);
        row_shared(d, &p, renumbered.indices + first, rows->values + first,
                   rows->starts[row + 1] - first, rows->labels[row]);
    }
    merge_hot(h, w);
}

double at_hogwild_rows(at_hogwild *h, const at_csr *rows, const at_csr_list *list, float *flat,
                       uint64_t dimension)
{
    bool    small = dimension <= AT_ROW_SMALL;
    float   bias = flat[dimension], scale = flat[dimension + 1];
    descent d = {.losses = {.product = 1},
                 .bias = bias,
                 .scale = scale,
                 .squared = rows->loss == AT_SPARSE_SQUARED};
    d.step = *at_sparse_rate(flat, dimension) / scale;
    assert(list->count >= 1);
    if (h->hot)
        rows_shared(&d, h, rows, list, flat, small);
    else
        rows_exclusive(&d, rows, list, flat, small);
    add_shared(flat + dimension, h->part * (d.bias - bias));
    return at_row_losses_sum(&d.losses);
}

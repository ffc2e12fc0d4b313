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

static void copy_hot(at_hot_copies *c, const at_hot_features *hot, const float *vector)
{
    assert(hot->count <= AT_HOT_FEATURES_MAX);
    for (uint32_t i = 0; i < hot->count; i++) c->own[i] = c->shared[i] = vector[hot->feature[i]];
}

/* Adds and reads in one step, so that a cache line of another core is fetched once. */
static void merge_hot(at_hot_copies *c, const at_hot_features *hot, float part, float *vector)
{
    assert(part > 0);
    for (uint32_t i = 0; i < hot->count; i++) {
        float more = part * (c->own[i] - c->shared[i]);
        c->own[i] = c->shared[i] = add_shared(vector + hot->feature[i], more);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A vector in two arrays, the second of which starts with number `base`. Addresses are those of
 * number 0, which is not in the second array. */
typedef struct two_arrays {
    uintptr_t cold, hot;
    uint32_t  base;
} two_arrays;

static two_arrays all_shared(float *vector)
{
    return (two_arrays){(uintptr_t)vector, 0, UINT32_MAX};
}

static two_arrays hot_apart(float *vector, at_hot_copies *copies, uint64_t base)
{
    return (two_arrays){(uintptr_t)vector, (uintptr_t)copies->own - base * sizeof(float),
                        (uint32_t)base};
}

/* Branchless: a branch would be unpredictable. */
static inline float *number_at(const two_arrays *p, uint32_t index)
{
    uintptr_t begin = index < p->base ? p->cold : p->hot;
    return (float *)(begin + index * sizeof(float));
}

/* The state of a loop over rows. */
typedef struct descent {
    at_row_losses losses;
    float         bias, scale, step;   /* step: learning rate / scale */
    float         bias_squares, start; /* AdaGrad */
    bool          squared;             /* the loss */
} descent;

/* The derivative of the loss of a row with this dot product. Adds up the loss. */
static inline float row_off(descent *d, float dot, uint32_t label)
{
    float z = d->scale * (d->bias + dot);
    if (d->squared) {
        float off = z - at_label_real(label);
        d->losses.sum += at_row_squared_loss(off);
        return off;
    }
    float e = at_row_exp(z);
    at_row_loss(&d->losses, z, e, label);
    return at_row_sigmoid(z, e) - (float)label;
}

/* SGD's step of a row: the factor of its values. Also updates the bias. */
static inline float row_step(descent *d, float dot, uint32_t label)
{
    float factor = d->step * row_off(d, dot, label);
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
static inline float dot_apart(const two_arrays *p, const uint32_t *indices, const float *values,
                              uint64_t count)
{
    float    a[8] = {0};
    uint64_t k = 0;
    for (; k + 8 <= count; k += 8)
#pragma GCC unroll 8
        for (uint64_t j = 0; j < 8; j++) a[j] += *number_at(p, indices[k + j]) * values[k + j];
    for (; k < count; k++) a[k & 7] += *number_at(p, indices[k]) * values[k];
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

static inline void row_shared(descent *d, const two_arrays *p, const uint32_t *indices,
                              const float *values, uint64_t count, uint32_t label)
{
    float factor = row_step(d, dot_apart(p, indices, values, count), label);
    for (uint64_t k = 0; k < count; k++) *number_at(p, indices[k]) -= factor * values[k];
}

/* a += g^2, w -= step * g / sqrt(a). */
static inline void adagrad(const descent *d, float *w, float *squares, float g)
{
    *squares += g * g;
    *w -= d->step * g / sqrtf(d->start + *squares);
}

static inline void row_adagrad(descent *d, const two_arrays *p, const two_arrays *q,
                               const uint32_t *indices, const float *values, uint64_t count,
                               uint32_t label)
{
    float off = row_off(d, dot_apart(p, indices, values, count), label);
    for (uint64_t k = 0; k < count; k++)
        adagrad(d, number_at(p, indices[k]), number_at(q, indices[k]), off * values[k]);
    adagrad(d, &d->bias, &d->bias_squares, off);
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
    const two_arrays p = hot_apart(w, &h->weights, h->hot->base);
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t row = list->row[n], first = rows->starts[row];
        at_row_prefetch(rows, list, w, n, small);
        row_shared(d, &p, rows->indices + first, rows->values + first,
                   rows->starts[row + 1] - first, rows->labels[row]);
    }
}

static void rows_adagrad(descent *d, at_hogwild *h, const at_csr *rows, const at_csr_list *list,
                         float *w, bool small)
{
    const two_arrays p = h->hot ? hot_apart(w, &h->weights, h->hot->base) : all_shared(w);
    const two_arrays q =
        h->hot ? hot_apart(h->squares, &h->sums, h->hot->base) : all_shared(h->squares);
    assert(h->start > 0);
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t row = list->row[n], first = rows->starts[row];
        at_row_prefetch(rows, list, w, n, small);
        if (!small) at_row_prefetch_weights(rows, list, h->squares, n);
        row_adagrad(d, &p, &q, rows->indices + first, rows->values + first,
                    rows->starts[row + 1] - first, rows->labels[row]);
    }
}

/* The loop of this optimizer and sharing, between copying and merging what is hot. */
static void rows_of(descent *d, at_hogwild *h, const at_csr *rows, const at_csr_list *list,
                    float *w, bool small)
{
    at_csr renumbered = *rows;
    if (h->hot) renumbered.indices = h->hot->indices;
    if (h->hot && !h->copied) {
        copy_hot(&h->weights, h->hot, w);
        if (h->squares) copy_hot(&h->sums, h->hot, h->squares);
        h->copied = true;
    }
    if (h->squares)
        rows_adagrad(d, h, &renumbered, list, w, small);
    else if (h->hot)
        rows_shared(d, h, &renumbered, list, w, small);
    else
        rows_exclusive(d, &renumbered, list, w, small);
    if (h->hot) merge_hot(&h->weights, h->hot, h->part, w);
    if (h->hot && h->squares) merge_hot(&h->sums, h->hot, h->part, h->squares);
}

double at_hogwild_rows(at_hogwild *h, const at_csr *rows, const at_csr_list *list, float *flat,
                       uint64_t dimension)
{
    float   bias = flat[dimension], scale = flat[dimension + 1];
    float   squares = h->squares ? h->squares[dimension] : 0;
    descent d = {.losses = {.product = 1},
                 .bias = bias,
                 .scale = scale,
                 .bias_squares = squares,
                 .start = h->start,
                 .squared = rows->loss == AT_SPARSE_SQUARED};
    d.step = *at_sparse_rate(flat, dimension) / scale;
    assert(list->count >= 1);
    rows_of(&d, h, rows, list, flat, dimension <= AT_ROW_SMALL);
    add_shared(flat + dimension, h->part * (d.bias - bias));
    if (h->squares) add_shared(h->squares + dimension, h->part * (d.bias_squares - squares));
    return at_row_losses_sum(&d.losses);
}

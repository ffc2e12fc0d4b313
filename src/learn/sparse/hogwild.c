#include "learn/sparse/hogwild.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "learn/sparse/sparse_row.h"

enum { CHOICE = 1 << 14 }; /* rows looked at to find out what is hot */

/* ---- hot features ---------------------------------------------------------------------------- */

/* numbers[feature] <- the feature's own number, or how often it was seen; hot ones are marked. */
static const uint32_t HOT = 0x80000000u;

static void count_features(at_hot *hot, uint32_t *numbers, const at_csr *rows, uint64_t rows_count,
                           uint32_t one_in)
{
    uint64_t chosen = rows_count < CHOICE ? rows_count : CHOICE;
    assert(chosen >= 1);
    for (uint64_t n = 0; n < chosen; n++) {
        uint64_t row = n * (rows_count / chosen);
        for (uint64_t k = rows->starts[row]; k < rows->starts[row + 1]; k++) {
            uint32_t *number = &numbers[rows->indices[k]];
            if (*number & HOT || ++*number <= chosen / one_in || hot->count == AT_HOT_MAX) continue;
            *number = HOT | hot->count;
            hot->feature[hot->count++] = rows->indices[k];
        }
    }
}

bool at_hot_find(at_hot *hot, const at_csr *rows, uint64_t rows_count, uint64_t dimension,
                 uint32_t one_in)
{
    uint64_t  all = rows->starts[rows_count];
    size_t    size;
    uint32_t *numbers = calloc(dimension, sizeof *numbers); /* only touched pages are in memory */
    assert(rows_count >= 1 && one_in >= 1);
    *hot = (at_hot){.base = at_sparse_floats(dimension)};
    assert(hot->base + AT_HOT_MAX <= UINT32_MAX);
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

void at_hot_deinit(at_hot *hot)
{
    free(hot->indices);
    *hot = (at_hot){0};
}

/* Adds without losing what another process adds at the same time; returns the new sum. */
static float add_shared(float *sum, float more)
{
    float before, after;
    __atomic_load(sum, &before, __ATOMIC_RELAXED);
    do after = before + more;
    while (
        !__atomic_compare_exchange(sum, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return after;
}

static void take_hot(at_hogwild *h, const float *w)
{
    assert(!h->taken);
    for (uint32_t i = 0; i < h->hot->count; i++) h->mine[i] = h->seen[i] = w[h->hot->feature[i]];
    h->taken = true;
}

/* Gives and takes at once: a line that another core has is fetched once. */
static void merge_hot(at_hogwild *h, float *w)
{
    assert(h->taken);
    for (uint32_t i = 0; i < h->hot->count; i++) {
        float more = h->part * (h->mine[i] - h->seen[i]);
        h->mine[i] = h->seen[i] = add_shared(w + h->hot->feature[i], more);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Where weight i is: in one of two arrays, of which the second begins at `base`. Addresses are
 * those of a weight 0 that the second array does not have. */
typedef struct places {
    uintptr_t cold, hot;
    uint32_t  base;
} places;

/* Without a branch, because nobody could predict it. */
static inline float *place(const places *p, uint32_t index)
{
    uintptr_t begin = index < p->base ? p->cold : p->hot;
    return (float *)(begin + index * sizeof(float));
}

/* Everything that stays the same or goes on from row to row. */
typedef struct descent {
    at_row_losses losses;
    float         bias, scale, step; /* step: learning rate / scale */
} descent;

/* From the sum of a row to the factor on its values. */
static inline float pull(descent *d, float dot, uint32_t label)
{
    float z = d->scale * (d->bias + dot), e = at_row_exp(z);
    at_row_loss(&d->losses, z, e, label);
    float pull = d->step * (at_row_sigmoid(z, e) - (float)label);
    d->bias -= pull;
    return pull;
}

static inline void row_alone(descent *d, float *restrict w, const uint32_t *restrict indices,
                             const float *restrict values, uint64_t count, uint32_t label)
{
    float factor = pull(d, at_row_dot(w, indices, values, count), label);
    for (uint64_t k = 0; k < count; k++) w[indices[k]] -= factor * values[k];
}

/* In eight chains, as at_row_dot. */
static inline void row_among_others(descent *d, const places *p, const uint32_t *indices,
                                    const float *values, uint64_t count, uint32_t label)
{
    float    a[8] = {0};
    uint64_t k = 0;
    for (; k + 8 <= count; k += 8)
#pragma GCC unroll 8
        for (uint64_t j = 0; j < 8; j++) a[j] += *place(p, indices[k + j]) * values[k + j];
    for (; k < count; k++) a[k & 7] += *place(p, indices[k]) * values[k];
    float dot = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
    float factor = pull(d, dot, label);
    for (k = 0; k < count; k++) *place(p, indices[k]) -= factor * values[k];
}

static void rows_alone(descent *d, const at_csr *rows, const at_csr_list *list, float *w,
                       bool small)
{
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t row = list->row[n], first = rows->starts[row];
        at_row_prefetch(rows, list, w, n, small);
        row_alone(d, w, rows->indices + first, rows->values + first, rows->starts[row + 1] - first,
                  rows->labels[row]);
    }
}

static void rows_among_others(descent *d, at_hogwild *h, const at_csr *rows,
                              const at_csr_list *list, float *w, bool small)
{
    at_csr numbered = *rows;
    numbered.indices = h->hot->indices;
    if (!h->taken) take_hot(h, w);
    const places p = {(uintptr_t)w, (uintptr_t)h->mine - h->hot->base * sizeof(float),
                      (uint32_t)h->hot->base};
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t row = list->row[n], first = rows->starts[row];
        at_row_prefetch(&numbered, list, w, n, small);
        row_among_others(d, &p, numbered.indices + first, rows->values + first,
                         rows->starts[row + 1] - first, rows->labels[row]);
    }
    merge_hot(h, w);
}

double at_hogwild_rows(at_hogwild *h, const at_csr *rows, const at_csr_list *list, float *flat,
                       uint64_t dimension)
{
    bool    small = dimension <= AT_ROW_SMALL;
    float   bias = flat[dimension], scale = flat[dimension + 1];
    descent d = {.losses = {.product = 1}, .bias = bias, .scale = scale};
    d.step = *at_sparse_rate(flat, dimension) / scale;
    assert(list->count >= 1);
    if (h->hot)
        rows_among_others(&d, h, rows, list, flat, small);
    else
        rows_alone(&d, rows, list, flat, small);
    add_shared(flat + dimension, h->part * (d.bias - bias));
    return at_row_losses_sum(&d.losses);
}

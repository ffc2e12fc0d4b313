#include "learn/hogwild.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "learn/sparse_row.h"

enum { CHOICE = 1 << 14 }; /* rows looked at to find out what is hot */

static inline uint32_t slot_of(uint32_t feature)
{
    return feature * 2654435761u >> (32 - AT_HOT_BITS);
}

static void add_hot(at_hot *hot, uint32_t feature)
{
    uint32_t slot = slot_of(feature);
    if (hot->key[slot] != UINT32_MAX) return;
    hot->key[slot] = feature;
    hot->used[hot->count++] = (uint16_t)slot;
}

bool at_hot_find(at_hot *hot, const at_csr *rows, uint64_t rows_count, uint64_t dimension,
                 uint32_t one_in)
{
    uint64_t  chosen = rows_count < CHOICE ? rows_count : CHOICE;
    uint32_t *seen = calloc(dimension, sizeof *seen); /* only touched pages are in memory */
    assert(rows_count >= 1 && one_in >= 1);
    hot->count = 0;
    memset(hot->key, 0xff, sizeof hot->key);
    for (uint64_t n = 0; seen && n < chosen; n++) {
        uint64_t row = n * (rows_count / chosen);
        for (uint64_t k = rows->starts[row]; k < rows->starts[row + 1]; k++) {
            uint32_t feature = rows->indices[k];
            if (++seen[feature] == chosen / one_in + 1) add_hot(hot, feature);
        }
    }
    free(seen);
    return seen != NULL;
}

/* ---- merging --------------------------------------------------------------------------------- */

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

static void take_hot(at_hot *hot, const float *w)
{
    assert(hot->count <= AT_HOT_SLOTS);
    for (uint32_t i = 0; i < hot->count; i++) {
        uint32_t slot = hot->used[i];
        hot->mine[slot] = hot->seen[slot] = w[hot->key[slot]];
    }
}

static void merge_hot(const at_hot *hot, float *w, float part)
{
    assert(hot->count <= AT_HOT_SLOTS);
    for (uint32_t i = 0; i < hot->count; i++) {
        uint32_t slot = hot->used[i];
        float    more = hot->mine[slot] - hot->seen[slot];
        if (more != 0) add_shared(w + hot->key[slot], part * more);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

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

static inline void row_among_others(descent *d, const at_hogwild *h, float *w,
                                    const uint32_t *indices, const float *values, uint64_t count,
                                    uint32_t label)
{
    float **where = h->where;
    float   even = 0, odd = 0;
    for (uint64_t k = 0; k < count; k++) {
        uint32_t feature = indices[k], slot = slot_of(feature);
        where[k] = h->hot->key[slot] == feature ? &h->hot->mine[slot] : &w[feature];
    }
    uint64_t k = 0;
    for (; k + 2 <= count; k += 2) {
        even += *where[k] * values[k];
        odd += *where[k + 1] * values[k + 1];
    }
    if (k < count) even += *where[k] * values[k];
    float factor = pull(d, even + odd, label);
    for (k = 0; k < count; k++) *where[k] -= factor * values[k];
}

double at_hogwild_rows(const at_hogwild *h, const at_csr *rows, const at_csr_list *list,
                       float *flat, uint64_t dimension)
{
    bool    small = dimension <= AT_ROW_SMALL;
    float   bias = flat[dimension], scale = flat[dimension + 1];
    descent d = {.losses = {.product = 1}, .bias = bias, .scale = scale};
    d.step = *at_sparse_rate(flat, dimension) / scale;
    assert(list->count >= 1);
    if (h->hot) take_hot(h->hot, flat);
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t        row = list->row[n], first = rows->starts[row];
        uint64_t        count = rows->starts[row + 1] - first;
        const uint32_t *indices = rows->indices + first;
        const float    *values = rows->values + first;
        at_row_prefetch(rows, list, flat, n, small);
        if (h->hot)
            row_among_others(&d, h, flat, indices, values, count, rows->labels[row]);
        else
            row_alone(&d, flat, indices, values, count, rows->labels[row]);
    }
    if (h->hot) merge_hot(h->hot, flat, h->part);
    add_shared(flat + dimension, h->part * (d.bias - bias));
    return at_row_losses_sum(&d.losses);
}

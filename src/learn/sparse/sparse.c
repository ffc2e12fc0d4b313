#include "learn/sparse/sparse.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/label.h"
#include "learn/sparse/sparse_row.h"

enum { PAIRS_AHEAD = 32 }; /* prefetch distance */

size_t at_sparse_floats(uint64_t dimension)
{
    assert(dimension >= 1);
    return (size_t)dimension + AT_SPARSE_EXTRA;
}

float *at_sparse_scale(float *flat, uint64_t dimension)
{
    assert(flat);
    return flat + dimension + 1;
}

float *at_sparse_rate(float *flat, uint64_t dimension)
{
    assert(flat);
    return flat + dimension + 2;
}

void at_sparse_init(float *flat, uint64_t dimension)
{
    memset(flat, 0, at_sparse_floats(dimension) * sizeof *flat);
    *at_sparse_scale(flat, dimension) = 1;
}

void at_sparse_to_plain(float *plain, const float *flat, uint64_t dimension)
{
    float scale = flat[dimension + 1];
    assert(!(scale <= 0));
    for (uint64_t i = 0; i <= dimension; i++) plain[i] = scale * flat[i];
}

void at_sparse_from_plain(float *flat, const float *plain, uint64_t dimension)
{
    assert(dimension >= 1);
    memcpy(flat, plain, (dimension + 1) * sizeof *flat);
    *at_sparse_scale(flat, dimension) = 1;
    *at_sparse_rate(flat, dimension) = 0;
}

void at_sparse_margins(float *margins, const at_csr *rows, const at_csr_list *list,
                       const float *flat, uint64_t dimension)
{
    float bias = flat[dimension], scale = flat[dimension + 1];
    bool  small = dimension <= AT_ROW_SMALL;
    assert(list->row || list->count == 0);
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t row = list->row[n], first = rows->starts[row];
        at_row_prefetch(rows, list, flat, n, small);
        float dot = at_row_dot(flat, rows->indices + first, rows->values + first,
                               rows->starts[row + 1] - first);
        margins[n] = scale * (bias + dot);
    }
}

static double squared_losses(float *coefs, const at_csr *rows, const at_csr_list *list,
                             const float *margins)
{
    double sum = 0;
    for (uint32_t n = 0; n < list->count; n++) {
        float off = margins[n] - at_label_real(rows->labels[list->row[n]]);
        sum += at_row_squared_loss(off);
        if (coefs) coefs[n] = off;
    }
    return sum;
}

double at_sparse_losses(float *coefs, const at_csr *rows, const at_csr_list *list,
                        const float *margins)
{
    at_row_losses losses = {.product = 1};
    assert(margins || list->count == 0);
    if (rows->loss == AT_SPARSE_SQUARED) return squared_losses(coefs, rows, list, margins);
    for (uint32_t n = 0; n < list->count; n++) {
        uint32_t label = rows->labels[list->row[n]];
        float    z = margins[n], e = at_row_exp(z);
        at_row_loss(&losses, z, e, label);
        if (coefs) coefs[n] = at_row_sigmoid(z, e) - (float)label;
    }
    return at_row_losses_sum(&losses);
}

void at_sparse_emit(at_pairs *pairs, const at_csr *rows, const at_csr_list *list,
                    const float *coefs, uint64_t dimension)
{
    at_pair *restrict pair = pairs->pair + pairs->count;
    float bias = 0;
    assert(dimension < UINT32_MAX);
    for (uint32_t n = 0; n < list->count; n++) {
        uint64_t        row = list->row[n], first = rows->starts[row];
        uint64_t        count = rows->starts[row + 1] - first;
        const uint32_t *indices = rows->indices + first;
        const float    *values = rows->values + first;
        float           coef = coefs[n];
        for (uint64_t k = 0; k < count; k++) pair[k] = (at_pair){indices[k], coef * values[k]};
        pair += count;
        bias += coef;
    }
    *pair++ = (at_pair){(uint32_t)dimension, bias};
    pairs->count = (uint64_t)(pair - pairs->pair);
}

void at_sparse_descend(float *w, const at_pair *pair, uint64_t count, float step)
{
    assert(pair || count == 0);
    uint64_t k = 0;
    for (; k + PAIRS_AHEAD < count; k++) {
        __builtin_prefetch(w + pair[k + PAIRS_AHEAD].index, 1);
        w[pair[k].index] -= step * pair[k].value;
    }
    for (; k < count; k++) w[pair[k].index] -= step * pair[k].value;
}

void at_sparse_collect(at_sparse_cell *cells, const at_pair *pair, uint64_t count, float weight)
{
    assert(pair || count == 0);
    for (uint64_t k = 0; k < count; k++) {
        if (k + PAIRS_AHEAD < count) __builtin_prefetch(cells + pair[k + PAIRS_AHEAD].index, 1);
        cells[pair[k].index].sum += weight * pair[k].value;
    }
}

double at_sparse_norm2(at_sparse_cell *cells, const at_pair *pair, uint64_t count)
{
    double norm2 = 0;
    assert(cells);
    for (uint64_t k = 0; k < count; k++) {
        at_sparse_cell *cell = &cells[pair[k].index];
        norm2 += (double)cell->sum * cell->sum;
        cell->sum = 0; /* a repeated index adds nothing */
    }
    return norm2;
}

void at_sparse_adagrad(float *w, at_sparse_cell *cells, const at_pair *pair, uint64_t count,
                       const at_adagrad_settings *how)
{
    assert(how->start > 0);
    for (uint64_t k = 0; k < count; k++) {
        uint32_t        index = pair[k].index;
        at_sparse_cell *cell = &cells[index];
        if (k + PAIRS_AHEAD < count) __builtin_prefetch(w + pair[k + PAIRS_AHEAD].index, 1);
        if (cell->sum == 0) continue; /* a repeated index */
        float g = how->mean * cell->sum;
        cell->squares += g * g;
        cell->sum = 0;
        w[index] -= how->step * g / sqrtf(how->start + cell->squares);
    }
}

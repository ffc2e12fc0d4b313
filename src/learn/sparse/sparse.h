/* sparse.h - logistic and linear regression on sparse rows: the computing loops.
 *
 *   flat vector   w_0 .. w_(d-1) │ bias │ scale │ rate
 *   meaning       weight i = scale * w_i; the bias is the weight of a feature that every row has
 *   gradient      unmerged (index, value) pairs, row after row, then one for the bias
 *
 * A step touches only the weights of its rows. Weight decay scales all weights equally, so it is
 * one multiplication of `scale`. `rate` is the learning rate for workers that update the vector
 * themselves (hogwild.h); it is unused otherwise.
 *
 * A margin is the linear function of a row; its loss depends on at_csr.loss. Every loop
 * does the same operations in the same order wherever it runs.
 */
#ifndef AT_LEARN_SPARSE_SPARSE_H
#define AT_LEARN_SPARSE_SPARSE_H

#include <stddef.h>
#include <stdint.h>

/* LOGISTIC: labels are 0 and 1, and the sigmoid of the margin is the probability of 1. SQUARED:
 * labels are real (base/label.h), the margin predicts them, the loss is 1/2 (label - margin)^2. */
typedef enum at_sparse_loss { AT_SPARSE_LOGISTIC, AT_SPARSE_SQUARED } at_sparse_loss;

enum { AT_SPARSE_EXTRA = 3 }; /* floats after the weights: bias, scale, rate */

/* How many rows ahead the loops prefetch. */
enum { AT_SPARSE_AHEAD = 36 };

/* Many sparse rows: row r has values[k] at feature indices[k] for k = starts[r] .. starts[r+1]-1.
 * All indices MUST be below the dimension. */
typedef struct at_csr {
    const uint64_t *starts;
    const uint32_t *indices;
    const float    *values;
    const uint32_t *labels;
    at_sparse_loss  loss;
} at_csr;

/* Row numbers, in order: `count` to compute, then `ahead` that come next, to prefetch. */
typedef struct at_csr_list {
    const uint64_t *row; /* (count + ahead) */
    uint32_t        count, ahead;
} at_csr_list;

/* One coordinate of a gradient. Values of equal indices add up. */
typedef struct at_pair {
    uint32_t index;
    float    value;
} at_pair;

/* A gradient, in memory that workers and hub share. */
typedef struct at_pairs {
    uint64_t count;
    at_pair  pair[];
} at_pairs;

/* Floats of the flat vector. */
size_t at_sparse_floats(uint64_t dimension);

/* Weights of zero (scale 1). */
void at_sparse_init(float *flat, uint64_t dimension);

/* Their positions in the flat vector. */
float *at_sparse_scale(float *flat, uint64_t dimension);
float *at_sparse_rate(float *flat, uint64_t dimension);

/* Between the flat vector and the plain weights followed by the bias (dimension + 1 floats). */
void at_sparse_to_plain(float *plain, const float *flat, uint64_t dimension);
void at_sparse_from_plain(float *flat, const float *plain, uint64_t dimension);

/* margins (list->count) <- scale * (bias + sum of w_i x_i) of each row of the list. */
void at_sparse_margins(float *margins, const at_csr *rows, const at_csr_list *list,
                       const float *flat, uint64_t dimension);

/* coefs (count) <- the derivative of the loss with respect to the margin: sigmoid(margin) - label,
 * or margin - label; returns the sum of the losses. `coefs` may be NULL. */
double at_sparse_losses(float *coefs, const at_csr *rows, const at_csr_list *list,
                        const float *margins);

/* Appends the gradient of the rows of the list: coef * x of each row, and for the bias the sum of
 * the coefs. The caller MUST have made room. */
void at_sparse_emit(at_pairs *pairs, const at_csr *rows, const at_csr_list *list,
                    const float *coefs, uint64_t dimension);

/* w_i -= step * value, pair after pair. */
void at_sparse_descend(float *w, const at_pair *pair, uint64_t count, float step);

/* AdaGrad's state of a coordinate: the sum of squares without its start, and the sum of the pairs
 * of a step, 0 between steps. Starts zeroed. */
typedef struct at_sparse_cell {
    float sum, squares;
} at_sparse_cell;

/* cells[index].sum += weight * value. */
void at_sparse_collect(at_sparse_cell *cells, const at_pair *pair, uint64_t count, float weight);

/* The sum of squares of all sums that the pairs refer to; resets them to 0. */
double at_sparse_norm2(at_sparse_cell *cells, const at_pair *pair, uint64_t count);

/* The settings of one AdaGrad step. */
typedef struct at_adagrad_settings {
    float mean;  /* makes the sum a mean: 1 / samples */
    float step;  /* learning rate / scale */
    float start; /* of the sum of squares */
} at_adagrad_settings;

/* AdaGrad with the sums that the pairs refer to, which it resets to 0: with g = mean * sum,
 * a += g^2, w -= step * g / sqrt(a). */
void at_sparse_adagrad(float *w, at_sparse_cell *cells, const at_pair *pair, uint64_t count,
                       const at_adagrad_settings *how);

#endif

/* update_sparse.h - the hub's float side for sparse gradients. Internal to world/.
 *
 * Nothing here is as long as the parameters: a step costs as much as its pairs.
 *
 *   sgd       w_i -= lr * weight * value / samples, pair after pair, in worker order
 *   adagrad   pairs add up first, because the square of the sum counts; then as the dense one
 *   decay     scale *= 1 - lr * decay (learn/sparse/sparse.h); for adagrad, too, so it is
 * decoupled there
 *   hogwild   the workers have changed the weights; only rate and scale are kept up
 */
#ifndef AT_WORLD_CORE_UPDATE_SPARSE_H
#define AT_WORLD_CORE_UPDATE_SPARSE_H

#include "world/core/update.h"

/* Makes the state; `learning` and `w` stay the caller's. */
at_err at_sparse_update_new(const at_learning *learning, float *w, size_t params,
                            uint32_t pieces_max, at_sparse_update **update, at_fail *fail);
void   at_sparse_update_free(at_sparse_update *update); /* accepts NULL */

/* AT_ACT_ADD: notes the pairs of one gradient for the open step; measures it if asked to. */
void at_sparse_update_add(at_sparse_update *update, const at_piece *piece,
                          const at_gradients *gradients, bool measure);

/* The norms of AT_EV_APPLIED for a step that is about to be applied. */
void at_sparse_update_measure(at_sparse_update *update, const at_action *apply,
                              const at_gradients *gradients, double *norm2_step,
                              double *norm2_piece);

/* AT_ACT_APPLY. Returns the learning rate. */
double at_sparse_update_apply(at_sparse_update *update, const at_action *apply,
                              const at_gradients *gradients);

/* adagrad's state, dimension + 1 floats; hogwild has none: zeros. */
void at_sparse_update_squares(const at_sparse_update *update, float *squares);
void at_sparse_update_set_squares(at_sparse_update *update, const float *squares);

#endif

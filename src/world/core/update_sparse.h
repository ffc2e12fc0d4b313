/* update_sparse.h - the hub's updates for sparse gradients. Internal to world/.
 *
 * A step takes time in proportion to its pairs, not to the number of parameters.
 *
 *   sgd       w_i -= lr * weight * value / samples, pair by pair, in worker order
 *   adagrad   adds up the pairs first, because it squares the sum; then as for dense gradients
 *   decay     scale *= 1 - lr * decay (learn/sparse/sparse.h); decoupled, for adagrad too
 *   hogwild   the workers have updated weights and sums; only learning rate and scale are set
 */
#ifndef AT_WORLD_CORE_UPDATE_SPARSE_H
#define AT_WORLD_CORE_UPDATE_SPARSE_H

#include "world/core/update.h"

/* Creates the state; `learning` and `w` are borrowed. */
at_err at_sparse_update_new(const at_learning *learning, float *w, size_t params,
                            uint32_t pieces_max, at_sparse_update **update, at_fail *fail);
void   at_sparse_update_free(at_sparse_update *update); /* accepts NULL */

/* AT_ACT_ADD: appends the pairs of one gradient to the open step; adds up its norm if `measure`. */
void at_sparse_update_add(at_sparse_update *update, const at_piece *piece,
                          const at_gradients *gradients, bool measure);

/* Computes the norms of AT_EV_APPLIED for a step that is about to be applied. */
void at_sparse_update_measure(at_sparse_update *update, const at_action *apply,
                              const at_gradients *gradients, double *norm2_step,
                              double *norm2_piece);

/* AT_ACT_APPLY. Returns the learning rate. */
double at_sparse_update_apply(at_sparse_update *update, const at_action *apply,
                              const at_gradients *gradients);

/* Copies adagrad's state out and in, dimension + 1 floats. */
void at_sparse_update_squares(const at_sparse_update *update, float *squares);
void at_sparse_update_set_squares(at_sparse_update *update, const float *squares);

/* As at_updater_resume. */
void at_sparse_update_resume(at_sparse_update *update, uint64_t samples_used, uint64_t steps);

#endif

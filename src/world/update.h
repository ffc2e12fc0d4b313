/* update.h - the float side of the hub: parameters, optimiser state, learning rate. */
#ifndef AT_WORLD_UPDATE_H
#define AT_WORLD_UPDATE_H

#include "base/err.h"
#include "learn/optim.h"
#include "learn/schedule.h"
#include "step/event.h"

/* Where the gradient of a piece lies; valid until its worker is given new work. */
typedef struct at_gradients {
    void *self;
    const float *(*at)(void *self, at_node worker, uint32_t slot);
} at_gradients;

typedef struct at_updater {
    const at_optim *optim;
    at_schedule     schedule;
    double          weight_decay;
    size_t          params;
    float          *w; /* borrowed: the world says where parameters live */
    float          *state[2];
    float          *folded; /* sum of the gradients added so far in the open step */
    bool            folded_any;
    bool            wants_norms; /* may be set before the first step */
    double          norm2_step;  /* of the last APPLY, see AT_EV_APPLIED */
    double          norm2_piece;
    double          norm2_added; /* sum over the pieces added so far in the open step */
    const float   **sources;     /* scratch of one APPLY */
    float          *weights;
    uint32_t        sources_max;
} at_updater;

/* Reserves states and scratch for steps of up to pieces_max gradients. `w` stays the caller's. */
at_err at_updater_init(at_updater *updater, const at_optim *optim, const at_schedule *schedule,
                       double weight_decay, float *w, size_t params, uint32_t pieces_max,
                       at_fail *fail);
void   at_updater_deinit(at_updater *updater); /* accepts a zeroed one */

/* AT_ACT_ADD: folds one gradient into the open step. */
void at_updater_add(at_updater *updater, const at_piece *piece, const at_gradients *gradients);

/* AT_ACT_APPLY: w <- optimiser(w, sum of weight_i G_i / samples). Returns the learning rate. Leaves
 * the norms that a size rule wants in the updater; asking for them changes no bit of w. */
double at_updater_apply(at_updater *updater, const at_action *apply, const at_gradients *gradients);

#endif

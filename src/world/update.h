/* update.h - the float side of the hub: parameters, optimiser state, learning rate. */
#ifndef AT_WORLD_UPDATE_H
#define AT_WORLD_UPDATE_H

#include "base/err.h"
#include "learn/group.h"
#include "learn/optim.h"
#include "learn/schedule.h"
#include "step/event.h"

/* Where the gradient of a piece lies; valid until its worker is given new work. */
typedef struct at_gradients {
    void *self;
    const float *(*at)(void *self, at_node worker, uint32_t slot);
} at_gradients;

/* How a group of parameters learns. */
typedef struct at_rate {
    at_schedule schedule; /* of its learning rate, its own factor included */
    double      weight_decay;
    float       momentum; /* 0: the optimiser's own */
} at_rate;

/* How a run learns: rate[g] is that of group g of the task, rate[groups] that of all the rest. */
typedef struct at_learning {
    const at_optim   *optim;
    at_rate           rate[AT_GROUPS_MAX + 1];
    uint32_t          groups;
    const at_stretch *stretches; /* of the flat vector; NULL: all of it learns by rate[0] */
    size_t            stretches_count;
    size_t            trained; /* floats before the running statistics */
    bool              sparse;  /* gradients are at_pairs of at most slot_floats floats */
    bool              hogwild; /* workers change the parameters, the hub only counts */
    size_t            slot_floats;
} at_learning;

typedef struct at_sparse_update at_sparse_update; /* update_sparse.h */

typedef struct at_updater {
    const at_learning *learning;
    size_t             params;
    at_stretch_update *updates; /* one a stretch */
    size_t             updates_count;
    double             weight_folded; /* sum of weight x samples of the gradients in `folded` */
    float             *w;             /* borrowed: the world says where parameters live */
    float             *state[2];
    float             *folded; /* sum of the gradients added so far in the open step */
    bool               folded_any;
    bool               wants_norms; /* may be set before the first step */
    double             norm2_step;  /* of the last APPLY, see AT_EV_APPLIED */
    double             norm2_piece;
    double             norm2_added; /* sum over the pieces added so far in the open step */
    const float      **sources;     /* scratch of one APPLY */
    float             *weights;
    uint32_t           sources_max;
    at_sparse_update  *sparse; /* does all of it when gradients are sparse; NULL: dense */
} at_updater;

/* Reserves states and scratch for steps of up to pieces_max gradients. `w` and `learning` stay the
 * caller's. */
at_err at_updater_init(at_updater *updater, const at_learning *learning, float *w, size_t params,
                       uint32_t pieces_max, at_fail *fail);
void   at_updater_deinit(at_updater *updater); /* accepts a zeroed one */

/* AT_ACT_ADD: folds one gradient into the open step. */
void at_updater_add(at_updater *updater, const at_piece *piece, const at_gradients *gradients);

/* AT_ACT_APPLY: w <- optimiser(w, sum of weight_i G_i / samples). Returns the learning rate. Leaves
 * the norms that a size rule wants in the updater; asking for them changes no bit of w. */
double at_updater_apply(at_updater *updater, const at_action *apply, const at_gradients *gradients);

#endif

/* update.h - the float side of the hub: parameters, optimiser state, learning rate. */
#ifndef AT_WORLD_CORE_UPDATE_H
#define AT_WORLD_CORE_UPDATE_H

#include "base/err.h"
#include "learn/net/group.h"
#include "learn/optim/optim.h"
#include "learn/optim/schedule.h"
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
    const at_optim       *optim;
    at_rate               rate[AT_GROUPS_MAX + 1];
    uint32_t              groups;
    const at_param_range *ranges; /* of the flat vector; NULL: all of it learns by rate[0] */
    size_t                ranges_count;
    size_t                trained; /* floats before the running statistics */
    bool                  sparse;  /* gradients are at_pairs of at most slot_floats floats */
    bool                  hogwild; /* workers change the parameters, the hub only counts */
    size_t                slot_floats;
} at_learning;

typedef struct at_sparse_update at_sparse_update; /* update_sparse.h */

/* Who does the slices of an ADD or APPLY. When `run` returns, at_updater_slice MUST have been
 * called for every float once, in whichever processes. The pieces are those of the action. */
typedef struct at_helpers {
    void *self;
    void (*run)(void *self, const at_piece *pieces, uint32_t count);
} at_helpers;

/* What the ADD or APPLY under way does to each float. */
typedef struct at_update_work {
    uint32_t count;    /* of the sources */
    bool     weighted; /* sources count by their weights */
    bool     adds;     /* ADD: the last source joins `folded`; else APPLY */
    bool     folded;   /* the only source of APPLY is `folded` */
    bool     measures; /* leaves norms of blocks */
} at_update_work;

typedef struct at_updater {
    const at_learning *learning;
    size_t             params;
    double             weight_folded; /* sum of weight x samples of the gradients in `folded` */
    bool               folded_any;
    bool               wants_norms; /* may be set before the first step */
    double             norm2_step;  /* of the last APPLY, see AT_EV_APPLIED */
    double             norm2_piece;
    double             norm2_added; /* sum over the pieces added so far in the open step */
    at_helpers         helpers;     /* may be set after init; no `run`: the caller does it all */
    float             *w;           /* borrowed: the world says where parameters live */
    const float       *summed;      /* the sum of a step's gradients, for worlds that add them up on
                                     * their way; may be set after init; NULL: they do not */
    at_sparse_update  *sparse;      /* does all of it when gradients are sparse; NULL: dense */

    /* The rest lies in one room, which other processes may share. */
    void                  *room;
    size_t                 room_size; /* of a shared room, else 0 */
    float                 *state[2];
    float                 *folded; /* sum of the gradients added so far in the open step */
    at_update_work        *work;
    at_param_range_update *updates; /* one a range */
    size_t                 updates_count;
    const float          **sources; /* scratch of one APPLY: */
    float                 *weights;
    double                *shares; /* 1 / samples^2 */
    uint32_t               sources_max;
    double *norm2_sums;   /* of each block of the step's sum, when norms are measured */
    double *norm2_pieces; /* of each block, the sum over the sources, by their shares */
} at_updater;

/* Reserves states and scratch for steps of up to pieces_max gradients. `w` and `learning` stay the
 * caller's. */
at_err at_updater_init(at_updater *updater, const at_learning *learning, float *w, size_t params,
                       uint32_t pieces_max, at_fail *fail);

/* The same in memory that processes forked from now on share. They may keep their copy of *updater
 * and call at_updater_slice when the owner asks them to. Gradients MUST NOT be sparse. */
at_err at_updater_init_shared(at_updater *updater, const at_learning *learning, float *w,
                              size_t params, uint32_t pieces_max, at_fail *fail);
void   at_updater_deinit(at_updater *updater); /* accepts a zeroed one */

/* AT_ACT_ADD: folds one gradient into the open step. */
void at_updater_add(at_updater *updater, const at_piece *piece, const at_gradients *gradients);

/* AT_ACT_APPLY: w <- optimiser(w, sum of weight_i G_i / samples). Returns the learning rate. Leaves
 * the norms that a size rule wants in the updater; asking for them changes no bit of w. */
double at_updater_apply(at_updater *updater, const at_action *apply, const at_gradients *gradients);

enum {
    AT_UPDATER_BLOCK = 1024,   /* slices begin at multiples of so many floats */
    AT_UPDATER_CHANGES_MAX = 3 /* vectors */
};

/* Does a slice of the ADD or APPLY under way: elementwise, so any cutting gives the same bits. */
void at_updater_slice(const at_updater *updater, at_slice slice);

/* Lists the vectors that the ADD or APPLY under way changes in place; returns how many. Whoever
 * puts a slice of them back can have it done once more. */
uint32_t at_updater_changes(const at_updater *updater, float *vectors[AT_UPDATER_CHANGES_MAX]);

/* Copies state vector `which` of the optimiser out and in; of sparse gradients in plain order. */
void at_updater_moment(const at_updater *updater, uint32_t which, float *moment);
void at_updater_set_moment(at_updater *updater, uint32_t which, const float *moment);

#endif

/* update.h - the hub's arithmetic: applies gradients to parameters and optimizer state. */
#ifndef AT_WORLD_CORE_UPDATE_H
#define AT_WORLD_CORE_UPDATE_H

#include "base/err.h"
#include "learn/net/group.h"
#include "learn/optim/optim.h"
#include "learn/optim/schedule.h"
#include "learn/optim/torch_learning.h"
#include "step/plan.h"
#include "world/core/past_params.h"

/* Finds the gradient of a piece; valid until its worker gets a new order. */
typedef struct at_gradients {
    void *self;
    const float *(*at)(void *self, at_node worker, uint32_t slot);
} at_gradients;

/* Hyperparameters of a group of parameters. */
typedef struct at_rate {
    at_schedule schedule; /* learning-rate schedule, including the group's factor */
    double      weight_decay;
    float       momentum; /* 0: the optimizer's default */
} at_rate;

/* Optimizer settings of a run: rate[g] for group g of the task, rate[groups] for all the rest. */
typedef struct at_learning {
    const at_optim          *optim;
    double                   number[AT_OPTIM_NUMBERS_MAX]; /* of the optimizer */
    at_rate                  rate[AT_GROUPS_MAX + 1];
    uint32_t                 groups;
    const at_param_range    *ranges; /* of the flat vector; NULL: rate[0] for all of it */
    size_t                   ranges_count;
    const at_torch_learning *torch;   /* PyTorch's update with its own numbers; NULL: by `optim` */
    double                   clip;    /* largest norm of a step's mean gradient; 0: no limit */
    size_t                   trained; /* floats before the running statistics */
    bool                     sparse;  /* gradients are at_pairs of at most slot_floats floats */
    bool   updates_in_place;          /* workers update the parameters, the hub only counts */
    float *shared_state;              /* .. and this state of the optimizer; NULL: it has none */
    size_t slot_floats;
    /* Workers make local steps with these settings and report changes of parameters, which the
     * outer rule of the plan combines; then `optim` only says which state that rule keeps. Both
     * NULL: workers report gradients. */
    const struct at_learning *inner;
    const at_plan            *outer;
    const at_plan            *stale; /* whose rule corrects old gradients; NULL: none does */
} at_learning;

typedef struct at_sparse_update at_sparse_update; /* update_sparse.h */

/* Runs the slices of an ADD or APPLY, possibly in other processes. When `run` returns,
 * at_updater_slice MUST have been called exactly once for every float. The pieces are those of the
 * action. */
typedef struct at_update_helpers {
    void *self;
    void (*run)(void *self, const at_piece *pieces, uint32_t count);
} at_update_helpers;

/* The operation that the current ADD or APPLY performs on each float. */
typedef struct at_update_work {
    uint32_t count;    /* of the sources */
    bool     weighted; /* multiply the sources by their weights */
    bool     adds;     /* ADD: the last source is added to `folded`; else APPLY */
    bool     folded;   /* the only source of APPLY is `folded` */
    bool     measures; /* compute norms per block */
    bool     gauges;   /* APPLY, first of two passes: only the sum and its norm, for clipping */
    double   divisor;  /* APPLY of changes: makes their mean */
} at_update_work;

typedef struct at_updater {
    const at_learning *learning;
    size_t             params;
    double             weight_folded;  /* sum of weight x samples of the gradients in `folded` */
    double             divisor_folded; /* changes: sum of their weights in the mean */
    bool               folded_any;
    bool               wants_norms; /* may be set before the first step */
    double             norm2_step;  /* of the last APPLY, see AT_EV_APPLIED */
    double             norm2_piece;
    double             norm2_added; /* sum over the pieces added so far in the open step */
    at_update_helpers  helpers; /* may be set after init; no `run`: the caller does all slices */
    float             *w;       /* parameters; borrowed from the world */
    const float       *summed;  /* sum of a step's gradients, for worlds that add them up in
                                     * transit; may be set after init; NULL: they do not */
    at_sparse_update  *sparse;  /* used for sparse gradients; NULL: dense */
    at_past_params     past;    /* for learning->stale */

    /* All vectors below are in one block of memory, which other processes may share. */
    void                  *memory;
    size_t                 shared_size; /* bytes of the block if it is shared, else 0 */
    float                 *state[2];
    float                 *folded; /* sum of the gradients added so far in the open step */
    at_update_work        *work;
    at_param_range_update *updates; /* one per range */
    size_t                 updates_count;
    at_piece              *early; /* gradients of the open step that `folded` is the sum of */
    uint32_t               early_count;
    const float          **sources; /* scratch for one APPLY, with the next two: */
    float                 *weights;
    double                *shares; /* 1 / samples^2 */
    uint32_t               sources_max;
    double *norm2_sums;   /* per block: squared norm of the step's sum, if it is needed */
    double *norm2_pieces; /* per block: squared norms of the sources, added up by their shares */
} at_updater;

/* Allocates optimizer state and scratch for steps of up to pieces_max gradients. `w` and `learning`
 * are borrowed. */
at_err at_updater_init(at_updater *updater, const at_learning *learning, float *w, size_t params,
                       uint32_t pieces_max, at_fail *fail);

/* The same in memory shared with processes forked later, which may call at_updater_slice on their
 * copy of *updater at the owner's request. Gradients MUST NOT be sparse. */
at_err at_updater_init_shared(at_updater *updater, const at_learning *learning, float *w,
                              size_t params, uint32_t pieces_max, at_fail *fail);
void   at_updater_deinit(at_updater *updater); /* accepts a zeroed one */

/* AT_ACT_ADD: adds one gradient to the open step, corrected by learning->stale if it is old. */
void at_updater_add(at_updater *updater, const at_piece *piece, const at_gradients *gradients);

/* While other workers still compute: adds up the first gradients of a step that sums them in the
 * order of its pieces. The next APPLY goes on from there if its first pieces are these, and starts
 * again otherwise, so the bits do not depend on calls. May be called again when more are there. */
void at_updater_sum_early(at_updater *updater, const at_piece *pieces, uint32_t count,
                          const at_gradients *gradients);

/* AT_ACT_APPLY: w <- optimizer(w, sum of weight_i G_i / samples). Returns the learning rate. A mean
 * gradient longer than learning->clip is scaled down to it; then all slices run twice. Computes the
 * norms that size rules use if wants_norms is set, which changes no bit of w. Where workers report
 * changes, the outer rule takes the place of the optimizer, at_plan_change_weight that of the
 * samples, and the learning rate is that of the local steps. */
double at_updater_apply(at_updater *updater, const at_action *apply, const at_gradients *gradients);

enum {
    AT_UPDATER_BLOCK = 1024,   /* slices begin at multiples of this many floats */
    AT_UPDATER_CHANGES_MAX = 3 /* vectors */
};

/* Computes a slice of the current ADD or APPLY. Elementwise: the result does not depend on how the
 * vectors are cut. */
void at_updater_slice(const at_updater *updater, at_slice slice);

/* Floats that a slice of the current APPLY has computed. */
typedef struct at_update_result {
    float *floats;
    size_t count;
} at_update_result;

/* What other processes need of a slice when they do not share memory: its parameters or, while the
 * work gauges, the norms of its blocks, each as two floats. The slice MUST NOT be empty. */
at_update_result at_updater_result(const at_updater *updater, at_slice slice);

/* Lists the vectors that the current ADD or APPLY changes in place; returns how many. A slice whose
 * previous values are restored in all of them can be computed again. */
uint32_t at_updater_changes(const at_updater *updater, float *vectors[AT_UPDATER_CHANGES_MAX]);

/* Copies state vector `which` of the optimizer out and in; for sparse gradients in plain order. */
void at_updater_moment(const at_updater *updater, uint32_t which, float *moment);
void at_updater_set_moment(at_updater *updater, uint32_t which, const float *moment);

/* A run goes on after `steps` steps with so many samples: workers that update the parameters
 * themselves find the learning rate of that moment. */
void at_updater_resume(at_updater *updater, uint64_t samples_used, uint64_t steps);

#endif

/* torch_update.h - PyTorch's optimizers: the same numbers, in the same order of operations.
 *
 * For parameters that belong to a PyTorch program: an update here equals torch.optim's on the mean
 * gradient, bit for bit with PyTorch 1.13 on a processor with FMA instructions, and to the last
 * digit or two with other versions (Adam of 2.x rounds its first moment differently). Where torch
 * computes a constant in Python, it is computed in double precision here; where torch's kernels use
 * a fused multiply-add, fmaf is used.
 *
 * A step is done block by block, while a block is in the cache: sum the gradients of the workers,
 * take the mean, update. It is elementwise, so the vectors may be cut into slices in any way.
 *
 *     at_torch_update update = {.kind = AT_TORCH_ADAM, .params = w, .state = {m, v}, ...};
 *     at_torch_update_slice(&update, (at_slice){0, floats});
 *
 * Numbers that travel in messages must pass at_torch_group_check first.
 *
 * Supported: SGD (momentum, nesterov; dampening 0), Adam and AdamW (amsgrad off), RMSprop
 * (momentum; centered off), Adagrad (lr_decay), all with weight_decay, maximize off.
 */
#ifndef AT_LEARN_OPTIM_TORCH_UPDATE_H
#define AT_LEARN_OPTIM_TORCH_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "learn/optim/sum.h"

/* The class names in torch.optim. */
#define AT_TORCH_MAP(X)   \
    X(SGD, "SGD")         \
    X(ADAM, "Adam")       \
    X(ADAMW, "AdamW")     \
    X(RMSPROP, "RMSprop") \
    X(ADAGRAD, "Adagrad")
typedef enum at_torch_kind {
#define X(id, name) AT_TORCH_##id,
    AT_TORCH_MAP(X)
#undef X
        AT_TORCH_COUNT
} at_torch_kind;
extern const char *const at_torch_name[AT_TORCH_COUNT];

/* The numbers of one entry of param_groups, with torch's names. Those that its optimizer does not
 * have are ignored. */
typedef struct at_torch_group {
    double lr, weight_decay;
    double momentum; /* SGD, RMSprop */
    bool   nesterov; /* SGD */
    double beta1, beta2;
    double alpha;    /* RMSprop */
    double eps;      /* all but SGD */
    double lr_decay; /* Adagrad */
} at_torch_group;

/* A range of the flat vector. Parameters belong to a group; buffers (group -1), such as running
 * statistics, are not trained and become the mean of what the workers sent in their place. */
typedef struct at_torch_range {
    size_t  at, count;
    int32_t group;
} at_torch_range;

/* AT_ERR_FORMAT when torch would refuse one of the numbers, or it is not finite. */
at_err at_torch_group_check(at_torch_kind kind, const at_torch_group *group, at_fail *fail);

/* How many state vectors of the size of the parameters the groups need: 0, 1 or 2. All start at 0,
 * except Adagrad's, which starts at initial_accumulator_value.
 *     SGD: momentum_buffer.  Adam, AdamW: exp_avg, exp_avg_sq.  RMSprop: square_avg,
 *     momentum_buffer.  Adagrad: sum. */
uint32_t at_torch_states(at_torch_kind kind, const at_torch_group *groups, size_t groups_count);

/* One step of the whole vector. Vectors are given from their first element and are borrowed. */
typedef struct at_torch_update {
    at_torch_kind       kind;
    uint64_t            step; /* 1 for the first */
    float              *params;
    float              *state[2];        /* NULL where at_torch_states needs none */
    const float *const *gradients;       /* sums over samples, one vector per worker */
    const float        *weights;         /* of the gradients; NULL: 1 */
    size_t              gradients_count; /* at least 1 */
    float               mean;            /* 1 / samples: makes their sum the mean gradient */
    float               mean_buffers; /* the same for buffers: 1 / (samples times their weights) */
    const at_torch_group *groups;
    const at_torch_range *ranges; /* what no range covers stays unchanged */
    size_t                ranges_count;
} at_torch_update;

/* Updates one slice. Slices that cover the vector once give the bits of the whole update, in any
 * order and in any processes that share the vectors. */
void at_torch_update_slice(const at_torch_update *update, at_slice slice);

/* The constants of one group in one step. */
typedef struct at_torch_step {
    at_torch_kind kind;
    bool          nesterov;
    float         rate;          /* minus the step size */
    float         decay, shrink; /* L2: g + decay w; decoupled: shrink w */
    float         keep1, rest1;  /* momentum, beta1; 1 - beta1 */
    float         keep2, rest2;  /* beta2 or alpha, and its complement */
    float         correction;    /* of Adam's second moment: sqrt(1 - beta2^step) */
    float         eps;
} at_torch_step;

/* They are computed in double precision and rounded once. */
at_torch_step at_torch_step_of(at_torch_kind kind, const at_torch_group *group, uint64_t step);

/* Updates n parameters w of one group with the mean gradient scale * sum. s0 and s1 are their
 * states, NULL where unused. */
void at_torch_update_block(const at_torch_step *step, float *w, const float *sum, float scale,
                           float *s0, float *s1, size_t n);

#endif

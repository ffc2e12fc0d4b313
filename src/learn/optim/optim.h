/* optim.h - optimizers: update parameters with a mean gradient.
 *
 * An optimizer is a row of a table: a name, its numbers, how many state vectors it keeps, and an
 * update that works on any slice of the flat vector (so the hub can sum and update block by block
 * while the block is in the cache). A user writes its name, or its name and numbers: adam:0.9,0.99.
 *
 * momentum, rmsprop, adam and adagrad have TensorFlow's form and defaults (RMSProp: epsilon under
 * the root, initial mean square 1; AdaGrad: initial accumulator 0.1); nesterov and adamw have
 * PyTorch's (torch_update.h). Weight decay is L2 and applied once, here, to the mean gradient:
 * g += decay * w. adamw's is decoupled instead: w -= lr * decay * w.
 *
 * Running statistics (of batch norm) use the same vectors as gradients, but are not trained: they
 * are a moving average of the batch statistics, s <- keep * s + (1 - keep) * mean.
 */
#ifndef AT_LEARN_OPTIM_OPTIM_H
#define AT_LEARN_OPTIM_OPTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "learn/optim/sum.h"

enum { AT_OPTIM_NUMBERS_MAX = 3 };

/* The settings of one update. */
typedef struct at_update {
    float         lr;
    float         weight_decay;
    float         momentum; /* for `momentum` and `nesterov`; 0: the first of their numbers */
    float         scale;    /* the gradient passed in is a SUM; scale = 1 / samples makes it the
                             * mean */
    uint64_t      step;     /* 1 for the first update; used by Adam's bias correction */
    const double *number;   /* AT_OPTIM_NUMBERS_MAX, as from at_optim_parse; NULL: the defaults */
} at_update;

/* A number that a user may set. */
typedef struct at_optim_number {
    const char *name;
    double      normal, least, most;
} at_optim_number;

typedef struct at_optim {
    const char     *name;
    const char     *summary;
    at_optim_number number[AT_OPTIM_NUMBERS_MAX]; /* those that it has come first */
    uint32_t        states;      /* state vectors of the size of the parameters: 0, 1 or 2 */
    float           state_start; /* their initial value */
    double          lr_default;
    /* w (n) <- update of w by the gradient sum g (n); s0, s1 (n) are NULL when unused. */
    void (*update)(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how);
} at_optim;

extern const at_optim *const at_optims[]; /* ends with NULL */

/* By name, or NULL. */
const at_optim *at_optim_find(const char *name);

/* Parses NAME or NAME:NUMBER,.. ; numbers that are not given, or left empty, have their defaults.
 * AT_ERR_USAGE with the nearest name, or with what the number must be. */
at_err at_optim_parse(const char *text, const at_optim **optim, double number[AT_OPTIM_NUMBERS_MAX],
                      at_fail *fail);

/* How to update one range of the flat vector: parameters by the optimizer, or running statistics,
 * which need only how.scale = 1 / samples, where weighted samples count by their weight. */
typedef struct at_param_range_update {
    size_t    at, count;
    bool      statistics;
    float     keep; /* statistics: the weight of the old value */
    at_update how;
} at_param_range_update;

/* One step: sums the gradients src[0..count) in order, block by block, and updates w and the states
 * in place, range by range. Elementwise, so block and range sizes do not change any bit. What no
 * range covers stays unchanged. */
void at_optim_apply_ranges(const at_optim *optim, float *w, float *s0, float *s1,
                           const float *const *src, const float *weights, size_t count,
                           const at_param_range_update *ranges, size_t ranges_count);

/* The same for one slice: slices that cover the vector once give the bits of the whole update, in
 * any order and in any processes that share the vectors. */
void at_optim_apply_slice(const at_optim *optim, float *w, float *s0, float *s1,
                          const float *const *src, const float *weights, size_t count,
                          const at_param_range_update *ranges, size_t ranges_count, at_slice slice);

#endif

/* optim.h - optimizers: update parameters with a mean gradient.
 *
 * An optimizer is a row of a table: a name, the number of state vectors it keeps, and an update
 * that works on any slice of the flat vector (so the hub can sum and update block by block while
 * the block is in the cache). Constants are TensorFlow's: momentum 0.9; RMSProp decay 0.9, momentum
 * 0, epsilon 1e-10, initial mean square 1; Adam 0.9, 0.999, 1e-8; AdaGrad initial accumulator 0.1.
 * Weight decay is L2 and applied once, here, to the mean gradient: g += decay * w.
 *
 * Running statistics (of batch norm) use the same vectors as gradients, but are not trained: they
 * are a moving average of the batch statistics, s <- keep * s + (1 - keep) * mean.
 */
#ifndef AT_LEARN_OPTIM_OPTIM_H
#define AT_LEARN_OPTIM_OPTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The settings of one update. */
typedef struct at_update {
    float    lr;
    float    weight_decay;
    float    momentum; /* for the optimizer `momentum`; 0: its default, 0.9 */
    float    scale;    /* the gradient passed in is a SUM; scale = 1 / samples makes it the mean */
    uint64_t step;     /* 1 for the first update; used by Adam's bias correction */
} at_update;

typedef struct at_optim {
    const char *name;
    const char *summary;
    uint32_t    states;      /* state vectors of the size of the parameters: 0, 1 or 2 */
    float       state_start; /* their initial value */
    double      lr_default;
    /* w (n) <- update of w by the gradient sum g (n); s0, s1 (n) are NULL when unused. */
    void (*update)(float *w, const float *g, float *s0, float *s1, size_t n, const at_update *how);
} at_optim;

extern const at_optim *const at_optims[]; /* ends with NULL */

/* By name, or NULL. */
const at_optim *at_optim_find(const char *name);

/* A slice of the flat vector. */
typedef struct at_slice {
    size_t first, count;
} at_slice;

/* A slice of dst = ((src[0] + src[1]) + src[2]) + ..., in this order; count >= 1. Each source is
 * first multiplied by weights[i] unless weights is NULL. */
void at_sum_slice(float *dst, const float *const *src, const float *weights, size_t count,
                  at_slice slice);

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

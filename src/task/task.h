/* task.h - what is learnt: the only thing a world knows about models and data.
 *
 * Built-in nets on data sets are one task (task_net.c), a user's own callback is another
 * (task_own.c). A task is made before workers are forked and shared by them read-only; `open` gives
 * each process its private scratch memory and engine, so the hub itself never loads one.
 */
#ifndef AT_TASK_TASK_H
#define AT_TASK_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "anytime.h"
#include "base/err.h"
#include "learn/net/model.h"
#include "step/event.h"

/* `open` as everybody at once: one process computes for all workers and evaluates. */
#define AT_NODE_ALL UINT32_MAX

/* Some samples of a worker's walk: positions position .. position+count-1. */
typedef struct at_draw {
    at_node  worker;
    uint64_t position;
    uint32_t count;
    bool     common; /* of the walk that all workers share (--deal global) */
} at_draw;

/* The parameters at which a gradient is taken. They are the same numbers as in the call before
 * exactly when both fields are. */
typedef struct at_point {
    const float *params;
    uint64_t     version;
    /* Sparse tasks read where the hub writes: this is odd while it does, and another number
     * afterwards. NULL: nobody writes. */
    const _Atomic uint64_t *lock;
} at_point;

typedef struct at_task {
    void       *self;
    const char *model, *data; /* names for people */
    /* Built-in nets, for those who take a trained one elsewhere: what it is made of, and what a
     * sample is before it gets there. Otherwise NULL. */
    const at_model *net;
    const char     *sample_form, *prep, *prep_fitted; /* "28x28 bytes"; --prep, as given and with
                                                       * its numbers */
    size_t          params;       /* floats in the flat vector, as it is computed with and sent */
    size_t          trained;      /* how many of them, at its begin, are not running statistics */
    size_t          parameters;   /* for people: without padding and statistics */
    size_t          plain;        /* numbers in the plain vector, as it is hashed and written */
    uint64_t        samples;      /* training samples, one epoch */
    uint64_t        test_samples; /* 0: nothing to evaluate on */
    uint32_t        classes;      /* 0: metrics have no accuracy */
    uint64_t        mults;        /* multiply-adds of one sample, forward; 0: not known */
    uint32_t        threads;      /* that compute in a worker; 0: unknown */
    size_t          scratch_size; /* bytes a process needs to compute, about */
    bool            wants_large_batches; /* batch norm: tiny micro-batches spoil it */
    bool timing_only; /* `params` only says how large messages are: there are no floats */
    /* A gradient is `slot_floats` floats of memory: all parameters or, of a sparse task, at_pairs
     * (learn/sparse/sparse.h) with room for a round's largest rows. */
    bool   sparse;
    size_t slot_floats;
    size_t slot_likely;  /* how much of it is usually touched */
    double sample_bytes; /* sparse: what a sample adds to a message, in both directions */

    /* How the flat vector learns; NULL: all of it alike. */
    const at_param_range  *ranges;
    size_t                 ranges_count;
    const at_param_groups *groups;

    /* Writes the initial parameters. Called once, by the hub. */
    at_err (*init)(void *self, float *params, uint64_t seed, at_fail *fail);
    /* Makes this process ready to compute as `worker` (0: to evaluate; AT_NODE_ALL: as anybody).
     * Called after the fork, also in a child of a process that has opened it for itself. */
    at_err (*open)(void *self, at_node worker, at_fail *fail);
    /* What computes, valid after open: "avx2". */
    const char *(*engine)(void *self);
    /* The SUM of gradients over the drawn samples, written to `gradient` when `first`, added to it
     * otherwise. Returns the sum of losses. */
    double (*gradient)(void *self, float *gradient, bool first, at_point point,
                       const at_draw *draw);
    /* Changes the parameters by the drawn samples, one after the other, while others do the same
     * (topology hogwild). Returns the sum of losses, each before its sample was used. Optional. */
    double (*descend)(void *self, float *params, const at_draw *draw);
    /* Adds the score of test samples first .. first+count-1; begins at 0, and when the last one is
     * among them also what needs all of them at once. */
    void (*score)(void *self, at_score *score, const float *params, uint64_t first, uint64_t count);
    /* Writes what the model takes for the probability of each class of these test samples, (count,
     * classes). Optional. */
    void (*predict)(void *self, float *probabilities, const float *params, uint64_t first,
                    uint64_t count);
    /* Between the flat and the plain vector. Optional: without it they are the same. */
    void (*to_plain)(void *self, float *plain, const float *params);
    void (*from_plain)(void *self, float *params, const float *plain);
    /* Names the tensors in the order of the plain vector, at most `max`; returns how many there
     * are. Optional: without it all parameters are one. */
    size_t (*tensors)(void *self, at_tensor *tensors, size_t max);
    /* Releases the task, in every process that has it. */
    void (*free)(void *self);
} at_task;

/* Bytes of the message that brings parameters for so many samples, or a gradient of them. */
double at_task_message(const at_task *task, uint64_t samples);

#endif

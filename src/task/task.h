/* task.h - a task: model and data, as the worlds see them.
 *
 * A built-in net on a data set is a task (world/tasks/net.c), a user's callback is another
 * (world/tasks/own.c). A task is created before workers are forked and shared with them read-only;
 * `open` gives each process its private scratch memory and engine, so the hub never loads one.
 */
#ifndef AT_TASK_TASK_H
#define AT_TASK_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "anytime.h"
#include "base/err.h"
#include "learn/net/model.h"
#include "learn/optim/torch_learning.h"
#include "step/event.h"

/* For `open`: this process computes for all workers and evaluates. */
#define AT_NODE_ALL UINT32_MAX

/* Samples at positions position .. position+count-1 of a worker's sample sequence. */
typedef struct at_draw {
    at_node  worker;
    uint64_t position;
    uint32_t count;
    bool     common; /* of the sequence that all workers share (--deal global) */
} at_draw;

/* The parameters at which a gradient is computed. They are unchanged since the previous call if and
 * only if both fields are. */
typedef struct at_point {
    const float *params;
    uint64_t     version;
    /* Sparse tasks read the hub's own vector: this sequence lock is odd while the hub writes, and
     * differs afterwards. NULL: the parameters do not change. */
    const _Atomic uint64_t *lock;
} at_point;

typedef struct at_task {
    void       *self;
    const char *model, *data; /* names, for display */
    const char *model_path,
        *data_path;    /* the same from the root (as json_text.h has it); or NULL */
    const char *notes; /* about the data, a line each; NULL: none */
    /* For exporting built-in nets: the model, and the form of a sample before preprocessing.
     * Otherwise NULL. */
    const at_model *net;
    const char     *sample_form, *prep, *prep_fitted; /* "28x28 bytes"; --prep as given, and with
                                                       * fitted numbers */
    const char     *net_text;   /* of a model that is a file NAME.net; NULL: it is none */
    const char     *inputs;     /* what samples these are (data/set/inputs.h); NULL: not built in */
    size_t          params;     /* floats in the flat vector, used to compute and to send */
    size_t          trained;    /* leading floats of it that are not running statistics */
    size_t          parameters; /* for display: without padding and statistics */
    size_t          plain;      /* floats in the plain vector, which is hashed and written */
    uint64_t        samples;    /* training samples, one epoch */
    uint64_t        test_samples;        /* 0: nothing to evaluate on */
    uint32_t        fingerprint;         /* checksum of the training samples; 0: unknown */
    uint32_t        classes;             /* 0: unknown, or regression */
    bool            regression;          /* predicts a real number; its metrics are loss and R2 */
    uint64_t        mults;               /* multiply-adds of one sample, forward; 0: unknown */
    uint32_t        threads;             /* that compute in a worker; 0: unknown */
    double          smoothing;           /* part of each label that is spread over all classes */
    size_t          scratch_size;        /* bytes a process needs to compute, about */
    bool            wants_large_batches; /* has batch norm, which tiny micro-batches spoil */
    bool            timing_only; /* no floats: `params` only determines the size of messages */
    /* A gradient takes `slot_floats` floats: all parameters or, for a sparse task, at_pairs
     * (learn/sparse/sparse.h) with space for a round of the longest rows. */
    bool   sparse;
    size_t slot_floats;
    size_t slot_likely;  /* the part that is usually touched */
    float *shared_state; /* of the optimizer, which `descend` updates too; NULL: none */
    double sample_bytes; /* sparse: bytes that a sample adds to a message, in both directions */

    /* Hyperparameters by range of the flat vector; NULL: the same for all of it. */
    const at_param_range  *ranges;
    size_t                 ranges_count;
    const at_param_groups *groups;

    const at_torch_learning *torch; /* PyTorch's optimizer instead of --optimizer; NULL: none */

    /* Writes the initial parameters. Called once, by the hub. */
    at_err (*init)(void *self, float *params, uint64_t seed, at_fail *fail);
    /* Prepares this process to compute as `worker` (0: to evaluate; AT_NODE_ALL: both, for all).
     * Called after the fork, even if the parent has opened the task for itself. */
    at_err (*open)(void *self, at_node worker, at_fail *fail);
    /* Name of the engine, valid after open: "avx2". */
    const char *(*engine)(void *self);
    /* Computes the SUM of gradients over the drawn samples; writes it to `gradient` if `first`,
     * else adds it. Returns the sum of losses. */
    double (*gradient)(void *self, float *gradient, bool first, at_point point,
                       const at_draw *draw);
    /* Sets who is told how far the next gradients are (learn/net/model.h). Optional. */
    void (*watch)(void *self, at_gradient_watch watch);
    /* Updates the parameters with the drawn samples, one by one, while other workers do the same
     * (mix rule shared). Returns the sum of losses, each before the update. Optional. */
    double (*descend)(void *self, float *params, const at_draw *draw);
    /* Adds the score of test samples first .. first+count-1. Called in order from 0; with the last
     * sample it also sets the metrics over all of them. */
    void (*score)(void *self, at_score *score, const float *params, uint64_t first, uint64_t count);
    /* Writes the predicted class probabilities of these test samples, (count, classes); in
     * regression the predicted values, (count). Optional. */
    void (*predict)(void *self, float *probabilities, const float *params, uint64_t first,
                    uint64_t count);
    /* Convert between the flat and the plain vector. Optional: without them they are the same. */
    void (*to_plain)(void *self, float *plain, const float *params);
    void (*from_plain)(void *self, float *params, const float *plain);
    /* Lists the tensors in the order of the plain vector, at most `max`; returns their number.
     * Optional: without it all parameters are one tensor. */
    size_t (*tensors)(void *self, at_tensor *tensors, size_t max);
    /* Releases the task, in every process that has it. */
    void (*free)(void *self);
} at_task;

/* Bytes of a message with the parameters for `samples` samples, or with their gradient. */
double at_task_message(const at_task *task, uint64_t samples);

#endif

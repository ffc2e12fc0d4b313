/* tasks.h - creates the tasks that a run can train.
 *
 *     net.c      a built-in net, or one from a .net file, on a data set
 *     sparse.c   logistic and linear regression on sparse rows
 *     own.c      a user's callback (anytime.h)
 *     seat.c     a model in other programs, which have taken seats
 *     none.c     no training: only time is simulated
 */
#ifndef AT_WORLD_TASKS_TASKS_H
#define AT_WORLD_TASKS_TASKS_H

#include "anytime.h"
#include "base/err.h"
#include "data/draw/feed.h"
#include "learn/net/model.h"
#include "task/task.h"

typedef struct at_task_net_options {
    const char     *model;
    const char     *net_text;   /* of the file `model`, if it was kept; NULL: it is read */
    const char     *real_model; /* instead of `model` if labels are real; NULL: they may not be */
    at_feed_options feed;       /* source of the samples */
    at_engine       engine;
    uint32_t        micro_batch;
    uint32_t        threads;   /* of the engine, in each worker */
    double          smoothing; /* of the labels, see at_model_smooth_labels */
    const char     *init;      /* file of initial weights; NULL: random */
    uint64_t        eval_size; /* test samples to evaluate on; 0: all */
} at_task_net_options;

/* Whether the model predicts real numbers and so needs data with real-valued labels. */
bool at_task_is_regression(const char *model);

/* --model none:P, for simulation: no training, no floats. */
bool   at_task_is_none(const char *model);
at_err at_task_none(const char *model, at_task *task, at_fail *fail);

typedef struct at_task_own_options {
    at_own_model model;
    const float *start; /* initial parameters; borrowed for the lifetime of the task */
    uint64_t     seed;
    uint32_t     workers;
    bool         shard;
} at_task_own_options;

/* A user's callback, see anytime.h. */
at_err at_task_own(const at_task_own_options *options, at_task *task, at_fail *fail);

struct at_spec;

/* What the seats of a run train (world/seat). Both are borrowed for the lifetime of the task. */
at_err at_task_seat(const struct at_spec *spec, const float *params, at_task *task, at_fail *fail);

/* The input shape of a model for samples of this shape. */
at_shape at_task_shape(at_image_shape image, uint32_t classes);

/* A built-in model on a data set. */
at_err at_task_net(const at_task_net_options *options, at_task *task, at_fail *fail);

typedef struct at_task_sparse_options {
    const char     *model;
    at_feed_options feed; /* source of the samples; without `prep` */
    uint32_t        micro_batch;
    uint32_t        samples_max;      /* of a round */
    bool            updates_in_place; /* workers update the parameters themselves */
    float           squares_start; /* .. with AdaGrad, whose sums of squares start here; 0: SGD */
    const char     *init;          /* file of initial weights; NULL: zeros */
    uint64_t        eval_size;     /* test samples to evaluate on; 0: all */
} at_task_sparse_options;

/* --model sparse-lr: logistic regression on sparse rows of two classes; --model sparse-linear:
 * linear regression on sparse rows with real-valued labels (docs/guide/sparse.md). */
bool   at_task_is_sparse(const char *model);
at_err at_task_sparse(const at_task_sparse_options *options, at_task *task, at_fail *fail);

#endif

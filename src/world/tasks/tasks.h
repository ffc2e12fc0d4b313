/* tasks.h - the tasks there are, and what each is made of.
 *
 *     net.c      a built-in net, or one from a .net file, on a data set
 *     sparse.c   logistic regression on sparse rows
 *     own.c      a user's callback (anytime.h)
 *     none.c     nothing is learnt: only time is simulated
 */
#ifndef AT_WORLD_TASKS_TASKS_H
#define AT_WORLD_TASKS_TASKS_H

#include "anytime.h"
#include "base/err.h"
#include "data/draw/feed.h"
#include "learn/net/model.h"
#include "task/task.h"

/* What a net task is made of. */
typedef struct at_task_net_options {
    const char     *model;
    at_feed_options feed; /* where samples come from */
    at_engine       engine;
    uint32_t        micro_batch;
    uint32_t        threads;   /* of the engine, in each worker */
    const char     *init;      /* file of weights to start from; NULL: random */
    uint64_t        eval_size; /* 0: the whole test set */
} at_task_net_options;

/* --model none:P, for virtual time: nothing is learnt, there are no floats. */
bool   at_task_is_none(const char *model);
at_err at_task_none(const char *model, at_task *task, at_fail *fail);

/* What an own task is made of. */
typedef struct at_task_own_options {
    at_own_model model;
    const float *start; /* initial parameters; borrowed for the life of the task */
    uint64_t     seed;
    uint32_t     workers;
    bool         shard;
} at_task_own_options;

/* A user's callback, see anytime.h. */
at_err at_task_own(const at_task_own_options *options, at_task *task, at_fail *fail);

/* What a model is told about a data set. */
at_shape at_task_shape(at_image_shape picture, uint32_t classes);

/* A built-in model on a data set. */
at_err at_task_net(const at_task_net_options *options, at_task *task, at_fail *fail);

/* What a sparse task is made of. */
typedef struct at_task_sparse_options {
    at_feed_options feed; /* where samples come from; no `prep` */
    uint32_t        micro_batch;
    uint32_t        samples_max; /* of a round */
    bool            hogwild;     /* workers will change the parameters themselves */
    const char     *init;        /* file of weights to start from; NULL: zeros */
    uint64_t        eval_size;   /* 0: the whole test set */
} at_task_sparse_options;

/* --model sparse-lr: logistic regression on sparse rows of two classes (docs/guide/sparse.md). */
bool   at_task_is_sparse(const char *model);
at_err at_task_sparse(const at_task_sparse_options *options, at_task *task, at_fail *fail);

#endif

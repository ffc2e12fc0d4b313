/* checkpoint.h - a file that a run can go on from: RUN/checkpoint/step-000000000042.safetensors.
 *
 *     the parameters, under the names that model.safetensors has     F32, plain order
 *     anytime.optimizer.0, .1    states of the optimiser             F32, plain order
 *     anytime.seal               SHA-256 of everything before it     U8
 *
 * Everything else a run needs (where the hub was, what was counted, all options) is JSON in the
 * file's metadata. Any reader of safetensors can take the parameters; we take nothing from a file
 * whose seal does not fit, so one that was cut or changed by a single bit is never used.
 */
#ifndef AT_MODEL_IO_CHECKPOINT_H
#define AT_MODEL_IO_CHECKPOINT_H

#include <jansson.h>

#include "base/err.h"
#include "step/snapshot.h"
#include "task/task.h"

enum { AT_CHECKPOINT_MOMENTS = 2, AT_CHECKPOINTS_KEPT = 2 };

/* What is written. Vectors are flat, but for the optimiser's state of a sparse task, which is plain
 * as it is. */
typedef struct at_checkpoint_parts {
    const at_task *task;
    uint64_t       step;
    const float   *params;
    const float   *moment[AT_CHECKPOINT_MOMENTS];
    uint32_t       moments;
    const char    *state; /* JSON, see at_checkpoint.state */
} at_checkpoint_parts;

/* Writes one into the folder of checkpoints, whole or not at all, and then removes all but the
 * newest AT_CHECKPOINTS_KEPT. */
at_err at_checkpoint_write(const char *folder, const at_checkpoint_parts *parts, at_fail *fail);

/* One that was read. */
typedef struct at_checkpoint {
    char         path[4096];
    json_t      *state;    /* {"image": .., "tally": .., "options": .., "optimizer": ..} */
    at_snapshot *snapshot; /* where the hub was */
    char damaged[512]; /* sentence about newer ones that could not be used; "": there are none */
} at_checkpoint;

/* Finds the newest one of a run that is sound. AT_ERR_MISSING when there is none at all,
 * AT_ERR_FORMAT when all are damaged. */
at_err at_checkpoint_open(const char *run, at_checkpoint *checkpoint, at_fail *fail);
void   at_checkpoint_close(at_checkpoint *checkpoint); /* accepts a zeroed one */

/* Is this file whole and unchanged? AT_ERR_FORMAT tells what is wrong. */
at_err at_checkpoint_check(const char *path, at_fail *fail);

/* Its vectors, as at_checkpoint_parts has them. AT_ERR_FORMAT when they are of another model. */
at_err at_checkpoint_params(const at_checkpoint *checkpoint, const at_task *task, float *params,
                            at_fail *fail);
at_err at_checkpoint_moment(const at_checkpoint *checkpoint, const at_task *task, uint32_t which,
                            float *moment, at_fail *fail);

#endif

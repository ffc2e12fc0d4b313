/* checkpoint.h - files to resume a run from: RUN/checkpoint/step-000000000042.safetensors.
 *
 *     the parameters, under their names in model.safetensors         F32, plain order
 *     anytime.optimizer.0, .1    optimizer state                     F32, plain order
 *     anytime.worker.W.V         under gossip: vector V of worker W  F32, plain order
 *     anytime.state.NAME         what programs keep at their hub     F32
 *     anytime.seal               SHA-256 of all bytes before it      U8
 *
 * The rest of the state of a run (hub, counters, all options) is JSON in the file's metadata,
 * beside `checkpoint_format`: it changes when that state does, and no other format is resumed. Any
 * safetensors reader can read the parameters; anytime uses no file whose checksum does not match,
 * so a truncated file or one with a single flipped bit is never loaded.
 */
#ifndef AT_MODEL_IO_CHECKPOINT_H
#define AT_MODEL_IO_CHECKPOINT_H

#include <jansson.h>

#include "base/err.h"
#include "model_io/safetensors.h"
#include "step/snapshot.h"
#include "task/task.h"

enum {
    AT_CHECKPOINT_FORMAT = 2,
    AT_CHECKPOINT_MOMENTS = 2,
    AT_CHECKPOINTS_KEPT = 2,
    AT_CHECKPOINT_NAME_SIZE = 200
};

/* A named vector: state of programs that have their own optimizer or buffers. */
typedef struct at_checkpoint_vector {
    char     name[AT_CHECKPOINT_NAME_SIZE]; /* UTF-8 */
    float   *values;
    uint64_t count;
} at_checkpoint_vector;

/* Contents of a checkpoint to write. Vectors are in flat order, except the optimizer state of a
 * sparse task, which is in plain order. */
typedef struct at_checkpoint_parts {
    const at_task *task;
    uint64_t       step;
    const float   *params;
    const float   *moment[AT_CHECKPOINT_MOMENTS];
    uint32_t       moments;
    const float   *own; /* vectors of all workers, each of task->params floats, see gossip.h */
    uint32_t       own_workers, own_vectors; /* 0: none; vectors per worker */
    const char    *state;                    /* JSON, see at_checkpoint.state */

    const at_checkpoint_vector *extra; /* beside the parameters */
    uint32_t                    extras;
} at_checkpoint_parts;

/* Writes a checkpoint atomically, then removes all but the newest AT_CHECKPOINTS_KEPT, and those of
 * later steps. */
at_err at_checkpoint_write(const char *folder, const at_checkpoint_parts *parts, at_fail *fail);

/* A checkpoint that was read. */
typedef struct at_checkpoint {
    char         path[4096];
    json_t      *state;        /* image, tally, options, optimizer, data */
    at_snapshot *snapshot;     /* state of the hub */
    char         damaged[512]; /* sentence about newer, damaged checkpoints; "": none */
} at_checkpoint;

/* Opens the newest valid checkpoint of a run. AT_ERR_MISSING when the run has none, AT_ERR_FORMAT
 * when all are damaged. */
at_err at_checkpoint_open(const char *run, at_checkpoint *checkpoint, at_fail *fail);
void   at_checkpoint_close(at_checkpoint *checkpoint); /* accepts a zeroed one */

/* Reads the vectors, in the order of at_checkpoint_parts. AT_ERR_FORMAT for another model. */
at_err at_checkpoint_params(const at_checkpoint *checkpoint, const at_task *task, float *params,
                            at_fail *fail);
at_err at_checkpoint_moment(const at_checkpoint *checkpoint, const at_task *task, uint32_t which,
                            float *moment, at_fail *fail);

/* Of workers that own their parameters: how many there are in the checkpoint, with how many vectors
 * each (0: none), and one of them. Workers count from 0. */
void at_checkpoint_own_count(const at_checkpoint *checkpoint, uint32_t *workers, uint32_t *vectors);
at_err at_checkpoint_own(const at_checkpoint *checkpoint, const at_task *task, uint32_t worker,
                         uint32_t which, float *vector, at_fail *fail);

/* Calls `take` with each vector beside the parameters, until it fails. */
at_err at_checkpoint_extras(const at_checkpoint *checkpoint, at_safetensors_take take, void *self,
                            at_fail *fail);

#endif

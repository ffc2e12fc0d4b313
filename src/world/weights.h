/* weights.h - trained parameters as a safetensors file, which most frameworks read.
 *
 *     size of the header (8 bytes, lowest first)   header (JSON)   float32, lowest byte first
 *
 * The header names every tensor with its shape and its place. The tensors follow each other in the
 * order of the flat vector, so the bytes behind the header are what params_hash covers.
 */
#ifndef AT_WORLD_WEIGHTS_H
#define AT_WORLD_WEIGHTS_H

#include "base/err.h"
#include "world/task.h"

/* Writes the parameters of a task, atomically. */
at_err at_weights_write(const char *path, const at_task *task, const float *params, at_fail *fail);

#endif

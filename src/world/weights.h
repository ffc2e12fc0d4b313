/* weights.h - trained parameters as a safetensors file, which most frameworks read.
 *
 *     size of the header (8 bytes, lowest first)   header (JSON)   float32, lowest byte first
 *
 * The header names every tensor with its shape and its place. The tensors follow each other in the
 * order of the plain vector, so the bytes behind the header are what params_hash covers.
 */
#ifndef AT_WORLD_WEIGHTS_H
#define AT_WORLD_WEIGHTS_H

#include "base/err.h"
#include "world/task.h"

/* Writes the plain vector of a task, atomically. */
at_err at_weights_write(const char *path, const at_task *task, const float *plain, at_fail *fail);

/* Reads these tensors from a file (or from model.safetensors in the folder of a run) into the plain
 * vector. The file may hold others, too. AT_ERR_MISSING; AT_ERR_FORMAT when it is damaged, or when
 * a tensor is not in it, has another shape or is not of 32-bit floats. */
at_err at_weights_read(const char *path, const at_tensor *tensors, size_t count, float *plain,
                       at_fail *fail);

#endif

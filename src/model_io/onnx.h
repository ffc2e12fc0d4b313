/* onnx.h - a trained net as an ONNX file, which other programs evaluate without anytime.
 *
 *     input (batch, channels, height, width) or (batch, numbers)  ──►  logits (batch, classes)
 *
 * The graph computes what a scored model computes: dropout is gone, batch norm goes by its running
 * statistics. Input is a prepared sample; how samples are prepared is told in the model's
 * doc_string and metadata, because it is not part of the net. Weights keep their names.
 */
#ifndef AT_MODEL_IO_ONNX_H
#define AT_MODEL_IO_ONNX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "task/task.h"

enum { AT_ONNX_OPSET = 13 }; /* every operator that is used has the same meaning from 11 to 14 */

/* The file in new memory (*bytes, to be freed by the caller). `plain` is the plain vector of the
 * task. AT_ERR_USAGE for what ONNX cannot hold: tasks that are no nets, layers that have no
 * operator, more than 2 GB. */
at_err at_onnx_pack(const at_task *task, const float *plain, unsigned char **bytes, size_t *size,
                    at_fail *fail);

/* The same into a file, atomically. */
at_err at_onnx_write(const char *path, const at_task *task, const float *plain, at_fail *fail);

#endif

/* onnx.h - writes a trained net as an ONNX file, for use without anytime.
 *
 *     input (batch, channels, height, width) or (batch, numbers)  ──►  logits (batch, classes)
 *                                                            or prediction (batch, 1), regression
 *
 * The graph is that of evaluation: no dropout, batch norm with running statistics. The input is a
 * preprocessed sample; preprocessing is not part of the net and is described in the doc_string and
 * metadata of the model. Weights keep their names.
 */
#ifndef AT_MODEL_IO_ONNX_H
#define AT_MODEL_IO_ONNX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "task/task.h"

enum { AT_ONNX_OPSET = 13 }; /* all operators used here mean the same in versions 11 to 14 */

/* Packs the file into new memory (*bytes, to be freed by the caller). `plain` is the plain vector
 * of the task. AT_ERR_USAGE for what ONNX cannot represent: tasks that are not nets, layers without
 * an operator, more than 2 GB. */
at_err at_onnx_pack(const at_task *task, const float *plain, unsigned char **bytes, size_t *size,
                    at_fail *fail);

/* The same into a file, atomically. */
at_err at_onnx_write(const char *path, const at_task *task, const float *plain, at_fail *fail);

#endif

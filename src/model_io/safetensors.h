/* safetensors.h - reads and writes trained parameters as safetensors, a format that most frameworks
 * read.
 *
 *     size of the header (8 bytes, little-endian) │ header (JSON) │ float32, little-endian
 *
 * The header lists every tensor with its shape and offsets. The tensors are in the order of the
 * plain vector, so the bytes after the header are those that params_hash covers.
 */
#ifndef AT_MODEL_IO_SAFETENSORS_H
#define AT_MODEL_IO_SAFETENSORS_H

#include <jansson.h>

#include "base/atomic_file.h"
#include "base/err.h"
#include "task/task.h"

/* The metadata of a model: a JSON object of strings. */
json_t *at_safetensors_metadata(const at_task *task);

/* Lists the tensors of a task, at most `max`; a task that names none has one tensor. */
size_t at_safetensors_tensors(const at_task *task, at_tensor *tensors, size_t max);

/* The header of a file with the plain vector of a task; the caller may append tensors. */
json_t *at_safetensors_header(const at_task *task);

/* Starts a file with that header; the data of its tensors must follow. */
at_err at_safetensors_begin(const char *path, const json_t *header, bool sealed,
                            at_atomic_file *draft, at_fail *fail);

/* Writes the plain vector of a task, atomically. */
at_err at_safetensors_write(const char *path, const at_task *task, const float *plain,
                            at_fail *fail);

enum { AT_SAFETENSORS_PATH_SIZE = 4096, AT_SAFETENSORS_NOTE_SIZE = 512 };

/* Finds the newest weights. If `source` is a file, that file; if it is a run folder, its newest
 * valid checkpoint or model.safetensors, whichever is newer. *note mentions a damaged checkpoint
 * that was skipped, or is empty; it may be NULL. AT_ERR_MISSING, AT_ERR_FORMAT. */
at_err at_safetensors_newest(const char *source, char path[AT_SAFETENSORS_PATH_SIZE],
                             char note[AT_SAFETENSORS_NOTE_SIZE], at_fail *fail);

/* Reads these tensors from a file (or the newest one of a run folder) into the plain vector. The
 * file may contain others. AT_ERR_MISSING; AT_ERR_FORMAT when the file is damaged, or a tensor is
 * missing, has another shape or is not of 32-bit floats. */
at_err at_safetensors_read(const char *path, const at_tensor *tensors, size_t count, float *plain,
                           at_fail *fail);

/* Takes a vector from a file. */
typedef at_err (*at_safetensors_take)(void *self, const char *name, const float *values,
                                      size_t count, at_fail *fail);
/* Calls `take` for each tensor whose name begins with `prefix`, with the rest of its name, until it
 * fails. They must be vectors of 32-bit floats. Errors as above. */
at_err at_safetensors_each(const char *path, const char *prefix, at_safetensors_take take,
                           void *self, at_fail *fail);

/* Metadata of a file; empty strings where it has none. */
typedef struct at_safetensors_about {
    char model[4096], data[8192], prep[1 << 16];
} at_safetensors_about;

/* Reads only the metadata. Errors as above. */
at_err at_safetensors_about_read(const char *path, at_safetensors_about *about, at_fail *fail);

/* Reads one string of the metadata, to be freed by the caller; NULL when it is missing. */
at_err at_safetensors_text(const char *path, const char *key, char **text, at_fail *fail);

#endif

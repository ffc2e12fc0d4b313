/* safetensors.h - trained parameters as a safetensors file, which most frameworks read.
 *
 *     size of the header (8 bytes, lowest first)   header (JSON)   float32, lowest byte first
 *
 * The header names every tensor with its shape and its place. The tensors follow each other in the
 * order of the plain vector, so the bytes behind the header are what params_hash covers.
 */
#ifndef AT_MODEL_IO_SAFETENSORS_H
#define AT_MODEL_IO_SAFETENSORS_H

#include <jansson.h>

#include "base/atomic_file.h"
#include "base/err.h"
#include "task/task.h"

/* What a file says about the model it holds: an object of texts. */
json_t *at_safetensors_metadata(const at_task *task);

/* Names the tensors of a task, at most `max`; one that does not name its own has one. */
size_t at_safetensors_tensors(const at_task *task, at_tensor *tensors, size_t max);

/* The header of a file with the plain vector of a task; tensors may be added behind it. */
json_t *at_safetensors_header(const at_task *task);

/* Begins a file with that header; the floats of its tensors follow. */
at_err at_safetensors_begin(const char *path, const json_t *header, bool sealed,
                            at_atomic_file *draft, at_fail *fail);

/* Writes the plain vector of a task, atomically. */
at_err at_safetensors_write(const char *path, const at_task *task, const float *plain,
                            at_fail *fail);

enum { AT_SAFETENSORS_PATH_SIZE = 4096, AT_SAFETENSORS_NOTE_SIZE = 512 };

/* Where the newest weights are. A file is its own; of the folder of a run it is the newest sound
 * checkpoint or model.safetensors, whichever is newer. *note tells of a checkpoint that could not
 * be used, or is empty; it may be NULL. AT_ERR_MISSING, AT_ERR_FORMAT. */
at_err at_safetensors_newest(const char *source, char path[AT_SAFETENSORS_PATH_SIZE],
                             char note[AT_SAFETENSORS_NOTE_SIZE], at_fail *fail);

/* Reads these tensors from a file (or from the newest one of a run's folder) into the plain vector.
 * The file may hold others, too. AT_ERR_MISSING; AT_ERR_FORMAT when it is damaged, or when a tensor
 * is not in it, has another shape or is not of 32-bit floats. */
at_err at_safetensors_read(const char *path, const at_tensor *tensors, size_t count, float *plain,
                           at_fail *fail);

/* What a file says about itself; empty where it does not. */
typedef struct at_safetensors_about {
    char model[512], data[1024], prep[1024];
} at_safetensors_about;

/* Reads only that. Errors as above. */
at_err at_safetensors_about_read(const char *path, at_safetensors_about *about, at_fail *fail);

/* One text of what the file says about itself, to be freed; NULL when it does not have it. */
at_err at_safetensors_text(const char *path, const char *key, char **text, at_fail *fail);

#endif

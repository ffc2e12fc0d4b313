/* inputs.h - what samples a model reads, as text that is kept with its weights.
 *
 *     train set ──► at_inputs_text ──► model.safetensors ──► at_inputs_open ──► predict, export
 *
 * So a trained model reads other samples, and is exported, without the data it was trained on.
 */
#ifndef AT_DATA_SET_INPUTS_H
#define AT_DATA_SET_INPUTS_H

#include <jansson.h>

#include "data/set/dataset.h"

/* Describes the samples of a set: shape, classes with their names, the columns of a table. To be
 * freed by the caller; NULL when memory runs out. */
char *at_inputs_text(const at_dataset *set);

/* Makes a set of one row of zeros with that description, with which others can be matched. The
 * strings of its read options are NULL. AT_ERR_FORMAT when the text is damaged. */
at_err at_inputs_open(const char *text, at_dataset **set, at_fail *fail);

/* The names of the classes in such a text, by number: an array of texts
 * (json_text.h), or NULL. */
json_t *at_inputs_class_names(const char *text);

#endif

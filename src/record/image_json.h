/* image_json.h - an image of the hub (step/image.h) as JSON: in checkpoints, and at the head of the
 * event log of a run that was resumed. */
#ifndef AT_RECORD_IMAGE_JSON_H
#define AT_RECORD_IMAGE_JSON_H

#include <jansson.h>

#include "base/err.h"
#include "step/image.h"

/* The object; NULL when there is no memory. */
json_t *at_image_json(const at_image *image);

/* Reads one into new memory, to be given to free(). AT_ERR_FORMAT when it cannot be one. */
at_err at_image_read(const json_t *object, at_image **image, at_fail *fail);

#endif

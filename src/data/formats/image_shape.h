/* image_shape.h - derives image shapes from array dimensions, for the format readers.
 *
 * Rows of a set store images channel by channel. Files often interleave channels (RGBRGB...);
 * readers deinterleave them once.
 */
#ifndef AT_DATA_FORMATS_IMAGE_SHAPE_H
#define AT_DATA_FORMATS_IMAGE_SHAPE_H

#include <stdbool.h>

#include "data/set/store.h"

/* The image shape of a sample with these extents (dims of them, without the number of samples):
 *   h,w        one channel
 *   h,w,c      c is 1 or 3; *interleaved becomes true when c is 3
 *   c,h,w      c is 1 or 3, and the last extent is neither
 * Anything else is a feature vector: all zero. */
at_image_shape at_image_shape_of(const uint32_t *extent, uint32_t dims, bool *interleaved);

/* The image shape of a vector of n = 3*r*r numbers with r at least 8, else all zero. */
at_image_shape at_image_shape_of_vector(uint32_t n);

/* to (channel, height, width) <- from (height, width, channel). */
void at_image_shape_deinterleave(void *restrict to, const void *restrict from, at_element element,
                                 at_image_shape shape);

/* Deinterleaves all rows of a reserved set and sets its shape. */
at_err at_image_shape_deinterleave_rows(at_dataset *set, at_image_shape shape, at_fail *fail);

#endif

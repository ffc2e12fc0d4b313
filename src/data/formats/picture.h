/* picture.h - from the shape of an array to pictures, for the readers of formats.
 *
 * A row is a picture channel by channel. Files often hold pixels with their channels side by side
 * (RGBRGB...); those are brought into our order once, when they are read.
 */
#ifndef AT_DATA_FORMATS_PICTURE_H
#define AT_DATA_FORMATS_PICTURE_H

#include <stdbool.h>

#include "data/set/store.h"

/* The picture that a sample of these extents (dims of them, without the number of samples) is:
 *   h,w        one channel
 *   h,w,c      c is 1 or 3; *interleaved becomes true when c is 3
 *   c,h,w      c is 1 or 3, and the last extent is neither
 * Everything else is a line of numbers: all zero. */
at_image_shape at_image_shape_of(const uint32_t *extent, uint32_t dims, bool *interleaved);

/* The picture of a row of n = 3*r*r numbers with r at least 8, else all zero. */
at_image_shape at_image_shape_of_line(uint32_t n);

/* to (channel, height, width) <- from (height, width, channel), both of elements of that kind. */
void at_image_shape_split(void *restrict to, const void *restrict from, at_element element,
                          at_image_shape picture);

/* Brings all rows of a reserved set into our order and sets its picture. */
at_err at_image_shape_split_rows(at_dataset *set, at_image_shape picture, at_fail *fail);

#endif

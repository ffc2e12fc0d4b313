/* image.h - decodes JPEG and PNG files.
 *
 * Files are not trusted: sizes are limited before memory is reserved, and damage is an error.
 */
#ifndef AT_DATA_FORMATS_IMAGE_H
#define AT_DATA_FORMATS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* LIMIT: larger images are refused; 64 million pixels take 192 MB. */
enum { AT_IMAGE_PIXELS_MAX = 64 << 20, AT_IMAGE_SIDE_MAX = 1 << 20 };

/* Interleaved red, green and blue bytes, line by line. Grayscale images have three equal channels;
 * transparency is dropped. */
typedef struct at_image {
    unsigned char *pixels; /* (height, width, 3), owned */
    uint32_t       width, height;
} at_image;

/* One file in memory; `name` is for messages. */
typedef struct at_image_file {
    const char          *name;
    const unsigned char *bytes;
    size_t               size;
} at_image_file;

/* True when the bytes begin with the magic of a JPEG or PNG file. */
bool at_image_has_magic(const unsigned char *bytes, size_t size);

/* Decodes. `side_min` (0: full size) allows a decoder to return a smaller version with no side
 * shorter than that. AT_ERR_FORMAT names the file and what is wrong. MUST be deinited after
 * success. */
at_err at_image_decode(const at_image_file *file, uint32_t side_min, at_image *image,
                       at_fail *fail);

/* Releases the pixels; accepts a zeroed image. */
void at_image_deinit(at_image *image);

/* How an image of any size is made square. */
typedef enum at_image_fit_mode {
    AT_IMAGE_RESIZE, /* scales the shorter side to fit and crops the longer one to its center */
    AT_IMAGE_CROP    /* takes the center without scaling; small images get black borders */
} at_image_fit_mode;

/* row (3, side, side) <- the image. AT_ERR_FAILED: out of memory. */
at_err at_image_fit(const at_image *image, at_image_fit_mode mode, uint32_t side,
                    unsigned char *row, at_fail *fail);

/* The size of the image in a file. Errors as below. */
at_err at_image_size(const char *path, uint32_t *width, uint32_t *height, at_fail *fail);

/* Reads a file into a row (3, side, side). AT_ERR_MISSING, AT_ERR_IO, and errors as above. */
at_err at_image_read(const char *path, at_image_fit_mode mode, uint32_t side, unsigned char *row,
                     at_fail *fail);

#endif

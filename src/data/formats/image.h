/* image.h - the pixels of a JPEG or PNG file.
 *
 * Files come from anywhere: sizes are limited before memory is reserved, damage is an error with a
 * sentence, and nothing is printed.
 */
#ifndef AT_DATA_FORMATS_IMAGE_H
#define AT_DATA_FORMATS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* LIMIT: an image of more pixels is refused; 64 million take 192 MB. */
enum { AT_IMAGE_PIXELS_MAX = 64 << 20, AT_IMAGE_SIDE_MAX = 1 << 20 };

/* Red, green, blue byte by byte, line by line. Grey images have three equal channels, transparency
 * is dropped. */
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

/* True when the bytes begin like a JPEG or PNG file. */
bool at_image_is(const unsigned char *bytes, size_t size);

/* Decodes. `side_wanted` (0: full size) lets a decoder give a smaller version, as long as no side
 * gets shorter than that. AT_ERR_FORMAT names the file and what is wrong. MUST be deinited after
 * success. */
at_err at_image_decode(const at_image_file *file, uint32_t side_wanted, at_image *image,
                       at_fail *fail);

/* Releases the pixels; accepts a zeroed image. */
void at_image_deinit(at_image *image);

/* How an image of any size becomes a square one. */
typedef enum at_image_fitting {
    AT_IMAGE_RESIZE, /* scaled until the shorter side fits; of the longer one the middle is taken */
    AT_IMAGE_CROP    /* the middle at its own size; what is too small gets black borders */
} at_image_fitting;

/* row (3, side, side) <- the image. AT_ERR_FAILED: memory. */
at_err at_image_fit(const at_image *image, at_image_fitting how, uint32_t side, unsigned char *row,
                    at_fail *fail);

/* ---- for the decoders ------------------------------------------------------------------------ */

/* AT_ERR_FORMAT for an image that is empty or too large. */
at_err at_image_check(const at_image_file *file, uint64_t width, uint64_t height, at_fail *fail);

/* Checks, then reserves pixels; also AT_ERR_FAILED. */
at_err at_image_reserve(at_image *image, const at_image_file *file, uint64_t width, uint64_t height,
                        at_fail *fail);

/* The decoder's own words about what is wrong near a position. */
at_err at_image_damaged(const at_image_file *file, size_t position, const char *words,
                        at_fail *fail);

/* Decode into a zeroed image; on failure the caller deinits it. */
at_err at_image_decode_png(const at_image_file *file, at_image *image, at_fail *fail);
at_err at_image_decode_jpeg(const at_image_file *file, uint32_t side_wanted, at_image *image,
                            at_fail *fail);

#endif

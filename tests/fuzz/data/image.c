/* Fuzz target: any file as a JPEG or PNG image. The first byte is the target size. */
#include "data/formats/image.h"

#include "../memory.h"

#include <stdlib.h>
#include <string.h>

/* Large PNG files are valid input, but slow. */
enum { PIXELS_MAX = 1 << 18 };

static uint64_t big_endian(const uint8_t *p)
{
    return (uint64_t)p[0] << 24 | (uint64_t)p[1] << 16 | (uint64_t)p[2] << 8 | p[3];
}

static bool is_large_png(const at_image_file *file)
{
    return file->size >= 24 && memcmp(file->bytes, "\x89PNG", 4) == 0 &&
           big_endian(file->bytes + 16) * big_endian(file->bytes + 20) > PIXELS_MAX;
}

static void check_image(const at_image *image, uint32_t side)
{
    at_fail        fail = {0};
    unsigned char *row = malloc((size_t)3 * side * side);
    assert(row && image->pixels);
    for (int mode = AT_IMAGE_RESIZE; mode <= AT_IMAGE_CROP; mode++)
        check_error(at_image_fit(image, (at_image_fit_mode)mode, side, row, &fail), &fail);
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    at_image_file file = {"image", data + 1, size - 1};
    uint32_t      side = 1 + data[0] % 32;
    at_image      image;
    at_fail       fail = {0};
    if (is_large_png(&file)) return 0;
    at_err err = at_image_decode(&file, side, &image, &fail);
    check_error(err, &fail);
    if (!err) check_image(&image, side);
    assert(!err || !image.pixels);
    if (!err) at_image_deinit(&image);
    return 0;
}

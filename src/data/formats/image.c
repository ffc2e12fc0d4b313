#include "data/formats/image.h"

#include "base/arena.h"
#include "data/files/sniff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HINT "make the file again, or move it out of the folder"

static bool is_png(const unsigned char *bytes, size_t size)
{
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_jpeg(const unsigned char *bytes, size_t size)
{
    return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

bool at_image_is(const unsigned char *bytes, size_t size)
{
    assert(bytes || size == 0);
    return is_png(bytes, size) || is_jpeg(bytes, size);
}

at_err at_image_check(const at_image_file *file, uint64_t width, uint64_t height, at_fail *fail)
{
    assert(file->name);
    if (width > 0 && height > 0 && width <= AT_IMAGE_SIDE_MAX && height <= AT_IMAGE_SIDE_MAX &&
        width * height <= AT_IMAGE_PIXELS_MAX)
        return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "make it smaller, or move it out of the folder",
                       "%s: the header says %llu x %llu pixels (1 to %d million make sense)",
                       file->name, (unsigned long long)width, (unsigned long long)height,
                       AT_IMAGE_PIXELS_MAX >> 20);
}

at_err at_image_reserve(at_image *image, const at_image_file *file, uint64_t width, uint64_t height,
                        at_fail *fail)
{
    assert(!image->pixels);
    size_t size;
    AT_TRY(at_image_check(file, width, height, fail));
    if (at_size_product((size_t)(width * height), 3, &size)) image->pixels = malloc(size);
    if (!image->pixels) return at_fail_memory_for(fail, "for the pixels of %s", file->name);
    image->width = (uint32_t)width;
    image->height = (uint32_t)height;
    return AT_OK;
}

at_err at_image_damaged(const at_image_file *file, size_t position, const char *words,
                        at_fail *fail)
{
    assert(words);
    assert(position <= file->size);
    return at_fail_set(fail, AT_ERR_FORMAT, HINT, "%s: is damaged near byte %zu of %zu (%s)",
                       file->name, position, file->size, words);
}

static at_err not_an_image(const at_image_file *file, at_fail *fail)
{
    if (file->size == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, HINT, "%s: the file is empty (0 bytes)",
                           file->name);
    at_sniffed sniffed =
        at_sniff(file->bytes, file->size < AT_SNIFF_SIZE ? file->size : AT_SNIFF_SIZE);
    return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                       "%s: is no JPEG or PNG image, at byte 0 it is %s", file->name, sniffed.what);
}

at_err at_image_decode(const at_image_file *file, uint32_t side_wanted, at_image *image,
                       at_fail *fail)
{
    assert(file->name && image);
    *image = (at_image){0};
    at_err err;
    if (is_png(file->bytes, file->size))
        err = at_image_decode_png(file, image, fail);
    else if (is_jpeg(file->bytes, file->size))
        err = at_image_decode_jpeg(file, side_wanted, image, fail);
    else
        err = not_an_image(file, fail);
    if (err) at_image_deinit(image);
    return err;
}

void at_image_deinit(at_image *image)
{
    assert(image);
    free(image->pixels);
    *image = (at_image){0};
}

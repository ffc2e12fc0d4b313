#include "data/formats/image.h"

#include "data/files/folder.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* LIMIT: larger files are refused. */
static const uint64_t FILE_SIZE_MAX = 256 << 20;

static at_err read_bytes(FILE *file, const char *path, uint64_t size, unsigned char **bytes,
                         at_fail *fail)
{
    if (size > FILE_SIZE_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, "make it smaller, or move it out of the folder",
                           "%s: %llu bytes (at most %llu are allowed)", path,
                           (unsigned long long)size, (unsigned long long)FILE_SIZE_MAX);
    *bytes = malloc((size_t)size + 1);
    if (!*bytes) return at_fail_memory_for(fail, "for %s", path);
    if (fread(*bytes, 1, (size_t)size, file) == size) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "check the disk", "%s: cannot read all %llu bytes", path,
                       (unsigned long long)size);
}

static at_err decode(const at_image_file *file, at_image_fit_mode mode, uint32_t side,
                     unsigned char *row, at_fail *fail)
{
    at_image image;
    AT_TRY(at_image_decode(file, mode == AT_IMAGE_RESIZE ? side : 0, &image, fail));
    at_err err = at_image_fit(&image, mode, side, row, fail);
    at_image_deinit(&image);
    return err;
}

static at_err read_file(const char *path, unsigned char **bytes, size_t *size, at_fail *fail)
{
    FILE    *file;
    uint64_t found;
    *bytes = NULL;
    AT_TRY(at_folder_open_file(path, &file, &found, fail));
    at_err err = read_bytes(file, path, found, bytes, fail);
    fclose(file);
    *size = (size_t)found;
    return err;
}

at_err at_image_size(const char *path, uint32_t *width, uint32_t *height, at_fail *fail)
{
    unsigned char *bytes;
    size_t         size;
    at_image       image;
    at_err         err = read_file(path, &bytes, &size, fail);
    at_image_file  content = {path, bytes, size};
    if (!err) err = at_image_decode(&content, 0, &image, fail);
    free(bytes);
    if (err) return err;
    *width = image.width;
    *height = image.height;
    at_image_deinit(&image);
    return AT_OK;
}

at_err at_image_read(const char *path, at_image_fit_mode mode, uint32_t side, unsigned char *row,
                     at_fail *fail)
{
    assert(path && row);
    unsigned char *bytes;
    size_t         size;
    at_err         err = read_file(path, &bytes, &size, fail);
    at_image_file  content = {path, bytes, size};
    if (!err) err = decode(&content, mode, side, row, fail);
    free(bytes);
    return err;
}

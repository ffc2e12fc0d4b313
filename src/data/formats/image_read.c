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

at_err at_image_read(const char *path, at_image_fit_mode mode, uint32_t side, unsigned char *row,
                     at_fail *fail)
{
    assert(path && row);
    FILE          *file;
    uint64_t       size;
    unsigned char *bytes = NULL;
    AT_TRY(at_folder_open_file(path, &file, &size, fail));
    at_err err = read_bytes(file, path, size, &bytes, fail);
    fclose(file);
    at_image_file content = {path, bytes, (size_t)size};
    if (!err) err = decode(&content, mode, side, row, fail);
    free(bytes);
    return err;
}

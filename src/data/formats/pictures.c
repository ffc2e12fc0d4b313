/* Single JPEG and PNG files without labels, for predictions:
 *
 *     pictures:FILE           one path per line; a folder stands for the pictures in it
 *
 * They get the shape of the samples that the model was trained on: scaled or cropped to its size as
 * pictures in folders are, and converted to grayscale if it has one channel.
 */
#include "data/formats/format.h"

#include "data/files/folder.h"
#include "data/formats/image.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_picture_name(const char *name)
{
    return name[0] != '.' && (at_folder_ends(name, ".jpg") || at_folder_ends(name, ".jpeg") ||
                              at_folder_ends(name, ".png"));
}

/* Only FORMAT:PATH: without labels it is no data set to train on. */
static bool claims(const char *name)
{
    (void)name;
    return false;
}

static at_err add_path(at_file_list *files, const char *path, at_fail *fail)
{
    if (!at_folder_is(path)) return at_file_list_add(files, path, fail);
    size_t before = files->count;
    AT_TRY(at_folder_list(path, is_picture_name, files, fail));
    if (files->count > before) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING, NULL, "%s: no JPEG or PNG files in the folder", path);
}

static at_err list_files(const char *name, at_split split, at_file_list *files, at_fail *fail)
{
    (void)split;
    char  *copy = strdup(name), *rest = copy, *path;
    at_err err = copy ? AT_OK : at_fail_memory(fail);
    while (!err && (path = strsep(&rest, "\n"))) err = add_path(files, path, fail);
    free(copy);
    return err;
}

/* The same weights as --prep grey. */
static void to_grey(unsigned char *to, const unsigned char *rgb, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++) {
        float grey = 0.299f * (float)rgb[i] + 0.587f * (float)rgb[pixels + i] +
                     0.114f * (float)rgb[2 * pixels + i];
        to[i] = (unsigned char)lrintf(grey);
    }
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    at_image_shape    p = set->read_options.shape;
    at_image_fit_mode mode = set->read_options.crop ? AT_IMAGE_CROP : AT_IMAGE_RESIZE;
    at_file_list      files = {0};
    if ((p.channels != 1 && p.channels != 3) || p.height != p.width || p.height == 1)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "give the samples in the format of the training data",
                           "the model reads samples of %ux%ux%u (channels x height x width), and "
                           "pictures become 3xNxN or 1xNxN",
                           p.channels, p.height, p.width);
    size_t         pixels = (size_t)p.height * p.width;
    unsigned char *rgb = malloc(3 * pixels);
    at_err         err = rgb ? list_files(name, split, &files, fail) : at_fail_memory(fail);
    if (!err)
        err = at_store_reserve(set, files.count, (uint32_t)pixels * p.channels, AT_ELEMENT_BYTE,
                               fail);
    for (size_t i = 0; !err && i < files.count; i++) {
        unsigned char *row = set->rows + i * set->row_size;
        err = at_image_read(files.path[i], mode, p.height, p.channels == 3 ? row : rgb, fail);
        if (!err && p.channels == 1) to_grey(row, rgb, pixels);
    }
    set->shape = p;
    set->classes = set->read_options.real_labels ? 0 : 1;
    snprintf(set->form, sizeof set->form, "%ux%ux%u bytes", p.channels, p.height, p.width);
    at_file_list_deinit(&files);
    free(rgb);
    return err;
}

const at_format at_format_pictures = {
    .name = "pictures",
    .summary = "single JPEG and PNG files without labels, for `anytime predict`",
    .claims = claims,
    .load = load,
    .source_files = list_files,
};

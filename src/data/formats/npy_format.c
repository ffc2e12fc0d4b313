/* Data sets of NumPy arrays:
 *
 *     FILE.npz                one or both splits, by the names of its arrays
 *     SAMPLES.npy,LABELS.npy  one split
 *     FOLDER                  train*.npz and test*.npz or val*.npz (downsampled ImageNet), or .npy
 *                             files with the same names as in an archive
 *
 * Classes count from 0, or from 1 when no training label is 0, as in downsampled ImageNet.
 */
#include "data/formats/format.h"

#include "base/text.h"
#include "data/files/folder.h"
#include "data/files/source.h"
#include "data/files/zip.h"
#include "data/formats/image_shape.h"
#include "data/formats/npy.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* An array of samples and its labels: in one .npz archive, or two .npy files. */
typedef struct array_pair {
    char   path[2][PATH_MAX]; /* of samples and labels; equal for an archive */
    char   inside[2][32];     /* names in the archive; empty: an .npy file */
    at_npy samples, labels;   /* headers, filled by measure_pair */
} array_pair;

/* The usual names of samples and labels in an archive or, as files, in a folder. The test names are
 * NULL when there is only one split. The last row has no names. */
typedef struct array_names {
    const char *samples[2], *labels[2]; /* by at_split, with .npy */
} array_names;

enum { SAMPLES, LABELS };

static const array_names usual_names[] = {
    {{"x_train.npy", "x_test.npy"}, {"y_train.npy", "y_test.npy"}},
    {{"train_images.npy", "test_images.npy"}, {"train_labels.npy", "test_labels.npy"}},
    {{"data.npy", NULL}, {"labels.npy", NULL}},
    {{"images.npy", NULL}, {"labels.npy", NULL}},
    {{"x.npy", NULL}, {"y.npy", NULL}},
    {{"X.npy", NULL}, {"y.npy", NULL}},
    {{NULL, NULL}, {NULL, NULL}},
};

static const array_names *names_in_zip(const at_zip *zip)
{
    assert(zip);
    for (const array_names *row = usual_names; row->samples[0]; row++)
        if (at_zip_has(zip, row->samples[0]) && at_zip_has(zip, row->labels[0])) return row;
    return NULL;
}

/* An array while it is read. */
typedef struct opened {
    at_npy_input input;
    at_source   *source;
    at_zip      *zip;
    char         name[PATH_MAX + 40];
} opened;

static at_err read_source(void *self, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    return at_source_read(self, bytes, size, got, fail);
}

static at_err read_zip(void *self, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    return at_zip_read(self, bytes, size, got, fail);
}

static at_err open_inside(opened *array, const char *path, const char *inside, at_fail *fail)
{
    assert(inside[0]);
    AT_TRY(at_zip_open(path, &array->zip, fail));
    if (!at_zip_has(array->zip, inside))
        return at_fail_set(
            fail, AT_ERR_FORMAT,
            "save it with numpy.savez(x=..., y=...), or data=, labels=, or x_train=, ...",
            "%s: no array %s in the archive", path, inside);
    array->input = (at_npy_input){.read = read_zip, .self = array->zip, .name = array->name};
    return at_zip_enter(array->zip, inside, &array->input.size_max, fail);
}

static at_err open_file(opened *array, const char *path, at_fail *fail)
{
    AT_TRY(at_source_open(path, &array->source, fail));
    array->input = (at_npy_input){.read = read_source,
                                  .self = array->source,
                                  .name = array->name,
                                  .size_max = at_source_size_max(array->source)};
    return AT_OK;
}

/* Opens one of the two and reads its header. To be closed even after an error. */
static at_err open_array(opened *array, const array_pair *arrays, int which, at_npy *npy,
                         at_fail *fail)
{
    assert(which == SAMPLES || which == LABELS);
    const char *path = arrays->path[which], *inside = arrays->inside[which];
    *array = (opened){0};
    at_text name = at_text_in(array->name, sizeof array->name);
    at_text_add(&name, inside[0] ? "%s: %s" : "%s", path, inside);
    AT_TRY(inside[0] ? open_inside(array, path, inside, fail) : open_file(array, path, fail));
    return at_npy_read_header(npy, &array->input, fail);
}

static void close_array(opened *array)
{
    at_source_close(array->source);
    at_zip_close(array->zip);
}

/* Checks that nothing follows the elements, and the checksum. */
static at_err end_array(opened *array, at_fail *fail)
{
    assert(!array->source != !array->zip);
    return array->source ? at_source_end(array->source, fail) : at_zip_leave(array->zip, fail);
}

static at_err measure_one(const array_pair *arrays, int which, at_npy *npy, at_fail *fail)
{
    opened array;
    at_err err = open_array(&array, arrays, which, npy, fail);
    close_array(&array);
    return err;
}

/* Reads both headers and compares the numbers of samples. */
static at_err measure_pair(array_pair *arrays, at_fail *fail)
{
    AT_TRY(measure_one(arrays, SAMPLES, &arrays->samples, fail));
    AT_TRY(measure_one(arrays, LABELS, &arrays->labels, fail));
    if (arrays->labels.features != 1)
        return at_fail_set(
            fail, AT_ERR_FORMAT, "check that samples and labels are not swapped",
            "%s: labels have %u numbers each instead of 1 (in the header before byte %llu)",
            arrays->path[LABELS], arrays->labels.features,
            (unsigned long long)arrays->labels.header_size);
    if (arrays->samples.count == arrays->labels.count) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use two arrays of the same data set",
                       "%s: %llu samples, but %llu labels in %s", arrays->path[SAMPLES],
                       (unsigned long long)arrays->samples.count,
                       (unsigned long long)arrays->labels.count, arrays->path[LABELS]);
}

/* A file may have changed since it was measured. */
static at_err check_same(const at_npy *now, const at_npy *before, const char *path, at_fail *fail)
{
    if (now->type == before->type && now->count == before->count &&
        now->features == before->features)
        return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                       "%s: changed while it was read", path);
}

typedef at_err read_elements(const at_npy *npy, at_npy_input *input, void *to, at_fail *fail);

static at_err read_samples(const at_npy *npy, at_npy_input *input, void *to, at_fail *fail)
{
    return at_npy_read_rows(npy, input, to, fail);
}

static at_err read_classes(const at_npy *npy, at_npy_input *input, void *to, at_fail *fail)
{
    return at_npy_read_labels(npy, input, to, fail);
}

static at_err read_reals(const at_npy *npy, at_npy_input *input, void *to, at_fail *fail)
{
    return at_npy_read_real_labels(npy, input, to, fail);
}

/* Reads an array of a measured pair: samples (count, features), or labels (count). */
static at_err read_array(const array_pair *arrays, int which, read_elements *read, void *to,
                         at_fail *fail)
{
    const at_npy *before = which == SAMPLES ? &arrays->samples : &arrays->labels;
    opened        array;
    at_npy        npy;
    assert(before->count > 0);
    at_err err = open_array(&array, arrays, which, &npy, fail);
    if (!err) err = check_same(&npy, before, arrays->path[which], fail);
    if (!err) err = read(&npy, &array.input, to, fail);
    if (!err) err = end_array(&array, fail);
    close_array(&array);
    return err;
}

/* All arrays of one split. */
typedef struct pair_list {
    array_pair *each;
    size_t      count;
} pair_list;

static bool is_train(const char *name)
{
    return at_folder_begins(name, "train") && at_folder_ends(name, ".npz");
}

static bool is_test(const char *name)
{
    return (at_folder_begins(name, "test") || at_folder_begins(name, "val")) &&
           at_folder_ends(name, ".npz");
}

static bool (*const is_archive_of[2])(const char *name) = {is_train, is_test};

/* ---- finding --------------------------------------------------------------------------------- */

/* The usual names that exist as files in a folder, or NULL. */
static const array_names *names_in_folder(const char *folder)
{
    for (const array_names *row = usual_names; row->samples[0]; row++) {
        char samples[PATH_MAX], labels[PATH_MAX];
        if (at_folder_join(samples, folder, row->samples[0], NULL) == AT_OK &&
            at_folder_join(labels, folder, row->labels[0], NULL) == AT_OK &&
            at_folder_is_file(samples) && at_folder_is_file(labels))
            return row;
    }
    return NULL;
}

/* The comma of SAMPLES.npy,LABELS.npy, or NULL. */
static const char *find_comma(const char *name)
{
    for (const char *comma = name; (comma = strchr(comma, ',')); comma++)
        if (comma - name >= 4 && strncasecmp(comma - 4, ".npy", 4) == 0) return comma;
    return NULL;
}

static const array_names *names_in_archive(const char *path, at_fail *fail)
{
    at_zip *zip;
    if (at_zip_open(path, &zip, fail)) return NULL;
    const array_names *names = names_in_zip(zip);
    at_zip_close(zip);
    if (!names)
        at_fail_set(fail, AT_ERR_FORMAT,
                    "save it with numpy.savez(x=..., y=...), or data=, labels=, or x_train=, ...",
                    "%s: no arrays of samples and labels in the archive", path);
    return names;
}

static bool claims(const char *name)
{
    if (at_folder_is(name))
        return at_folder_has(name, is_train) || at_folder_has(name, is_test) ||
               names_in_folder(name);
    if (at_folder_is_file(name))
        return at_folder_ends(name, ".npz") || at_folder_ends(name, ".npy");
    return find_comma(name) != NULL;
}

static bool has_split(const char *name, at_split split)
{
    if (split == AT_SPLIT_TRAIN && !at_folder_is(name)) return true;
    const array_names *names = NULL;
    if (at_folder_is(name)) {
        if (at_folder_has(name, is_archive_of[split])) return true;
        names = names_in_folder(name);
    } else if (at_folder_ends(name, ".npz")) {
        names = names_in_archive(name, NULL);
    }
    return names && names->samples[split];
}

/* ---- listing --------------------------------------------------------------------------------- */

static at_err add(pair_list *list, array_pair **added, at_fail *fail)
{
    array_pair *more = reallocarray(list->each, list->count + 1, sizeof *more);
    if (!more) return at_fail_memory_for(fail, "for paths");
    list->each = more;
    *added = &more[list->count++];
    memset(*added, 0, sizeof **added);
    return AT_OK;
}

static at_err copy_path(char to[PATH_MAX], const char *from, size_t length, at_fail *fail)
{
    if (length >= PATH_MAX) return at_fail_set(fail, AT_ERR_USAGE, NULL, "path too long");
    memcpy(to, from, length);
    to[length] = '\0';
    return AT_OK;
}

static at_err add_archive(pair_list *list, const char *path, at_split split, at_fail *fail)
{
    array_pair *added;
    at_fail     why = {0};
    AT_TRY(add(list, &added, fail));
    const array_names *names = names_in_archive(path, &why);
    if (!names) {
        if (fail) *fail = why;
        return why.err;
    }
    if (!names->samples[split]) split = AT_SPLIT_TRAIN; /* the only one it has */
    snprintf(added->inside[0], sizeof added->inside[0], "%s", names->samples[split]);
    snprintf(added->inside[1], sizeof added->inside[1], "%s", names->labels[split]);
    AT_TRY(copy_path(added->path[0], path, strlen(path), fail));
    return copy_path(added->path[1], path, strlen(path), fail);
}

static at_err add_pair(pair_list *list, const char *name, at_fail *fail)
{
    array_pair *added;
    const char *comma = find_comma(name);
    if (!comma)
        return at_fail_set(fail, AT_ERR_USAGE, "write SAMPLES.npy,LABELS.npy",
                           "%s: a single array; the array of labels is missing", name);
    AT_TRY(add(list, &added, fail));
    AT_TRY(copy_path(added->path[0], name, (size_t)(comma - name), fail));
    return copy_path(added->path[1], comma + 1, strlen(comma + 1), fail);
}

static at_err add_folder(pair_list *list, const char *folder, at_split split, at_fail *fail)
{
    at_file_list       files = {0};
    array_pair        *added;
    at_err             err = at_folder_list(folder, is_archive_of[split], &files, fail);
    const array_names *names = names_in_folder(folder);
    for (size_t i = 0; !err && i < files.count; i++)
        err = add_archive(list, files.path[i], split, fail);
    at_file_list_deinit(&files);
    if (err || list->count > 0) return err;
    if (!names || !names->samples[split])
        return at_fail_set(fail, AT_ERR_MISSING, "put train*.npz and val*.npz there",
                           "%s: no NumPy arrays for the %s set in the folder", folder,
                           split == AT_SPLIT_TRAIN ? "train" : "test");
    AT_TRY(add(list, &added, fail));
    AT_TRY(at_folder_join(added->path[0], folder, names->samples[split], fail));
    return at_folder_join(added->path[1], folder, names->labels[split], fail);
}

static at_err find_arrays(pair_list *list, const char *name, at_split split, at_fail *fail)
{
    *list = (pair_list){0};
    if (at_folder_is(name)) return add_folder(list, name, split, fail);
    if (at_folder_is_file(name) && !at_folder_ends(name, ".npy"))
        return add_archive(list, name, split, fail);
    return add_pair(list, name, fail);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads the headers; all samples must have the same type and shape. */
static at_err measure(pair_list *list, uint64_t *total, at_fail *fail)
{
    assert(list->count > 0);
    const at_npy *first = &list->each[0].samples;
    *total = 0;
    for (size_t i = 0; i < list->count; i++) {
        const at_npy *one = &list->each[i].samples;
        AT_TRY(measure_pair(&list->each[i], fail));
        *total += one->count;
        if (one->type != first->type || one->features != first->features ||
            one->dims != first->dims)
            return at_fail_set(
                fail, AT_ERR_FORMAT, "use files of the same data set",
                "%s: samples differ in type or shape from those of %s (in the header "
                "before byte %llu)",
                list->each[i].path[0], list->each[0].path[0], (unsigned long long)one->header_size);
    }
    return AT_OK;
}

static at_err set_shape(at_dataset *set, const at_npy *npy, at_fail *fail)
{
    bool           interleaved;
    at_image_shape shape = at_image_shape_of(npy->extent + 1, npy->dims - 1, &interleaved);
    at_text        form = at_text_in(set->form, sizeof set->form);
    if (npy->dims == 2 && set->element == AT_ELEMENT_BYTE)
        shape = at_image_shape_of_vector(set->features);
    if (shape.channels > 0)
        at_text_add(&form, "%ux%ux%u ", shape.channels, shape.height, shape.width);
    else
        at_text_add(&form, "%u ", set->features);
    at_text_add(&form, set->element == AT_ELEMENT_BYTE ? "bytes" : "floats");
    if (interleaved) return at_image_shape_deinterleave_rows(set, shape, fail);
    set->shape = shape;
    return AT_OK;
}

static at_err fill(at_dataset *set, const pair_list *list, at_fail *fail)
{
    uint64_t       filled = 0;
    read_elements *read_labels = set->read_options.real_labels ? read_reals : read_classes;
    for (size_t i = 0; i < list->count; i++) {
        const array_pair *one = &list->each[i];
        assert(one->samples.count <= set->count - filled);
        AT_TRY(read_array(one, SAMPLES, read_samples, set->rows + filled * set->row_size, fail));
        AT_TRY(read_array(one, LABELS, read_labels, set->labels + filled, fail));
        filled += one->samples.count;
        at_load_progress_report(set->progress, filled, set->count);
    }
    assert(filled == set->count);
    return set_shape(set, &list->each[0].samples, fail);
}

/* The smallest and the largest label. */
typedef struct range {
    uint32_t min, max;
} range;

static void extend(range *labels, const uint32_t *label, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (label[i] < labels->min) labels->min = label[i];
        if (label[i] > labels->max) labels->max = label[i];
    }
}

static at_err extend_by(range *labels, array_pair *arrays, at_fail *fail)
{
    AT_TRY(measure_pair(arrays, fail));
    uint32_t *label = reallocarray(NULL, (size_t)arrays->labels.count, sizeof *label);
    if (!label) return at_fail_memory_for(fail, "for labels");
    at_err err = read_array(arrays, LABELS, read_classes, label, fail);
    if (!err) extend(labels, label, arrays->labels.count);
    free(label);
    return err;
}

/* The range of the train labels, which the test labels must lie in. */
static at_err train_range(range *labels, const char *name, at_fail *fail)
{
    pair_list train;
    at_err    err = find_arrays(&train, name, AT_SPLIT_TRAIN, fail);
    for (size_t i = 0; !err && i < train.count; i++) err = extend_by(labels, &train.each[i], fail);
    free(train.each);
    return err;
}

/* Renumbers the labels from 0 on and sets the number of classes. */
static at_err set_classes(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    range own = {UINT32_MAX, 0}, all = {UINT32_MAX, 0};
    extend(&own, set->labels, set->count);
    if (split == AT_SPLIT_TEST && has_split(name, AT_SPLIT_TRAIN) && has_split(name, AT_SPLIT_TEST))
        AT_TRY(train_range(&all, name, fail));
    else
        all = own;
    uint32_t base = all.min == 1 ? 1 : 0;
    if (own.max > all.max || own.min < base)
        return at_fail_set(fail, AT_ERR_FORMAT, "use files of the same data set",
                           "%s: test labels are %u to %u, but train labels are %u to %u", name,
                           own.min, own.max, all.min, all.max);
    for (uint64_t i = 0; i < set->count; i++) set->labels[i] -= base;
    set->classes = all.max - base + 1;
    return AT_OK;
}

static at_err load_arrays(at_dataset *set, pair_list *list, at_fail *fail)
{
    uint64_t total;
    AT_TRY(measure(list, &total, fail));
    const at_npy *npy = &list->each[0].samples;
    AT_TRY(at_store_reserve(set, total, npy->features, at_npy_element(npy), fail));
    return fill(set, list, fail);
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    assert(name);
    pair_list list;
    at_err    err = find_arrays(&list, name, split, fail);
    if (!err) err = load_arrays(set, &list, fail);
    free(list.each);
    if (err || set->read_options.real_labels) return err;
    return set_classes(set, name, split, fail);
}

static at_err source_files(const char *name, at_split split, at_file_list *files, at_fail *fail)
{
    pair_list list;
    at_err    err = AT_OK, found = find_arrays(&list, name, split, NULL);
    for (size_t i = 0; !found && !err && i < list.count; i++)
        for (int which = 0; !err && which < (list.each[i].inside[0][0] ? 1 : 2); which++)
            err = at_file_list_add(files, list.each[i].path[which], fail);
    free(list.each);
    return err;
}

const at_format at_format_npy = {
    .name = "npy",
    .summary = "NumPy arrays of samples and labels, .npz or .npy",
    .expects = "train*.npz, val*.npz or x.npy, y.npy",
    .reads_real_labels = true,
    .claims = claims,
    .has_split = has_split,
    .load = load,
    .source_files = source_files,
};

/* Where NumPy arrays are found:
 *
 *     FILE.npz                one or both splits, by the names of its arrays
 *     SAMPLES.npy,LABELS.npy  one split
 *     FOLDER                  train*.npz and test*.npz or val*.npz (downsampled ImageNet), or .npy
 *                             files under the same names as in an archive
 *
 * Labels count from 0, or from 1 when no training label is 0, as those of downsampled ImageNet do.
 */
#include "data/formats/format.h"

#include "base/text.h"
#include "data/files/folder.h"
#include "data/formats/arrays.h"
#include "data/formats/picture.h"
#include "data/set/progress.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* All arrays of one split. */
typedef struct batches {
    at_arrays *each;
    size_t     count;
} batches;

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

/* The usual names as files of a folder, or NULL. */
static const at_arrays_names *names_in_folder(const char *folder)
{
    for (const at_arrays_names *row = at_arrays_usual; row->samples[0]; row++) {
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

static const at_arrays_names *names_in_archive(const char *path, at_fail *fail)
{
    at_zip *zip;
    if (at_zip_open(path, &zip, fail)) return NULL;
    const at_arrays_names *names = at_arrays_in(zip);
    at_zip_close(zip);
    if (!names)
        at_fail_set(fail, AT_ERR_FORMAT,
                    "numpy.savez needs x= and y= (or data= and labels=, x_train= ...)",
                    "%s: at its end, the list of entries names no samples with labels", path);
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

static bool holds(const char *name, at_split split)
{
    if (split == AT_SPLIT_TRAIN && !at_folder_is(name)) return true;
    const at_arrays_names *names = NULL;
    if (at_folder_is(name)) {
        if (at_folder_has(name, is_archive_of[split])) return true;
        names = names_in_folder(name);
    } else if (at_folder_ends(name, ".npz")) {
        names = names_in_archive(name, NULL);
    }
    return names && names->samples[split];
}

/* ---- listing --------------------------------------------------------------------------------- */

static at_err add(batches *list, at_arrays **added, at_fail *fail)
{
    at_arrays *more = reallocarray(list->each, list->count + 1, sizeof *more);
    if (!more) return at_fail_memory_for(fail, "for paths");
    list->each = more;
    *added = &more[list->count++];
    memset(*added, 0, sizeof **added);
    return AT_OK;
}

static at_err copy_path(char to[PATH_MAX], const char *from, size_t length, at_fail *fail)
{
    if (length >= PATH_MAX) return at_fail_set(fail, AT_ERR_USAGE, NULL, "a path is too long");
    memcpy(to, from, length);
    to[length] = '\0';
    return AT_OK;
}

static at_err add_archive(batches *list, const char *path, at_split split, at_fail *fail)
{
    at_arrays *added;
    at_fail    why = {0};
    AT_TRY(add(list, &added, fail));
    const at_arrays_names *names = names_in_archive(path, &why);
    if (!names) {
        if (fail) *fail = why;
        return why.err;
    }
    if (!names->samples[split]) split = AT_SPLIT_TRAIN; /* it has only one */
    snprintf(added->inside[0], sizeof added->inside[0], "%s", names->samples[split]);
    snprintf(added->inside[1], sizeof added->inside[1], "%s", names->labels[split]);
    AT_TRY(copy_path(added->path[0], path, strlen(path), fail));
    return copy_path(added->path[1], path, strlen(path), fail);
}

static at_err add_pair(batches *list, const char *name, at_fail *fail)
{
    at_arrays  *added;
    const char *comma = find_comma(name);
    if (!comma)
        return at_fail_set(fail, AT_ERR_USAGE, "write SAMPLES.npy,LABELS.npy",
                           "%s: is one array, and samples need the array of their labels", name);
    AT_TRY(add(list, &added, fail));
    AT_TRY(copy_path(added->path[0], name, (size_t)(comma - name), fail));
    return copy_path(added->path[1], comma + 1, strlen(comma + 1), fail);
}

static at_err add_folder(batches *list, const char *folder, at_split split, at_fail *fail)
{
    at_files               files = {0};
    at_arrays             *added;
    at_err                 err = at_folder_list(folder, is_archive_of[split], &files, fail);
    const at_arrays_names *names = names_in_folder(folder);
    for (size_t i = 0; !err && i < files.count; i++)
        err = add_archive(list, files.path[i], split, fail);
    at_files_deinit(&files);
    if (err || list->count > 0) return err;
    if (!names || !names->samples[split])
        return at_fail_set(fail, AT_ERR_MISSING, "put train*.npz and val*.npz there",
                           "%s: the folder holds no NumPy arrays for the %s set", folder,
                           split == AT_SPLIT_TRAIN ? "train" : "test");
    AT_TRY(add(list, &added, fail));
    AT_TRY(at_folder_join(added->path[0], folder, names->samples[split], fail));
    return at_folder_join(added->path[1], folder, names->labels[split], fail);
}

static at_err find_arrays(batches *list, const char *name, at_split split, at_fail *fail)
{
    *list = (batches){0};
    if (at_folder_is(name)) return add_folder(list, name, split, fail);
    if (at_folder_is_file(name) && !at_folder_ends(name, ".npy"))
        return add_archive(list, name, split, fail);
    return add_pair(list, name, fail);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads the headers; all samples must be of one kind and shape. */
static at_err measure(batches *list, uint64_t *total, at_fail *fail)
{
    assert(list->count > 0);
    const at_npy *first = &list->each[0].samples;
    *total = 0;
    for (size_t i = 0; i < list->count; i++) {
        const at_npy *one = &list->each[i].samples;
        AT_TRY(at_arrays_measure(&list->each[i], fail));
        *total += one->count;
        if (one->type != first->type || one->features != first->features ||
            one->dims != first->dims)
            return at_fail_set(fail, AT_ERR_FORMAT, "use files of the same set",
                               "%s: before byte %llu, its samples are of another type or shape "
                               "than those of %s",
                               list->each[i].path[0], (unsigned long long)one->header_size,
                               list->each[0].path[0]);
    }
    return AT_OK;
}

static at_err set_picture(at_dataset *set, const at_npy *npy, at_fail *fail)
{
    bool           interleaved;
    at_image_shape picture = at_image_shape_of(npy->extent + 1, npy->dims - 1, &interleaved);
    at_text        form = at_text_in(set->form, sizeof set->form);
    if (npy->dims == 2 && set->element == AT_ELEMENT_BYTE)
        picture = at_image_shape_of_line(set->features);
    if (picture.channels > 0)
        at_text_add(&form, "%ux%ux%u ", picture.channels, picture.height, picture.width);
    else
        at_text_add(&form, "%u ", set->features);
    at_text_add(&form, set->element == AT_ELEMENT_BYTE ? "bytes" : "floats");
    if (interleaved) return at_image_shape_split_rows(set, picture, fail);
    set->picture = picture;
    return AT_OK;
}

static at_err fill(at_dataset *set, const batches *list, at_fail *fail)
{
    uint64_t filled = 0;
    for (size_t i = 0; i < list->count; i++) {
        const at_arrays *one = &list->each[i];
        assert(one->samples.count <= set->count - filled);
        AT_TRY(at_arrays_read_samples(one, set->rows + filled * set->row_size, fail));
        AT_TRY(at_arrays_read_labels(one, set->labels + filled, fail));
        filled += one->samples.count;
        at_loading_tell(set->loading, filled, set->count);
    }
    assert(filled == set->count);
    return set_picture(set, &list->each[0].samples, fail);
}

/* The smallest and the largest label. */
typedef struct range {
    uint32_t min, max;
} range;

static void widen(range *labels, const uint32_t *label, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (label[i] < labels->min) labels->min = label[i];
        if (label[i] > labels->max) labels->max = label[i];
    }
}

static at_err widen_by(range *labels, at_arrays *arrays, at_fail *fail)
{
    AT_TRY(at_arrays_measure(arrays, fail));
    uint32_t *label = reallocarray(NULL, (size_t)arrays->labels.count, sizeof *label);
    if (!label) return at_fail_memory_for(fail, "for labels");
    at_err err = at_arrays_read_labels(arrays, label, fail);
    if (!err) widen(labels, label, arrays->labels.count);
    free(label);
    return err;
}

/* The range of the train set's labels, which the test set's must agree with. */
static at_err train_range(range *labels, const char *name, at_fail *fail)
{
    batches train;
    at_err  err = find_arrays(&train, name, AT_SPLIT_TRAIN, fail);
    for (size_t i = 0; !err && i < train.count; i++) err = widen_by(labels, &train.each[i], fail);
    free(train.each);
    return err;
}

/* From the numbers in the files to classes that count from 0. */
static at_err set_classes(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    range own = {UINT32_MAX, 0}, all = {UINT32_MAX, 0};
    widen(&own, set->labels, set->count);
    if (split == AT_SPLIT_TEST && holds(name, AT_SPLIT_TRAIN) && holds(name, AT_SPLIT_TEST))
        AT_TRY(train_range(&all, name, fail));
    else
        all = own;
    uint32_t base = all.min == 1 ? 1 : 0;
    if (own.max > all.max || own.min < base)
        return at_fail_set(fail, AT_ERR_FORMAT, "are these files of two different sets?",
                           "%s: the test set has labels %u to %u, but the train set %u to %u", name,
                           own.min, own.max, all.min, all.max);
    for (uint64_t i = 0; i < set->count; i++) set->labels[i] -= base;
    set->classes = all.max - base + 1;
    return AT_OK;
}

static at_err load_arrays(at_dataset *set, batches *list, at_fail *fail)
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
    batches list;
    at_err  err = find_arrays(&list, name, split, fail);
    if (!err) err = load_arrays(set, &list, fail);
    free(list.each);
    return err ? err : set_classes(set, name, split, fail);
}

static at_err sources(const char *name, at_split split, at_files *files, at_fail *fail)
{
    batches list;
    at_err  err = AT_OK, found = find_arrays(&list, name, split, NULL);
    for (size_t i = 0; !found && !err && i < list.count; i++)
        for (int which = 0; !err && which < (list.each[i].inside[0][0] ? 1 : 2); which++)
            err = at_files_add(files, list.each[i].path[which], fail);
    free(list.each);
    return err;
}

const at_format at_format_npy = {
    .name = "npy",
    .summary = "NumPy arrays of samples and labels, .npz or .npy",
    .wants = "train*.npz, val*.npz or x.npy, y.npy",
    .claims = claims,
    .holds = holds,
    .load = load,
    .sources = sources,
};

/* Batches are found in a folder under their official names, or named as single files:
 *
 *     CIFAR-10    data_batch_*.bin   test_batch.bin
 *     CIFAR-100   train.bin          test.bin
 */
#include "data/formats/cifar.h"

#include "base/text.h"
#include "data/files/folder.h"
#include "data/files/sniff.h"
#include "data/formats/format.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

enum { RECORD_SIZE_MAX = 2 + AT_CIFAR_PIXELS_SIZE };

const at_cifar at_cifar_10 = {"CIFAR-10", 10, 1, {10}};
const at_cifar at_cifar_100 = {"CIFAR-100", 100, 2, {20, 100}};

static size_t record_size(const at_cifar *kind)
{
    assert(kind->labels_size == 1 || kind->labels_size == 2);
    return kind->labels_size + AT_CIFAR_PIXELS_SIZE;
}

/* When even the first byte is not a label, the file is something else: reports what it looks
 * like. */
static at_err invalid_label(const at_cifar *kind, const at_source *source,
                            const unsigned char *record, uint64_t index, uint32_t which,
                            at_fail *fail)
{
    if (index == 0) {
        at_sniff_result sniffed = at_sniff(record, AT_SNIFF_SIZE);
        return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                           "%s: not a %s batch; it looks like %s", at_source_path(source),
                           kind->name, sniffed.what);
    }
    return at_fail_set(
        fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
        "%s: byte %llu: image %llu has label %u, but labels are 0 to %u in %s",
        at_source_path(source), (unsigned long long)(index * record_size(kind) + which),
        (unsigned long long)index, record[which], kind->label_end[which] - 1, kind->name);
}

/* Reads the next record; *got = 0 at the end of the batch. */
static at_err read_record(const at_cifar *kind, at_source *source, unsigned char *record,
                          uint64_t index, size_t *got, at_fail *fail)
{
    size_t size = record_size(kind);
    AT_TRY(at_source_read(source, record, size, got, fail));
    if (*got == 0) return AT_OK;
    memset(record + *got, 0, size - *got);
    for (uint32_t i = 0; i < kind->labels_size; i++)
        if (record[i] >= kind->label_end[i])
            return invalid_label(kind, source, record, index, i, fail);
    if (*got == size) return AT_OK;
    return at_fail_set(
        fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
        "%s: truncated at byte %llu, within image %llu (an image takes %zu bytes in %s)",
        at_source_path(source), (unsigned long long)at_source_position(source),
        (unsigned long long)index, size, kind->name);
}

at_err at_cifar_count(const at_cifar *kind, at_source *source, uint64_t *count, at_fail *fail)
{
    assert(at_source_position(source) == 0);
    unsigned char record[RECORD_SIZE_MAX];
    for (*count = 0;; ++*count) {
        size_t got;
        AT_TRY(read_record(kind, source, record, *count, &got, fail));
        if (got == 0) break;
    }
    if (*count > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: packed file without content (0 bytes)", at_source_path(source));
}

at_err at_cifar_append(const at_cifar *kind, at_source *source, at_dataset *set, uint64_t *filled,
                       at_fail *fail)
{
    assert(set->row_size == AT_CIFAR_PIXELS_SIZE);
    assert(at_source_position(source) == 0);
    unsigned char record[RECORD_SIZE_MAX];
    for (uint64_t i = 0;; i++) {
        size_t got;
        AT_TRY(read_record(kind, source, record, i, &got, fail));
        if (got == 0) return AT_OK;
        if (*filled == set->count)
            return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                               "%s: changed while it was read (image %llu appeared)",
                               at_source_path(source), (unsigned long long)i);
        set->labels[*filled] = record[kind->labels_size - 1];
        memcpy(set->rows + *filled * set->row_size, record + kind->labels_size, set->row_size);
        ++*filled;
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_batch(const char *name, const char *begins)
{
    return at_folder_begins(name, begins) && at_folder_ends(name, ".bin");
}

static bool is_train_10(const char *name)
{
    return is_batch(name, "data_batch");
}

static bool is_test_10(const char *name)
{
    return is_batch(name, "test_batch");
}

static bool is_train_100(const char *name)
{
    return is_batch(name, "train.");
}

static bool is_test_100(const char *name)
{
    return is_batch(name, "test.");
}

/* File names by split. */
typedef struct family {
    const at_cifar *kind;
    bool (*is_file[2])(const char *name);
    const char *names[2]; /* for messages */
} family;

static const family families[] = {
    {&at_cifar_10, {is_train_10, is_test_10}, {"data_batch_*.bin", "test_batch.bin"}},
    {&at_cifar_100, {is_train_100, is_test_100}, {"train.bin", "test.bin"}},
};

enum { FAMILY_COUNT = sizeof families / sizeof *families };

/* The family with files of either split in that folder, or NULL. */
static const family *find_family(const char *folder)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        for (int split = 0; split < 2; split++)
            if (at_folder_has(folder, families[i].is_file[split])) return &families[i];
    return NULL;
}

/* A single file counts as the train set. */
static bool has_split(const char *name, at_split split)
{
    if (!at_folder_is(name)) return split == AT_SPLIT_TRAIN;
    const family *of = find_family(name);
    return of && at_folder_has(name, of->is_file[split]);
}

static bool claims(const char *name)
{
    if (at_folder_is(name)) return find_family(name) != NULL;
    return at_folder_is_file(name) && is_batch(name, "");
}

/* The kind of a single file: by its size, else by its name. */
static const at_cifar *kind_of_file(const char *path)
{
    const char *name = at_folder_name(path);
    struct stat status;
    if (stat(path, &status) == 0) {
        if (status.st_size % (1 + AT_CIFAR_PIXELS_SIZE) == 0) return &at_cifar_10;
        if (status.st_size % (2 + AT_CIFAR_PIXELS_SIZE) == 0) return &at_cifar_100;
    }
    return is_train_100(name) || is_test_100(name) ? &at_cifar_100 : &at_cifar_10;
}

static at_err count_images(const at_cifar *kind, const at_file_list *files, uint64_t *total,
                           at_fail *fail)
{
    *total = 0;
    for (size_t i = 0; i < files->count; i++) {
        at_source *source;
        uint64_t   count = 0;
        AT_TRY(at_source_open(files->path[i], &source, fail));
        at_err err = at_cifar_count(kind, source, &count, fail);
        at_source_close(source);
        if (err) return err;
        *total += count;
    }
    return AT_OK;
}

static at_err fill(at_dataset *set, const at_cifar *kind, const at_file_list *files, at_fail *fail)
{
    uint64_t filled = 0;
    for (size_t i = 0; i < files->count; i++) {
        at_source *source;
        AT_TRY(at_source_open(files->path[i], &source, fail));
        at_err err = at_cifar_append(kind, source, set, &filled, fail);
        at_source_close(source);
        if (err) return err;
        at_load_progress_report(set->progress, filled, set->count);
    }
    if (filled == set->count) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                       "%s: changed while it was read (images disappeared)",
                       files->path[files->count - 1]);
}

/* Counts first, because the number of images must be known before memory is reserved. */
static at_err load_files(at_dataset *set, const at_cifar *kind, const at_file_list *files,
                         at_fail *fail)
{
    assert(files->count > 0);
    uint64_t count;
    AT_TRY(count_images(kind, files, &count, fail));
    AT_TRY(at_store_reserve(set, count, AT_CIFAR_PIXELS_SIZE, AT_ELEMENT_BYTE, fail));
    set->shape = (at_image_shape){3, AT_CIFAR_SIDE, AT_CIFAR_SIDE};
    set->classes = kind->classes;
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "3x%dx%d bytes", AT_CIFAR_SIDE, AT_CIFAR_SIDE);
    return fill(set, kind, files, fail);
}

/* Lists the batches of a split and determines their kind. */
static at_err find_files(const char *name, at_split split, const at_cifar **kind,
                         at_file_list *files, at_fail *fail)
{
    *kind = at_folder_is(name) ? NULL : kind_of_file(name);
    if (*kind) return at_file_list_add(files, name, fail);
    const family *of = find_family(name);
    if (!of || !at_folder_has(name, of->is_file[split]))
        return at_fail_set(
            fail, AT_ERR_MISSING, "put the binary batches there, or run `anytime data get cifar10`",
            "%s: no file %s in the folder", name, (of ? of : families)->names[split]);
    *kind = of->kind;
    return at_folder_list(name, of->is_file[split], files, fail);
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    assert(name);
    const at_cifar *kind;
    at_file_list    files = {0};
    at_err          err = find_files(name, split, &kind, &files, fail);
    if (!err) err = load_files(set, kind, &files, fail);
    at_file_list_deinit(&files);
    return err;
}

static at_err source_files(const char *name, at_split split, at_file_list *files, at_fail *fail)
{
    const at_cifar *kind;
    at_err          err = find_files(name, split, &kind, files, fail);
    return err == AT_ERR_FAILED ? err : AT_OK;
}

const at_format at_format_cifar = {
    .name = "cifar",
    .fixed_names = true,
    .summary = "binary batches of CIFAR-10 or CIFAR-100 (fine labels)",
    .expects = "data_batch_*.bin or train.bin",
    .claims = claims,
    .has_split = has_split,
    .load = load,
    .source_files = source_files,
};

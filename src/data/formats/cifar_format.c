/* Where CIFAR batches are found: in a folder under their official names, or one file alone.
 *
 *     CIFAR-10    data_batch_*.bin   test_batch.bin
 *     CIFAR-100   train.bin          test.bin
 */
#include "data/formats/format.h"

#include "base/text.h"
#include "data/files/folder.h"
#include "data/formats/cifar.h"
#include "data/set/progress.h"

#include <assert.h>
#include <sys/stat.h>

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

/* The names of a kind's files by split. */
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

/* The family that has files of either split in that folder, or NULL. */
static const family *find_family(const char *folder)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        for (int split = 0; split < 2; split++)
            if (at_folder_has(folder, families[i].is_file[split])) return &families[i];
    return NULL;
}

/* A single file counts as the train set. */
static bool holds(const char *name, at_split split)
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

/* The kind of a single file: the size decides, then the name. */
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

static at_err count_images(const at_cifar *kind, const at_files *files, uint64_t *total,
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

static at_err fill(at_dataset *set, const at_cifar *kind, const at_files *files, at_fail *fail)
{
    uint64_t filled = 0;
    for (size_t i = 0; i < files->count; i++) {
        at_source *source;
        AT_TRY(at_source_open(files->path[i], &source, fail));
        at_err err = at_cifar_append(kind, source, set, &filled, fail);
        at_source_close(source);
        if (err) return err;
        at_loading_tell(set->loading, filled, set->count);
    }
    if (filled == set->count) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                       "%s: became shorter while it was read", files->path[files->count - 1]);
}

/* Counted first, then read: what the files hold must be known before memory is reserved. */
static at_err load_files(at_dataset *set, const at_cifar *kind, const at_files *files,
                         at_fail *fail)
{
    assert(files->count > 0);
    uint64_t count;
    AT_TRY(count_images(kind, files, &count, fail));
    AT_TRY(at_store_reserve(set, count, AT_CIFAR_PIXELS_SIZE, AT_ELEMENT_BYTE, fail));
    set->picture = (at_image_shape){3, AT_CIFAR_SIDE, AT_CIFAR_SIDE};
    set->classes = kind->classes;
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "3x%dx%d bytes", AT_CIFAR_SIDE, AT_CIFAR_SIDE);
    return fill(set, kind, files, fail);
}

/* The batches of a split, and of which kind they are. */
static at_err find_files(const char *name, at_split split, const at_cifar **kind, at_files *files,
                         at_fail *fail)
{
    *kind = at_folder_is(name) ? NULL : kind_of_file(name);
    if (*kind) return at_files_add(files, name, fail);
    const family *of = find_family(name);
    if (!of || !at_folder_has(name, of->is_file[split]))
        return at_fail_set(
            fail, AT_ERR_MISSING, "put the binary batches there, or run `anytime data get cifar10`",
            "%s: the folder holds no file %s", name, (of ? of : families)->names[split]);
    *kind = of->kind;
    return at_folder_list(name, of->is_file[split], files, fail);
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    assert(name);
    const at_cifar *kind;
    at_files        files = {0};
    at_err          err = find_files(name, split, &kind, &files, fail);
    if (!err) err = load_files(set, kind, &files, fail);
    at_files_deinit(&files);
    return err;
}

static at_err sources(const char *name, at_split split, at_files *files, at_fail *fail)
{
    const at_cifar *kind;
    at_err          err = find_files(name, split, &kind, files, fail);
    return err == AT_ERR_FAILED ? err : AT_OK;
}

const at_format at_format_cifar = {
    .name = "cifar",
    .summary = "binary batches of CIFAR-10 or CIFAR-100 (fine labels)",
    .wants = "data_batch_*.bin or train.bin",
    .claims = claims,
    .holds = holds,
    .load = load,
    .sources = sources,
};

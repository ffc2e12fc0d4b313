/* Where CIFAR batches are found: in a folder under their official names, or one file alone.
 *
 *     CIFAR-10    data_batch_*.bin   test_batch.bin
 *     CIFAR-100   train.bin          test.bin
 */
#include "data/format.h"

#include "base/text.h"
#include "data/cifar.h"
#include "data/folder.h"

#include <assert.h>
#include <string.h>
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
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    struct stat status;
    if (stat(path, &status) == 0) {
        if (status.st_size % (1 + AT_CIFAR_PIXELS_SIZE) == 0) return &at_cifar_10;
        if (status.st_size % (2 + AT_CIFAR_PIXELS_SIZE) == 0) return &at_cifar_100;
    }
    return is_train_100(name) || is_test_100(name) ? &at_cifar_100 : &at_cifar_10;
}

/* The batches of one split. */
typedef struct batches {
    const at_cifar    *kind;
    const char        *folder; /* NULL: names are paths */
    const char *const *names;
    size_t             count;
} batches;

static at_err open_batch(const batches *of, size_t index, at_source **source, at_fail *fail)
{
    assert(index < of->count);
    char path[PATH_MAX];
    if (!of->folder) return at_source_open(of->names[index], source, fail);
    AT_TRY(at_folder_join(path, of->folder, of->names[index], fail));
    return at_source_open(path, source, fail);
}

static at_err count_images(const batches *of, uint64_t *total, at_fail *fail)
{
    *total = 0;
    for (size_t i = 0; i < of->count; i++) {
        at_source *source;
        uint64_t   count = 0;
        AT_TRY(open_batch(of, i, &source, fail));
        at_err err = at_cifar_count(of->kind, source, &count, fail);
        at_source_close(source);
        if (err) return err;
        *total += count;
    }
    return AT_OK;
}

static at_err fill(at_dataset *set, const batches *of, at_fail *fail)
{
    uint64_t filled = 0;
    for (size_t i = 0; i < of->count; i++) {
        at_source *source;
        AT_TRY(open_batch(of, i, &source, fail));
        at_err err = at_cifar_append(of->kind, source, set, &filled, fail);
        at_source_close(source);
        if (err) return err;
    }
    if (filled == set->count) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                       "%s: the batches became shorter while they were read", of->names[0]);
}

/* Counted first, then read: what the files hold must be known before memory is reserved. */
static at_err load_batches(at_dataset *set, const batches *of, at_fail *fail)
{
    assert(of->count > 0);
    uint64_t count;
    AT_TRY(count_images(of, &count, fail));
    AT_TRY(at_store_reserve(set, count, AT_CIFAR_PIXELS_SIZE, AT_ELEMENT_BYTE, fail));
    set->picture = (at_picture){3, AT_CIFAR_SIDE, AT_CIFAR_SIDE};
    set->classes = of->kind->classes;
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "3x%dx%d bytes", AT_CIFAR_SIDE, AT_CIFAR_SIDE);
    return fill(set, of, fail);
}

static at_err load_folder(at_dataset *set, const char *folder, at_split split, at_fail *fail)
{
    const family *of = find_family(folder);
    at_folder     files;
    if (!of || !at_folder_has(folder, of->is_file[split]))
        return at_fail_set(
            fail, AT_ERR_MISSING, "put the binary batches there, or run `anytime data get cifar10`",
            "%s: the folder holds no file %s", folder, (of ? of : families)->names[split]);
    AT_TRY(at_folder_list(folder, of->is_file[split], &files, fail));
    batches all = {of->kind, folder, (const char *const *)files.names, files.count};
    at_err  err = load_batches(set, &all, fail);
    at_folder_deinit(&files);
    return err;
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    assert(name);
    if (at_folder_is(name)) return load_folder(set, name, split, fail);
    batches alone = {kind_of_file(name), NULL, &name, 1};
    return load_batches(set, &alone, fail);
}

const at_format at_format_cifar = {
    .name = "cifar",
    .summary = "binary batches of CIFAR-10 or CIFAR-100 (fine labels)",
    .claims = claims,
    .holds = holds,
    .load = load,
};

#include "data/files/split_files.h"

#include "data/files/folder.h"
#include "data/files/unpack.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Length of a path without .gz or .xz. */
static size_t bare_length(const char *path)
{
    const at_unpacker *unpacker = at_unpack_by_suffix(path);
    return strlen(path) - (unpacker ? strlen(unpacker->suffix) : 0);
}

static bool ends_in_t(const char *path)
{
    size_t length = bare_length(path);
    return length >= 3 && memcmp(path + length - 2, ".t", 2) == 0;
}

/* a9a, a9a.xz: a9a.t, a9a.t.xz, a9a.t.gz */
static bool find_dot_t(const char *path, char other[PATH_MAX])
{
    static const char *const suffixes[] = {"", ".xz", ".gz"};
    size_t                   length = bare_length(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        int written = snprintf(other, PATH_MAX, "%.*s.t%s", (int)length, path, suffixes[i]);
        if (written > 0 && written < PATH_MAX && at_folder_is_file(other)) return true;
    }
    return false;
}

/* train.csv: test.csv; the word may be anywhere in the name. */
static bool find_test(const char *path, char other[PATH_MAX])
{
    const char *name = at_folder_name(path), *word = strstr(name, "train");
    if (!word) return false;
    int written =
        snprintf(other, PATH_MAX, "%.*stest%s", (int)(word - path), path, word + strlen("train"));
    return written > 0 && written < PATH_MAX && at_folder_is_file(other);
}

static bool find_test_file(const char *path, char other[PATH_MAX])
{
    assert(path);
    return find_dot_t(path, other) || find_test(path, other);
}

static at_split split_of(const char *path)
{
    bool test = strstr(at_folder_name(path), "test") || ends_in_t(path);
    return test ? AT_SPLIT_TEST : AT_SPLIT_TRAIN;
}

/* Names with a leading underscore are metadata of other programs (_SUCCESS, _metadata). */
static bool may_be_data(const char *name)
{
    return name[0] != '_';
}

/* Adds the files of a folder that are ours and of that split. */
static at_err list_folder(const char *folder, at_split split, at_split_file_test *is_ours,
                          at_file_list *files, at_fail *fail)
{
    at_file_list all = {0};
    at_err       err = at_folder_list(folder, may_be_data, &all, fail);
    for (size_t i = 0; !err && i < all.count; i++) {
        const char *path = all.path[i];
        if (split_of(path) == split && at_folder_is_file(path) && is_ours(path))
            err = at_file_list_add(files, path, fail);
    }
    at_file_list_deinit(&all);
    return err;
}

static bool folder_holds(const char *folder, at_split split, at_split_file_test *is_ours)
{
    at_file_list files = {0};
    bool any = list_folder(folder, split, is_ours, &files, NULL) == AT_OK && files.count > 0;
    at_file_list_deinit(&files);
    return any;
}

bool at_split_files_claim(const char *path, at_split_file_test *is_ours)
{
    assert(path && is_ours);
    if (at_folder_is_file(path)) return is_ours(path);
    return at_folder_is(path) && (folder_holds(path, AT_SPLIT_TRAIN, is_ours) ||
                                  folder_holds(path, AT_SPLIT_TEST, is_ours));
}

bool at_split_files_has(const char *path, at_split split, at_split_file_test *is_ours)
{
    assert(path && is_ours);
    char other[PATH_MAX];
    if (at_folder_is(path)) return folder_holds(path, split, is_ours);
    return split == AT_SPLIT_TRAIN || find_test_file(path, other);
}

at_err at_split_files_list(const char *path, at_split split, at_split_file_test *is_ours,
                           at_file_list *files, at_fail *fail)
{
    assert(path && is_ours && files);
    char other[PATH_MAX];
    if (!at_folder_is(path)) {
        bool found = split == AT_SPLIT_TEST && find_test_file(path, other);
        return at_file_list_add(files, found ? other : path, fail);
    }
    AT_TRY(list_folder(path, split, is_ours, files, fail));
    if (files->count > 0) return AT_OK;
    return at_fail_set(
        fail, AT_ERR_MISSING,
        "test files have `test` in their names or end in .t; all others are for training",
        "%s: no readable %s file in the folder", path, split == AT_SPLIT_TEST ? "test" : "train");
}

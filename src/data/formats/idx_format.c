/* Where IDX files are found: in a folder under their usual names, or named one by one. */
#include "data/formats/format.h"

#include "base/text.h"
#include "data/files/file_list.h"
#include "data/files/folder.h"
#include "data/formats/idx.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The files of a split begin with one of these; what follows (-idx3-ubyte, .gz, ...) varies. */
typedef struct stems {
    const char *images[2], *labels[2];
} stems;

static const stems stems_of[] = {
    [AT_SPLIT_TRAIN] = {{"train-images", "train-images"}, {"train-labels", "train-labels"}},
    [AT_SPLIT_TEST] = {{"t10k-images", "test-images"}, {"t10k-labels", "test-labels"}},
};

/* The shorter name is better (raw before .gz), equal lengths in alphabetical order, so that the
 * choice does not depend on the order in which the file system lists names. */
static bool better(const char *name, const char *than)
{
    assert(name && than);
    size_t a = strlen(name), b = strlen(than);
    return *than == '\0' || a < b || (a == b && strcmp(name, than) < 0);
}

/* Puts the path of the folder's file that begins with a stem into path; false if there is none. */
static bool find_file(const char *folder, const char *const stem[2], char path[PATH_MAX])
{
    char best[NAME_MAX + 1] = "";
    DIR *listing = opendir(folder);
    if (!listing) return false;
    for (struct dirent *entry; (entry = readdir(listing));) {
        const char *name = entry->d_name;
        bool        fits = strncmp(name, stem[0], strlen(stem[0])) == 0 ||
                    strncmp(name, stem[1], strlen(stem[1])) == 0;
        if (fits && better(name, best)) snprintf(best, sizeof best, "%s", name);
    }
    closedir(listing);
    at_text text = at_text_in(path, PATH_MAX);
    at_text_add(&text, "%s/%s", folder, best);
    return *best != '\0' && !text.full;
}

static at_err need_file(const char *folder, const char *const stem[2], char path[PATH_MAX],
                        at_fail *fail)
{
    assert(stem[0] && stem[1]);
    if (find_file(folder, stem, path)) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING,
                       "put the four IDX files there, or use a named set (`anytime data list`)",
                       "%s: the folder holds no file %s-* (raw or .gz)", folder, stem[0]);
}

/* The comma between two paths: the first one behind which a file name ends, else the first. */
static const char *find_comma(const char *name)
{
    char left[PATH_MAX];
    for (const char *comma = name; (comma = strchr(comma, ',')); comma++) {
        size_t length = (size_t)(comma - name);
        if (length >= sizeof left) break;
        memcpy(left, name, length);
        left[length] = '\0';
        if (at_folder_is_file(left)) return comma;
    }
    return strchr(name, ',');
}

/* A pair of files is one split, and it counts as the train set. */
static bool holds(const char *name, at_split split)
{
    char path[PATH_MAX];
    if (!at_folder_is(name)) return split == AT_SPLIT_TRAIN;
    return find_file(name, stems_of[split].images, path);
}

static bool claims(const char *name)
{
    if (at_folder_is(name)) return holds(name, AT_SPLIT_TRAIN) || holds(name, AT_SPLIT_TEST);
    return strchr(name, ',') || (at_folder_is_file(name) && at_idx_is_file(name));
}

static at_err load_pair(at_dataset *set, const char *images_path, const char *labels_path,
                        at_fail *fail)
{
    assert(!set->map);
    at_source *images = NULL, *labels = NULL;
    at_err     err = at_source_open(images_path, &images, fail);
    if (!err) err = at_source_open(labels_path, &labels, fail);
    if (!err) err = at_idx_read_pair(set, images, labels, fail);
    at_source_close(images);
    at_source_close(labels);
    return err;
}

/* A test set must agree with its train set on the classes, even if it lacks the last ones. */
static at_err adopt_train_classes(at_dataset *set, const char *folder, at_fail *fail)
{
    assert(set->classes > 0);
    char     path[PATH_MAX];
    uint32_t classes;
    if (!find_file(folder, stems_of[AT_SPLIT_TRAIN].labels, path)) return AT_OK;
    AT_TRY(at_idx_scan_classes(path, &classes, fail));
    if (classes < set->classes)
        return at_fail_set(fail, AT_ERR_FORMAT, "are these files of two different sets?",
                           "%s: the test set has a label %u, but the train set's labels end at %u",
                           folder, set->classes - 1, classes - 1);
    set->classes = classes;
    return AT_OK;
}

static at_err load_folder(at_dataset *set, const char *folder, at_split split, at_fail *fail)
{
    char         images[PATH_MAX], labels[PATH_MAX];
    const stems *of = &stems_of[split];
    AT_TRY(need_file(folder, of->images, images, fail));
    AT_TRY(need_file(folder, of->labels, labels, fail));
    AT_TRY(load_pair(set, images, labels, fail));
    return split == AT_SPLIT_TEST ? adopt_train_classes(set, folder, fail) : AT_OK;
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    assert(name);
    if (at_folder_is(name)) return load_folder(set, name, split, fail);
    const char *comma = find_comma(name);
    if (!comma)
        return at_fail_set(fail, AT_ERR_USAGE, "write IMAGES,LABELS or name the folder of both",
                           "%s: is one IDX file, and images need the file of their labels", name);
    char   images[PATH_MAX];
    size_t length = (size_t)(comma - name);
    if (length >= sizeof images)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the path of the images is too long");
    memcpy(images, name, length);
    images[length] = '\0';
    assert(comma[0] == ',');
    return load_pair(set, images, comma + 1, fail);
}

static at_err folder_sources(const char *folder, at_split split, at_files *files, at_fail *fail)
{
    const stems *of = &stems_of[split];
    char         path[PATH_MAX];
    if (find_file(folder, of->images, path)) AT_TRY(at_files_add(files, path, fail));
    if (find_file(folder, of->labels, path)) AT_TRY(at_files_add(files, path, fail));
    if (split == AT_SPLIT_TRAIN) return AT_OK;
    bool train = find_file(folder, stems_of[AT_SPLIT_TRAIN].labels, path); /* for its classes */
    return train ? at_files_add(files, path, fail) : AT_OK;
}

static at_err sources(const char *name, at_split split, at_files *files, at_fail *fail)
{
    if (at_folder_is(name)) return folder_sources(name, split, files, fail);
    const char *comma = find_comma(name);
    if (!comma) return AT_OK;
    char   images[PATH_MAX] = "";
    size_t length = (size_t)(comma - name);
    if (length >= sizeof images) return AT_OK;
    memcpy(images, name, length);
    AT_TRY(at_files_add(files, images, fail));
    return at_files_add(files, comma + 1, fail);
}

const at_format at_format_idx = {
    .name = "idx",
    .summary = "IDX files of bytes (MNIST and its successors), raw or gzipped",
    .wants = "train-images*, train-labels*, t10k-images*, t10k-labels*",
    .claims = claims,
    .holds = holds,
    .load = load,
    .sources = sources,
};

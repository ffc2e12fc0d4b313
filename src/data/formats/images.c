#include "data/formats/images.h"

#include "base/rng.h"
#include "data/files/folder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_EVERY = 5 };

static bool is_image_name(const char *name)
{
    return name[0] != '.' && (at_folder_ends(name, ".jpg") || at_folder_ends(name, ".jpeg") ||
                              at_folder_ends(name, ".png"));
}

/* Whether some folder in this one has images. */
static bool has_classes(const char *folder)
{
    at_files inner = {0};
    bool     found = false;
    if (at_folder_list(folder, NULL, &inner, NULL) == AT_OK)
        for (size_t i = 0; !found && i < inner.count; i++)
            found = at_folder_has(inner.path[i], is_image_name);
    at_files_deinit(&inner);
    return found;
}

/* The folder of a split, or false: the folder has no folders for splits. */
static bool find_split(const char *folder, at_split split, char path[PATH_MAX])
{
    static const char *const names[2][3] = {{"train", "training", NULL},
                                            {"test", "val", "validation"}};
    for (size_t i = 0; i < 3 && names[split][i]; i++)
        if (at_folder_join(path, folder, names[split][i], NULL) == AT_OK && has_classes(path))
            return true;
    return false;
}

bool at_images_are_in(const char *folder)
{
    char path[PATH_MAX];
    return at_folder_is(folder) &&
           (find_split(folder, AT_SPLIT_TRAIN, path) || has_classes(folder));
}

/* FNV-1a, mixed once more because its low bits are weak. */
static uint64_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return at_rng_mix(hash);
}

static at_split split_of(const char *path)
{
    return hash_name(at_folder_name(path)) % TEST_EVERY == 0 ? AT_SPLIT_TEST : AT_SPLIT_TRAIN;
}

/* Which files of the class folders are taken. */
typedef struct choice {
    bool     all; /* else only those of a split */
    at_split split;
} choice;

static at_err add_image(at_images *images, const char *path, uint32_t label, at_fail *fail)
{
    size_t count = images->files.count;
    if ((count & (count - 1)) == 0) { /* room doubles at powers of two */
        uint32_t *more = reallocarray(images->labels, count ? 2 * count : 1, sizeof *more);
        if (!more) return at_fail_memory_for(fail, "for labels");
        images->labels = more;
    }
    images->labels[count] = label;
    return at_files_add(&images->files, path, fail);
}

static at_err add_class(at_images *images, const char *folder, uint32_t label, choice take,
                        at_fail *fail)
{
    at_files files = {0};
    at_err   err = at_folder_list(folder, is_image_name, &files, fail);
    for (size_t i = 0; !err && i < files.count; i++)
        if (take.all || split_of(files.path[i]) == take.split)
            err = add_image(images, files.path[i], label, fail);
    at_files_deinit(&files);
    return err;
}

/* The names of the folders with images are the classes. */
static at_err list_classes(at_files *classes, const char *folder, at_fail *fail)
{
    at_files inner = {0};
    at_err   err = at_folder_list(folder, NULL, &inner, fail);
    for (size_t i = 0; !err && i < inner.count; i++)
        if (at_folder_has(inner.path[i], is_image_name))
            err = at_files_add(classes, at_folder_name(inner.path[i]), fail);
    at_files_deinit(&inner);
    return err;
}

static at_err check_classes(const at_files *train, const char *folder, at_fail *fail)
{
    at_files own = {0};
    at_err   err = list_classes(&own, folder, fail);
    for (size_t i = 0, k = 0; !err && i < own.count; i++) { /* both are sorted */
        while (k < train->count && strcmp(train->path[k], own.path[i]) < 0) k++;
        if (k == train->count || strcmp(train->path[k], own.path[i]) != 0)
            err =
                at_fail_set(fail, AT_ERR_FORMAT, "the classes of both splits must be the same",
                            "%s/%s: the train set has no class of that name", folder, own.path[i]);
    }
    at_files_deinit(&own);
    return err;
}

/* Adds the images of all classes below a folder; a class that is not there has none. */
static at_err add_classes(at_images *images, const char *folder, choice take, at_fail *fail)
{
    char path[PATH_MAX];
    for (size_t c = 0; c < images->classes.count; c++) {
        AT_TRY(at_folder_join(path, folder, images->classes.path[c], fail));
        if (at_folder_is(path)) AT_TRY(add_class(images, path, (uint32_t)c, take, fail));
    }
    if (images->files.count > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING,
                       "put them into folders train/CLASS and test/CLASS, or use another set for "
                       "testing (--test-data)",
                       "%s: the folder holds no JPEG or PNG images%s", folder,
                       !take.all && take.split == AT_SPLIT_TEST ? " for testing" : "");
}

at_err at_images_list(at_images *images, const char *folder, at_split split, at_fail *fail)
{
    assert(images && folder);
    char train[PATH_MAX], own[PATH_MAX];
    *images = (at_images){0};
    if (!find_split(folder, AT_SPLIT_TRAIN, train)) {
        AT_TRY(list_classes(&images->classes, folder, fail));
        return add_classes(images, folder, (choice){.split = split}, fail);
    }
    if (!find_split(folder, split, own))
        return at_fail_set(fail, AT_ERR_MISSING, "name it test, val or validation",
                           "%s: the folder holds no images for testing", folder);
    AT_TRY(list_classes(&images->classes, train, fail));
    AT_TRY(check_classes(&images->classes, own, fail));
    return add_classes(images, own, (choice){.all = true}, fail);
}

bool at_images_has(const char *folder, at_split split)
{
    char path[PATH_MAX];
    if (find_split(folder, AT_SPLIT_TRAIN, path)) return find_split(folder, split, path);
    at_images images;
    bool      any = at_images_list(&images, folder, split, NULL) == AT_OK;
    at_images_deinit(&images);
    return any;
}

void at_images_deinit(at_images *images)
{
    assert(images);
    at_files_deinit(&images->classes);
    at_files_deinit(&images->files);
    free(images->labels);
    *images = (at_images){0};
}

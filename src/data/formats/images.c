/* Folders of JPEG and PNG images, one subfolder per class.
 *
 *     FOLDER/train/CLASS/NAME.jpg     training
 *     FOLDER/test/CLASS/NAME.jpg      testing; the folder may also be named val or validation
 *     FOLDER/CLASS/NAME.jpg           or both splits together: every fifth file is for testing
 *
 * Classes are numbered from 0 in the order of their names, byte by byte. Whether a file is a fifth
 * one depends only on a hash of its name, so images never change their split when the set grows.
 *
 * All images are brought to one size:
 *
 *     FOLDER            224 x 224: scaled, the longer side cropped to its center
 *     FOLDER,64         64 x 64
 *     FOLDER,64,crop    the center 64 x 64 pixels, not scaled; small images get black borders
 */
#include "data/formats/format.h"

#include "base/machine.h"
#include "base/text.h"
#include "data/files/folder.h"
#include "data/formats/image.h"
#include "data/set/string_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct image_list {
    at_file_list classes; /* names */
    at_file_list files;   /* paths of one split */
    uint32_t    *labels;  /* (files.count) */
} image_list;

enum { TEST_EVERY = 5, THREADS_MAX = 16, SIDE_DEFAULT = 224, SIDE_MAX = 4096 };

static bool is_image_name(const char *name)
{
    return name[0] != '.' && (at_folder_ends(name, ".jpg") || at_folder_ends(name, ".jpeg") ||
                              at_folder_ends(name, ".png"));
}

/* Whether some subfolder has images. */
static bool has_classes(const char *folder)
{
    at_file_list inner = {0};
    bool         found = false;
    if (at_folder_list(folder, NULL, &inner, NULL) == AT_OK)
        for (size_t i = 0; !found && i < inner.count; i++)
            found = at_folder_has(inner.path[i], is_image_name);
    at_file_list_deinit(&inner);
    return found;
}

/* The subfolder of a split; false when there is none. */
static bool find_split(const char *folder, at_split split, char path[PATH_MAX])
{
    static const char *const names[2][3] = {{"train", "training", NULL},
                                            {"test", "val", "validation"}};
    for (size_t i = 0; i < 3 && names[split][i]; i++)
        if (at_folder_join(path, folder, names[split][i], NULL) == AT_OK && has_classes(path))
            return true;
    return false;
}

/* Whether the folder has images in one of the two layouts. */
static bool has_images(const char *folder)
{
    char path[PATH_MAX];
    return at_folder_is(folder) &&
           (find_split(folder, AT_SPLIT_TRAIN, path) || has_classes(folder));
}

static at_split split_of(const char *path)
{
    const char *name = at_folder_name(path);
    uint64_t    hash = at_string_hash(AT_STRING_HASH_START, name, name + strlen(name));
    return hash % TEST_EVERY == 0 ? AT_SPLIT_TEST : AT_SPLIT_TRAIN;
}

/* Which files of the class folders to use. */
typedef struct choice {
    bool     all; /* else only those of the split */
    at_split split;
} choice;

static at_err add_image(image_list *images, const char *path, uint32_t label, at_fail *fail)
{
    size_t count = images->files.count;
    if ((count & (count - 1)) == 0) { /* capacity doubles at powers of two */
        uint32_t *more = reallocarray(images->labels, count ? 2 * count : 1, sizeof *more);
        if (!more) return at_fail_memory_for(fail, "for labels");
        images->labels = more;
    }
    images->labels[count] = label;
    return at_file_list_add(&images->files, path, fail);
}

static at_err add_class(image_list *images, const char *folder, uint32_t label, choice use,
                        at_fail *fail)
{
    at_file_list files = {0};
    at_err       err = at_folder_list(folder, is_image_name, &files, fail);
    for (size_t i = 0; !err && i < files.count; i++)
        if (use.all || split_of(files.path[i]) == use.split)
            err = add_image(images, files.path[i], label, fail);
    at_file_list_deinit(&files);
    return err;
}

/* The classes are the names of the subfolders with images. */
static at_err list_classes(at_file_list *classes, const char *folder, at_fail *fail)
{
    at_file_list inner = {0};
    at_err       err = at_folder_list(folder, NULL, &inner, fail);
    for (size_t i = 0; !err && i < inner.count; i++)
        if (at_folder_has(inner.path[i], is_image_name))
            err = at_file_list_add(classes, at_folder_name(inner.path[i]), fail);
    at_file_list_deinit(&inner);
    return err;
}

static at_err check_classes(const at_file_list *train, const char *folder, at_fail *fail)
{
    at_file_list own = {0};
    at_err       err = list_classes(&own, folder, fail);
    for (size_t i = 0, k = 0; !err && i < own.count; i++) { /* both are sorted */
        while (k < train->count && strcmp(train->path[k], own.path[i]) < 0) k++;
        if (k == train->count || strcmp(train->path[k], own.path[i]) != 0)
            err =
                at_fail_set(fail, AT_ERR_FORMAT, "both splits must have the same classes",
                            "%s/%s: the train set has no class of this name", folder, own.path[i]);
    }
    at_file_list_deinit(&own);
    return err;
}

/* Adds the images of all classes in a folder; a missing class has none. */
static at_err add_classes(image_list *images, const char *folder, choice use, at_fail *fail)
{
    char path[PATH_MAX];
    for (size_t c = 0; c < images->classes.count; c++) {
        AT_TRY(at_folder_join(path, folder, images->classes.path[c], fail));
        if (at_folder_is(path)) AT_TRY(add_class(images, path, (uint32_t)c, use, fail));
    }
    if (images->files.count > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING,
                       "put images into train/CLASS and test/CLASS, or name another test set "
                       "(--test-data)",
                       "%s: no JPEG or PNG images%s in the folder", folder,
                       !use.all && use.split == AT_SPLIT_TEST ? " for testing" : "");
}

/* Lists the images of a split. AT_ERR_MISSING when there are none, AT_ERR_FORMAT when the test set
 * has a class that the train set lacks. To be deinited even after an error. */
static at_err list_images(image_list *images, const char *folder, at_split split, at_fail *fail)
{
    assert(images && folder);
    char train[PATH_MAX], own[PATH_MAX];
    *images = (image_list){0};
    if (!find_split(folder, AT_SPLIT_TRAIN, train)) {
        AT_TRY(list_classes(&images->classes, folder, fail));
        return add_classes(images, folder, (choice){.split = split}, fail);
    }
    if (!find_split(folder, split, own))
        return at_fail_set(fail, AT_ERR_MISSING,
                           "name the folder of test images test, val or validation",
                           "%s: no images for testing in the folder", folder);
    AT_TRY(list_classes(&images->classes, train, fail));
    AT_TRY(check_classes(&images->classes, own, fail));
    return add_classes(images, own, (choice){.all = true}, fail);
}

static void image_list_deinit(image_list *images)
{
    assert(images);
    at_file_list_deinit(&images->classes);
    at_file_list_deinit(&images->files);
    free(images->labels);
    *images = (image_list){0};
}

/* Whether there are images of that split. */
static bool has_images_of(const char *folder, at_split split)
{
    char path[PATH_MAX];
    if (find_split(folder, AT_SPLIT_TRAIN, path)) return find_split(folder, split, path);
    image_list images;
    bool       any = list_images(&images, folder, split, NULL) == AT_OK;
    image_list_deinit(&images);
    return any;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Decoding takes milliseconds per image, so all cores take part: each thread processes the next
 * image until all are done or one is broken. `lock` guards the last four fields. */
typedef struct job {
    const image_list *images;
    at_image_fit_mode mode;
    uint32_t          side;
    at_dataset       *set;
    pthread_mutex_t   lock;
    size_t            next, done;
    size_t            bad_index; /* SIZE_MAX: none */
    at_fail           bad;
} job;

/* Gets the next image; false when there is none or an earlier one is broken. */
static bool next_image(job *j, size_t *index)
{
    pthread_mutex_lock(&j->lock);
    *index = j->next;
    bool taken = *index < j->images->files.count && *index < j->bad_index;
    if (taken) j->next++;
    pthread_mutex_unlock(&j->lock);
    return taken;
}

/* Records a finished image; keeps the failure of the first broken one in the list. */
static void finish_image(job *j, size_t index, at_err err, const at_fail *why)
{
    pthread_mutex_lock(&j->lock);
    if (err && index < j->bad_index) {
        j->bad_index = index;
        j->bad = *why;
    }
    at_load_progress_report(j->set->progress, ++j->done, j->images->files.count);
    pthread_mutex_unlock(&j->lock);
}

static void *work(void *argument)
{
    job *j = argument;
    for (size_t index; next_image(j, &index);) {
        at_fail        why = {0};
        unsigned char *row = j->set->rows + index * j->set->row_size;
        at_err err = at_image_read(j->images->files.path[index], j->mode, j->side, row, &why);
        j->set->labels[index] = j->images->labels[index];
        finish_image(j, index, err, &why);
    }
    return NULL;
}

/* Reads all images into the rows of a reserved set, on all cores. */
static at_err read_images(const image_list *images, at_image_fit_mode mode, uint32_t side,
                          at_dataset *set, at_fail *fail)
{
    assert(set->count == images->files.count);
    assert(set->row_size == (size_t)3 * side * side);
    job       j = {.images = images, .mode = mode, .side = side, .set = set, .bad_index = SIZE_MAX};
    pthread_t threads[THREADS_MAX];
    size_t    started = 0, wanted = at_machine_cores() - 1; /* this thread works too */
    if (wanted > THREADS_MAX) wanted = THREADS_MAX;
    pthread_mutex_init(&j.lock, NULL);
    while (started < wanted && pthread_create(&threads[started], NULL, work, &j) == 0) started++;
    work(&j);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&j.lock);
    if (j.bad_index == SIZE_MAX) return AT_OK;
    if (fail) *fail = j.bad;
    return j.bad.err;
}

/* ---- the format ------------------------------------------------------------------------------ */

#define HINT \
    "write FOLDER,SIZE or FOLDER,SIZE,crop with a size from 1 to 4096, for example flowers,64"

typedef struct request {
    char              folder[PATH_MAX];
    uint32_t          side;
    at_image_fit_mode mode;
} request;

/* Cuts the text at its last comma; returns the rest, or NULL. */
static const char *cut_last(char *text)
{
    char *comma = strrchr(text, ',');
    if (!comma) return NULL;
    *comma = '\0';
    return comma + 1;
}

/* The name of an existing folder may contain commas. */
static bool parse(const char *name, request *wanted)
{
    assert(name);
    int64_t side;
    *wanted = (request){.side = SIDE_DEFAULT, .mode = AT_IMAGE_RESIZE};
    if (strlen(name) >= sizeof wanted->folder) return false;
    memcpy(wanted->folder, name, strlen(name) + 1);
    if (at_folder_is(name)) return true;
    const char *word = cut_last(wanted->folder);
    if (word && strcmp(word, "crop") == 0) {
        wanted->mode = AT_IMAGE_CROP;
        word = cut_last(wanted->folder);
    }
    if (!word || !at_text_whole(word, &side) || side < 1 || side > SIDE_MAX) return false;
    wanted->side = (uint32_t)side;
    return at_folder_is(wanted->folder);
}

static bool claims(const char *name)
{
    request wanted;
    return parse(name, &wanted) && has_images(wanted.folder);
}

static bool has_split(const char *name, at_split split)
{
    request wanted;
    return parse(name, &wanted) && has_images_of(wanted.folder, split);
}

static bool divides(const char *name)
{
    request wanted;
    char    path[PATH_MAX];
    return parse(name, &wanted) && !find_split(wanted.folder, AT_SPLIT_TRAIN, path);
}

static at_err parse_request(const char *name, request *wanted, at_fail *fail)
{
    if (parse(name, wanted)) return AT_OK;
    if (at_folder_is(wanted->folder))
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: expected a folder and a size", name);
    return at_fail_set(fail, AT_ERR_MISSING, HINT, "%s: no such folder", name);
}

static void copy_names(at_dataset *set, const at_file_list *classes)
{
    char *to = set->names;
    for (size_t i = 0; i < classes->count; i++) {
        size_t size = strlen(classes->path[i]) + 1;
        memcpy(to, classes->path[i], size);
        to += size;
    }
    assert(to == set->names + set->names_size);
}

static at_err load_images(at_dataset *set, const image_list *images, const request *wanted,
                          at_fail *fail)
{
    assert(images->files.count > 0);
    for (size_t i = 0; i < images->classes.count; i++)
        set->names_size += strlen(images->classes.path[i]) + 1;
    AT_TRY(at_store_reserve(set, images->files.count, 3 * wanted->side * wanted->side,
                            AT_ELEMENT_BYTE, fail));
    copy_names(set, &images->classes);
    set->classes = (uint32_t)images->classes.count;
    set->shape = (at_image_shape){3, wanted->side, wanted->side};
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "3x%ux%u bytes", wanted->side, wanted->side);
    return read_images(images, wanted->mode, wanted->side, set, fail);
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    request    wanted;
    image_list images;
    AT_TRY(parse_request(name, &wanted, fail));
    at_err err = list_images(&images, wanted.folder, split, fail);
    if (!err) err = load_images(set, &images, &wanted, fail);
    image_list_deinit(&images);
    return err;
}

static at_err source_files(const char *name, at_split split, at_file_list *files, at_fail *fail)
{
    request    wanted;
    image_list images;
    if (!parse(name, &wanted)) return AT_OK;
    at_err err = AT_OK, listed = list_images(&images, wanted.folder, split, NULL);
    for (size_t i = 0; !listed && !err && i < images.files.count; i++)
        err = at_file_list_add(files, images.files.path[i], fail);
    image_list_deinit(&images);
    return err;
}

static bool enlarges(const char *name, at_image_shape *before, at_image_shape *after)
{
    request    wanted;
    image_list images;
    if (!parse(name, &wanted) || !at_folder_is(name)) return false; /* or its size was given */
    *before = (at_image_shape){.channels = 3};
    *after = (at_image_shape){3, wanted.side, wanted.side};
    bool found =
        list_images(&images, wanted.folder, AT_SPLIT_TRAIN, NULL) == AT_OK &&
        at_image_size(images.files.path[0], &before->width, &before->height, NULL) == AT_OK;
    image_list_deinit(&images);
    return found && before->width < wanted.side && before->height < wanted.side;
}

const at_format at_format_images = {
    .name = "images",
    .summary = "JPEG and PNG images, one folder per class, scaled to one size (FOLDER,SIZE)",
    .expects = "a subfolder of .jpg or .png files for each class",
    .slow_to_read = true,
    .claims = claims,
    .has_split = has_split,
    .load = load,
    .source_files = source_files,
    .enlarges = enlarges,
    .divides = divides,
};

/* A folder of JPEG and PNG images, a folder a class. They are brought to one size:
 *
 *     FOLDER            224 x 224, scaled, the middle of the longer side
 *     FOLDER,64         64 x 64
 *     FOLDER,64,crop    the middle 64 x 64 pixels, not scaled; black borders where it is smaller
 */
#include "data/formats/format.h"

#include "base/text.h"
#include "data/files/folder.h"
#include "data/formats/images.h"

#include <assert.h>
#include <string.h>

enum { SIDE_DEFAULT = 224, SIDE_MAX = 4096 };

#define HINT \
    "write FOLDER,SIZE or FOLDER,SIZE,crop with a size of 1 to 4096, for example flowers,64"

typedef struct wish {
    char             folder[PATH_MAX];
    uint32_t         side;
    at_image_fitting how;
} wish;

/* Cuts the text at its last comma; what stood behind it, or NULL. */
static const char *cut(char *text)
{
    char *comma = strrchr(text, ',');
    if (!comma) return NULL;
    *comma = '\0';
    return comma + 1;
}

/* A folder whose own name has a comma is meant as it is. */
static bool parse(const char *name, wish *wanted)
{
    assert(name);
    int64_t side;
    *wanted = (wish){.side = SIDE_DEFAULT, .how = AT_IMAGE_RESIZE};
    if (strlen(name) >= sizeof wanted->folder) return false;
    memcpy(wanted->folder, name, strlen(name) + 1);
    if (at_folder_is(name)) return true;
    const char *word = cut(wanted->folder);
    if (word && strcmp(word, "crop") == 0) {
        wanted->how = AT_IMAGE_CROP;
        word = cut(wanted->folder);
    }
    if (!word || !at_text_whole(word, &side) || side < 1 || side > SIDE_MAX) return false;
    wanted->side = (uint32_t)side;
    return at_folder_is(wanted->folder);
}

static bool claims(const char *name)
{
    wish wanted;
    return parse(name, &wanted) && at_images_are_in(wanted.folder);
}

static bool holds(const char *name, at_split split)
{
    wish wanted;
    return parse(name, &wanted) && at_images_has(wanted.folder, split);
}

static at_err understand(const char *name, wish *wanted, at_fail *fail)
{
    if (parse(name, wanted)) return AT_OK;
    if (at_folder_is(wanted->folder))
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: is not a folder and a size", name);
    return at_fail_set(fail, AT_ERR_MISSING, HINT, "%s: there is no such folder", name);
}

static void copy_names(at_dataset *set, const at_files *classes)
{
    char *to = set->names;
    for (size_t i = 0; i < classes->count; i++) {
        size_t size = strlen(classes->path[i]) + 1;
        memcpy(to, classes->path[i], size);
        to += size;
    }
    assert(to == set->names + set->names_size);
}

static at_err load_images(at_dataset *set, const at_images *images, const wish *wanted,
                          at_fail *fail)
{
    assert(images->files.count > 0);
    for (size_t i = 0; i < images->classes.count; i++)
        set->names_size += strlen(images->classes.path[i]) + 1;
    AT_TRY(at_store_reserve(set, images->files.count, 3 * wanted->side * wanted->side,
                            AT_ELEMENT_BYTE, fail));
    copy_names(set, &images->classes);
    set->classes = (uint32_t)images->classes.count;
    set->picture = (at_image_shape){3, wanted->side, wanted->side};
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "3x%ux%u bytes", wanted->side, wanted->side);
    return at_images_read(images, wanted->how, wanted->side, set, fail);
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    wish      wanted;
    at_images images;
    AT_TRY(understand(name, &wanted, fail));
    at_err err = at_images_list(&images, wanted.folder, split, fail);
    if (!err) err = load_images(set, &images, &wanted, fail);
    at_images_deinit(&images);
    return err;
}

static at_err sources(const char *name, at_split split, at_files *files, at_fail *fail)
{
    wish      wanted;
    at_images images;
    if (!parse(name, &wanted)) return AT_OK;
    at_err err = AT_OK, listed = at_images_list(&images, wanted.folder, split, NULL);
    for (size_t i = 0; !listed && !err && i < images.files.count; i++)
        err = at_files_add(files, images.files.path[i], fail);
    at_images_deinit(&images);
    return err;
}

const at_format at_format_images = {
    .name = "images",
    .summary = "JPEG and PNG images, a folder a class, all brought to one size (FOLDER,SIZE)",
    .wants = "folders of .jpg or .png",
    .parses = true,
    .claims = claims,
    .holds = holds,
    .load = load,
    .sources = sources,
};

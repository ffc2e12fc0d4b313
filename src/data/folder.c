#include "data/folder.h"

#include "base/text.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

bool at_folder_is(const char *path)
{
    assert(path);
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool at_folder_is_file(const char *path)
{
    assert(path);
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool is_wanted(const char *name, bool (*wanted)(const char *name))
{
    assert(name);
    return name[0] != '.' && (!wanted || wanted(name));
}

/* Room doubles whenever the count reaches a power of two. */
static bool add(at_folder *folder, const char *name)
{
    assert(name[0]);
    size_t count = folder->count;
    if ((count & (count - 1)) == 0) {
        char **grown = realloc(folder->names, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown) return false;
        folder->names = grown;
    }
    folder->names[count] = strdup(name);
    if (!folder->names[count]) return false;
    folder->count++;
    return true;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static at_err cannot_list(const char *path, at_fail *fail)
{
    assert(errno != 0);
    bool missing = errno == ENOENT || errno == ENOTDIR;
    return at_fail_set(fail, missing ? AT_ERR_MISSING : AT_ERR_IO,
                       "check the name and the permissions", "%s: cannot be listed: %s", path,
                       strerror(errno));
}

at_err at_folder_list(const char *path, bool (*wanted)(const char *name), at_folder *folder,
                      at_fail *fail)
{
    assert(path && folder);
    *folder = (at_folder){0};
    bool added = true;
    DIR *listing = opendir(path);
    if (!listing) return cannot_list(path, fail);
    for (struct dirent *entry; added && (entry = readdir(listing));)
        if (is_wanted(entry->d_name, wanted)) added = add(folder, entry->d_name);
    closedir(listing);
    if (!added) {
        at_folder_deinit(folder);
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: not enough memory to list it", path);
    }
    if (folder->count > 0) qsort(folder->names, folder->count, sizeof *folder->names, compare);
    return AT_OK;
}

void at_folder_deinit(at_folder *folder)
{
    assert(folder);
    for (size_t i = 0; i < folder->count; i++) free(folder->names[i]);
    free(folder->names);
    *folder = (at_folder){0};
}

bool at_folder_has(const char *path, bool (*wanted)(const char *name))
{
    bool found = false;
    DIR *listing = opendir(path);
    if (!listing) return false;
    for (struct dirent *entry; !found && (entry = readdir(listing));)
        found = is_wanted(entry->d_name, wanted);
    closedir(listing);
    return found;
}

at_err at_folder_join(char path[PATH_MAX], const char *folder, const char *name, at_fail *fail)
{
    assert(folder && name);
    at_text text = at_text_in(path, PATH_MAX);
    at_text_add(&text, "%s/%s", folder, name);
    if (!text.full) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "use a shorter path", "a path below %.200s is too long",
                       folder);
}

bool at_folder_begins(const char *name, const char *with)
{
    assert(name && with);
    return strncasecmp(name, with, strlen(with)) == 0;
}

bool at_folder_ends(const char *name, const char *with)
{
    assert(name && with);
    size_t length = strlen(name), tail = strlen(with);
    return length >= tail && strcasecmp(name + length - tail, with) == 0;
}

#include "data/files/folder.h"

#include "base/file.h"
#include "base/text.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

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

at_err at_folder_open_file(const char *path, FILE **file, uint64_t *size, at_fail *fail)
{
    assert(path && file && size);
    int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not wait for a pipe */
    struct stat status;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return at_fail_set(fail, AT_ERR_MISSING,
                           "check the name; `anytime data list` shows the known sets",
                           "%s: no such file", path);
    if (fd < 0) return at_file_error("open", path, errno, fail);
    if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        close(fd);
        return at_fail_set(fail, AT_ERR_IO, "name the file that holds the data",
                           "%s: not a regular file", path);
    }
    *size = (uint64_t)status.st_size;
    *file = fdopen(fd, "rb");
    if (*file) return AT_OK;
    close(fd);
    return at_fail_memory_for(fail, "to read %s", path);
}

static bool is_wanted(const char *name, bool (*wanted)(const char *name))
{
    assert(name);
    if (wanted) return wanted(name);
    return name[0] != '.';
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
                       "check the name and the permissions", "%s: cannot list the folder: %s", path,
                       strerror(errno));
}

static at_err add_all(DIR *listing, const char *path, bool (*wanted)(const char *name),
                      at_file_list *files, at_fail *fail)
{
    char inner[PATH_MAX];
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (!is_wanted(entry->d_name, wanted)) continue;
        AT_TRY(at_folder_join(inner, path, entry->d_name, fail));
        AT_TRY(at_file_list_add(files, inner, fail));
    }
    return AT_OK;
}

at_err at_folder_list(const char *path, bool (*wanted)(const char *name), at_file_list *files,
                      at_fail *fail)
{
    assert(path && files);
    assert(files->count == 0);
    DIR *listing = opendir(path);
    if (!listing) return cannot_list(path, fail);
    at_err err = add_all(listing, path, wanted, files, fail);
    closedir(listing);
    if (!err && files->count > 0) qsort(files->path, files->count, sizeof *files->path, compare);
    return err;
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

const char *at_folder_name(const char *path)
{
    assert(path);
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

at_err at_folder_join(char path[PATH_MAX], const char *folder, const char *name, at_fail *fail)
{
    assert(folder && name);
    at_text text = at_text_in(path, PATH_MAX);
    at_text_add(&text, "%s/%s", folder, name);
    if (!text.full) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "use a shorter path", "path too long: a file in %.200s",
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

enum { ROOM_FIRST = 16 };

at_err at_file_list_add(at_file_list *files, const char *path, at_fail *fail)
{
    assert(files && path);
    assert(files->count <= files->room);
    if (files->count == files->room) {
        size_t room = files->room ? 2 * files->room : ROOM_FIRST;
        char **more = reallocarray(files->path, room, sizeof *more);
        if (!more) return at_fail_memory_for(fail, "for a list of files");
        files->path = more;
        files->room = room;
    }
    char *copy = strdup(path);
    if (!copy) return at_fail_memory_for(fail, "for a list of files");
    files->path[files->count++] = copy;
    return AT_OK;
}

void at_file_list_deinit(at_file_list *files)
{
    assert(files);
    for (size_t i = 0; i < files->count; i++) free(files->path[i]);
    free(files->path);
    *files = (at_file_list){0};
}

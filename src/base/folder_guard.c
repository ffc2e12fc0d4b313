#include "base/folder_guard.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct {
    char   path[PATH_MAX]; /* "": nothing is guarded */
    size_t size;
    dev_t  device;
    ino_t  number;
} guard;

void at_folder_guard_set(const char *folder)
{
    struct stat info;
    guard.path[0] = '\0';
    if (!folder || strlen(folder) >= sizeof guard.path || stat(folder, &info)) return;
    snprintf(guard.path, sizeof guard.path, "%s", folder);
    guard.size = strlen(folder);
    while (guard.size > 1 && guard.path[guard.size - 1] == '/') guard.path[--guard.size] = '\0';
    guard.device = info.st_dev;
    guard.number = info.st_ino;
}

static bool is_guarded(const char *path)
{
    return guard.path[0] && strncmp(path, guard.path, guard.size) == 0 && path[guard.size] == '/';
}

/* The folder itself may be named by a link that the user made; those below it are ours. */
int at_folder_guard_check(const char *path)
{
    char        part[PATH_MAX];
    struct stat info;
    assert(path);
    if (!is_guarded(path) || strlen(path) >= sizeof part) return 0;
    if (stat(guard.path, &info)) return errno;
    if (info.st_dev != guard.device || info.st_ino != guard.number) return ELOOP;
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + guard.size + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (lstat(part, &info) == 0 && S_ISLNK(info.st_mode)) return ELOOP;
        *slash = '/';
    }
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode) ? ELOOP : 0;
}

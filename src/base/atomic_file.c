#include "base/atomic_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/folder_guard.h"

enum { TEMPORARY_TRIES_MAX = 1000 };

static const char draft_begin[] = ".anytime-", draft_end[] = ".tmp";

/* Length of the folder part of a path: "a/" of "a/b", "" of "b". */
static size_t folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Opens a new file in path's folder and stores its name in *temporary (freed by the caller). Not
 * mkstemp, which ignores the umask and makes the file private to its owner. */
static int open_temporary(const char *path, char **temporary)
{
    int folder = (int)folder_size(path);
    for (int i = 0; i < TEMPORARY_TRIES_MAX; i++) {
        if (asprintf(temporary, "%.*s%s%ld-%d%s", folder, path, draft_begin, (long)getpid(), i,
                     draft_end) < 0) {
            *temporary = NULL;
            errno = ENOMEM;
            return -1;
        }
        int fd = at_disk->open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) return fd;
        int error = errno;
        free(*temporary);
        *temporary = NULL;
        errno = error;
        if (error != EEXIST) return -1;
    }
    return -1;
}

static int write_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t done = at_disk->write(fd, bytes, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        assert((size_t)done <= size);
        bytes += done;
        size -= (size_t)done;
    }
    return 0;
}

static void release(at_atomic_file *file)
{
    free(file->path);
    free(file->temporary);
    *file = (at_atomic_file){.fd = -1};
}

at_err at_atomic_file_begin(at_atomic_file *file, const char *path, bool sealed, at_fail *fail)
{
    assert(path);
    *file = (at_atomic_file){.fd = -1, .path = strdup(path)};
    int error = file->path ? at_folder_guard_check(path) : ENOMEM;
    if (file->path && !error) {
        file->fd = open_temporary(path, &file->temporary);
        error = errno;
    }
    if (file->fd < 0) {
        release(file);
        return at_file_error("write", path, error, fail);
    }
    file->sealed = sealed && at_digest_begin(&file->digest);
    if (sealed && !file->sealed) file->error = ENOMEM;
    return AT_OK;
}

void at_atomic_file_put(at_atomic_file *file, const void *bytes, size_t size)
{
    assert(file->fd >= 0);
    if (file->sealed) at_digest_add(&file->digest, bytes, size);
    if (!file->error) file->error = write_all(file->fd, bytes, size);
}

void at_atomic_file_seal(at_atomic_file *file)
{
    unsigned char seal[AT_ATOMIC_FILE_SEAL];
    if (!file->sealed) return; /* commit reports it */
    at_digest_end(&file->digest, seal);
    file->sealed = false;
    at_atomic_file_put(file, seal, sizeof seal);
}

/* Syncs, closes and renames. Returns an errno. */
static int finish(at_atomic_file *file)
{
    int error = file->error;
    if (!error && at_disk->fsync(file->fd)) error = errno;
    if (at_disk->close(file->fd) && !error) error = errno;
    if (!error && at_disk->rename(file->temporary, file->path)) error = errno;
    return error;
}

at_err at_atomic_file_commit(at_atomic_file *file, at_fail *fail)
{
    assert(file->fd >= 0);
    assert(!file->sealed); /* at_atomic_file_seal was not called */
    int error = finish(file);
    if (error)
        at_disk->unlink(file->temporary);
    else
        error = at_file_sync_folder(file->path);
    at_err err = error ? at_file_error("write", file->path, error, fail) : AT_OK;
    release(file);
    return err;
}

static void remove_draft(void *self, const char *name)
{
    const char *folder = self;
    char        path[PATH_MAX];
    size_t      begin = sizeof draft_begin - 1, end = sizeof draft_end - 1, size = strlen(name);
    if (size < begin + end || strncmp(name, draft_begin, begin) != 0) return;
    if (strcmp(name + size - end, draft_end) != 0) return;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length > 0 && (size_t)length < sizeof path) at_disk->unlink(path);
}

void at_atomic_file_remove_drafts(const char *folder)
{
    assert(folder[0]);
    at_disk->list(folder, remove_draft, (void *)(uintptr_t)folder);
}

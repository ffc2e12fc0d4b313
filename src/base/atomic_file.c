#include "base/atomic_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEMPORARY_TRIES_MAX = 1000 };

/* "a/b" gives "a/", "b" gives "": what a neighbour's name has to begin with. */
static size_t folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Opens a new file in path's folder and names it in *temporary (freed by the caller). Not
 * mkstemp: that would make the final file private to its owner, whatever the umask says. */
static int open_temporary(const char *path, char **temporary)
{
    int folder = (int)folder_size(path);
    for (int i = 0; i < TEMPORARY_TRIES_MAX; i++) {
        if (asprintf(temporary, "%.*s.anytime-%ld-%d.tmp", folder, path, (long)getpid(), i) < 0) {
            *temporary = NULL;
            errno = ENOMEM;
            return -1;
        }
        int fd = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
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
        ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        assert((size_t)done <= size);
        bytes += done;
        size -= (size_t)done;
    }
    return 0;
}

/* Makes the rename itself durable. Some file systems cannot sync a folder: that is no failure. */
static int sync_folder(const char *path)
{
    size_t size = folder_size(path);
    char  *folder = size ? strndup(path, size) : strdup(".");
    if (!folder) return ENOMEM;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) return 0; /* a folder may be writable and not readable */
    int error = fsync(fd) ? errno : 0;
    close(fd);
    return error == EINVAL || error == ENOSYS ? 0 : error;
}

static void release(at_atomic_file *draft)
{
    free(draft->path);
    free(draft->temporary);
    *draft = (at_atomic_file){.fd = -1};
}

at_err at_atomic_file_begin(at_atomic_file *draft, const char *path, bool sealed, at_fail *fail)
{
    assert(path);
    *draft = (at_atomic_file){.fd = -1, .path = strdup(path)};
    int error = ENOMEM;
    if (draft->path) {
        draft->fd = open_temporary(path, &draft->temporary);
        error = errno;
    }
    if (draft->fd < 0) {
        release(draft);
        return at_file_cannot("write", path, error, fail);
    }
    draft->sealed = sealed && at_digest_begin(&draft->digest);
    if (sealed && !draft->sealed) draft->error = ENOMEM;
    return AT_OK;
}

void at_atomic_file_put(at_atomic_file *draft, const void *bytes, size_t size)
{
    assert(draft->fd >= 0);
    if (draft->sealed) at_digest_add(&draft->digest, bytes, size);
    if (!draft->error) draft->error = write_all(draft->fd, bytes, size);
}

void at_atomic_file_seal(at_atomic_file *draft)
{
    unsigned char seal[AT_ATOMIC_FILE_SEAL];
    if (!draft->sealed) return; /* the commit will tell */
    at_digest_end(&draft->digest, seal);
    draft->sealed = false;
    at_atomic_file_put(draft, seal, sizeof seal);
}

/* Syncs and closes, then gives the file its final name. Returns an errno. */
static int finish(at_atomic_file *draft)
{
    int error = draft->error;
    if (!error && fsync(draft->fd)) error = errno;
    if (close(draft->fd) && !error) error = errno;
    if (!error && rename(draft->temporary, draft->path)) error = errno;
    return error;
}

at_err at_atomic_file_commit(at_atomic_file *draft, at_fail *fail)
{
    assert(draft->fd >= 0);
    assert(!draft->sealed); /* a seal was promised */
    int error = finish(draft);
    if (error)
        unlink(draft->temporary);
    else
        error = sync_folder(draft->path);
    at_err err = error ? at_file_cannot("write", draft->path, error, fail) : AT_OK;
    release(draft);
    return err;
}

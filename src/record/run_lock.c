#include "record/run_lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { HELD_MAX = 64, TRIES_MAX = 100, HOLDER_SIZE = 300 };

/* ---- children -------------------------------------------------------------------------------- */

/* Descriptors of the locks that this process holds, plus 1; 0: none. A lock of flock belongs to
 * all copies of its descriptor: without this, a worker that outlives a killed hub by a moment would
 * keep the lock, and --resume would be refused. Beyond HELD_MAX that moment remains. */
static _Atomic int    held[HELD_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void close_in_child(void)
{
    for (int i = 0; i < HELD_MAX; i++) {
        int fd = atomic_exchange(&held[i], 0);
        if (fd > 0) close(fd - 1);
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, close_in_child);
}

static void replace_held(int old, int new)
{
    for (int i = 0; i < HELD_MAX; i++) {
        int expected = old;
        if (atomic_compare_exchange_strong(&held[i], &expected, new)) return;
    }
}

/* ---- taking ---------------------------------------------------------------------------------- */

static at_err taken(const char *folder, int fd, at_fail *fail)
{
    char      holder[HOLDER_SIZE] = "", here[HOLDER_SIZE] = "", host[HOLDER_SIZE] = "";
    long long pid = 0;
    ssize_t   got = pread(fd, holder, sizeof holder - 1, 0);
    assert(folder);
    holder[got > 0 ? got : 0] = '\0';
    if (sscanf(holder, "%lld %255s", &pid, host) < 1)
        return at_fail_set(fail, AT_ERR_USAGE, "wait until it ends",
                           "%s is in use by another run that has just started", folder);
    gethostname(here, sizeof here - 1);
    bool is_far = host[0] && strcmp(host, here) != 0;
    return at_fail_set(fail, AT_ERR_USAGE, "wait until it ends, or stop it first",
                       "%s is in use: process %lld%s%s writes to it", folder, pid,
                       is_far ? " on " : "", is_far ? host : "");
}

/* Whether the path still names the locked file; its last holder may just have removed it. */
static bool is_current(const char *path, int fd)
{
    struct stat named, locked;
    return stat(path, &named) == 0 && fstat(fd, &locked) == 0 && named.st_ino == locked.st_ino &&
           named.st_dev == locked.st_dev;
}

/* For whoever is refused. A full disk leaves the file empty, and the lock holds nevertheless. */
static void sign(int fd)
{
    char text[HOLDER_SIZE], host[HOLDER_SIZE - 32] = "";
    gethostname(host, sizeof host - 1);
    int     size = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), host);
    ssize_t written = ftruncate(fd, 0) == 0 ? pwrite(fd, text, (size_t)size, 0) : 0;
    (void)written;
}

static bool has_no_locks(int error)
{
    return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

/* One attempt; lock->fd stays -1 when it must be repeated. A file system without locks is used
 * without: exclusive creation still keeps new runs apart. */
static at_err try_lock(const char *folder, at_run_lock *lock, at_fail *fail)
{
    int fd = open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return at_fail_set(fail, AT_ERR_MISSING, "check the spelling of the path",
                           "%s: no such folder", folder);
    if (fd < 0) return at_file_error("lock", lock->path, errno, fail);
    int error = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
    if (!error && !is_current(lock->path, fd)) error = EAGAIN;
    if (!error || has_no_locks(error)) {
        lock->fd = fd;
        lock->exclusive = !error;
        return AT_OK;
    }
    at_err err = AT_OK;
    if (error == EWOULDBLOCK && is_current(lock->path, fd)) err = taken(folder, fd, fail);
    if (error != EWOULDBLOCK && error != EINTR) err = at_file_error("lock", folder, error, fail);
    close(fd);
    return err;
}

at_err at_run_lock_take_as(const char *folder, const char *name, at_run_lock *lock, at_fail *fail)
{
    assert(folder && name);
    *lock = (at_run_lock){.fd = -1};
    if (asprintf(&lock->path, "%s/%s", folder, name) < 0) {
        lock->path = NULL;
        return at_fail_memory(fail);
    }
    pthread_once(&once, watch_forks);
    at_err err = AT_OK;
    for (int i = 0; i < TRIES_MAX && !err && lock->fd < 0; i++) err = try_lock(folder, lock, fail);
    if (!err && lock->fd < 0)
        err = at_fail_set(fail, AT_ERR_USAGE, "try again", "%s is in use by other runs", folder);
    if (err) {
        free(lock->path);
        *lock = (at_run_lock){.fd = -1};
        return err;
    }
    replace_held(0, lock->fd + 1);
    sign(lock->fd);
    return AT_OK;
}

at_err at_run_lock_take(const char *folder, at_run_lock *lock, at_fail *fail)
{
    return at_run_lock_take_as(folder, "run.lock", lock, fail);
}

bool at_run_lock_is_held(const char *folder)
{
    char *path;
    if (asprintf(&path, "%s/run.lock", folder) < 0) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    free(path);
    if (fd < 0) return false;
    bool is_held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return is_held;
}

void at_run_lock_release(at_run_lock *lock)
{
    if (!lock->path) return;
    assert(lock->fd >= 0);
    /* While it is locked: nobody else can have taken it in between. In a folder that was renamed,
     * the path may name the lock of another run, which keeps it. */
    if (is_current(lock->path, lock->fd)) unlink(lock->path);
    replace_held(lock->fd + 1, 0);
    close(lock->fd);
    free(lock->path);
    *lock = (at_run_lock){.fd = -1};
}

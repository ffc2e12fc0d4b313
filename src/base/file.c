#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/atomic_file.h"
#include "base/disk.h"

enum { READ_SIZE_FIRST = 65536 }; /* when the size is not known in advance, as for a pipe */

static const char *hint_for(int error)
{
    switch (error) {
    case ENOSPC: return "the disk is full: free some space or choose another folder";
    case EDQUOT: return "your quota is used up: free some space or choose another folder";
    case EFBIG: return "the file is larger than this system or your limits (ulimit -f) allow";
    case EACCES:
    case EPERM: return "check the permissions of the file and of its folder";
    case EROFS: return "the file system is read-only: choose another folder";
    case ELOOP: return "a symbolic link or another folder is in its place: who has replaced it?";
    case ESPIPE: return "a named pipe is in its place: who has replaced it?";
    case EMFILE: return "too many open files: raise the limit (ulimit -n)";
    default: return NULL;
    }
}

at_err at_file_error(const char *what, const char *path, int error, at_fail *fail)
{
    assert(error != 0);
    return at_fail_set(fail, AT_ERR_IO, hint_for(error), "%s: cannot %s: %s", path, what,
                       strerror(error));
}

static at_err no_memory(const char *path, at_fail *fail)
{
    return at_fail_memory_for(fail, "to hold %s", path);
}

/* Whether read() is to be repeated: after a signal, and when somebody has written to the pipe. */
static bool is_to_repeat(int fd)
{
    if (errno == EINTR) return true;
    if (errno != EAGAIN) return false;
    struct pollfd more = {.fd = fd, .events = POLLIN};
    return poll(&more, 1, -1) >= 0 || errno == EINTR;
}

static ssize_t read_some(int fd, unsigned char *bytes, size_t size)
{
    assert(size > 0); /* 0 would look like the end of the file */
    ssize_t got;
    do got = at_disk->read(fd, bytes, size);
    while (got < 0 && is_to_repeat(fd));
    return got;
}

/* Makes room for at least one more byte and the final zero, up to size_max + 2. */
static bool grow(unsigned char **bytes, size_t *room, size_t size_max)
{
    size_t wanted = *room ? *room * 2 : READ_SIZE_FIRST;
    if (wanted > size_max + 2) wanted = size_max + 2;
    assert(wanted > *room);
    unsigned char *more = realloc(*bytes, wanted);
    if (!more) return false;
    *bytes = more;
    *room = wanted;
    return true;
}

/* Reads fd to its end. The reported size is only a first guess: the file may grow, shrink, or be a
 * pipe. */
static at_err read_all(int fd, const char *path, size_t size_max, unsigned char **bytes,
                       size_t *size, at_fail *fail)
{
    assert(!*bytes && *size == 0);
    struct stat info;
    size_t      room = 0;
    if (at_disk->fstat(fd, &info)) return at_file_error("read", path, errno, fail);
    if (S_ISREG(info.st_mode) && info.st_size > 0 && (uintmax_t)info.st_size <= size_max) {
        room = (size_t)info.st_size + 2; /* one to detect the end, one for the zero */
        *bytes = malloc(room);
        if (!*bytes) return no_memory(path, fail);
    }
    for (;;) {
        if (*size + 1 >= room && !grow(bytes, &room, size_max)) return no_memory(path, fail);
        ssize_t got = read_some(fd, *bytes + *size, room - *size - 1);
        if (got < 0) return at_file_error("read", path, errno, fail);
        if (got == 0) break;
        *size += (size_t)got;
        if (*size > size_max)
            return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: larger than the %zu bytes allowed",
                               path, size_max);
    }
    if (*size == 0 && S_ISFIFO(info.st_mode))
        return at_fail_set(fail, AT_ERR_IO, "name a file", "%s: a pipe that nobody writes to",
                           path);
    (*bytes)[*size] = '\0';
    return AT_OK;
}

/* Without waiting for somebody who writes to a pipe. */
static at_err open_to_read(const char *path, int *fd, at_fail *fail)
{
    assert(path);
    *fd = at_disk->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (*fd >= 0) return AT_OK;
    if (errno == ENOENT || errno == ENOTDIR)
        return at_fail_set(fail, AT_ERR_MISSING, "check the spelling of the path",
                           "%s: no such file", path);
    return at_file_error("open", path, errno, fail);
}

at_err at_file_read(const char *path, size_t size_max, unsigned char **bytes, size_t *size,
                    at_fail *fail)
{
    if (size_max > SIZE_MAX / 4) size_max = SIZE_MAX / 4; /* so that sizes can be doubled */
    *bytes = NULL;
    *size = 0;
    int fd;
    AT_TRY(open_to_read(path, &fd, fail));
    at_err err = read_all(fd, path, size_max, bytes, size, fail);
    at_disk->close(fd);
    if (err) {
        free(*bytes);
        *bytes = NULL;
        *size = 0;
    }
    return err;
}

at_err at_file_read_text(const char *path, size_t size_max, char **text, at_fail *fail)
{
    unsigned char *bytes;
    size_t         size;
    *text = NULL;
    AT_TRY(at_file_read(path, size_max, &bytes, &size, fail));
    if (!memchr(bytes, 0, size)) {
        *text = (char *)bytes;
        return AT_OK;
    }
    free(bytes);
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: not a text file", path);
}

at_err at_file_write(const char *path, const void *bytes, size_t size, at_fail *fail)
{
    at_atomic_file file;
    assert(bytes || size == 0);
    AT_TRY(at_atomic_file_begin(&file, path, false, fail));
    at_atomic_file_put(&file, bytes, size);
    return at_atomic_file_commit(&file, fail);
}

/* Closes it, too. A file system that cannot sync it is no error. */
static int sync_and_close(int fd)
{
    int error = at_disk->fsync(fd) ? errno : 0;
    at_disk->close(fd);
    return error == EINVAL || error == ENOSYS ? 0 : error;
}

int at_file_sync(const char *path)
{
    int fd = at_disk->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    return fd < 0 ? errno : sync_and_close(fd);
}

int at_file_sync_folder(const char *path)
{
    char *folder = strdup(path);
    if (!folder) return ENOMEM;
    int fd = at_disk->open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int error = fd < 0 ? errno : 0;
    free(folder);
    if (fd < 0) return error == EACCES ? 0 : error; /* it may be writable but not readable */
    return sync_and_close(fd);
}

/* Creates one folder unless it exists. Returns an errno. */
static int make_one_folder(const char *path)
{
    if (at_disk->mkdir(path, 0777) == 0) return at_file_sync_folder(path);
    int         error = errno;
    struct stat info;
    if (at_disk->stat(path, &info)) return error;
    return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
}

/* Creates the folders above a path. Returns an errno. */
static int make_parents(const char *path)
{
    char *above = strdup(path);
    if (!above) return ENOMEM;
    int error = 0;
    for (char *slash = strchr(above + 1, '/'); slash && !error; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        error = slash[1] ? make_one_folder(above) : 0;
        *slash = '/';
    }
    free(above);
    return error;
}

at_err at_file_make_folder(const char *path, at_fail *fail)
{
    assert(path);
    if (!*path) return at_file_error("create folder", "(empty path)", ENOENT, fail);
    int error = make_parents(path);
    if (!error) error = make_one_folder(path);
    return error ? at_file_error("create folder", path, error, fail) : AT_OK;
}

at_err at_file_new_folder(const char *path, bool *exists, at_fail *fail)
{
    enum { TRIES_MAX = 100 }; /* another process may remove an empty parent in between */
    assert(path);
    *exists = false;
    if (!*path) return at_file_error("create folder", "(empty path)", ENOENT, fail);
    int error = ENOENT;
    for (int i = 0; i < TRIES_MAX && error == ENOENT; i++) {
        error = make_parents(path);
        if (!error && at_disk->mkdir(path, 0777)) error = errno;
    }
    if (!error) error = at_file_sync_folder(path);
    *exists = error == EEXIST;
    return error ? at_file_error("create folder", path, error, fail) : AT_OK;
}

at_err at_file_close(FILE *file, const char *path, at_fail *fail)
{
    assert(file);
    assert(path);
    bool failed_before = ferror(file);
    errno = 0;
    if (fclose(file)) return at_file_error("write", path, errno ? errno : EIO, fail);
    if (failed_before) /* its errno is lost */
        return at_fail_set(fail, AT_ERR_IO, "the disk may be full",
                           "%s: cannot write: an earlier write failed", path);
    return AT_OK;
}

void at_file_digest_bytes(const void *bytes, size_t size, unsigned char digest[32])
{
    assert(bytes || size == 0);
    unsigned int digest_size = 0;
    int done = EVP_Digest(bytes ? bytes : "", size, digest, &digest_size, EVP_sha256(), NULL);
    assert(done == 1);
    assert(digest_size == 32);
}

void at_file_sha256(const void *bytes, size_t size, char hex[65])
{
    unsigned char digest[32];
    at_file_digest_bytes(bytes, size, digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

bool at_digest_begin(at_digest *digest)
{
    digest->hash = EVP_MD_CTX_new();
    if (digest->hash && EVP_DigestInit_ex(digest->hash, EVP_sha256(), NULL) == 1) return true;
    EVP_MD_CTX_free(digest->hash);
    digest->hash = NULL;
    return false;
}

void at_digest_add(at_digest *digest, const void *bytes, size_t size)
{
    int done = EVP_DigestUpdate(digest->hash, bytes, size);
    assert(done == 1);
}

void at_digest_end(at_digest *digest, unsigned char sum[32])
{
    int done = EVP_DigestFinal_ex(digest->hash, sum, NULL);
    assert(done == 1);
    EVP_MD_CTX_free(digest->hash);
    digest->hash = NULL;
}

/* Feeds all of fd to the hash. Returns an errno. */
static int digest_all(int fd, at_digest *digest, unsigned char *buffer, size_t size)
{
    assert(fd >= 0);
    for (;;) {
        ssize_t got = read_some(fd, buffer, size);
        if (got < 0) return errno;
        if (got == 0) return 0;
        at_digest_add(digest, buffer, (size_t)got);
    }
}

at_err at_file_digest(const char *path, unsigned char digest[32], at_fail *fail)
{
    enum { PIECE_SIZE = 1 << 18 };
    int       fd, error = ENOMEM;
    at_digest hash;
    AT_TRY(open_to_read(path, &fd, fail));
    unsigned char *buffer = malloc(PIECE_SIZE);
    if (buffer && at_digest_begin(&hash)) {
        error = digest_all(fd, &hash, buffer, PIECE_SIZE);
        at_digest_end(&hash, digest);
    }
    free(buffer);
    at_disk->close(fd);
    return error ? at_file_error("read", path, error, fail) : AT_OK;
}

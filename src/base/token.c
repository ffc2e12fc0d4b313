#include "base/token.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { RANDOM_SIZE = 16, FILE_SIZE_MAX = 4096 };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

at_err at_token_make(char token[AT_TOKEN_SIZE], at_fail *fail)
{
    unsigned char bytes[RANDOM_SIZE];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return at_fail_set(fail, AT_ERR_FAILED, NULL,
                           "cannot create a token: no random numbers available");
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    assert(strlen(token) >= AT_TOKEN_LENGTH_MIN);
    return AT_OK;
}

static at_err cannot_write(const char *path, at_fail *fail)
{
    assert(errno);
    return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot write the token: %s", path,
                       strerror(errno));
}

/* Whether the file `draft` has got this name; errno is EEXIST when another file has it. Not all
 * file systems have links. */
static bool take_name(const char *draft, const char *path)
{
    return link(draft, path) == 0 || (errno != EEXIST && rename(draft, path) == 0);
}

/* The file is complete when it gets its name, because others may look for it at the same time.
 * *exists: one of them was faster. */
static at_err make_file(const char *path, char token[AT_TOKEN_SIZE], bool *exists, at_fail *fail)
{
    char draft[PATH_MAX];
    int  used = snprintf(draft, sizeof draft, "%s.XXXXXX", path);
    AT_TRY(at_token_make(token, fail));
    errno = ENAMETOOLONG;
    int fd = used < (int)sizeof draft ? mkostemp(draft, O_CLOEXEC) : -1; /* mode 0600 */
    if (fd < 0) return cannot_write(path, fail);
    errno = ENOSPC; /* when less is written than asked for */
    size_t length = strlen(token);
    bool   made = write(fd, token, length) == (ssize_t)length && take_name(draft, path);
    *exists = !made && errno == EEXIST;
    at_err err = made ? AT_OK : cannot_write(path, fail);
    close(fd);
    unlink(draft);
    return err;
}

static at_err read_file(const char *path, char token[AT_TOKEN_SIZE], at_fail *fail)
{
    unsigned char *bytes;
    size_t         size;
    at_err         err = AT_OK;
    AT_TRY(at_file_read(path, FILE_SIZE_MAX, &bytes, &size, fail));
    size_t length = strspn((const char *)bytes, letters);
    size_t rest = size - length; /* a newline added by an editor */
    bool   fits = length >= AT_TOKEN_LENGTH_MIN && length < AT_TOKEN_SIZE;
    if (fits && (rest == 0 || (rest == 1 && bytes[length] == '\n')))
        snprintf(token, AT_TOKEN_SIZE, "%.*s", (int)length, (const char *)bytes);
    else
        err = at_fail_set(fail, AT_ERR_FORMAT,
                          "copy the hub's RUN/token again; for `hub` and `watch`, remove "
                          "the file to get a new one",
                          "%s: not a token: expected 16 to 64 letters, digits, - and _", path);
    free(bytes);
    return err;
}

at_err at_token_file(const char *path, char token[AT_TOKEN_SIZE], at_fail *fail)
{
    assert(path);
    bool    exists = false;
    at_fail found = {0}; /* a missing file is no failure */
    at_err  err = read_file(path, token, &found);
    if (err == AT_ERR_MISSING) err = make_file(path, token, &exists, &found);
    if (exists) err = read_file(path, token, &found);
    if (err) *fail = found;
    return err;
}

bool at_token_is_exposed(const char *path)
{
    struct stat about;
    assert(path);
    return stat(path, &about) == 0 && (about.st_mode & 077) != 0;
}

bool at_token_equal(const char *token, const char *given)
{
    assert(strlen(token) < AT_TOKEN_SIZE);
    size_t length = strlen(token);
    if (!given || strlen(given) != length) return false;
    return CRYPTO_memcmp(token, given, length) == 0;
}

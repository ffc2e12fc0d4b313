#include "data/source.h"

#include "data/sniff.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    BUFFER_SIZE = 1 << 17,
    /* A deflate stream cannot expand more than this: 258 bytes from two bits. */
    DEFLATE_EXPANSION_MAX = 1032,
    GZIP_WINDOW_BITS = 15 + 16, /* zlib's way to say: the largest window, gzip header expected */
};

struct at_source {
    FILE         *file;
    const char   *path;
    char         *path_own; /* NULL when path is the caller's */
    uint64_t      file_size, position;
    bool          gzip;
    bool          ended; /* the last gzip member ended, its checksum was right, no byte follows */
    z_stream      stream;
    unsigned char buffer[BUFFER_SIZE]; /* gzip: compressed bytes; raw: the first ones */
};

static at_err no_memory(const char *path, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: not enough memory to read it", path);
}

static at_err cannot_read(const at_source *source, at_fail *fail)
{
    assert(ferror(source->file));
    return at_fail_set(fail, AT_ERR_IO, "check the disk and the permissions",
                       "%s: cannot be read after byte %llu: %s", source->path,
                       (unsigned long long)source->position, strerror(errno));
}

static at_err refill(at_source *source, at_fail *fail)
{
    assert(source->file);
    z_stream *z = &source->stream;
    if (z->avail_in > 0) return AT_OK;
    errno = 0;
    z->avail_in = (uInt)fread(source->buffer, 1, sizeof source->buffer, source->file);
    z->next_in = source->buffer;
    return ferror(source->file) ? cannot_read(source, fail) : AT_OK;
}

static bool named_gz(const char *path)
{
    size_t length = strlen(path);
    return length >= 3 && strcmp(path + length - 3, ".gz") == 0;
}

static at_err not_gzip(const at_source *source, at_fail *fail)
{
    assert(!source->gzip);
    size_t     size = source->stream.avail_in;
    at_sniffed sniffed = at_sniff(source->buffer, size < AT_SNIFF_SIZE ? size : AT_SNIFF_SIZE);
    return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                       "%s: is named .gz but is not gzip, at byte 0 it is %s", source->path,
                       sniffed.what);
}

/* Reads the first bytes and decides whether they are gzip. */
static at_err detect(at_source *source, at_fail *fail)
{
    assert(source->position == 0);
    AT_TRY(refill(source, fail));
    z_stream *z = &source->stream;
    source->gzip = z->avail_in >= 2 && source->buffer[0] == 0x1f && source->buffer[1] == 0x8b;
    if (z->avail_in == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: the file is empty (0 bytes)", source->path);
    if (!source->gzip) return named_gz(source->path) ? not_gzip(source, fail) : AT_OK;
    return inflateInit2(z, GZIP_WINDOW_BITS) == Z_OK ? AT_OK : no_memory(source->path, fail);
}

at_err at_source_take(FILE *file, const char *path, uint64_t file_size, at_source **out,
                      at_fail *fail)
{
    assert(path && out);
    assert(file);
    at_source *source = calloc(1, sizeof *source);
    if (!source) {
        fclose(file);
        return no_memory(path, fail);
    }
    source->file = file;
    source->path = path;
    source->file_size = file_size;
    at_err err = detect(source, fail);
    if (err) {
        at_source_close(source);
        return err;
    }
    *out = source;
    return AT_OK;
}

/* O_NONBLOCK, so that a named pipe is refused rather than waited for. */
static at_err open_regular(const char *path, FILE **file, uint64_t *size, at_fail *fail)
{
    int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return at_fail_set(fail, AT_ERR_MISSING,
                           "check the name; `anytime data list` shows known sets",
                           "%s: there is no such file", path);
    if (fd < 0)
        return at_fail_set(fail, AT_ERR_IO, "check the permissions", "%s: cannot be opened: %s",
                           path, strerror(errno));
    if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        close(fd);
        return at_fail_set(fail, AT_ERR_IO, "name a file that holds the data itself",
                           "%s: is not a regular file", path);
    }
    *size = (uint64_t)status.st_size;
    *file = fdopen(fd, "rb");
    if (*file) return AT_OK;
    close(fd);
    return no_memory(path, fail);
}

at_err at_source_open(const char *path, at_source **out, at_fail *fail)
{
    assert(path && out);
    FILE    *file = NULL;
    uint64_t size = 0;
    char    *path_own = strdup(path);
    if (!path_own) return no_memory(path, fail);
    at_err err = open_regular(path, &file, &size, fail);
    if (!err) err = at_source_take(file, path_own, size, out, fail);
    if (err) {
        free(path_own);
        return err;
    }
    (*out)->path_own = path_own;
    return AT_OK;
}

void at_source_close(at_source *source)
{
    if (!source) return;
    if (source->gzip) inflateEnd(&source->stream);
    fclose(source->file);
    free(source->path_own);
    free(source);
}

static at_err damaged(const at_source *source, at_fail *fail)
{
    assert(source->gzip);
    const char *why = source->stream.msg ? source->stream.msg : "wrong data";
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: damaged gzip stream after %llu raw bytes (%s)", source->path,
                       (unsigned long long)source->position, why);
}

/* A member has ended: either the file has too, or another member follows (gzip allows that). */
static at_err next_member(at_source *source, at_fail *fail)
{
    assert(source->gzip && !source->ended);
    AT_TRY(refill(source, fail));
    z_stream *z = &source->stream;
    if (z->avail_in == 0) {
        source->ended = true;
        return AT_OK;
    }
    if (*z->next_in != 0x1f)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: other bytes follow the gzip stream, after %llu raw bytes",
                           source->path, (unsigned long long)source->position);
    return inflateReset(z) == Z_OK ? AT_OK : damaged(source, fail);
}

/* One turn of inflate into z->next_out. */
static at_err inflate_some(at_source *source, at_fail *fail)
{
    assert(source->gzip && !source->ended);
    AT_TRY(refill(source, fail));
    z_stream *z = &source->stream;
    if (z->avail_in == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: the gzip stream is cut off after %llu raw bytes", source->path,
                           (unsigned long long)source->position);
    uInt before = z->avail_out;
    int  code = inflate(z, Z_NO_FLUSH);
    assert(z->avail_out <= before);
    source->position += before - z->avail_out;
    if (code == Z_STREAM_END) return next_member(source, fail);
    if (code == Z_MEM_ERROR) return no_memory(source->path, fail);
    return code == Z_OK || code == Z_BUF_ERROR ? AT_OK : damaged(source, fail);
}

static at_err read_gzip(at_source *source, unsigned char *bytes, size_t size, size_t *got,
                        at_fail *fail)
{
    assert(source->gzip);
    uint64_t const start = source->position;
    for (*got = 0; *got < size && !source->ended; *got = (size_t)(source->position - start)) {
        size_t left = size - *got;
        source->stream.next_out = bytes + *got;
        source->stream.avail_out = left < BUFFER_SIZE ? (uInt)left : BUFFER_SIZE;
        AT_TRY(inflate_some(source, fail));
    }
    assert(*got == size || source->ended);
    return AT_OK;
}

/* The bytes read by detect() come first, the rest straight from the file. */
static at_err read_raw(at_source *source, unsigned char *bytes, size_t size, size_t *got,
                       at_fail *fail)
{
    assert(!source->gzip);
    z_stream *z = &source->stream;
    size_t    buffered = size < z->avail_in ? size : z->avail_in;
    assert(buffered <= size);
    memcpy(bytes, z->next_in, buffered);
    z->next_in += buffered;
    z->avail_in -= (uInt)buffered;
    errno = 0;
    *got = buffered + fread(bytes + buffered, 1, size - buffered, source->file);
    source->position += *got;
    return ferror(source->file) ? cannot_read(source, fail) : AT_OK;
}

at_err at_source_read(at_source *source, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    assert(source && bytes && got);
    *got = 0;
    if (size == 0) return AT_OK;
    at_err err = source->gzip ? read_gzip(source, bytes, size, got, fail)
                              : read_raw(source, bytes, size, got, fail);
    assert(*got <= size);
    return err;
}

at_err at_source_end(at_source *source, at_fail *fail)
{
    assert(source);
    unsigned char extra;
    size_t        got;
    uint64_t      position = source->position;
    AT_TRY(at_source_read(source, &extra, 1, &got, fail));
    if (got == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: more bytes follow after byte %llu, where the header says it ends",
                       source->path, (unsigned long long)position);
}

uint64_t at_source_size_max(const at_source *source)
{
    assert(source);
    if (!source->gzip) return source->file_size;
    if (source->file_size > UINT64_MAX / DEFLATE_EXPANSION_MAX) return UINT64_MAX;
    return source->file_size * DEFLATE_EXPANSION_MAX;
}

uint64_t at_source_position(const at_source *source)
{
    assert(source);
    return source->position;
}

const char *at_source_path(const at_source *source)
{
    assert(source);
    return source->path;
}

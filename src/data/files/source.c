#include "data/files/source.h"

#include "base/buffer.h"
#include "data/files/folder.h"
#include "data/files/sniff.h"
#include "data/files/unpack.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_SIZE = AT_BUFFER(1 << 17, 512) };

struct at_source {
    FILE              *file;
    const char        *path;
    char              *path_own; /* NULL when path is the caller's */
    uint64_t           file_size, position;
    uint64_t           taken;    /* bytes read from the file */
    const at_unpacker *unpacker; /* NULL: raw */
    void              *state;    /* of the unpacker */
    bool               ended;    /* the last packed stream has ended with the right checksum */
    unsigned char     *next;     /* unused bytes of the buffer */
    size_t             left;
    unsigned char      buffer[BUFFER_SIZE]; /* packed: input; raw: the first bytes */
};

static _Atomic uint64_t limit = AT_SOURCE_AUTO;

void at_source_limit(uint64_t bytes)
{
    atomic_store(&limit, bytes);
}

static uint64_t product(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t limit_of(const at_source *source)
{
    enum { RATIO = 200 };
    const uint64_t least = 1000000000;
    uint64_t       given = atomic_load(&limit), usual = product(source->file_size, RATIO);
    if (given != AT_SOURCE_AUTO) return given;
    return usual > least ? usual : least;
}

static at_err too_large(const at_source *source, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT,
                       "if you trust the file, unpack it first or raise --unpack-limit",
                       "%s: %llu packed bytes expand to more than %llu bytes", source->path,
                       (unsigned long long)source->file_size, (unsigned long long)limit_of(source));
}

static at_err no_memory(const char *path, at_fail *fail)
{
    return at_fail_memory_for(fail, "to read %s", path);
}

static at_err cannot_read(const at_source *source, at_fail *fail)
{
    assert(ferror(source->file));
    return at_fail_set(fail, AT_ERR_IO, "check the disk and the permissions",
                       "%s: read error after byte %llu: %s", source->path,
                       (unsigned long long)source->position, strerror(errno));
}

static at_err refill(at_source *source, at_fail *fail)
{
    assert(source->file);
    if (source->left > 0) return AT_OK;
    errno = 0;
    source->left = fread(source->buffer, 1, sizeof source->buffer, source->file);
    source->next = source->buffer;
    source->taken += source->left;
    return ferror(source->file) ? cannot_read(source, fail) : AT_OK;
}

static at_err not_packed(const at_source *source, const at_unpacker *named, at_fail *fail)
{
    assert(!source->unpacker);
    size_t          size = source->left < AT_SNIFF_SIZE ? source->left : AT_SNIFF_SIZE;
    at_sniff_result sniffed = at_sniff(source->buffer, size);
    return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                       "%s: named %s but not %s; it looks like %s", source->path, named->suffix,
                       named->name, sniffed.what);
}

/* Reads the first bytes and checks whether they are packed. */
static at_err detect(at_source *source, at_fail *fail)
{
    assert(source->position == 0);
    AT_TRY(refill(source, fail));
    if (source->left == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: the file is empty (0 bytes)", source->path);
    source->unpacker = at_unpack_by_magic(source->next, source->left);
    const at_unpacker *named = at_unpack_by_suffix(source->path);
    if (!source->unpacker) return named ? not_packed(source, named, fail) : AT_OK;
    source->state = source->unpacker->start();
    return source->state ? AT_OK : no_memory(source->path, fail);
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

at_err at_source_open(const char *path, at_source **out, at_fail *fail)
{
    assert(path && out);
    FILE    *file = NULL;
    uint64_t size = 0;
    char    *path_own = strdup(path);
    if (!path_own) return no_memory(path, fail);
    at_err err = at_folder_open_file(path, &file, &size, fail);
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
    if (source->unpacker) source->unpacker->stop(source->state);
    fclose(source->file);
    free(source->path_own);
    free(source);
}

/* After the end of a stream: end of file, or another stream (gzip and xz allow that). */
static at_err next_stream(at_source *source, at_fail *fail)
{
    assert(source->unpacker && !source->ended);
    const at_unpacker *unpacker = source->unpacker;
    AT_TRY(refill(source, fail));
    while (unpacker->padded && source->left > 0 && *source->next == 0) {
        source->next++, source->left--;
        AT_TRY(refill(source, fail));
    }
    if (source->left == 0) {
        source->ended = true;
        return AT_OK;
    }
    if (*source->next != (unsigned char)unpacker->magic[0])
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: unexpected bytes after the %s stream (after %llu raw bytes)",
                           source->path, unpacker->name, (unsigned long long)source->position);
    unpacker->stop(source->state);
    source->state = unpacker->start();
    return source->state ? AT_OK : no_memory(source->path, fail);
}

static at_err explain(const at_source *source, at_unpack_status status, const char *why,
                      at_fail *fail)
{
    assert(status != AT_UNPACK_MORE && status != AT_UNPACK_END);
    const char *name = source->unpacker->name;
    if (status == AT_UNPACK_NO_MEMORY) return no_memory(source->path, fail);
    if (status == AT_UNPACK_TOO_LARGE)
        return at_fail_set(fail, AT_ERR_FORMAT, why,
                           "%s: this %s stream needs too much memory to unpack", source->path,
                           name);
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: damaged %s stream after %llu raw bytes (%s)", source->path, name,
                       (unsigned long long)source->position, why);
}

/* Unpacks at most `size` bytes. */
static at_err unpack_some(at_source *source, unsigned char *bytes, size_t size, at_fail *fail)
{
    assert(source->unpacker && !source->ended);
    AT_TRY(refill(source, fail));
    if (source->left == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: truncated %s stream (after %llu raw bytes)", source->path,
                           source->unpacker->name, (unsigned long long)source->position);
    const char       *why = NULL;
    at_unpack_buffers buffers = {source->next, source->left, bytes, size};
    at_unpack_status  status = source->unpacker->run(source->state, &buffers, &why);
    assert(buffers.in_left <= source->left && buffers.out_left <= size);
    source->next += source->left - buffers.in_left;
    source->left = buffers.in_left;
    source->position += size - buffers.out_left;
    if (source->position > limit_of(source)) return too_large(source, fail);
    if (status == AT_UNPACK_END) return next_stream(source, fail);
    return status == AT_UNPACK_MORE ? AT_OK : explain(source, status, why, fail);
}

static at_err read_packed(at_source *source, unsigned char *bytes, size_t size, size_t *got,
                          at_fail *fail)
{
    assert(source->unpacker);
    uint64_t const start = source->position;
    for (*got = 0; *got < size && !source->ended; *got = (size_t)(source->position - start))
        AT_TRY(unpack_some(source, bytes + *got, size - *got, fail));
    assert(*got == size || source->ended);
    return AT_OK;
}

/* First the bytes that detect() read, then directly from the file. */
static at_err read_raw(at_source *source, unsigned char *bytes, size_t size, size_t *got,
                       at_fail *fail)
{
    assert(!source->unpacker);
    size_t buffered = size < source->left ? size : source->left;
    assert(buffered <= size);
    memcpy(bytes, source->next, buffered);
    source->next += buffered;
    source->left -= buffered;
    errno = 0;
    size_t more = fread(bytes + buffered, 1, size - buffered, source->file);
    *got = buffered + more;
    source->taken += more;
    source->position += *got;
    return ferror(source->file) ? cannot_read(source, fail) : AT_OK;
}

at_err at_source_read(at_source *source, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    assert(source && bytes && got);
    *got = 0;
    if (size == 0) return AT_OK;
    at_err err = source->unpacker ? read_packed(source, bytes, size, got, fail)
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
    return at_fail_set(
        fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
        "%s: extra bytes after byte %llu, where the data should end according to the header",
        source->path, (unsigned long long)position);
}

uint64_t at_source_size_max(const at_source *source)
{
    assert(source);
    if (!source->unpacker) return source->file_size;
    uint64_t most = product(source->file_size, source->unpacker->expansion_max);
    return most < limit_of(source) ? most : limit_of(source);
}

uint64_t at_source_position(const at_source *source)
{
    assert(source);
    return source->position;
}

uint64_t at_source_file_position(const at_source *source)
{
    assert(source->taken >= source->left);
    return source->taken - source->left;
}

uint64_t at_source_file_size(const at_source *source)
{
    assert(source);
    return source->file_size;
}

const char *at_source_path(const at_source *source)
{
    assert(source);
    return source->path;
}

#include "data/files/source.h"

#include "data/files/folder.h"
#include "data/files/sniff.h"
#include "data/files/unpack.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_SIZE = 1 << 17 };

struct at_source {
    FILE            *file;
    const char      *path;
    char            *path_own; /* NULL when path is the caller's */
    uint64_t         file_size, position;
    uint64_t         taken;   /* bytes read from the file */
    const at_unpack *packing; /* NULL: raw */
    void            *state;   /* of the packing */
    bool             ended;   /* the last packed stream ended, its checksum was right */
    unsigned char   *next;    /* bytes of the buffer that were not used yet */
    size_t           left;
    unsigned char    buffer[BUFFER_SIZE]; /* packed: as in the file; raw: the first ones */
};

static at_err no_memory(const char *path, at_fail *fail)
{
    return at_fail_memory_for(fail, "to read %s", path);
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
    if (source->left > 0) return AT_OK;
    errno = 0;
    source->left = fread(source->buffer, 1, sizeof source->buffer, source->file);
    source->next = source->buffer;
    source->taken += source->left;
    return ferror(source->file) ? cannot_read(source, fail) : AT_OK;
}

static at_err not_packed(const at_source *source, const at_unpack *named, at_fail *fail)
{
    assert(!source->packing);
    size_t     size = source->left < AT_SNIFF_SIZE ? source->left : AT_SNIFF_SIZE;
    at_sniffed sniffed = at_sniff(source->buffer, size);
    return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                       "%s: is named %s but is not %s, at byte 0 it is %s", source->path,
                       named->suffix, named->name, sniffed.what);
}

/* Reads the first bytes and decides whether they are packed. */
static at_err detect(at_source *source, at_fail *fail)
{
    assert(source->position == 0);
    AT_TRY(refill(source, fail));
    if (source->left == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: the file is empty (0 bytes)", source->path);
    source->packing = at_unpack_find(source->next, source->left);
    const at_unpack *named = at_unpack_named(source->path);
    if (!source->packing) return named ? not_packed(source, named, fail) : AT_OK;
    source->state = source->packing->start();
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
    if (source->packing) source->packing->stop(source->state);
    fclose(source->file);
    free(source->path_own);
    free(source);
}

/* A stream has ended: either the file has too, or another one follows (gzip and xz allow that). */
static at_err next_stream(at_source *source, at_fail *fail)
{
    assert(source->packing && !source->ended);
    const at_unpack *packing = source->packing;
    AT_TRY(refill(source, fail));
    while (packing->padded && source->left > 0 && *source->next == 0) {
        source->next++, source->left--;
        AT_TRY(refill(source, fail));
    }
    if (source->left == 0) {
        source->ended = true;
        return AT_OK;
    }
    if (*source->next != (unsigned char)packing->magic[0])
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: other bytes follow the %s stream, after %llu raw bytes",
                           source->path, packing->name, (unsigned long long)source->position);
    packing->stop(source->state);
    source->state = packing->start();
    return source->state ? AT_OK : no_memory(source->path, fail);
}

static at_err explain(const at_source *source, at_unpack_turn turn, const char *why, at_fail *fail)
{
    assert(turn != AT_UNPACK_MORE && turn != AT_UNPACK_END);
    const char *name = source->packing->name;
    if (turn == AT_UNPACK_NO_MEMORY) return no_memory(source->path, fail);
    if (turn == AT_UNPACK_TOO_LARGE)
        return at_fail_set(fail, AT_ERR_FORMAT, why,
                           "%s: at byte 0, this %s stream needs too much memory to unpack it",
                           source->path, name);
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: damaged %s stream after %llu raw bytes (%s)", source->path, name,
                       (unsigned long long)source->position, why);
}

/* One turn of unpacking. */
static at_err unpack_some(at_source *source, unsigned char *bytes, size_t size, at_fail *fail)
{
    assert(source->packing && !source->ended);
    AT_TRY(refill(source, fail));
    if (source->left == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: the %s stream is cut off after %llu raw bytes", source->path,
                           source->packing->name, (unsigned long long)source->position);
    const char    *why = NULL;
    at_unpack_flow flow = {source->next, source->left, bytes, size};
    at_unpack_turn turn = source->packing->turn(source->state, &flow, &why);
    assert(flow.in_left <= source->left && flow.out_left <= size);
    source->next += source->left - flow.in_left;
    source->left = flow.in_left;
    source->position += size - flow.out_left;
    if (turn == AT_UNPACK_END) return next_stream(source, fail);
    return turn == AT_UNPACK_MORE ? AT_OK : explain(source, turn, why, fail);
}

static at_err read_packed(at_source *source, unsigned char *bytes, size_t size, size_t *got,
                          at_fail *fail)
{
    assert(source->packing);
    uint64_t const start = source->position;
    for (*got = 0; *got < size && !source->ended; *got = (size_t)(source->position - start))
        AT_TRY(unpack_some(source, bytes + *got, size - *got, fail));
    assert(*got == size || source->ended);
    return AT_OK;
}

/* The bytes read by detect() come first, the rest straight from the file. */
static at_err read_raw(at_source *source, unsigned char *bytes, size_t size, size_t *got,
                       at_fail *fail)
{
    assert(!source->packing);
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
    at_err err = source->packing ? read_packed(source, bytes, size, got, fail)
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
    if (!source->packing) return source->file_size;
    uint32_t expansion = source->packing->expansion_max;
    return source->file_size > UINT64_MAX / expansion ? UINT64_MAX : source->file_size * expansion;
}

uint64_t at_source_position(const at_source *source)
{
    assert(source);
    return source->position;
}

uint64_t at_source_done(const at_source *source)
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

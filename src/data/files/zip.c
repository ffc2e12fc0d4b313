/* The layout, from the end (APPNOTE.TXT of PKWARE): an end record points to the central directory,
 * which points to a local header before the bytes of each entry. Numbers are little endian. A field
 * of all ones means that the actual number is in a zip64 record. */
#include "data/files/zip.h"

#include "base/buffer.h"
#include "data/files/folder.h"
#include "data/files/source.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    END_SIZE = 22,
    END64_LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    CENTRAL_SIZE = 46,
    LOCAL_SIZE = 30,
    COMMENT_SIZE_MAX = 65535,
    ENTRIES_MAX = 4096, /* LIMIT: an .npz has a handful */
    DIRECTORY_SIZE_MAX = 1 << 24,
    EXTRA_ZIP64 = 1,
    STORED = 0,
    DEFLATED = 8,
    BUFFER_SIZE = AT_BUFFER(1 << 16, 128),
    DEFLATE_EXPANSION_MAX = 1032, /* 258 bytes from two bits */
};

static const uint32_t END_MARK = 0x06054b50, END64_LOCATOR_MARK = 0x07064b50,
                      END64_MARK = 0x06064b50, CENTRAL_MARK = 0x02014b50, LOCAL_MARK = 0x04034b50;

typedef struct entry {
    char    *name; /* owned */
    uint64_t packed_size, size, offset;
    uint32_t crc;
    uint16_t method, flags;
} entry;

struct at_zip {
    FILE         *file;
    char         *path; /* owned */
    uint64_t      file_size;
    entry        *entries;
    size_t        count;
    const entry  *inside;      /* the entry that is being read, or NULL */
    uint64_t      packed_left; /* of this entry, not yet read */
    uint64_t      done;        /* raw bytes returned */
    uint32_t      crc;         /* of those */
    z_stream      stream;
    bool          inflating; /* stream needs inflateEnd */
    unsigned char buffer[BUFFER_SIZE];
};

/* Location of the directory of entries. */
typedef struct directory {
    uint64_t offset, size, count;
} directory;

static uint32_t get16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | get16(p + 2) << 16;
}

static uint64_t get64(const unsigned char *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static at_err broken(const at_zip *zip, uint64_t position, const char *what, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: damaged zip archive at byte %llu (%s)", zip->path,
                       (unsigned long long)position, what);
}

/* Reads `size` bytes at a position; the file MUST have that many there. */
static at_err read_at(at_zip *zip, uint64_t position, void *bytes, size_t size, at_fail *fail)
{
    assert(position <= zip->file_size && size <= zip->file_size - position);
    errno = 0;
    if (fseeko(zip->file, (off_t)position, SEEK_SET) == 0 &&
        fread(bytes, 1, size, zip->file) == size)
        return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "check the disk and the permissions",
                       "%s: read error at byte %llu: %s", zip->path, (unsigned long long)position,
                       errno ? strerror(errno) : "the file became shorter");
}

static bool inside_file(const at_zip *zip, uint64_t position, uint64_t size)
{
    return position <= zip->file_size && size <= zip->file_size - position;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Reads the zip64 end record, if its locator precedes the end record. */
static at_err read_end64(at_zip *zip, uint64_t end, directory *where, at_fail *fail)
{
    unsigned char bytes[END64_SIZE];
    if (end < END64_LOCATOR_SIZE) return AT_OK;
    AT_TRY(read_at(zip, end - END64_LOCATOR_SIZE, bytes, END64_LOCATOR_SIZE, fail));
    if (get32(bytes) != END64_LOCATOR_MARK) return AT_OK;
    uint64_t position = get64(bytes + 8);
    if (!inside_file(zip, position, END64_SIZE))
        return broken(zip, end - END64_LOCATOR_SIZE, "zip64 record outside the file", fail);
    AT_TRY(read_at(zip, position, bytes, END64_SIZE, fail));
    if (get32(bytes) != END64_MARK) return broken(zip, position, "missing zip64 record", fail);
    *where = (directory){get64(bytes + 48), get64(bytes + 40), get64(bytes + 32)};
    return AT_OK;
}

/* Finds the end record in the last bytes of the file; a comment may follow it. */
static at_err find_end(at_zip *zip, directory *where, uint64_t *end, at_fail *fail)
{
    uint64_t const most = END_SIZE + COMMENT_SIZE_MAX;
    size_t const   size = (size_t)(zip->file_size < most ? zip->file_size : most);
    unsigned char *bytes = malloc(size + 1);
    if (!bytes) return at_fail_memory_for(fail, "for %s", zip->path);
    at_err err = read_at(zip, zip->file_size - size, bytes, size, fail);
    size_t at = size;
    for (size_t i = size; !err && i-- > 0;)
        if (i + END_SIZE <= size && get32(bytes + i) == END_MARK) {
            at = i;
            break;
        }
    if (!err && at == size)
        err = broken(zip, zip->file_size, "no end record; the file is probably truncated", fail);
    if (!err) {
        *end = zip->file_size - size + at;
        *where =
            (directory){get32(bytes + at + 16), get32(bytes + at + 12), get16(bytes + at + 10)};
    }
    free(bytes);
    return err;
}

/* Numbers that do not fit into 32 bits are in an extra field, in this order. */
static void read_zip64(entry *e, const unsigned char *extra, size_t size)
{
    uint64_t *const fields[] = {&e->size, &e->packed_size, &e->offset};
    while (size >= 4) {
        size_t id = get16(extra), length = get16(extra + 2);
        extra += 4, size -= 4;
        if (length > size) return;
        const unsigned char *p = extra, *stop = extra + length;
        for (size_t i = 0; id == EXTRA_ZIP64 && i < 3; i++)
            if (*fields[i] == UINT32_MAX && stop - p >= 8) *fields[i] = get64(p), p += 8;
        extra += length, size -= length;
    }
}

/* Reads the entry of the directory at p, which has `size` bytes left; *used is the entry's size. */
static at_err read_entry(at_zip *zip, const unsigned char *p, size_t size, size_t *used,
                         at_fail *fail)
{
    entry *e = &zip->entries[zip->count];
    if (size < CENTRAL_SIZE || get32(p) != CENTRAL_MARK)
        return broken(zip, zip->file_size, "invalid directory entry", fail);
    size_t name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32);
    *used = CENTRAL_SIZE + name + extra + comment;
    if (*used > size) return broken(zip, zip->file_size, "truncated directory", fail);
    *e = (entry){.flags = (uint16_t)get16(p + 8),
                 .method = (uint16_t)get16(p + 10),
                 .crc = get32(p + 16),
                 .packed_size = get32(p + 20),
                 .size = get32(p + 24),
                 .offset = get32(p + 42)};
    read_zip64(e, p + CENTRAL_SIZE + name, extra);
    e->name = strndup((const char *)p + CENTRAL_SIZE, name);
    if (!e->name) return at_fail_memory_for(fail, "for %s", zip->path);
    zip->count++;
    return AT_OK;
}

static at_err read_entries(at_zip *zip, const directory *where, at_fail *fail)
{
    unsigned char *bytes = malloc((size_t)where->size + 1);
    at_err         err = AT_OK;
    zip->entries = calloc((size_t)where->count + 1, sizeof *zip->entries);
    if (!bytes || !zip->entries) err = at_fail_memory_for(fail, "for %s", zip->path);
    if (!err) err = read_at(zip, where->offset, bytes, (size_t)where->size, fail);
    for (size_t at = 0, used = 0; !err && zip->count < where->count; at += used)
        err = read_entry(zip, bytes + at, (size_t)where->size - at, &used, fail);
    free(bytes);
    return err;
}

static at_err read_directory(at_zip *zip, at_fail *fail)
{
    directory where = {0};
    uint64_t  end = 0;
    if (zip->file_size == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: the file is empty (0 bytes)", zip->path);
    AT_TRY(find_end(zip, &where, &end, fail));
    AT_TRY(read_end64(zip, end, &where, fail));
    if (!inside_file(zip, where.offset, where.size) || where.size > DIRECTORY_SIZE_MAX ||
        where.count > ENTRIES_MAX)
        return broken(zip, end, "directory outside the file or too long", fail);
    return read_entries(zip, &where, fail);
}

/* ---- open and close -------------------------------------------------------------------------- */

at_err at_zip_open(const char *path, at_zip **out, at_fail *fail)
{
    assert(path && out);
    at_zip *zip = calloc(1, sizeof *zip);
    if (zip) zip->path = strdup(path);
    at_err err = zip && zip->path ? at_folder_open_file(path, &zip->file, &zip->file_size, fail)
                                  : at_fail_memory_for(fail, "for %s", path);
    if (!err) err = read_directory(zip, fail);
    if (err) {
        at_zip_close(zip);
        return err;
    }
    *out = zip;
    return AT_OK;
}

static void stop_reading(at_zip *zip)
{
    if (zip->inflating) inflateEnd(&zip->stream);
    zip->inflating = false;
    zip->inside = NULL;
}

void at_zip_close(at_zip *zip)
{
    if (!zip) return;
    stop_reading(zip);
    for (size_t i = 0; i < zip->count; i++) free(zip->entries[i].name);
    free(zip->entries);
    if (zip->file) fclose(zip->file);
    free(zip->path);
    free(zip);
}

/* ---- one entry ------------------------------------------------------------------------------- */

static const entry *find(const at_zip *zip, const char *name)
{
    assert(zip && name);
    for (size_t i = 0; i < zip->count; i++)
        if (strcmp(zip->entries[i].name, name) == 0) return &zip->entries[i];
    return NULL;
}

bool at_zip_has(const at_zip *zip, const char *name)
{
    return find(zip, name) != NULL;
}

static at_err refuse(const at_zip *zip, const entry *e, at_fail *fail)
{
    const char *why = e->flags & 1 ? "is encrypted" : NULL;
    if (e->method != STORED && e->method != DEFLATED)
        why = "uses a compression other than deflate";
    else if (e->method == STORED ? e->size != e->packed_size
                                 : e->size / DEFLATE_EXPANSION_MAX > e->packed_size)
        why = "has an impossible size";
    if (!why) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "save it again with numpy.savez_compressed",
                       "%s: entry %s at byte %llu %s", zip->path, e->name,
                       (unsigned long long)e->offset, why);
}

at_err at_zip_enter(at_zip *zip, const char *name, uint64_t *size, at_fail *fail)
{
    unsigned char local[LOCAL_SIZE];
    const entry  *e = find(zip, name);
    assert(e);
    stop_reading(zip);
    AT_TRY(refuse(zip, e, fail));
    if (!inside_file(zip, e->offset, LOCAL_SIZE))
        return broken(zip, zip->file_size, "an entry outside the file", fail);
    AT_TRY(read_at(zip, e->offset, local, sizeof local, fail));
    if (get32(local) != LOCAL_MARK) return broken(zip, e->offset, "no entry header here", fail);
    uint64_t first = e->offset + LOCAL_SIZE + get16(local + 26) + get16(local + 28);
    if (!inside_file(zip, first, e->packed_size))
        return broken(zip, e->offset, "a truncated entry", fail);
    if (fseeko(zip->file, (off_t)first, SEEK_SET))
        return broken(zip, e->offset, "cannot seek to an entry", fail);
    zip->stream = (z_stream){0};
    if (e->method == DEFLATED && inflateInit2(&zip->stream, -MAX_WBITS) != Z_OK)
        return at_fail_memory_for(fail, "for %s", zip->path);
    zip->inflating = e->method == DEFLATED;
    zip->inside = e;
    zip->packed_left = e->packed_size;
    zip->done = 0;
    zip->crc = (uint32_t)crc32(0, NULL, 0);
    *size = e->size;
    return AT_OK;
}

/* Reads the next packed bytes of the entry, at most size_max; *got is 0 only at their end. */
static at_err read_packed(at_zip *zip, void *bytes, size_t size_max, size_t *got, at_fail *fail)
{
    assert(zip->inside);
    size_t wanted = zip->packed_left < size_max ? (size_t)zip->packed_left : size_max;
    *got = wanted ? fread(bytes, 1, wanted, zip->file) : 0;
    zip->packed_left -= *got;
    if (*got == wanted) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "check the disk", "%s: cannot read entry %s", zip->path,
                       zip->inside->name);
}

static at_err damaged(const at_zip *zip, at_fail *fail)
{
    const char *why = zip->stream.msg ? zip->stream.msg : "it ends too early";
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: entry %s is damaged after %llu raw bytes (%s)", zip->path,
                       zip->inside->name, (unsigned long long)zip->done, why);
}

static at_err inflate_packed(at_zip *zip, unsigned char *bytes, size_t size, size_t *got,
                             at_fail *fail)
{
    z_stream *z = &zip->stream;
    z->next_out = bytes;
    z->avail_out = (uInt)size;
    while (z->avail_out > 0) {
        size_t more = 0;
        if (z->avail_in == 0) {
            AT_TRY(read_packed(zip, zip->buffer, sizeof zip->buffer, &more, fail));
            z->next_in = zip->buffer;
            z->avail_in = (uInt)more;
        }
        uInt before = z->avail_out;
        int  code = inflate(z, Z_NO_FLUSH);
        if (code == Z_STREAM_END) break;
        if (code != Z_OK || (z->avail_out == before && z->avail_in == 0 && more == 0))
            return damaged(zip, fail);
    }
    *got = size - z->avail_out;
    return AT_OK;
}

at_err at_zip_read(at_zip *zip, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    assert(zip->inside && bytes);
    uint64_t left = zip->inside->size - zip->done;
    for (*got = 0; *got < size && left > 0;) {
        unsigned char *to = (unsigned char *)bytes + *got;
        size_t         wanted = size - *got < BUFFER_SIZE ? size - *got : BUFFER_SIZE, some;
        if (wanted > left) wanted = (size_t)left;
        AT_TRY(zip->inflating ? inflate_packed(zip, to, wanted, &some, fail)
                              : read_packed(zip, to, wanted, &some, fail));
        if (some == 0) return damaged(zip, fail);
        zip->crc = (uint32_t)crc32(zip->crc, to, (uInt)some);
        zip->done += some;
        left -= some;
        *got += some;
    }
    return AT_OK;
}

at_err at_zip_leave(at_zip *zip, at_fail *fail)
{
    assert(zip->inside);
    const entry *e = zip->inside;
    bool         whole = zip->done == e->size;
    stop_reading(zip);
    if (!whole)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: entry %s has more than the %llu bytes its header claims", zip->path,
                           e->name, (unsigned long long)zip->done);
    if (zip->crc == e->crc) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: wrong checksum of entry %s after %llu raw bytes", zip->path, e->name,
                       (unsigned long long)zip->done);
}

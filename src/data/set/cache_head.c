#include "data/set/cache_head.h"

#include "base/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Raise it when the header, or what a reader makes of a file, changes. */
enum { VERSION = 1 };

#define MAGIC "anytime cache\r\n\x1a" /* 16 bytes; a transfer as text breaks them */

enum {
    MAGIC_SIZE = 16,
    DIGEST_SIZE = 32,
    START_SIZE = MAGIC_SIZE + 4 + 4 + 8, /* magic, version, order of bytes, size of the header */
    FIXED_SIZE = 512,                    /* more than all fields but the key and the paths */
    STAMP_SIZE = 8 + 8 + 4 + DIGEST_SIZE,
};

static const uint32_t ORDER = 0x01020304; /* written as memory is: tells machines apart */

/* ---- bytes ----------------------------------------------------------------------------------- */

/* A place in the header. Behind the end nothing is read or written, and `good` becomes false. */
typedef struct cursor {
    unsigned char *at, *end;
    bool           good;
} cursor;

static unsigned char *take(cursor *c, size_t size)
{
    c->good = c->good && (size_t)(c->end - c->at) >= size;
    if (!c->good) return NULL;
    unsigned char *here = c->at;
    c->at += size;
    return here;
}

static void put_bytes(cursor *c, const void *bytes, size_t size)
{
    unsigned char *here = take(c, size);
    if (here) memcpy(here, bytes, size);
}

static void put(cursor *c, uint64_t value, size_t size)
{
    unsigned char *here = take(c, size);
    assert(size <= 8);
    for (size_t i = 0; here && i < size; i++) here[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(cursor *c, size_t size)
{
    const unsigned char *here = take(c, size);
    uint64_t             value = 0;
    for (size_t i = 0; here && i < size; i++) value |= (uint64_t)here[i] << (8 * i);
    return value;
}

static void put_text(cursor *c, const char *text)
{
    put(c, strlen(text), 4);
    put_bytes(c, text, strlen(text));
}

/* Is the next text this one? */
static bool same_text(cursor *c, const char *text)
{
    size_t               size = (size_t)get(c, 4);
    const unsigned char *here = take(c, size);
    return here && size == strlen(text) && memcmp(here, text, size) == 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t size)
{
    return (size + AT_CACHE_PAGE - 1) / AT_CACHE_PAGE * AT_CACHE_PAGE;
}

static void put_shapes(cursor *c, const at_cache_head *h, const at_dataset *set)
{
    assert(h->memory_at % AT_CACHE_PAGE == 0);
    put(c, h->memory_at, 8);
    put(c, h->memory_size, 8);
    put(c, h->memory_sum, 8);
    put(c, h->numbers, 8);
    for (int i = 0; i < AT_CACHE_PARTS; i++) put(c, h->offset[i], 8);
    put(c, set->count, 8);
    put(c, set->row_size, 8);
    put(c, set->names_size, 8);
    put(c, set->features, 4);
    put(c, set->classes, 4);
    put(c, set->picture.channels, 4);
    put(c, set->picture.height, 4);
    put(c, set->picture.width, 4);
    put(c, set->element, 4);
    put(c, set->index_base, 4);
    put_bytes(c, set->form, sizeof set->form);
}

static void get_shapes(cursor *c, at_cache_head *h, at_dataset *set)
{
    h->memory_at = get(c, 8);
    h->memory_size = get(c, 8);
    h->memory_sum = get(c, 8);
    h->numbers = get(c, 8);
    for (int i = 0; i < AT_CACHE_PARTS; i++) h->offset[i] = get(c, 8);
    set->count = get(c, 8);
    set->row_size = get(c, 8);
    set->names_size = get(c, 8);
    set->features = (uint32_t)get(c, 4);
    set->classes = (uint32_t)get(c, 4);
    set->picture.channels = (uint32_t)get(c, 4);
    set->picture.height = (uint32_t)get(c, 4);
    set->picture.width = (uint32_t)get(c, 4);
    set->element = get(c, 4) == AT_ELEMENT_BYTE ? AT_ELEMENT_BYTE : AT_ELEMENT_FLOAT;
    set->index_base = (uint32_t)get(c, 4);
    const unsigned char *form = take(c, sizeof set->form);
    if (form) memcpy(set->form, form, sizeof set->form);
    c->good = c->good && memchr(set->form, '\0', sizeof set->form);
}

static void put_note(cursor *c, const at_cache_note *note)
{
    put_text(c, note->key);
    put(c, note->files->count, 4);
    for (size_t i = 0; i < note->files->count; i++) {
        const at_stamp *stamp = &note->stamp[i];
        put_text(c, note->files->path[i]);
        put(c, stamp->size, 8);
        put(c, (uint64_t)stamp->seconds, 8);
        put(c, stamp->nanoseconds, 4);
        put_bytes(c, stamp->digest, DIGEST_SIZE);
    }
}

/* The stamps of the entry, if it is about the same key and files. */
static bool get_note(cursor *c, const at_cache_note *note)
{
    if (!same_text(c, note->key) || get(c, 4) != note->files->count) return false;
    for (size_t i = 0; c->good && i < note->files->count; i++) {
        at_stamp *stamp = &note->stamp[i];
        if (!same_text(c, note->files->path[i])) return false;
        stamp->size = get(c, 8);
        stamp->seconds = (int64_t)get(c, 8);
        stamp->nanoseconds = (uint32_t)get(c, 4);
        const unsigned char *digest = take(c, DIGEST_SIZE);
        if (digest) memcpy(stamp->digest, digest, DIGEST_SIZE);
    }
    return c->good;
}

static size_t room_for(const at_cache_note *note)
{
    size_t size = FIXED_SIZE + strlen(note->key);
    for (size_t i = 0; i < note->files->count; i++)
        size += 4 + strlen(note->files->path[i]) + STAMP_SIZE;
    return size;
}

unsigned char *at_cache_head_encode(at_cache_head *h, const at_cache_note *note,
                                    const at_dataset *set)
{
    size_t room = room_for(note);
    h->memory_at = round_up(room);
    unsigned char *bytes = calloc(1, h->memory_at);
    if (!bytes) return NULL;
    cursor c = {bytes, bytes + room, true};
    put_bytes(&c, MAGIC, MAGIC_SIZE);
    put(&c, VERSION, 4);
    put_bytes(&c, &ORDER, sizeof ORDER);
    unsigned char *size_at = take(&c, 8);
    put_shapes(&c, h, set);
    put_note(&c, note);
    assert(c.good);
    h->head_size = (uint64_t)(c.at - bytes) + DIGEST_SIZE;
    put(&(cursor){size_at, size_at + 8, true}, h->head_size, 8);
    at_file_digest_bytes(bytes, h->head_size - DIGEST_SIZE, c.at);
    return bytes;
}

static bool read_at(int fd, void *bytes, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)bytes + done, size - done, (off_t)(at + done));
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

/* The header's bytes, their checksum compared; NULL when it is not one of ours. */
static unsigned char *fetch_head(int fd, uint64_t *size)
{
    unsigned char start[START_SIZE], digest[DIGEST_SIZE];
    if (!read_at(fd, start, sizeof start, 0)) return NULL;
    cursor c = {start, start + sizeof start, true};
    if (memcmp(take(&c, MAGIC_SIZE), MAGIC, MAGIC_SIZE) != 0 || get(&c, 4) != VERSION) return NULL;
    if (memcmp(take(&c, 4), &ORDER, 4) != 0) return NULL;
    *size = get(&c, 8);
    if (*size < sizeof start + DIGEST_SIZE || *size > AT_CACHE_HEAD_SIZE_MAX) return NULL;
    struct stat status;
    if (fstat(fd, &status) || (uint64_t)status.st_size < *size) return NULL;
    unsigned char *bytes = malloc(*size);
    if (!bytes) return NULL;
    bool good = read_at(fd, bytes, *size, 0);
    if (good) at_file_digest_bytes(bytes, *size - DIGEST_SIZE, digest);
    if (good && memcmp(bytes + *size - DIGEST_SIZE, digest, DIGEST_SIZE) == 0) return bytes;
    free(bytes);
    return NULL;
}

bool at_cache_head_read(int fd, const at_cache_note *note, at_cache_head *h, at_dataset *set)
{
    unsigned char *bytes = fetch_head(fd, &h->head_size);
    if (!bytes) return false;
    cursor c = {bytes + START_SIZE, bytes + h->head_size - DIGEST_SIZE, true};
    get_shapes(&c, h, set);
    bool good = get_note(&c, note) && c.at == c.end;
    free(bytes);
    return good;
}

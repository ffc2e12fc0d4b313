#include "data/set/cache_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/machine.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Increment when the header, or what a reader makes of a file, changes. */
enum { VERSION = 2 };

#define MAGIC "anytime cache\r\n\x1a" /* 16 bytes; a text-mode transfer corrupts them */

enum {
    MAGIC_SIZE = 16,
    DIGEST_SIZE = 32,
    START_SIZE = MAGIC_SIZE + 4 + 4 + 8, /* magic, version, byte order, header size */
    FIXED_SIZE = 512,                    /* more than all fields but the key and the paths */
    STAMP_SIZE = 8 + 8 + 4 + DIGEST_SIZE,
    MARK_SIZE = AT_BOOT_ID_SIZE + 8 + 8, /* start of the machine, checksum, time */
};

/* Room for the paths of two million files. */
static const uint64_t HEADER_SIZE_MAX = (uint64_t)1 << 28;

static const uint32_t ORDER = 0x01020304; /* in native byte order, to detect other machines */

/* ---- bytes ----------------------------------------------------------------------------------- */

/* A position in the header. Nothing is read or written past the end; `good` becomes false. */
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

/* A copy of a string, to be freed; NULL when it is empty or memory runs out. */
static char *get_text(cursor *c)
{
    size_t               size = (size_t)get(c, 4);
    const unsigned char *here = take(c, size);
    char                *text = here && size > 0 ? calloc(size + 1, 1) : NULL;
    if (text) memcpy(text, here, size);
    c->good = c->good && (text || size == 0);
    return text;
}

/* Reads a string; whether it equals `text`. */
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

static void put_shapes(cursor *c, const at_cache_header *h, const at_dataset *set)
{
    assert(h->memory_at % AT_CACHE_PAGE == 0);
    put(c, h->memory_at, 8);
    put(c, h->memory_size, 8);
    put(c, h->memory_sum, 8);
    put(c, h->numbers, 8);
    for (int i = 0; i < AT_CACHE_ARRAYS; i++) put(c, h->offset[i], 8);
    put(c, set->count, 8);
    put(c, set->row_size, 8);
    put(c, set->names_size, 8);
    put(c, set->features, 4);
    put(c, set->classes, 4);
    put(c, set->shape.channels, 4);
    put(c, set->shape.height, 4);
    put(c, set->shape.width, 4);
    put(c, set->element, 4);
    put(c, set->index_base, 4);
    put_bytes(c, set->form, sizeof set->form);
    put(c, set->dropped, 8);
    put_text(c, set->columns ? set->columns : "");
}

static void get_shapes(cursor *c, at_cache_header *h, at_dataset *set)
{
    h->memory_at = get(c, 8);
    h->memory_size = get(c, 8);
    h->memory_sum = get(c, 8);
    h->numbers = get(c, 8);
    for (int i = 0; i < AT_CACHE_ARRAYS; i++) h->offset[i] = get(c, 8);
    set->count = get(c, 8);
    set->row_size = get(c, 8);
    set->names_size = get(c, 8);
    set->features = (uint32_t)get(c, 4);
    set->classes = (uint32_t)get(c, 4);
    set->shape.channels = (uint32_t)get(c, 4);
    set->shape.height = (uint32_t)get(c, 4);
    set->shape.width = (uint32_t)get(c, 4);
    set->element = get(c, 4) == AT_ELEMENT_BYTE ? AT_ELEMENT_BYTE : AT_ELEMENT_FLOAT;
    set->index_base = (uint32_t)get(c, 4);
    const unsigned char *form = take(c, sizeof set->form);
    if (form) memcpy(set->form, form, sizeof set->form);
    c->good = c->good && memchr(set->form, '\0', sizeof set->form);
    set->dropped = get(c, 8);
    set->columns = get_text(c);
}

static void put_origin(cursor *c, const at_cache_origin *origin)
{
    put_text(c, origin->key);
    put(c, origin->files->count, 4);
    for (size_t i = 0; i < origin->files->count; i++) {
        const at_file_stamp *stamp = &origin->stamp[i];
        put_text(c, origin->files->path[i]);
        put(c, stamp->size, 8);
        put(c, (uint64_t)stamp->seconds, 8);
        put(c, stamp->nanoseconds, 4);
        put_bytes(c, stamp->digest, DIGEST_SIZE);
    }
}

/* Reads the stamps, if key and files are the same. */
static bool get_origin(cursor *c, const at_cache_origin *origin)
{
    if (!same_text(c, origin->key) || get(c, 4) != origin->files->count) return false;
    for (size_t i = 0; c->good && i < origin->files->count; i++) {
        at_file_stamp *stamp = &origin->stamp[i];
        if (!same_text(c, origin->files->path[i])) return false;
        stamp->size = get(c, 8);
        stamp->seconds = (int64_t)get(c, 8);
        stamp->nanoseconds = (uint32_t)get(c, 4);
        const unsigned char *digest = take(c, DIGEST_SIZE);
        if (digest) memcpy(stamp->digest, digest, DIGEST_SIZE);
    }
    return c->good;
}

static size_t room_for(const at_cache_origin *origin, const at_dataset *set)
{
    size_t size = FIXED_SIZE + strlen(origin->key) + (set->columns ? strlen(set->columns) : 0);
    for (size_t i = 0; i < origin->files->count; i++)
        size += 4 + strlen(origin->files->path[i]) + STAMP_SIZE;
    return size;
}

/* The header, zero-padded up to h->memory_at; sets memory_at and header_size. NULL: no memory. */
static unsigned char *encode_header(at_cache_header *h, const at_cache_origin *origin,
                                    const at_dataset *set)
{
    size_t room = room_for(origin, set);
    h->memory_at = round_up(room);
    unsigned char *bytes = calloc(1, h->memory_at);
    if (!bytes) return NULL;
    cursor c = {bytes, bytes + room, true};
    put_bytes(&c, MAGIC, MAGIC_SIZE);
    put(&c, VERSION, 4);
    put_bytes(&c, &ORDER, sizeof ORDER);
    unsigned char *size_at = take(&c, 8);
    put_shapes(&c, h, set);
    put_origin(&c, origin);
    assert(c.good);
    h->header_size = (uint64_t)(c.at - bytes) + DIGEST_SIZE;
    put(&(cursor){size_at, size_at + 8, true}, h->header_size, 8);
    at_file_digest_bytes(bytes, h->header_size - DIGEST_SIZE, c.at);
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

/* Reads the bytes of the header and verifies its checksum; NULL when it is not a valid header. */
static unsigned char *read_header_bytes(int fd, uint64_t *size)
{
    unsigned char start[START_SIZE], digest[DIGEST_SIZE];
    if (!read_at(fd, start, sizeof start, 0)) return NULL;
    cursor c = {start, start + sizeof start, true};
    if (memcmp(take(&c, MAGIC_SIZE), MAGIC, MAGIC_SIZE) != 0 || get(&c, 4) != VERSION) return NULL;
    if (memcmp(take(&c, 4), &ORDER, 4) != 0) return NULL;
    *size = get(&c, 8);
    if (*size < sizeof start + DIGEST_SIZE || *size > HEADER_SIZE_MAX) return NULL;
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

bool at_cache_file_read_header(int fd, const at_cache_origin *origin, at_cache_header *h,
                               at_dataset *set)
{
    unsigned char *bytes = read_header_bytes(fd, &h->header_size);
    if (!bytes) return false;
    cursor c = {bytes + START_SIZE, bytes + h->header_size - DIGEST_SIZE, true};
    get_shapes(&c, h, set);
    bool good = get_origin(&c, origin) && c.at == c.end;
    free(bytes);
    return good;
}

/* A fast checksum: four parallel chains of multiplications. It detects damage, not malice;
 * at_store_is_valid does that. */
uint64_t at_cache_file_checksum(const void *memory, size_t size)
{
    const unsigned char *bytes = memory;
    enum { LANES = 4, BLOCK = 8 * LANES };
    uint64_t lane[LANES] = {1, 2, 3, 4}, sum = size;
    size_t   i = 0;
    for (; i + BLOCK <= size; i += BLOCK)
        for (size_t l = 0; l < LANES; l++) {
            uint64_t word;
            memcpy(&word, bytes + i + 8 * l, sizeof word);
            lane[l] = (lane[l] ^ word) * 0x9e3779b97f4a7c15u;
            lane[l] ^= lane[l] >> 29;
        }
    for (; i < size; i++) lane[0] = (lane[0] ^ bytes[i]) * 0x9e3779b97f4a7c15u;
    for (size_t l = 0; l < LANES; l++) sum = (sum ^ lane[l]) * 0xbf58476d1ce4e5b9u + l;
    return sum ^ sum >> 31;
}

/* An array in the memory of a set. */
typedef struct array {
    void    *start;
    uint64_t count;
    size_t   size_each;
} array;

/* In the order of at_cache_header.offset. */
static void list_arrays(const at_dataset *set, uint64_t numbers, array arrays[AT_CACHE_ARRAYS])
{
    arrays[0] = (array){set->rows, set->count, set->row_size};
    arrays[1] = (array){set->labels, set->count, sizeof *set->labels};
    arrays[2] = (array){set->starts, set->count + 1, sizeof *set->starts};
    arrays[3] = (array){set->indices, numbers, sizeof *set->indices};
    arrays[4] = (array){set->values, numbers, sizeof *set->values};
    arrays[5] = (array){set->names, set->names_size, 1};
}

/* ---- checked before -------------------------------------------------------------------------- */

/* The mark lies behind the header. It says that the checksum of the memory was verified since the
 * machine was started, and when; whoever writes to the file afterwards changes its modification
 * time. */
static bool encode_mark(unsigned char mark[MARK_SIZE], const at_cache_header *h, int64_t seconds)
{
    char boot[AT_BOOT_ID_SIZE + 1];
    if (h->header_size + MARK_SIZE > h->memory_at || !at_machine_boot_id(boot)) return false;
    cursor c = {mark, mark + MARK_SIZE, true};
    put_bytes(&c, boot, AT_BOOT_ID_SIZE);
    put(&c, h->memory_sum, 8);
    put(&c, (uint64_t)seconds, 8);
    return true;
}

static bool was_checked(int fd, const at_cache_header *h, const struct stat *status)
{
    unsigned char mark[MARK_SIZE], wanted[MARK_SIZE];
    return status->st_mtim.tv_nsec == 0 && encode_mark(wanted, h, status->st_mtim.tv_sec) &&
           read_at(fd, mark, sizeof mark, h->header_size) && memcmp(mark, wanted, MARK_SIZE) == 0;
}

/* Full seconds, which all file systems store; a write gives the file another time. */
static void mark_as_checked(int fd, const at_cache_header *h)
{
    unsigned char   mark[MARK_SIZE];
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = (time_t)at_clock_date()}};
    if (!encode_mark(mark, h, times[1].tv_sec)) return;
    if (pwrite(fd, mark, sizeof mark, (off_t)h->header_size) == MARK_SIZE)
        (void)futimens(fd, times); /* without it the memory is checked again next time */
}

/* ---- mapping --------------------------------------------------------------------------------- */

/* Whether the numbers are plausible, before they are used to access memory. */
static bool is_plausible(const at_cache_header *h, const at_dataset *set)
{
    uint64_t       each = set->element == AT_ELEMENT_BYTE ? 1 : sizeof(float);
    at_image_shape p = set->shape;
    bool           sparse = h->offset[2] != AT_CACHE_ABSENT;
    bool layout = sparse ? h->offset[0] == AT_CACHE_ABSENT && h->offset[3] != AT_CACHE_ABSENT &&
                               h->offset[4] != AT_CACHE_ABSENT && set->element == AT_ELEMENT_FLOAT
                         : h->offset[0] != AT_CACHE_ABSENT && set->row_size == set->features * each;
    bool shape = p.channels == 0 || ((uint64_t)p.channels * p.height <= set->features &&
                                     (uint64_t)p.channels * p.height * p.width == set->features);
    return layout && shape && h->offset[1] != AT_CACHE_ABSENT &&
           (h->offset[5] != AT_CACHE_ABSENT) == (set->names_size > 0) && set->count > 0 &&
           set->count < UINT64_MAX / 16 && set->features > 0 && h->memory_size > 0 &&
           h->memory_size < SIZE_MAX / 2 && h->memory_at % AT_CACHE_PAGE == 0 &&
           h->memory_at >= h->header_size && h->memory_at <= HEADER_SIZE_MAX + AT_CACHE_PAGE;
}

/* Points the arrays of the set into its mapping; false when one would not fit. */
static bool place_arrays(const at_cache_header *h, at_dataset *set)
{
    array arrays[AT_CACHE_ARRAYS];
    void *start[AT_CACHE_ARRAYS];
    list_arrays(set, h->numbers, arrays);
    for (int i = 0; i < AT_CACHE_ARRAYS; i++) {
        start[i] = NULL;
        if (h->offset[i] == AT_CACHE_ABSENT) continue;
        if (h->offset[i] % sizeof(uint64_t) || h->offset[i] > set->map_size) return false;
        if (arrays[i].count > (set->map_size - h->offset[i]) / arrays[i].size_each) return false;
        start[i] = (unsigned char *)set->map + h->offset[i];
    }
    set->rows = start[0];
    set->labels = start[1];
    set->starts = start[2];
    set->indices = start[3];
    set->values = start[4];
    set->names = start[5];
    return true;
}

/* Whether no row ends before it begins or beyond the last number. */
static bool starts_are_valid(const at_dataset *set, uint64_t numbers)
{
    if (!set->starts) return true;
    for (uint64_t i = 0; i < set->count; i++)
        if (set->starts[i + 1] < set->starts[i] || set->starts[i + 1] > numbers) return false;
    return true;
}

/* Where all of it is read at once, pages are mapped at once. Otherwise they are only read ahead, if
 * they are not in memory: each worker maps what it draws. */
static bool map_memory(int fd, const at_cache_header *h, bool read_now, at_dataset *set)
{
    set->map = mmap(NULL, h->memory_size, PROT_READ, MAP_PRIVATE | (read_now ? MAP_POPULATE : 0),
                    fd, (off_t)h->memory_at);
    if (set->map == MAP_FAILED) return set->map = NULL, false;
    if (!read_now) (void)madvise(set->map, h->memory_size, MADV_WILLNEED);
    set->map_size = h->memory_size;
    set->widen = at_widen_best();
    return true;
}

bool at_cache_file_map(int fd, const at_cache_header *h, at_dataset *set)
{
    assert(fd >= 0 && !set->map);
    struct stat status;
    if (!is_plausible(h, set)) return false;
    if (fstat(fd, &status) || (uint64_t)status.st_size != h->memory_at + h->memory_size)
        return false;
    bool checked = was_checked(fd, h, &status);
    if (!map_memory(fd, h, !checked || h->offset[2] != AT_CACHE_ABSENT, set)) return false;
    if ((checked || at_cache_file_checksum(set->map, set->map_size) == h->memory_sum) &&
        place_arrays(h, set) && starts_are_valid(set, h->numbers) && at_store_is_valid(set)) {
        if (!checked) mark_as_checked(fd, h);
        return true;
    }
    munmap(set->map, set->map_size);
    set->map = NULL;
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t some = write(fd, (const char *)bytes + done, size - done);
        if (some <= 0) return false;
        done += (size_t)some;
    }
    return true;
}

static at_cache_header header_of(const at_dataset *set)
{
    at_cache_header h = {.memory_size = set->map_size,
                         .memory_sum = at_cache_file_checksum(set->map, set->map_size),
                         .numbers = set->starts ? set->starts[set->count] : 0};
    array           arrays[AT_CACHE_ARRAYS];
    list_arrays(set, h.numbers, arrays);
    for (int i = 0; i < AT_CACHE_ARRAYS; i++)
        h.offset[i] = arrays[i].start
                          ? (uint64_t)((unsigned char *)arrays[i].start - (unsigned char *)set->map)
                          : AT_CACHE_ABSENT;
    return h;
}

/* Not synced to disk: the checksums reject what a power failure leaves behind. */
bool at_cache_file_write(const char *path, const at_cache_origin *origin, const at_dataset *set)
{
    assert(set->map && path);
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) return false;
    at_cache_header h = header_of(set);
    unsigned char  *bytes = encode_header(&h, origin, set);
    int  fd = bytes ? open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    bool good =
        fd >= 0 && write_all(fd, bytes, h.memory_at) && write_all(fd, set->map, set->map_size);
    if (fd >= 0 && close(fd)) good = false;
    if (good && rename(temporary, path)) good = false;
    if (!good && fd >= 0) unlink(temporary);
    free(bytes);
    free(temporary);
    return good;
}

/* Writes in place: a reader that sees a half-written header finds its checksum wrong. */
void at_cache_file_restamp(int fd, const at_cache_header *header, const at_cache_origin *origin,
                           const at_dataset *set)
{
    assert(set->map && fd >= 0);
    at_cache_header h = *header;
    unsigned char  *bytes = encode_header(&h, origin, set);
    assert(!bytes || h.memory_at == header->memory_at);
    ssize_t done = bytes ? pwrite(fd, bytes, h.header_size, 0) : 0;
    if (done > 0) mark_as_checked(fd, &h); /* a failure leaves the cache as it was */
    free(bytes);
}

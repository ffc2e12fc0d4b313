#include "data/set/cache_file.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A fast checksum: four chains of multiplications side by side. It finds damage, not malice; that
 * is left to at_store_is_right. */
uint64_t at_cache_file_sum(const void *memory, size_t size)
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

/* What a set's memory is made of; the order of the fields in the header. */
typedef struct part {
    void    *start;
    uint64_t count;
    size_t   size_each;
} part;

static void list_parts(const at_dataset *set, uint64_t numbers, part parts[AT_CACHE_PARTS])
{
    parts[0] = (part){set->rows, set->count, set->row_size};
    parts[1] = (part){set->labels, set->count, sizeof *set->labels};
    parts[2] = (part){set->starts, set->count + 1, sizeof *set->starts};
    parts[3] = (part){set->indices, numbers, sizeof *set->indices};
    parts[4] = (part){set->values, numbers, sizeof *set->values};
    parts[5] = (part){set->names, set->names_size, 1};
}

/* ---- mapping --------------------------------------------------------------------------------- */

/* Whether the numbers can be true at all, before anything is touched through them. */
static bool is_sane(const at_cache_head *h, const at_dataset *set)
{
    uint64_t       each = set->element == AT_ELEMENT_BYTE ? 1 : sizeof(float);
    at_image_shape p = set->picture;
    bool           sparse = h->offset[2] != AT_CACHE_NOWHERE;
    bool parts = sparse ? h->offset[0] == AT_CACHE_NOWHERE && h->offset[3] != AT_CACHE_NOWHERE &&
                              h->offset[4] != AT_CACHE_NOWHERE && set->element == AT_ELEMENT_FLOAT
                        : h->offset[0] != AT_CACHE_NOWHERE && set->row_size == set->features * each;
    bool picture = p.channels == 0 || ((uint64_t)p.channels * p.height <= set->features &&
                                       (uint64_t)p.channels * p.height * p.width == set->features);
    return parts && picture && h->offset[1] != AT_CACHE_NOWHERE &&
           (h->offset[5] != AT_CACHE_NOWHERE) == (set->names_size > 0) && set->count > 0 &&
           set->count < UINT64_MAX / 16 && set->features > 0 && set->classes > 0 &&
           h->memory_size > 0 && h->memory_size < SIZE_MAX / 2 &&
           h->memory_at % AT_CACHE_PAGE == 0 && h->memory_at >= h->head_size &&
           h->memory_at <= AT_CACHE_HEAD_SIZE_MAX + AT_CACHE_PAGE;
}

/* Points the set's parts into its mapping; false when one would not fit. */
static bool place_parts(const at_cache_head *h, at_dataset *set)
{
    part  parts[AT_CACHE_PARTS];
    void *start[AT_CACHE_PARTS];
    list_parts(set, h->numbers, parts);
    for (int i = 0; i < AT_CACHE_PARTS; i++) {
        start[i] = NULL;
        if (h->offset[i] == AT_CACHE_NOWHERE) continue;
        if (h->offset[i] % sizeof(uint64_t) || h->offset[i] > set->map_size) return false;
        if (parts[i].count > (set->map_size - h->offset[i]) / parts[i].size_each) return false;
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

/* Rows that end before they begin, or behind the last number. */
static bool starts_rise(const at_dataset *set, uint64_t numbers)
{
    if (!set->starts) return true;
    for (uint64_t i = 0; i < set->count; i++)
        if (set->starts[i + 1] < set->starts[i] || set->starts[i + 1] > numbers) return false;
    return true;
}

bool at_cache_file_map(int fd, const at_cache_head *h, at_dataset *set)
{
    assert(fd >= 0 && !set->map);
    struct stat status;
    if (!is_sane(h, set)) return false;
    if (fstat(fd, &status) || (uint64_t)status.st_size != h->memory_at + h->memory_size)
        return false;
    set->map =
        mmap(NULL, h->memory_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, (off_t)h->memory_at);
    if (set->map == MAP_FAILED) return set->map = NULL, false;
    set->map_size = h->memory_size;
    set->widen = at_rows_widen_best();
    if (at_cache_file_sum(set->map, set->map_size) == h->memory_sum && place_parts(h, set) &&
        starts_rise(set, h->numbers) && at_store_is_right(set))
        return true;
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

static at_cache_head head_of(const at_dataset *set)
{
    at_cache_head h = {.memory_size = set->map_size,
                       .memory_sum = at_cache_file_sum(set->map, set->map_size),
                       .numbers = set->starts ? set->starts[set->count] : 0};
    part          parts[AT_CACHE_PARTS];
    list_parts(set, h.numbers, parts);
    for (int i = 0; i < AT_CACHE_PARTS; i++)
        h.offset[i] = parts[i].start
                          ? (uint64_t)((unsigned char *)parts[i].start - (unsigned char *)set->map)
                          : AT_CACHE_NOWHERE;
    return h;
}

/* Not synced to the disk: what a power cut leaves of it, the checksums refuse. */
bool at_cache_file_write(const char *path, const at_cache_note *note, const at_dataset *set)
{
    assert(set->map && path);
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) return false;
    at_cache_head  h = head_of(set);
    unsigned char *bytes = at_cache_head_encode(&h, note, set);
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

/* In place: whoever reads a half-written header finds its checksum wrong and reads the sources. */
void at_cache_file_restamp(int fd, const at_cache_head *head, const at_cache_note *note,
                           const at_dataset *set)
{
    assert(set->map && fd >= 0);
    at_cache_head  h = *head;
    unsigned char *bytes = at_cache_head_encode(&h, note, set);
    assert(!bytes || h.memory_at == head->memory_at);
    ssize_t done = bytes ? pwrite(fd, bytes, h.head_size, 0) : 0;
    (void)done; /* a cache that cannot be written is as good as before */
    free(bytes);
}

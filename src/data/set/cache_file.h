/* cache_file.h - the file format of a cache entry: a header and the memory of a data set.
 *
 *     magic │ version, key │ source files: path, size, time, hash │ shapes │ checksum │ .. │ memory
 *
 * The header is encoded byte by byte and ends with its SHA-256. The memory begins at a page
 * boundary, so it can be mapped, and has a checksum of its own, which is fast rather than strong.
 * Nothing in a file is trusted before both checksums match and all numbers are consistent. The
 * memory's checksum is computed once per start of the machine: a mark behind the header says that
 * this was done, until something writes to the file.
 */
#ifndef AT_DATA_SET_CACHE_FILE_H
#define AT_DATA_SET_CACHE_FILE_H

#include "data/files/folder.h"
#include "data/set/store.h"

enum {
    AT_CACHE_ARRAYS = 6,     /* rows, labels, starts, indices, values, names */
    AT_CACHE_PAGE = 1 << 16, /* a multiple of the page size of any machine */
};

#define AT_CACHE_ABSENT UINT64_MAX /* offset of an array that the set does not have */

/* A source file as it was when it was read. */
typedef struct at_file_stamp {
    uint64_t      size;
    int64_t       seconds; /* modification time */
    uint32_t      nanoseconds;
    unsigned char digest[32]; /* SHA-256 of the file */
} at_file_stamp;

/* `nanoseconds` of a file modified so recently that another change might leave the same time. */
#define AT_FILE_STAMP_RECENT UINT32_MAX

/* What an entry was made from. */
typedef struct at_cache_origin {
    const char         *key; /* format, split and options as text */
    const at_file_list *files;
    at_file_stamp      *stamp; /* (files->count) */
} at_cache_origin;

/* The header without the origin and the shapes of the set. */
typedef struct at_cache_header {
    uint64_t header_size, memory_at, memory_size, memory_sum;
    uint64_t numbers;                 /* of all sparse rows together */
    uint64_t offset[AT_CACHE_ARRAYS]; /* into the memory */
} at_cache_header;

/* Writes an entry to a temporary file beside `path` and renames it. Returns false when that fails
 * (disk full, folder not writable). */
bool at_cache_file_write(const char *path, const at_cache_origin *origin, const at_dataset *set);

/* Reads the header of an open file. Returns true when it is complete, of this version, and has the
 * origin's key and files: then the origin's stamps are those of the file, and *set has shapes but
 * no memory. The numbers are not validated yet. */
bool at_cache_file_read_header(int fd, const at_cache_origin *origin, at_cache_header *header,
                               at_dataset *set);

/* Maps the memory after the header into *set, read-only, and validates it: its checksum, unless it
 * was checked before, labels and indices. On false nothing is mapped. */
bool at_cache_file_map(int fd, const at_cache_header *header, at_dataset *set);

/* The checksum of the memory. */
uint64_t at_cache_file_checksum(const void *memory, size_t size);

/* Replaces the stamps in the header of an open file. */
void at_cache_file_restamp(int fd, const at_cache_header *header, const at_cache_origin *origin,
                           const at_dataset *set);

#endif

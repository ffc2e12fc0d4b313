/* cache_file.h - one file of the cache: what it is about, and the memory of a data set as it was.
 *
 *     magic │ version, key │ source files: path, size, time, hash │ shapes │ checksum │ .. │ memory
 *
 * The header is written byte by byte and ends with its SHA-256. The memory begins at a page, so it
 * can be mapped as it is; it has a checksum of its own, which is fast rather than strong. Nothing
 * in a file is believed before both are right and all numbers hold together.
 */
#ifndef AT_DATA_SET_CACHE_FILE_H
#define AT_DATA_SET_CACHE_FILE_H

#include "data/set/cache_head.h"

/* Writes an entry beside `path` and renames it into place; false when that could not be done, which
 * is nobody's fault (a full disk, a folder that cannot be written). */
bool at_cache_file_write(const char *path, const at_cache_note *note, const at_dataset *set);

/* Maps the memory behind a header that was read into *set, read-only, and checks all of it. False:
 * there is no mapping. */
bool at_cache_file_map(int fd, const at_cache_head *head, at_dataset *set);

/* The checksum of the memory. */
uint64_t at_cache_file_sum(const void *memory, size_t size);

/* Replaces the stamps in the header of an open file. */
void at_cache_file_restamp(int fd, const at_cache_head *head, const at_cache_note *note,
                           const at_dataset *set);

#endif

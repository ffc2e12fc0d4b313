/* Fuzz target: any file as a cache entry.
 *
 * The input is two bytes with the size of the header (little endian), the header of an entry with
 * key "key" and one source "file", then the memory. Both checksums are corrected, so that the code
 * after the checks is reached.
 */
#include "data/set/cache_file.h"

#include "base/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { START = 32, DIGEST = 32, HEADER_MAX = 4096 };

/* An accepted entry can be read completely. */
static void use(const at_dataset *set)
{
    assert(at_store_is_valid(set));
    uint64_t sum = 0;
    for (uint64_t i = 0; i < set->count; i++) sum += at_dataset_label(set, i);
    if (at_dataset_is_sparse(set))
        for (uint64_t i = 0; i < set->count; i++) {
            at_sparse_row row = at_dataset_sparse_row(set, i);
            for (uint32_t k = 0; k < row.count; k++) sum += row.indices[k] + (row.values[k] > 0);
        }
    else
        for (size_t i = 0; i < set->count * set->row_size; i++) sum += set->rows[i];
    for (size_t i = 0; i < set->names_size; i++) sum += (unsigned char)set->names[i];
    volatile uint64_t sink = sum;
    (void)sink;
}

/* The input as a file: header with the right checksum, zeros up to a page boundary, memory. */
static int file_of(const uint8_t *data, size_t size, size_t head)
{
    unsigned char header[HEADER_MAX];
    uint64_t      header_size = head;
    int           fd = memfd_create("entry", MFD_CLOEXEC);
    assert(fd >= 0);
    memcpy(header, data, head);
    memcpy(header + START - 8, &header_size, sizeof header_size);
    at_file_digest_bytes(header, head - DIGEST, header + head - DIGEST);
    ssize_t done = write(fd, header, head);
    done += pwrite(fd, data + head, size - head, AT_CACHE_PAGE);
    assert(done == (ssize_t)size);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 + START + DIGEST) return 0;
    size_t head = data[0] | (size_t)data[1] << 8;
    data += 2, size -= 2;
    if (head < START + DIGEST || head > HEADER_MAX || head > size) return 0;
    char           *path = "file";
    at_file_list    files = {.path = &path, .count = 1, .room = 1};
    at_file_stamp   stamp;
    at_cache_origin origin = {"key", &files, &stamp};
    at_cache_header read = {0};
    at_dataset      set = {0};
    int             fd = file_of(data, size, head);
    if (at_cache_file_read_header(fd, &origin, &read, &set)) {
        read.memory_sum = at_cache_file_checksum(data + head, size - head);
        if (at_cache_file_map(fd, &read, &set)) {
            use(&set);
            munmap(set.map, set.map_size);
        }
    }
    free(set.columns);
    close(fd);
    return 0;
}

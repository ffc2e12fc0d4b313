/* cache_head.h - the header of a file of the cache, as bytes and as numbers. */
#ifndef AT_DATA_SET_CACHE_HEAD_H
#define AT_DATA_SET_CACHE_HEAD_H

#include "data/files/file_list.h"
#include "data/set/store.h"

enum {
    AT_CACHE_PARTS = 6,      /* rows, labels, starts, indices, values, names */
    AT_CACHE_PAGE = 1 << 16, /* a multiple of the page of any machine */
};

#define AT_CACHE_NOWHERE       UINT64_MAX          /* a part that the set does not have */
#define AT_CACHE_HEAD_SIZE_MAX ((uint64_t)1 << 28) /* with the paths of two million files */

/* A source file as it was when it was read. */
typedef struct at_stamp {
    uint64_t      size;
    int64_t       seconds; /* of its last change */
    uint32_t      nanoseconds;
    unsigned char digest[32]; /* SHA-256 of the file */
} at_stamp;

/* The nanoseconds of a file that was changed so lately that it might change again unseen. */
#define AT_STAMP_UNSURE UINT32_MAX

/* What an entry is about. */
typedef struct at_cache_note {
    const char     *key;   /* format, split and settings as text */
    const at_files *files; /* the source files */
    at_stamp       *stamp; /* (files->count) */
} at_cache_note;

/* What the header says besides the note and the shapes of the set. */
typedef struct at_cache_head {
    uint64_t head_size, memory_at, memory_size, memory_sum;
    uint64_t numbers;                /* of all sparse rows together */
    uint64_t offset[AT_CACHE_PARTS]; /* into the memory */
} at_cache_head;

/* The whole header in new memory, zeros up to head->memory_at, which is worked out as head_size
 * is. NULL when there is no memory. */
unsigned char *at_cache_head_encode(at_cache_head *head, const at_cache_note *note,
                                    const at_dataset *set);

/* Reads the header of an open file. True when it is whole, of this version, and about the note's
 * key and files: then the stamps are those of the file, and *set has shapes but no memory. All
 * numbers are still to be doubted. */
bool at_cache_head_read(int fd, const at_cache_note *note, at_cache_head *head, at_dataset *set);

#endif

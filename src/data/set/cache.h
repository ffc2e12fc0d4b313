/* cache.h - what was slow to read is kept, so that the second start is instant.
 *
 *     at_cache_open ──► at_cache_load ──► use it
 *                                    └─► read the files ──► at_cache_keep
 *
 * An entry is valid while every source file has the size and time of change it had; when only the
 * time differs, while its SHA-256 is the same. Anything else is read again. Text, pictures and
 * packed files are kept; raw binary files are read as fast as an entry could be. The cache is a
 * convenience: whatever goes wrong with it, files are read as if there were none.
 */
#ifndef AT_DATA_SET_CACHE_H
#define AT_DATA_SET_CACHE_H

#include <limits.h>

#include "data/set/cache_file.h"
#include "data/set/resolve.h"

typedef struct at_cache_limits {
    uint64_t source_min; /* smaller sources are read again: that is as fast */
    uint64_t total_max;  /* of all entries; the least recently used ones are removed beyond it */
} at_cache_limits;

/* 1 MiB and 8 GiB. */
extern const at_cache_limits at_cache_limits_default;

typedef struct at_cache {
    char            path[PATH_MAX]; /* of the entry */
    char           *key;
    at_files        files;
    at_stamp       *stamp; /* (files.count) as the files are now */
    at_cache_limits limits;
} at_cache;

/* Works out where the entry of this set is, and how its source files look now. False when the set
 * is not worth one or has no files. MUST be closed in any case. */
bool at_cache_open(at_cache *cache, const at_resolved *found, at_split split,
                   const at_reading *reading, at_cache_limits limits);

/* Fills *set, which is zeroed, from the entry and seals it. False when there is no valid one. */
bool at_cache_load(const at_cache *cache, at_dataset *set);

/* Keeps a sealed set. False when it could not be kept. */
bool at_cache_keep(const at_cache *cache, const at_dataset *set);

/* Releases it; accepts a zeroed one. */
void at_cache_close(at_cache *cache);

#endif

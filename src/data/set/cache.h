/* cache.h - keeps data sets that are slow to read in binary form, so the next start is instant.
 *
 *     at_cache_open ──► at_cache_load ──► use it
 *                                    └─► read the files ──► at_cache_save
 *
 * An entry is valid while every source file has its recorded size and modification time, or, when
 * only the time differs, its recorded SHA-256. Text, images and packed files are cached; raw binary
 * files are as fast to read as a cache entry. The cache is optional: when it fails in any way, the
 * files are read as if it did not exist.
 */
#ifndef AT_DATA_SET_CACHE_H
#define AT_DATA_SET_CACHE_H

#include <limits.h>

#include "data/set/cache_file.h"
#include "data/set/resolve.h"

typedef struct at_cache_limits {
    uint64_t source_min; /* smaller sources are not cached: reading them again is as fast */
    uint64_t total_max;  /* of all entries; beyond it the least recently used are removed */
} at_cache_limits;

/* 1 MiB and 8 GiB. */
extern const at_cache_limits at_cache_limits_default;

typedef struct at_cache {
    char            path[PATH_MAX]; /* of the entry */
    char           *key;
    at_file_list    files;
    at_file_stamp  *stamp; /* (files.count) the files as they are now */
    at_cache_limits limits;
} at_cache;

/* Finds the path of the entry for this set and stamps its source files. Returns false when the set
 * is not worth caching or has no files. MUST be closed in any case. */
bool at_cache_open(at_cache *cache, const at_resolved *found, at_split split,
                   const at_read_options *options, at_cache_limits limits);

/* Fills *set, which is zeroed, from the entry and seals it. False when no valid entry exists. */
bool at_cache_load(const at_cache *cache, at_dataset *set);

/* Writes a sealed set to the cache. False when that failed. */
bool at_cache_save(const at_cache *cache, const at_dataset *set);

/* Releases it; accepts a zeroed one. */
void at_cache_close(at_cache *cache);

#endif

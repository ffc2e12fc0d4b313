/* shards.h - divides the samples among the workers.
 *
 *     no         every worker draws from the whole set
 *     yes        worker w of n gets the w-th of n nearly equal contiguous ranges
 *     by-class   worker w gets the classes w-1, w-1+n, ..: shards of different size and content,
 *                as when data stays where it was collected
 *
 * Workers that join in addition to those n have no shard: they draw from the whole set.
 *
 * Created once, before workers are forked; they share it read-only.
 */
#ifndef AT_DATA_DRAW_SHARDS_H
#define AT_DATA_DRAW_SHARDS_H

#include "data/set/dataset.h"

typedef enum at_shard_kind { AT_SHARD_NO, AT_SHARD_YES, AT_SHARD_BY_CLASS } at_shard_kind;

enum { AT_SHARD_KINDS = 3 };
extern const char *const at_shard_name[AT_SHARD_KINDS];

typedef struct at_shards {
    at_shard_kind kind;
    uint32_t      workers;
    uint64_t      samples;
    uint32_t     *list;  /* by-class: (samples) indices, shard after shard; NULL: 0, 1, 2, .. */
    uint64_t     *first; /* by-class: (workers + 1) start of each shard in the list */
} at_shards;

/* Divides `samples` samples; `set` has their classes (NULL: no classes). An empty shard is refused
 * (AT_ERR_USAGE): its worker could never report anything. MUST be deinited after success. */
at_err at_shards_init(at_shards *shards, at_shard_kind kind, const at_dataset *set,
                      uint64_t samples, uint32_t workers, at_fail *fail);

/* Releases it; accepts a zeroed one. */
void at_shards_deinit(at_shards *shards);

/* The shard of a worker (1 .. workers): *first .. *first + *count - 1 of the list. */
void at_shards_get(const at_shards *shards, uint64_t worker, uint64_t *first, uint64_t *count);

/* The start of range `part` (0 .. parts) of `parts` nearly equal ranges of the samples; the first
 * ranges get the remainder, one sample each. */
uint64_t at_shards_even(uint64_t samples, uint64_t part, uint64_t parts);

#endif

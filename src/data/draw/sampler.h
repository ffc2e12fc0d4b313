/* sampler.h - which sample comes at which position: index = f(seed, worker, position).
 *
 * A worker walks its own permutation of the set (or of its shard), a new one each pass. The
 * permutation is computed, not stored (a Feistel network on the smallest rectangle of numbers that
 * covers the set, walked until it lands inside), so any position can be asked for at any time: a
 * replacement worker or a resumed run simply goes on at its position.
 */
#ifndef AT_DATA_DRAW_SAMPLER_H
#define AT_DATA_DRAW_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "data/draw/shards.h"

typedef struct at_sampler {
    uint64_t        seed, worker; /* worker 0 is the common walk of --deal global */
    uint64_t        first, count; /* the shard: samples first .. first+count-1 */
    const uint32_t *list; /* if not NULL these are places in this list, which names the samples */
    bool            in_order;      /* false after init; set it for own models: positions map to
                             * consecutive samples, without a permutation */
    uint64_t        start;         /* where the walk in order begins: workers start evenly spread */
    uint64_t        rows, columns; /* of the rectangle that the network permutes */
} at_sampler;

/* The sampler of `worker` (1 .. workers). With shard, worker w of n gets the w-th of n nearly equal
 * contiguous parts; without, the whole set. worker 0 means the walk shared by all. samples >= 1,
 * and with shard samples >= workers (AT_ERR_USAGE otherwise). */
at_err at_sampler_init(at_sampler *sampler, uint64_t seed, uint64_t worker, uint64_t workers,
                       uint64_t samples, bool shard, at_fail *fail);

/* The same for shards of any kind, which MUST outlive the sampler. Worker 0 walks over all. */
void at_sampler_start(at_sampler *sampler, uint64_t seed, uint64_t worker, const at_shards *shards);

/* The sample at a position; positions may grow without end. */
uint64_t at_sampler_index(const at_sampler *sampler, uint64_t position);

/* The samples at positions position .. position+count-1. */
void at_sampler_indices(const at_sampler *sampler, uint64_t position, uint64_t *indices,
                        uint32_t count);

/* How many samples from that position on are consecutive: the samples index .. index+run-1 with
 * index = at_sampler_index(position) may be taken as one range. In order 1 .. count, otherwise 1.
 */
uint64_t at_sampler_run(const at_sampler *sampler, uint64_t position);

#endif

/* sampler.h - the order in which samples are drawn: index = f(seed, worker, position).
 *
 * Each worker has its own permutation of the set (or of its shard), a new one every epoch. The
 * permutation is computed, not stored (a Feistel network with cycle walking), so any position can
 * be evaluated at any time: a replacement worker or a resumed run continues at its position.
 */
#ifndef AT_DATA_DRAW_SAMPLER_H
#define AT_DATA_DRAW_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "data/draw/shards.h"

typedef struct at_sampler {
    uint64_t        seed, worker; /* worker 0: the walk shared by all, for --deal global */
    uint64_t        first, count; /* the shard: samples first .. first+count-1 */
    const uint32_t *list; /* if not NULL, sample numbers; first and count then index this list */
    bool     in_order; /* consecutive samples without a permutation, for user-defined models; false
                             * after init */
    uint64_t start;    /* first sample in order: workers start evenly spaced */
    uint64_t rows, columns; /* of the rectangle that the Feistel network permutes */
} at_sampler;

/* The sampler of `worker` (0: the walk shared by all). With shard, worker w of n gets the w-th of n
 * nearly equal contiguous ranges; without, and for workers above n that joined later, the whole
 * set. samples >= 1, and with shard samples >= workers (AT_ERR_USAGE otherwise). */
at_err at_sampler_init(at_sampler *sampler, uint64_t seed, uint64_t worker, uint64_t workers,
                       uint64_t samples, bool shard, at_fail *fail);

/* The same for shards of any kind, which MUST outlive the sampler. Worker 0 and
 * workers above shards->workers draw from all samples. */
void at_sampler_init_shards(at_sampler *sampler, uint64_t seed, uint64_t worker,
                            const at_shards *shards);

/* The sample at a position; positions are unbounded. */
uint64_t at_sampler_index(const at_sampler *sampler, uint64_t position);

/* The samples at positions position .. position+count-1. */
void at_sampler_indices(const at_sampler *sampler, uint64_t position, uint64_t *indices,
                        uint32_t count);

/* Number of consecutive samples from that position on: index .. index+run-1 with index =
 * at_sampler_index(position) are one range. 1 .. count in order, otherwise 1. */
uint64_t at_sampler_run(const at_sampler *sampler, uint64_t position);

#endif

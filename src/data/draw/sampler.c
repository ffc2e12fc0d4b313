/* The permutation is computed, not stored. A position is written as left * columns + right with
 * left < rows, right < columns, where rows * columns is the smallest nearly square rectangle that
 * covers the set. A generalized Feistel network permutes the rectangle,
 *     left  <- (left  + F(right, key)) mod rows       in even rounds,
 *     right <- (right + F(left,  key)) mod columns    in odd rounds,
 * whatever F is (Black and Rogaway, Ciphers with arbitrary finite domains, 2002). Where the result
 * falls outside the set the network is applied again until it falls inside (cycle walking), which
 * is rare: fewer than `rows` cells of the rectangle lie outside. Each epoch has its own keys.
 */
#include "data/draw/sampler.h"

#include "base/rng.h"

#include <assert.h>
#include <stddef.h>

enum { ROUNDS = 6 };

typedef struct round_keys {
    uint64_t of[ROUNDS];
} round_keys;

/* The smallest integer whose square is at least count. */
static uint64_t root_above(uint64_t count)
{
    assert(count > 0);
    uint64_t low = 1, high = (uint64_t)1 << 32;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        bool     enough = middle >> 32 || middle * middle >= count;
        if (enough)
            high = middle;
        else
            low = middle + 1;
    }
    assert(low >> 32 || low * low >= count);
    return low;
}

/* Where a worker without a shard starts in order: workers are evenly spaced, and those that join in
 * addition start half-way between two others. */
static uint64_t start_of(const at_shards *shards, uint64_t worker)
{
    assert(worker >= 1);
    uint64_t part = 2 * ((worker - 1) % shards->workers), parts = 2 * (uint64_t)shards->workers;
    uint64_t even = worker > shards->workers
                        ? at_shards_even(shards->samples, part + 1, parts)
                        : at_shards_even(shards->samples, worker - 1, shards->workers);
    return even % shards->samples; /* there may be more workers than samples */
}

void at_sampler_init_shards(at_sampler *sampler, uint64_t seed, uint64_t worker,
                            const at_shards *shards)
{
    assert(shards->samples >= 1 && shards->workers >= 1);
    bool has_shard = worker > 0 && worker <= shards->workers && shards->kind != AT_SHARD_NO;
    *sampler = (at_sampler){.seed = seed, .worker = worker, .count = shards->samples};
    if (worker > 0 && !has_shard) {
        sampler->start = start_of(shards, worker);
    } else if (has_shard) {
        sampler->list = shards->list;
        at_shards_get(shards, worker, &sampler->first, &sampler->count);
    }
    sampler->rows = root_above(sampler->count);
    sampler->columns = (sampler->count - 1) / sampler->rows + 1;
    assert(sampler->first + sampler->count <= shards->samples);
    assert(sampler->columns <= sampler->rows);
}

at_err at_sampler_init(at_sampler *sampler, uint64_t seed, uint64_t worker, uint64_t workers,
                       uint64_t samples, bool shard, at_fail *fail)
{
    assert(workers >= 1 && workers <= UINT32_MAX);
    at_shards shards;
    AT_TRY(at_shards_init(&shards, shard ? AT_SHARD_YES : AT_SHARD_NO, NULL, samples,
                          (uint32_t)workers, fail));
    at_sampler_init_shards(sampler, seed, worker, &shards);
    return AT_OK;
}

static round_keys keys_of(const at_sampler *sampler, uint64_t epoch)
{
    round_keys keys;
    at_rng     rng = at_rng_stream(sampler->seed, sampler->worker, AT_RNG_PURPOSE_SHUFFLE, epoch);
    for (int r = 0; r < ROUNDS; r++) keys.of[r] = at_rng_next(&rng);
    return keys;
}

/* F: a hash of one side and the key, reduced to 0 .. bound-1 by a multiplication. */
static inline uint64_t hash(uint64_t side, uint64_t key, uint64_t bound)
{
    uint64_t product = (side ^ key) * 0x9e3779b97f4a7c15u;
    uint64_t folded = (product ^ product >> 32) & UINT32_MAX;
    return folded * bound >> 32;
}

static inline uint64_t add_modulo(uint64_t a, uint64_t b, uint64_t bound)
{
    assert(a < bound);
    uint64_t sum = a + b;
    return sum >= bound ? sum - bound : sum;
}

static inline uint64_t network(const at_sampler *sampler, const round_keys *keys, uint64_t left,
                               uint64_t right)
{
    for (int r = 0; r < ROUNDS; r += 2) {
        left = add_modulo(left, hash(right, keys->of[r], sampler->rows), sampler->rows);
        right = add_modulo(right, hash(left, keys->of[r + 1], sampler->columns), sampler->columns);
    }
    return left * sampler->columns + right;
}

/* Applies the network until the result lies inside the set. */
static inline uint64_t permute(const at_sampler *sampler, const round_keys *keys, uint64_t left,
                               uint64_t right)
{
    uint64_t offset = network(sampler, keys, left, right);
    while (offset >= sampler->count)
        offset = network(sampler, keys, offset / sampler->columns, offset % sampler->columns);
    return offset;
}

/* The offset in the shard of a position when samples are drawn in order. */
static uint64_t in_order_offset(const at_sampler *sampler, uint64_t position)
{
    assert(sampler->start < sampler->count);
    return (sampler->start + position % sampler->count) % sampler->count;
}

/* Increments left and right with the position: a division per index would cost more than the
 * rest. */
static void indices_permuted(const at_sampler *sampler, uint64_t position, uint64_t *indices,
                             uint32_t count)
{
    const at_sampler own = *sampler; /* a copy, which cannot alias indices */
    uint64_t         epoch = position / own.count, offset = position % own.count;
    for (uint32_t done = 0; done < count; epoch++, offset = 0) {
        round_keys keys = keys_of(&own, epoch);
        uint64_t   left = offset / own.columns, right = offset % own.columns;
        for (; done < count && offset < own.count; offset++) {
            indices[done++] = own.first + permute(&own, &keys, left, right);
            if (++right == own.columns) right = 0, left++;
        }
    }
}

static void indices_in_order(const at_sampler *sampler, uint64_t position, uint64_t *indices,
                             uint32_t count)
{
    assert(indices || count == 0);
    uint64_t offset = in_order_offset(sampler, position);
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = sampler->first + offset;
        if (++offset == sampler->count) offset = 0;
    }
}

uint64_t at_sampler_index(const at_sampler *sampler, uint64_t position)
{
    uint64_t index;
    at_sampler_indices(sampler, position, &index, 1);
    return index;
}

void at_sampler_indices(const at_sampler *sampler, uint64_t position, uint64_t *indices,
                        uint32_t count)
{
    assert(sampler->count > 0);
    if (sampler->in_order)
        indices_in_order(sampler, position, indices, count);
    else
        indices_permuted(sampler, position, indices, count);
    for (uint32_t i = 0; sampler->list && i < count; i++) indices[i] = sampler->list[indices[i]];
}

uint64_t at_sampler_run(const at_sampler *sampler, uint64_t position)
{
    assert(sampler->count > 0);
    if (!sampler->in_order || sampler->list) return 1;
    return sampler->count - in_order_offset(sampler, position);
}

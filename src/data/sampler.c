/* A permutation that is computed, not stored. A Feistel network of six rounds permutes the numbers
 * of 2 * half_bits bits,
 *     (left, right) -> (right, left xor F(right, key)),
 * whatever F is. Where its result falls outside the set it is applied again until it falls inside
 * (cycle walking): the result is a permutation of the set, and since the network is less than
 * four times as large, few turns are needed. Each pass has keys of its own.
 */
#include "data/sampler.h"

#include "base/rng.h"

#include <assert.h>
#include <stddef.h>

enum { ROUNDS = 6 };

typedef struct round_keys {
    uint64_t of[ROUNDS];
} round_keys;

/* The first of the samples of part `part` (0 .. parts) of `parts` nearly equal parts: the first
 * ones are longer by one where it does not come out even. */
static uint64_t part_first(uint64_t samples, uint64_t part, uint64_t parts)
{
    assert(part <= parts);
    uint64_t rest = samples % parts;
    return samples / parts * part + (part < rest ? part : rest);
}

static uint32_t half_bits_for(uint64_t count)
{
    uint32_t half_bits = 1;
    while (half_bits < 32 && (count - 1) >> (2 * half_bits)) half_bits++;
    return half_bits;
}

at_err at_sampler_init(at_sampler *sampler, uint64_t seed, uint64_t worker, uint64_t workers,
                       uint64_t samples, bool shard, at_fail *fail)
{
    assert(worker <= workers);
    if (samples < 1)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "there are no samples to draw from");
    if (shard && samples < workers)
        return at_fail_set(fail, AT_ERR_USAGE, "use fewer workers, or no shards",
                           "%llu samples cannot be divided among %llu workers",
                           (unsigned long long)samples, (unsigned long long)workers);
    *sampler = (at_sampler){.seed = seed, .worker = worker, .count = samples};
    if (worker > 0) {
        uint64_t first = part_first(samples, worker - 1, workers);
        uint64_t end = part_first(samples, worker, workers);
        if (shard)
            sampler->first = first, sampler->count = end - first;
        else
            sampler->start = first;
    }
    sampler->half_bits = half_bits_for(sampler->count);
    assert(sampler->first + sampler->count <= samples);
    return AT_OK;
}

static round_keys keys_of(const at_sampler *sampler, uint64_t pass)
{
    round_keys keys;
    at_rng     rng = at_rng_stream(sampler->seed, sampler->worker, AT_STREAM_SHUFFLE, pass);
    for (int r = 0; r < ROUNDS; r++) keys.of[r] = at_rng_next(&rng);
    return keys;
}

/* F: the top half_bits bits of a hash of the right half and the key. */
static inline uint64_t hash(uint64_t right, uint64_t key, uint32_t half_bits)
{
    uint64_t h = (right ^ key) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return h >> (64 - half_bits);
}

static inline uint64_t network(uint64_t value, const round_keys *keys, uint32_t half_bits)
{
    uint64_t left = value >> half_bits, right = value & (((uint64_t)1 << half_bits) - 1);
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t next = left ^ hash(right, keys->of[r], half_bits);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

static inline uint64_t permute(const at_sampler *sampler, const round_keys *keys, uint64_t offset)
{
    assert(offset < sampler->count);
    do offset = network(offset, keys, sampler->half_bits);
    while (offset >= sampler->count);
    return offset;
}

/* Where in the shard a position lies when samples are taken in order. */
static uint64_t in_order_offset(const at_sampler *sampler, uint64_t position)
{
    return (sampler->start + position % sampler->count) % sampler->count;
}

uint64_t at_sampler_index(const at_sampler *sampler, uint64_t position)
{
    assert(sampler->count > 0);
    if (sampler->in_order) return sampler->first + in_order_offset(sampler, position);
    round_keys keys = keys_of(sampler, position / sampler->count);
    return sampler->first + permute(sampler, &keys, position % sampler->count);
}

static void indices_in_order(const at_sampler *sampler, uint64_t position, uint64_t *indices,
                             uint32_t count)
{
    uint64_t offset = in_order_offset(sampler, position);
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = sampler->first + offset;
        if (++offset == sampler->count) offset = 0;
    }
}

void at_sampler_indices(const at_sampler *sampler, uint64_t position, uint64_t *indices,
                        uint32_t count)
{
    assert(sampler->count > 0);
    if (sampler->in_order) {
        indices_in_order(sampler, position, indices, count);
        return;
    }
    uint64_t pass = position / sampler->count, offset = position % sampler->count;
    for (uint32_t done = 0; done < count; pass++, offset = 0) {
        round_keys keys = keys_of(sampler, pass);
        for (; done < count && offset < sampler->count; offset++)
            indices[done++] = sampler->first + permute(sampler, &keys, offset);
    }
}

uint64_t at_sampler_run(const at_sampler *sampler, uint64_t position)
{
    assert(sampler->count > 0);
    if (!sampler->in_order) return 1;
    return sampler->count - in_order_offset(sampler, position);
}

#include "data/draw/shards.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>

const char *const at_shard_name[AT_SHARD_KINDS] = {"no", "yes", "by-class"};

uint64_t at_shards_even(uint64_t samples, uint64_t part, uint64_t parts)
{
    assert(part <= parts);
    uint64_t rest = samples % parts;
    return samples / parts * part + (part < rest ? part : rest);
}

static at_err check_possible(const at_shards *shards, const at_dataset *set, at_fail *fail)
{
    unsigned long long samples = shards->samples;
    if (samples < 1) return at_fail_set(fail, AT_ERR_USAGE, NULL, "no samples to draw from");
    if (shards->kind == AT_SHARD_YES && samples < shards->workers)
        return at_fail_set(
            fail, AT_ERR_USAGE, "use fewer workers, or --shard no",
            "--shard yes needs at least one sample per worker (got %llu samples, %u workers)",
            samples, shards->workers);
    if (shards->kind != AT_SHARD_BY_CLASS) return AT_OK;
    if (!set || at_dataset_classes(set) == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use --shard yes",
                           "--shard by-class needs samples with classes");
    if (samples > UINT32_MAX) /* LIMIT */
        return at_fail_set(fail, AT_ERR_USAGE, "use --shard yes",
                           "--shard by-class supports at most 2^32 - 1 samples");
    return AT_OK;
}

static uint32_t owner(const at_shards *shards, uint32_t label)
{
    return label % shards->workers;
}

/* Finds the start of each shard: counts the samples per worker, then sums up. */
static at_err find_starts(at_shards *shards, const at_dataset *set, at_fail *fail)
{
    for (uint64_t i = 0; i < shards->samples; i++)
        shards->first[owner(shards, at_dataset_label(set, i)) + 1]++;
    for (uint32_t w = 0; w < shards->workers; w++) {
        if (shards->first[w + 1] == 0)
            return at_fail_set(fail, AT_ERR_USAGE, "use fewer workers, or --shard yes",
                               "--shard by-class leaves worker %u of %u without samples: class "
                               "%u%s is empty (the set has %u classes)",
                               w + 1, shards->workers, w,
                               at_dataset_classes(set) > w + shards->workers ? ", .." : "",
                               at_dataset_classes(set));
        shards->first[w + 1] += shards->first[w];
    }
    assert(shards->first[shards->workers] == shards->samples);
    return AT_OK;
}

/* Keeps the order of the set within a shard. `first` is advanced while filling and restored
 * afterwards. */
static void fill(at_shards *shards, const at_dataset *set)
{
    for (uint64_t i = 0; i < shards->samples; i++)
        shards->list[shards->first[owner(shards, at_dataset_label(set, i))]++] = (uint32_t)i;
    for (uint32_t w = shards->workers; w > 0; w--) shards->first[w] = shards->first[w - 1];
    shards->first[0] = 0;
}

static at_err divide_by_class(at_shards *shards, const at_dataset *set, at_fail *fail)
{
    assert(set && at_dataset_count(set) == shards->samples);
    size_t size;
    bool   fits = at_size_product(shards->samples, sizeof *shards->list, &size);
    shards->first = calloc((size_t)shards->workers + 2, sizeof *shards->first);
    shards->list = fits ? malloc(size) : NULL;
    if (!shards->first || !shards->list) return at_fail_memory_for(fail, "for --shard by-class");
    AT_TRY(find_starts(shards, set, fail));
    fill(shards, set);
    return AT_OK;
}

at_err at_shards_init(at_shards *shards, at_shard_kind kind, const at_dataset *set,
                      uint64_t samples, uint32_t workers, at_fail *fail)
{
    assert(workers >= 1);
    *shards = (at_shards){.kind = kind, .workers = workers, .samples = samples};
    AT_TRY(check_possible(shards, set, fail));
    if (kind != AT_SHARD_BY_CLASS) return AT_OK;
    at_err err = divide_by_class(shards, set, fail);
    if (err) at_shards_deinit(shards);
    return err;
}

void at_shards_deinit(at_shards *shards)
{
    assert(shards);
    free(shards->list);
    free(shards->first);
    *shards = (at_shards){0};
}

void at_shards_get(const at_shards *shards, uint64_t worker, uint64_t *first, uint64_t *count)
{
    assert(worker >= 1 && worker <= shards->workers);
    uint64_t begin = 0, end = shards->samples;
    switch (shards->kind) {
    case AT_SHARD_NO: break;
    case AT_SHARD_YES:
        begin = at_shards_even(shards->samples, worker - 1, shards->workers);
        end = at_shards_even(shards->samples, worker, shards->workers);
        break;
    case AT_SHARD_BY_CLASS:
        begin = shards->first[worker - 1];
        end = shards->first[worker];
        break;
    }
    assert(begin < end);
    *first = begin;
    *count = end - begin;
}

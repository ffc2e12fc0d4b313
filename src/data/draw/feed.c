#include "data/draw/feed.h"

#include "base/arena.h"
#include "data/draw/sampler.h"
#include "data/prep/prep.h"
#include "data/prep/sparse_prep.h"
#include "data/set/inputs.h"
#include "data/set/set_pair.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NOTES_SIZE = 2048 };

struct at_feed {
    at_set_pair sets;
    char        notes[NOTES_SIZE];
    at_prep    *prep;              /* NULL: none */
    char       *steps, *prep_text; /* as given or chosen, with fitted numbers; NULL: none */
    char       *inputs;
    at_shards   shards;
    uint64_t    seed;
    /* Private to a process, from at_feed_alloc_buffers. */
    at_sampler   walk; /* the last one used */
    bool         walking;
    at_arena     arena;
    uint32_t     rows;
    float       *x;           /* (rows, features) */
    float       *scratch;     /* of the preparation */
    uint32_t    *labels;      /* (rows) */
    uint64_t    *now, *ahead; /* (rows) indices of the current and the next samples */
    at_feed_draw ahead_draw;  /* the draw that `ahead` is for; count 0: none */
};

/* ---- before the fork ------------------------------------------------------------------------- */

static at_err open_sets(at_feed *feed, const at_feed_options *o, at_fail *fail)
{
    at_text notes = at_text_in(feed->notes, sizeof feed->notes);
    if (o->inputs) {
        AT_TRY(
            at_set_pair_open_inputs(&feed->sets, o->inputs, o->test_data, &o->read_options, fail));
    } else {
        AT_TRY(at_set_pair_open(&feed->sets, o->data, o->test_data, o->test_split, &o->read_options,
                                fail));
        at_set_pair_note(&feed->sets, o->data, &notes);
        at_prep_note(o->prep, &feed->sets, o->data, &notes);
    }
    feed->inputs = at_inputs_text(feed->sets.train);
    if (!feed->inputs) return at_fail_memory(fail);
    return at_dataset_check_dense(feed->sets.train, fail);
}

static at_err make_prep(at_feed *feed, const char *given, at_fail *fail)
{
    const char *steps = at_prep_choose(given, feed->sets.train);
    if (!steps) return AT_OK;
    feed->steps = strdup(steps);
    if (!feed->steps) return at_fail_memory_for(fail, "for --prep");
    if (at_dataset_is_sparse(feed->sets.train))
        return at_sparse_prep(&feed->sets, steps, &feed->prep_text, fail);
    AT_TRY(at_prep_new(steps, at_dataset_shape(feed->sets.train), &feed->prep, fail));
    AT_TRY(at_prep_fit(feed->prep, feed->sets.train, fail));
    feed->prep_text = at_prep_text(feed->prep);
    if (feed->prep_text) return AT_OK;
    return at_fail_memory_for(fail, "for --prep");
}

static at_err fill(at_feed *feed, const at_feed_options *o, at_fail *fail)
{
    AT_TRY(open_sets(feed, o, fail));
    AT_TRY(make_prep(feed, o->prep, fail));
    return at_shards_init(&feed->shards, o->shard, feed->sets.train,
                          at_dataset_count(feed->sets.train), o->workers, fail);
}

at_err at_feed_new(const at_feed_options *options, at_feed **out, at_fail *fail)
{
    assert(options->data && options->workers >= 1);
    *out = NULL;
    at_feed *feed = calloc(1, sizeof *feed);
    if (!feed) return at_fail_memory(fail);
    feed->seed = options->seed;
    at_err err = fill(feed, options, fail);
    if (err)
        at_feed_free(feed);
    else
        *out = feed;
    return err;
}

void at_feed_free(at_feed *feed)
{
    if (!feed) return;
    at_feed_free_buffers(feed);
    at_shards_deinit(&feed->shards);
    at_prep_free(feed->prep);
    free(feed->steps);
    free(feed->prep_text);
    free(feed->inputs);
    at_set_pair_close(&feed->sets);
    free(feed);
}

uint64_t at_feed_count(const at_feed *feed, at_split split)
{
    assert(feed->sets.train && feed->sets.test);
    return at_dataset_count(split == AT_SPLIT_TRAIN ? feed->sets.train : feed->sets.test);
}

uint32_t at_feed_fingerprint(const at_feed *feed)
{
    assert(feed->sets.train);
    return at_dataset_fingerprint(feed->sets.train);
}

uint32_t at_feed_classes(const at_feed *feed)
{
    assert(feed->sets.train);
    return at_dataset_classes(feed->sets.train);
}

at_image_shape at_feed_shape(const at_feed *feed)
{
    assert(feed->sets.train);
    return feed->prep ? at_prep_out(feed->prep) : at_dataset_shape(feed->sets.train);
}

const char *at_feed_prep(const at_feed *feed)
{
    return feed->prep_text;
}

const char *at_feed_steps(const at_feed *feed)
{
    return feed->steps;
}

const char *at_feed_inputs(const at_feed *feed)
{
    assert(feed->inputs);
    return feed->inputs;
}

const char *at_feed_form(const at_feed *feed)
{
    assert(feed->sets.train);
    return at_dataset_form(feed->sets.train);
}

const char *at_feed_notes(const at_feed *feed)
{
    return feed->notes;
}

/* ---- in each process ------------------------------------------------------------------------- */

void at_feed_free_buffers(at_feed *feed)
{
    at_arena_deinit(&feed->arena);
    feed->walking = false;
    feed->rows = 0;
    feed->ahead_draw = (at_feed_draw){0};
}

at_err at_feed_alloc_buffers(at_feed *feed, uint32_t rows, at_fail *fail)
{
    assert(rows >= 1);
    at_feed_free_buffers(feed); /* inherited from the parent process */
    at_image_shape p = at_feed_shape(feed);
    size_t         scratch = feed->prep ? at_prep_scratch_size(feed->prep) * sizeof(float) : 0;
    size_t         rest = rows * (sizeof *feed->labels + 2 * sizeof *feed->now) + scratch + 5 * 64;
    size_t         plane, x_size;
    bool           fits = at_size_product((size_t)p.height * p.width, p.channels, &plane) &&
                at_size_product(plane * sizeof(float), rows, &x_size) && x_size <= SIZE_MAX - rest;
    if (!fits || !at_arena_init(&feed->arena, x_size + rest))
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller --micro-batch",
                           "not enough memory for a micro-batch of %u samples", rows);
    feed->rows = rows;
    feed->x = at_arena_get(&feed->arena, 1, x_size);
    feed->labels = at_arena_get(&feed->arena, rows, sizeof *feed->labels);
    feed->now = at_arena_get(&feed->arena, rows, sizeof *feed->now);
    feed->ahead = at_arena_get(&feed->arena, rows, sizeof *feed->ahead);
    feed->scratch = at_arena_get(&feed->arena, 1, scratch);
    assert(feed->x && feed->labels && feed->now && feed->ahead && feed->scratch);
    return AT_OK;
}

/* A process that computes for several workers switches between their walks. */
static const at_sampler *walk_of(at_feed *feed, uint64_t walk)
{
    if (!feed->walking || feed->walk.worker != walk)
        at_sampler_init_shards(&feed->walk, feed->seed, walk, &feed->shards);
    feed->walking = true;
    return &feed->walk;
}

/* The indices of this draw were computed, and its rows prefetched, with the previous draw, unless
 * this draw does not follow it. */
static void find_indices(at_feed *feed, const at_feed_draw *draw, uint32_t ahead)
{
    const at_feed_draw *a = &feed->ahead_draw;
    const at_sampler   *walk = walk_of(feed, draw->walk);
    bool                expected = a->position == draw->position && a->count >= draw->count &&
                    a->walk == draw->walk && a->count > 0;
    if (expected) {
        uint64_t *swap = feed->now;
        feed->now = feed->ahead;
        feed->ahead = swap;
    } else {
        at_sampler_indices(walk, draw->position, feed->now, draw->count);
    }
    feed->ahead_draw = (at_feed_draw){draw->walk, draw->position + draw->count, ahead};
    at_sampler_indices(walk, feed->ahead_draw.position, feed->ahead, ahead);
}

static at_feed_rows fetch(at_feed *feed, const at_dataset *set, uint32_t count,
                          const at_prep_key *key)
{
    if (feed->prep)
        at_prep_rows(feed->prep, feed->x, feed->labels, set, feed->now, count, feed->scratch, key);
    else
        at_dataset_rows(set, feed->x, feed->labels, feed->now, count);
    return (at_feed_rows){feed->x, feed->labels};
}

at_feed_rows at_feed_train(at_feed *feed, const at_feed_draw *draw, uint32_t ahead)
{
    assert(draw->count >= 1 && draw->count <= feed->rows);
    assert(ahead <= feed->rows);
    at_prep_key key = {feed->seed, draw->walk, draw->position};
    find_indices(feed, draw, ahead);
    at_feed_rows rows = fetch(feed, feed->sets.train, draw->count, &key);
    at_dataset_prefetch(feed->sets.train, feed->ahead, ahead);
    return rows;
}

at_feed_rows at_feed_test(at_feed *feed, uint64_t first, uint32_t count)
{
    assert(count >= 1 && count <= feed->rows);
    assert(first + count <= at_dataset_count(feed->sets.test));
    feed->ahead_draw.count = 0; /* `now` is overwritten */
    for (uint32_t i = 0; i < count; i++) feed->now[i] = first + i;
    return fetch(feed, feed->sets.test, count, NULL);
}

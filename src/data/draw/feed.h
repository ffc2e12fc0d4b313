/* feed.h - the samples of a run: which set, divided how, prepared how, in which order.
 *
 *     at_feed_new ──fork──► at_feed_equip ──► at_feed_train ... / at_feed_test ...
 *
 * Made once, before workers are forked; all they share is read-only. `equip` gives a process its
 * private buffers. What is drawn depends on (seed, walk, position) only, never on who draws it.
 */
#ifndef AT_DATA_DRAW_FEED_H
#define AT_DATA_DRAW_FEED_H

#include "data/draw/shards.h"

typedef struct at_feed at_feed;

typedef struct at_feed_options {
    const char   *data, *test_data; /* test_data NULL: the data's own test split */
    const char   *prep;             /* list of steps (prep.h); NULL: samples as they are */
    at_reading    reading;
    at_shard_kind shard;
    uint64_t      seed;
    uint32_t      workers;
} at_feed_options;

/* Samples ready to be computed with; borrowed until the next call. */
typedef struct at_feed_rows {
    const float    *x;      /* (count, features) */
    const uint32_t *labels; /* (count) */
} at_feed_rows;

/* Some samples of a walk: positions position .. position+count-1. Walk 0 is common to all workers,
 * walk w is worker w's. */
typedef struct at_feed_draw {
    uint64_t walk, position;
    uint32_t count;
} at_feed_draw;

/* Loads both sets, makes them agree, fits the preparation, divides the samples. Texts are needed
 * only now. Errors as at_dataset_open, at_prep_new and at_shards_init. */
at_err at_feed_new(const at_feed_options *options, at_feed **feed, at_fail *fail);
/* Releases it; accepts NULL. */
void at_feed_free(at_feed *feed);

/* How many training and test samples there are, and classes. */
uint64_t at_feed_count(const at_feed *feed, at_split split);
/* Every label is below it. */
uint32_t at_feed_classes(const at_feed *feed);
/* What a prepared sample is as a picture, or as a line of numbers (1, 1, n). */
at_image_shape at_feed_picture(const at_feed *feed);

/* How samples are prepared, with all numbers (at_prep_text); NULL: not at all. */
const char *at_feed_prep(const at_feed *feed);
/* What a sample was before that, for people: "28x28 bytes". */
const char *at_feed_form(const at_feed *feed);

/* Makes this process ready to ask for up to `rows` rows at a time; again, if it was before. */
at_err at_feed_equip(at_feed *feed, uint32_t rows, at_fail *fail);
/* Gives back what equip took. */
void at_feed_strip(at_feed *feed);

/* Training samples. `ahead` rows behind them are asked for from memory, because they come next. */
at_feed_rows at_feed_train(at_feed *feed, const at_feed_draw *draw, uint32_t ahead);

/* The test samples first .. first+count-1, prepared as for testing. */
at_feed_rows at_feed_test(at_feed *feed, uint64_t first, uint32_t count);

#endif

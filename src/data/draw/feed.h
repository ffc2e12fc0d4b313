/* feed.h - delivers the samples of a run: loads, shards, shuffles and prepares them.
 *
 *     at_feed_new ──fork──► at_feed_alloc_buffers ──► at_feed_train ... / at_feed_test ...
 *
 * Created once, before workers are forked; they share it read-only. Each process then allocates its
 * private buffers. A sample depends only on (seed, walk, position), not on the process that draws
 * it.
 */
#ifndef AT_DATA_DRAW_FEED_H
#define AT_DATA_DRAW_FEED_H

#include "data/draw/shards.h"

typedef struct at_feed at_feed;

typedef struct at_feed_options {
    const char     *data, *test_data; /* test_data NULL: the test split of data */
    double          test_split;       /* share to hold out if there is no test set (set_pair.h) */
    const char     *inputs;           /* the samples instead of data (inputs.h); NULL: data */
    const char     *prep;             /* list of steps (prep.h), "none"; NULL: at_prep_choose */
    at_read_options read_options;
    at_shard_kind   shard;
    uint64_t        seed;
    uint32_t        workers;
} at_feed_options;

/* Prepared samples; borrowed until the next call. */
typedef struct at_feed_rows {
    const float    *x;      /* (count, features) */
    const uint32_t *labels; /* (count) */
} at_feed_rows;

/* The samples at position .. position+count-1 of a walk, the sequence in which samples are drawn.
 * Walk 0 is shared by all workers, walk w belongs to worker w. */
typedef struct at_feed_draw {
    uint64_t walk, position;
    uint32_t count;
} at_feed_draw;

/* Loads and matches both sets, fits the preparation and shards the samples. The strings in options
 * are only needed during the call. Errors as at_dataset_open, at_prep_new and at_shards_init. */
at_err at_feed_new(const at_feed_options *options, at_feed **feed, at_fail *fail);
/* Releases it; accepts NULL. */
void at_feed_free(at_feed *feed);

/* Number of samples of a split. */
uint64_t at_feed_count(const at_feed *feed, at_split split);
/* at_dataset_fingerprint of the training set. */
uint32_t at_feed_fingerprint(const at_feed *feed);
/* Number of classes; every label is below it. */
uint32_t at_feed_classes(const at_feed *feed);
/* The shape of a prepared sample; (1, 1, n) for a feature vector. */
at_image_shape at_feed_shape(const at_feed *feed);

/* The steps of the preparation as they were given or chosen, and with all fitted numbers
 * (at_prep_text); NULL: none. */
const char *at_feed_steps(const at_feed *feed);
const char *at_feed_prep(const at_feed *feed);
/* What samples these are (inputs.h). */
const char *at_feed_inputs(const at_feed *feed);
/* The form of a sample before preparation, to print: "28x28 bytes". */
const char *at_feed_form(const at_feed *feed);

/* What users should know about the samples, a line each; empty: nothing. */
const char *at_feed_notes(const at_feed *feed);

/* Allocates the buffers of this process for up to `rows` rows at a time, replacing earlier ones. */
at_err at_feed_alloc_buffers(at_feed *feed, uint32_t rows, at_fail *fail);
/* Releases the buffers. */
void at_feed_free_buffers(at_feed *feed);

/* Training samples. Prefetches the next `ahead` rows. */
at_feed_rows at_feed_train(at_feed *feed, const at_feed_draw *draw, uint32_t ahead);

/* The test samples first .. first+count-1, prepared for testing. */
at_feed_rows at_feed_test(at_feed *feed, uint64_t first, uint32_t count);

#endif

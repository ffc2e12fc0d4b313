/* dataset.h - samples in memory, and where they come from.
 *
 *     at_dataset *set;
 *     at_dataset_open("fashion-mnist", AT_SPLIT_TRAIN, &set, fail);
 *     at_dataset_rows(set, x, labels, indices, count);
 *     at_dataset_free(set);
 *
 * Features stay in the form in which they were stored (bytes for images) and become floats row by
 * row as they are drawn: a quarter of the memory traffic, and one contiguous micro-batch for the
 * kernels. All memory is one read-only mapping made before workers are forked, so they share it.
 */
#ifndef AT_DATA_SET_DATASET_H
#define AT_DATA_SET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct at_dataset at_dataset;

typedef enum at_split { AT_SPLIT_TRAIN, AT_SPLIT_TEST } at_split;

/* Opens a named set, a file or folder in any format (found out by its content), FORMAT:PATH to
 * insist on one, or synthetic:SAMPLES,FEATURES,CLASSES (seeded Gaussian clusters, the same on every
 * machine; the test split has a fifth as many, at least one a class). For a pair of files of one
 * split use IMAGES_PATH,LABELS_PATH. Errors name the file, the position and a hint: AT_ERR_MISSING,
 * AT_ERR_FORMAT, AT_ERR_IO, AT_ERR_USAGE for a format that is not known. */
at_err at_dataset_open(const char *name, at_split split, at_dataset **set, at_fail *fail);
void   at_dataset_free(at_dataset *set); /* accepts NULL */

/* What the readers of some formats want to be told; zeroed: the defaults. */
typedef struct at_reading {
    const char *label; /* CSV: the column of the labels; NULL: the one named label, or the last */
    uint32_t    hash_bits; /* Criteo: categories are hashed to 2^hash_bits features; 0: 20 */
    bool        cache;     /* keep what was slow to read, and use what was kept (cache.h) */
    const struct at_loading *loading; /* who is told how far it is (loading.h); NULL: nobody */
} at_reading;

/* The same with other than default answers. `reading` may be NULL and is needed only now. */
at_err at_dataset_open_as(const char *name, at_split split, const at_reading *reading,
                          at_dataset **set, at_fail *fail);

/* Whether a split of that name is there to be opened. A pair of files is only one split, the train
 * set; it may be opened as either. */
bool at_dataset_has(const char *name, at_split split);

/* Makes a test set that was opened on its own fit its train set: the features must be equal, the
 * test set takes over the train set's number of classes, and no test label may lie beyond it
 * (AT_ERR_FORMAT otherwise). Classes that have names go by their names. A sparse test set takes
 * over the train set's dimension; features that the train set does not know are left out, because
 * no model can have learned anything about them. The two splits of a named set, a folder or a
 * synthetic set agree from the start. MUST come before workers are forked. */
at_err at_dataset_agree(const at_dataset *train, at_dataset *test, at_fail *fail);

/* How many samples, at least 1. */
uint64_t at_dataset_count(const at_dataset *set);
/* How many floats a sample is, at least 1. */
uint32_t at_dataset_features(const at_dataset *set);
/* How many classes; every label is below it. */
uint32_t at_dataset_classes(const at_dataset *set);
/* What a row is as a picture: floats come channel by channel, (channels, height, width). */
typedef struct at_image_shape {
    uint32_t channels, height, width;
} at_image_shape;
/* The shape of a row. One that is no picture is a line of numbers, (1, 1, features). */
at_image_shape at_dataset_picture(const at_dataset *set);
/* Whether it was not read from its files but from what was kept of them. */
bool at_dataset_is_cached(const at_dataset *set);
/* Name of the format it was read from ("idx", "synthetic"). */
const char *at_dataset_format(const at_dataset *set);
/* Image form for people ("28x28 bytes", "40 floats"); borrowed until the set is freed. */
const char *at_dataset_form(const at_dataset *set);

/* x (count, features) <- the rows `indices` scaled to [0, 1] for bytes; labels (count). */
void at_dataset_rows(const at_dataset *set, float *x, uint32_t *labels, const uint64_t *indices,
                     uint32_t count);

/* Asks the caches for rows that will be drawn soon; never wrong, only sometimes useful. */
void at_dataset_prefetch(const at_dataset *set, const uint64_t *indices, uint32_t count);

/* A sparse set keeps only the numbers that are not zero; its features are its dimension, which may
 * be up to 2^31. */
bool at_dataset_is_sparse(const at_dataset *set);

/* One row of a sparse set: values[i] at feature indices[i], in rising order; borrowed. */
typedef struct at_sparse_row {
    const uint32_t *indices;
    const float    *values;
    uint32_t        count;
} at_sparse_row;
/* The row at that index of a sparse set. */
at_sparse_row at_dataset_sparse_row(const at_dataset *set, uint64_t index);

/* All rows of a sparse set at once, for loops that cannot afford a call a row; borrowed. */
typedef struct at_sparse_rows {
    const uint64_t *starts; /* (count + 1) where in the next two each row begins */
    const uint32_t *indices;
    const float    *values;
    const uint32_t *labels; /* (count) */
    uint64_t        count;
} at_sparse_rows;
/* The rows of a sparse set. */
at_sparse_rows at_dataset_sparse_rows(const at_dataset *set);

/* Whether rows may be asked for as dense ones (at_dataset_rows): AT_ERR_USAGE for a sparse set with
 * so many features that nobody would want to wait for it. */
at_err at_dataset_check_dense(const at_dataset *set, at_fail *fail);

/* Name of a class as the file has it ("-1", "iris-setosa"); NULL when it is only a number. */
const char *at_dataset_class_name(const at_dataset *set, uint32_t label);

/* Label of one sample, for shards by class and statistics. */
uint32_t at_dataset_label(const at_dataset *set, uint64_t index);

#endif

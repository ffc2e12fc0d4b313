/* dataset.h - data sets in memory, and how they are opened.
 *
 *     at_dataset *set;
 *     at_dataset_open("fashion-mnist", AT_SPLIT_TRAIN, &set, fail);
 *     at_dataset_rows(set, x, labels, indices, count);
 *     at_dataset_free(set);
 *
 * Features stay in the type in which they were stored (bytes for images) and become floats row by
 * row as they are drawn: that takes a quarter of the memory traffic and yields a contiguous
 * micro-batch for the kernels. All memory is one read-only mapping made before workers are forked,
 * so they share it.
 */
#ifndef AT_DATA_SET_DATASET_H
#define AT_DATA_SET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct at_dataset at_dataset;

typedef enum at_split { AT_SPLIT_TRAIN, AT_SPLIT_TEST } at_split;

/* Opens a named set, a file or folder in any format (recognized by content), FORMAT:PATH to force a
 * format, or synthetic:SAMPLES,FEATURES,CLASSES (seeded Gaussian clusters, the same on every
 * machine; the test split has a fifth as many samples, at least one per class). For a pair of files
 * of one split use IMAGES_PATH,LABELS_PATH. Errors name the file, the position and a hint:
 * AT_ERR_MISSING, AT_ERR_FORMAT, AT_ERR_IO, AT_ERR_USAGE for an unknown format. */
at_err at_dataset_open(const char *name, at_split split, at_dataset **set, at_fail *fail);
void   at_dataset_free(at_dataset *set); /* accepts NULL */

/* Receives progress while a data set is read. */
typedef struct at_load_progress {
    /* `done` of `total` units (bytes, images); total 0: unknown. Called often, from one thread at a
     * time, so it MUST be cheap. */
    void (*report)(void *self, uint64_t done, uint64_t total);
    void *self;
} at_load_progress;

/* Reports progress; NULL: does nothing. */
static inline void at_load_progress_report(const at_load_progress *progress, uint64_t done,
                                           uint64_t total)
{
    if (progress && progress->report) progress->report(progress->self, done, total);
}

/* The shape of a sample as an image: floats in the order (channels, height, width). */
typedef struct at_image_shape {
    uint32_t channels, height, width;
} at_image_shape;

/* What becomes of rows of a table in which a number is missing. */
typedef enum at_missing { AT_MISSING_REFUSE, AT_MISSING_FILL, AT_MISSING_DROP } at_missing;

/* Whether the first line of a table has the names of the columns; AUTO: unless it has a number. */
typedef enum at_header { AT_HEADER_AUTO, AT_HEADER_YES, AT_HEADER_NO } at_header;

/* Options of some formats; zeroed: the defaults. */
typedef struct at_read_options {
    const char
        *label; /* CSV: label column; NULL: the one named label, class or target, or the last */
    const char    *ignore;  /* CSV: columns to leave out; "none"; NULL: those that identify rows */
    const char    *columns; /* CSV: what the columns are (at_dataset_columns); NULL: to be found */
    uint32_t       hash_bits;   /* Criteo: categories are hashed to 2^hash_bits features; 0: 20 */
    at_missing     missing;     /* CSV */
    at_header      header;      /* CSV */
    bool           cache;       /* use the cache for sets that are slow to read (cache.h) */
    bool           real_labels; /* labels are real numbers, for regression, instead of classes */
    bool           any_labels;  /* CSV: labels are real numbers if they look so */
    bool           unlabeled; /* labels do not matter; CSV with `columns`: they need not be there */
    bool           crop;      /* pictures: the center of them instead of all, scaled */
    at_image_shape shape;     /* pictures: of the samples they become */
    const at_load_progress *progress; /* NULL: none */
} at_read_options;

/* The same with options, which are only needed during the call; NULL: defaults. */
at_err at_dataset_open_as(const char *name, at_split split, const at_read_options *options,
                          at_dataset **set, at_fail *fail);

/* Whether a set of that name has the split. A pair of files is one split, the train set; it may be
 * opened as either. */
bool at_dataset_has(const char *name, at_split split);

/* Whether the pictures of the set are smaller than its samples, which nobody has asked for: *before
 * is the size of the first one, *after that of samples. */
bool at_dataset_enlarges(const char *name, at_image_shape *before, at_image_shape *after);

/* Adapts a test set that was opened on its own to its train set: the features must be the same, the
 * test set takes over the number of classes, and no test label may be beyond it (AT_ERR_FORMAT
 * otherwise). Named classes are matched by name. A sparse test set takes over the dimension of the
 * train set; features unknown to the train set are dropped, because no model has trained on them.
 * The two splits of a named set, a folder or a synthetic set always match. MUST be called before
 * workers are forked. */
at_err at_dataset_match(const at_dataset *train, at_dataset *test, at_fail *fail);

/* Number of samples, at least 1. */
uint64_t at_dataset_count(const at_dataset *set);
/* Floats per sample, at least 1. */
uint32_t at_dataset_features(const at_dataset *set);
/* Number of classes; every label is below it. 0: labels are real numbers (base/label.h). */
uint32_t at_dataset_classes(const at_dataset *set);
/* The shape of a sample; (1, 1, features) when it is not an image but a feature vector. */
at_image_shape at_dataset_shape(const at_dataset *set);
/* Whether it was loaded from the cache. */
bool at_dataset_is_cached(const at_dataset *set);
/* Name of the format it was read from ("idx", "synthetic"). */
const char *at_dataset_format(const at_dataset *set);
/* The columns of a table and what is known about them (csv_columns.h); NULL: not a table. */
const char *at_dataset_columns(const at_dataset *set);
/* Form of a sample, to print ("28x28 bytes", "40 floats"); borrowed until the set is freed. */
const char *at_dataset_form(const at_dataset *set);

/* x (count, features) <- the rows `indices`, bytes scaled to [0, 1]; labels (count). */
void at_dataset_rows(const at_dataset *set, float *x, uint32_t *labels, const uint64_t *indices,
                     uint32_t count);

/* Prefetches rows that will be drawn soon into the processor caches. */
void at_dataset_prefetch(const at_dataset *set, const uint64_t *indices, uint32_t count);

/* A sparse set stores only nonzero numbers; its features are its dimension, up to 2^31. */
bool at_dataset_is_sparse(const at_dataset *set);

/* One row of a sparse set: values[i] at feature indices[i], in ascending order; borrowed. */
typedef struct at_sparse_row {
    const uint32_t *indices;
    const float    *values;
    uint32_t        count;
} at_sparse_row;
/* The row at that index of a sparse set. */
at_sparse_row at_dataset_sparse_row(const at_dataset *set, uint64_t index);

/* All rows of a sparse set, for loops that cannot afford a call per row; borrowed. */
typedef struct at_sparse_rows {
    const uint64_t *starts; /* (count + 1) where each row begins in the next two */
    const uint32_t *indices;
    const float    *values;
    const uint32_t *labels; /* (count) */
    uint64_t        count;
} at_sparse_rows;
/* The rows of a sparse set. */
at_sparse_rows at_dataset_sparse_rows(const at_dataset *set);

/* Whether rows may be read as dense ones (at_dataset_rows): AT_ERR_USAGE for a sparse set with too
 * many features. */
at_err at_dataset_check_dense(const at_dataset *set, at_fail *fail);

/* A checksum of the sizes of the set and of some of its rows: cheap, and nearly always different
 * when the set has changed. */
uint32_t at_dataset_fingerprint(const at_dataset *set);

/* Label of one sample, for shards by class and statistics (base/label.h). */
uint32_t at_dataset_label(const at_dataset *set, uint64_t index);

#endif

/* sparse_builder.h - collects sparse rows while they are read and makes a data set of them.
 *
 *     text ──► chunk ──► builder 0 ─┐
 *          └─► chunk ──► builder 1 ─┼─► at_sparse_builders_finish ──► one set of the exact size
 *              ...                  ┘
 *
 * The number of rows in a file is not known in advance, so each chunk is read into a builder of its
 * own, by any thread. A builder reserves address space for the most its chunk can hold; pages that
 * are never touched cost nothing.
 */
#ifndef AT_DATA_SET_SPARSE_BUILDER_H
#define AT_DATA_SET_SPARSE_BUILDER_H

#include <assert.h>
#include <stdbool.h>

#include "data/set/store.h"

/* Maximum number of features: indices are below 2^31. */
#define AT_SPARSE_BUILDER_FEATURES_MAX ((uint64_t)1 << 31)

typedef struct at_sparse_builder {
    uint64_t  rows, rows_max;
    uint64_t  numbers, numbers_max;
    int32_t  *labels;  /* (rows) as in the file; real ones: the word of base/label.h */
    uint32_t *counts;  /* (rows) numbers per row */
    uint32_t *indices; /* (numbers) as in the file */
    float    *values;  /* (numbers) */
    uint64_t  lines;   /* read so far, for messages */
    uint64_t  row_start;
    uint32_t  index_max;  /* largest index, also of zero values */
    bool      index_zero; /* index 0 occurs */
} at_sparse_builder;

/* Adds a number to the current row. Zeros are left out. */
static inline void at_sparse_builder_put(at_sparse_builder *builder, uint32_t index, float value)
{
    assert(builder->numbers < builder->numbers_max);
    builder->indices[builder->numbers] = index;
    builder->values[builder->numbers] = value;
    builder->numbers += value != 0.0f;
}

/* Ends the current row. */
static inline void at_sparse_builder_end_row(at_sparse_builder *builder, int32_t label)
{
    assert(builder->rows < builder->rows_max);
    builder->labels[builder->rows] = label;
    builder->counts[builder->rows++] = (uint32_t)(builder->numbers - builder->row_start);
    builder->row_start = builder->numbers;
}

/* All builders of a set, in the order of its files; zeroed: none. */
typedef struct at_sparse_builders {
    at_sparse_builder *builder;
    size_t             count, room;
} at_sparse_builders;

/* Appends `count` empty builders with that capacity. *first is the first of them, valid until the
 * next call. */
at_err at_sparse_builders_add(at_sparse_builders *builders, size_t count, uint64_t rows_max,
                              uint64_t numbers_max, at_sparse_builder **first, at_fail *fail);

/* Releases the unused capacity of a builder. */
void at_sparse_builder_trim(at_sparse_builder *builder);

/* How builders become a set. */
typedef struct at_sparse_build_options {
    const char *path;           /* for messages */
    uint32_t    features;       /* 0: as many as the largest index implies */
    bool        zero_based;     /* indices begin with 0; otherwise only when an index 0 occurs */
    bool        unnamed_labels; /* labels are 0 and 1 and need no names */
    bool        real_labels;    /* labels are real numbers, not classes */
} at_sparse_build_options;

/* Fills the set and releases the builders one by one, so that peak memory stays near the size of
 * the set. Classes become 0 .. classes-1 in ascending order, with the original numbers as names.
 * AT_ERR_FORMAT when there is no row, or too many distinct labels. */
at_err at_sparse_builders_finish(at_sparse_builders *builders, at_dataset *set,
                                 const at_sparse_build_options *options, at_fail *fail);

/* Releases; accepts zeroed ones. */
void at_sparse_builders_deinit(at_sparse_builders *builders);

#endif

/* Click data in TFRecord files, as for sparse logistic regression in TensorFlow: label -1 or 1 (or
 * 0 and 1, or classes), index a list of features from 0 on, value one float per index. */
#include "data/formats/tfrecord.h"

#include "data/set/sparse_builder.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum {
    LABEL,
    INDEX,
    VALUE,
    NAMES,
    BUILDER_ROWS = 1 << 16,
    BUILDER_NUMBERS = 1 << 22,
};

static const char *const names[NAMES] = {[LABEL] = "label", [INDEX] = "index", [VALUE] = "value"};

#define HINT "click data needs label (int64), index (int64 list) and value (float list)"

typedef struct reader {
    at_tfrecord         record;
    at_sparse_builders *builders;
    int64_t            *indices; /* of the current row */
    float              *values;
    size_t              room;
} reader;

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for a row");
}

static at_err make_room(reader *r, size_t count, at_fail *fail)
{
    if (count <= r->room) return AT_OK;
    int64_t *indices = reallocarray(r->indices, count, sizeof *indices);
    if (indices) r->indices = indices;
    float *values = reallocarray(r->values, count, sizeof *values);
    if (values) r->values = values;
    if (!indices || !values) return no_memory(fail);
    r->room = count;
    return AT_OK;
}

static at_err read_label(const reader *r, const at_feature *feature, int32_t *label, at_fail *fail)
{
    int64_t value;
    if (feature->kind != AT_FEATURE_INTS || at_example_ints(feature, &value, 1) != 1)
        return at_tfrecord_error(&r->record, HINT, fail, "no label of type int64");
    if (value < INT32_MIN || value > INT32_MAX)
        return at_tfrecord_error(&r->record, HINT, fail, "label %lld is out of range",
                                 (long long)value);
    *label = (int32_t)value;
    return AT_OK;
}

/* Fills indices and values; *count of each. */
static at_err read_lists(reader *r, const at_feature *features, size_t *count, at_fail *fail)
{
    const at_feature *index = &features[INDEX], *value = &features[VALUE];
    int64_t           indices = 0, values = 0;
    if (index->kind != AT_FEATURE_INTS && index->kind != AT_FEATURE_NONE)
        return at_tfrecord_error(&r->record, HINT, fail, "index is not a list of int64");
    if (value->kind != AT_FEATURE_FLOATS && value->kind != AT_FEATURE_NONE)
        return at_tfrecord_error(&r->record, HINT, fail, "value is not a list of floats");
    if (index->kind) indices = at_example_ints(index, NULL, 0);
    if (value->kind) values = at_example_floats(value, NULL, 0);
    if (indices < 0 || values < 0)
        return at_tfrecord_error(&r->record, AT_SOURCE_GET_AGAIN, fail, "a list is damaged");
    if (value->kind && values != indices)
        return at_tfrecord_error(&r->record, HINT, fail, "%lld indices but %lld values",
                                 (long long)indices, (long long)values);
    *count = (size_t)indices;
    AT_TRY(make_room(r, *count, fail));
    if (index->kind) (void)at_example_ints(index, r->indices, *count);
    for (size_t i = 0; i < *count; i++) r->values[i] = 1.0f;
    if (value->kind) (void)at_example_floats(value, r->values, *count);
    return AT_OK;
}

typedef struct pair {
    int64_t index;
    float   value;
} pair;

static int by_index(const void *a, const void *b)
{
    int64_t x = ((const pair *)a)->index, y = ((const pair *)b)->index;
    return (x > y) - (x < y);
}

/* Sorts a row by index; most rows are sorted already. */
static at_err sort(reader *r, size_t count, at_fail *fail)
{
    pair *pairs = calloc(count, sizeof *pairs);
    if (!pairs) return no_memory(fail);
    for (size_t i = 0; i < count; i++) pairs[i] = (pair){r->indices[i], r->values[i]};
    qsort(pairs, count, sizeof *pairs, by_index);
    for (size_t i = 0; i < count; i++) {
        r->indices[i] = pairs[i].index;
        r->values[i] = pairs[i].value;
    }
    free(pairs);
    return AT_OK;
}

static at_err check_row(reader *r, size_t count, at_fail *fail)
{
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++) sorted = r->indices[i] > r->indices[i - 1];
    if (!sorted) AT_TRY(sort(r, count, fail));
    for (size_t i = 0; i < count; i++) {
        long long index = r->indices[i];
        if (index < 0 || (uint64_t)index >= AT_SPARSE_BUILDER_FEATURES_MAX)
            return at_tfrecord_error(&r->record, "indices must be from 0 to 2^31 - 1", fail,
                                     "index %lld is out of range", index);
        if (i > 0 && index == r->indices[i - 1])
            return at_tfrecord_error(&r->record, HINT, fail, "index %lld occurs twice", index);
        if (!isfinite(r->values[i]))
            return at_tfrecord_error(&r->record, HINT, fail,
                                     "the value at index %lld is not finite", index);
    }
    return AT_OK;
}

/* The last builder if the row fits, else a new one. */
static at_err find_builder(reader *r, size_t count, at_sparse_builder **builder, at_fail *fail)
{
    at_sparse_builders *all = r->builders;
    if (all->count > 0) {
        *builder = &all->builder[all->count - 1];
        uint64_t numbers_left = (*builder)->numbers_max - (*builder)->numbers;
        if ((*builder)->rows < (*builder)->rows_max && count < numbers_left) return AT_OK;
        at_sparse_builder_trim(*builder);
    }
    return at_sparse_builders_add(
        all, 1, BUILDER_ROWS, count < BUILDER_NUMBERS ? BUILDER_NUMBERS : count + 1, builder, fail);
}

static at_err read_row(reader *r, at_fail *fail)
{
    at_feature         features[NAMES];
    int32_t            label = 0;
    size_t             count = 0;
    at_sparse_builder *builder;
    if (!at_example_find(at_tfrecord_message(&r->record), names, features, NAMES))
        return at_tfrecord_error(&r->record, HINT, fail, "not a tf.train.Example");
    AT_TRY(read_label(r, &features[LABEL], &label, fail));
    AT_TRY(read_lists(r, features, &count, fail));
    AT_TRY(check_row(r, count, fail));
    AT_TRY(find_builder(r, count, &builder, fail));
    for (size_t i = 0; i < count; i++)
        at_sparse_builder_put(builder, (uint32_t)r->indices[i], r->values[i]);
    if (count > 0 && r->indices[count - 1] > builder->index_max)
        builder->index_max = (uint32_t)r->indices[count - 1];
    at_sparse_builder_end_row(builder, label);
    return AT_OK;
}

static at_err read_file(reader *r, const char *path, const at_load_progress *progress,
                        at_fail *fail)
{
    bool   more = true;
    at_err err = at_tfrecord_open(&r->record, path, fail);
    while (!err && more) {
        err = at_tfrecord_next(&r->record, &more, fail);
        if (!err && more) err = read_row(r, fail);
        if (!err && r->record.index % 1024 == 0)
            at_load_progress_report(progress, at_source_file_position(r->record.source),
                                    at_source_file_size(r->record.source));
    }
    at_tfrecord_close(&r->record);
    return err;
}

at_err at_tfrecord_load_clicks(at_dataset *set, const char *name, const at_file_list *files,
                               at_fail *fail)
{
    assert(files->count > 0);
    at_sparse_builders builders = {0};
    reader             r = {.builders = &builders};
    at_err             err = AT_OK;
    for (size_t i = 0; !err && i < files->count; i++)
        err = read_file(&r, files->path[i], set->progress, fail);
    if (!err)
        err = at_sparse_builders_finish(
            &builders, set, &(at_sparse_build_options){.path = name, .zero_based = true}, fail);
    free(r.indices);
    free(r.values);
    at_sparse_builders_deinit(&builders);
    return err;
}

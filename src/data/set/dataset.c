#include "data/set/dataset.h"

#include "base/crc32c.h"
#include "data/files/source.h"
#include "data/set/cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Where to prefetch a row to: the first-level cache, or any cache. */
typedef enum distance { NEAR, FAR } distance;

enum {
    LINE_SIZE = 64,
    PREFETCH_ROWS_MAX = 256,      /* a quarter of a megabyte of images: fits into any L2 cache */
    DENSE_FEATURES_MAX = 1 << 20, /* of a sparse row that is read as a dense one: 4 MB */
    ROWS_AHEAD = 2,               /* prefetch distance within one call */
};

const at_format *const at_formats[] = {
    &at_format_synthetic,
    &at_format_synthetic_clicks,
    &at_format_synthetic_linear,
    &at_format_cifar,
    &at_format_images,
    &at_format_pictures,
    &at_format_npy,
    &at_format_idx,
    &at_format_libsvm,
    &at_format_criteo,
    &at_format_tfrecord,
    &at_format_csv,
    NULL,
};

/* Both splits of a named set have the number of classes in the catalog. */
static at_err fix_classes(at_dataset *set, const at_catalog_row *row, const char *folder,
                          at_fail *fail)
{
    assert(row->classes > 0);
    if (set->read_options.real_labels) return AT_OK;
    if (set->classes > row->classes)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: label %u is out of range; %s has labels 0 to %u", folder,
                           set->classes - 1, row->name, row->classes - 1);
    set->classes = row->classes;
    set->class_names = row->class_names;
    return AT_OK;
}

bool at_dataset_has(const char *name, at_split split)
{
    assert(name);
    at_resolved found;
    if (at_resolve(name, &found, NULL)) return false;
    return at_format_has_split(found.format, found.path, split);
}

bool at_dataset_enlarges(const char *name, at_image_shape *before, at_image_shape *after)
{
    at_resolved found;
    if (at_resolve(name, &found, NULL) || !found.format->enlarges) return false;
    return found.format->enlarges(found.path, before, after);
}

static at_err read_files(at_dataset *set, const at_resolved *found, at_split split, at_fail *fail)
{
    AT_TRY(at_format_load(found->format, set, found->path, split, fail));
    if (found->row) AT_TRY(fix_classes(set, found->row, found->folder, fail));
    return at_store_seal(set, fail);
}

static at_err check_labels(const at_format *format, const char *name,
                           const at_read_options *options, at_fail *fail)
{
    if (!options->real_labels || format->reads_real_labels) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use CSV, LIBSVM or NumPy data, or synthetic-linear:ROWS,FEATURES,NOISE",
                       "%s: the labels of %s data are classes, and regression needs real numbers",
                       name, format->name);
}

/* Reads from the cache, else from the files, which are then cached. */
static at_err read_cached(at_dataset *set, const at_resolved *found, at_split split, at_fail *fail)
{
    at_cache cache;
    at_err   err = AT_OK;
    bool     cacheable =
        at_cache_open(&cache, found, split, &set->read_options, at_cache_limits_default);
    if (cacheable && at_cache_load(&cache, set)) {
        if (found->row) set->class_names = found->row->class_names;
    } else {
        err = read_files(set, found, split, fail);
        if (!err && cacheable) (void)at_cache_save(&cache, set); /* failure does not matter */
    }
    at_cache_close(&cache);
    return err;
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    at_resolved found;
    AT_TRY(at_resolve(name, &found, fail));
    set->format_name = found.format->name;
    AT_TRY(check_labels(found.format, name, &set->read_options, fail));
    return set->read_options.cache ? read_cached(set, &found, split, fail)
                                   : read_files(set, &found, split, fail);
}

at_err at_dataset_open(const char *name, at_split split, at_dataset **out, at_fail *fail)
{
    return at_dataset_open_as(name, split, NULL, out, fail);
}

at_err at_dataset_open_as(const char *name, at_split split, const at_read_options *options,
                          at_dataset **out, at_fail *fail)
{
    assert(name && out);
    *out = NULL;
    at_dataset *set = calloc(1, sizeof *set);
    if (!set) return at_fail_memory_for(fail, "for %s", name);
    if (options) set->read_options = *options;
    set->progress = set->read_options.progress;
    at_err err = load(set, name, split, fail);
    if (err) {
        at_dataset_free(set);
        return err;
    }
    set->progress = NULL;
    *out = set;
    return AT_OK;
}

void at_dataset_free(at_dataset *set)
{
    if (!set) return;
    at_store_unmap(set);
    free(set->columns);
    free(set);
}

uint64_t at_dataset_count(const at_dataset *set)
{
    assert(set);
    return set->count;
}

uint32_t at_dataset_features(const at_dataset *set)
{
    assert(set);
    return set->features;
}

uint32_t at_dataset_classes(const at_dataset *set)
{
    assert(set);
    return set->classes;
}

at_image_shape at_dataset_shape(const at_dataset *set)
{
    assert(set);
    if (set->shape.channels == 0) return (at_image_shape){1, 1, set->features};
    assert((uint64_t)set->shape.channels * set->shape.height * set->shape.width == set->features);
    return set->shape;
}

const char *at_dataset_form(const at_dataset *set)
{
    assert(set);
    return set->form;
}

const char *at_dataset_format(const at_dataset *set)
{
    assert(set->format_name);
    return set->format_name;
}

const char *at_dataset_columns(const at_dataset *set)
{
    assert(set);
    return set->columns;
}

bool at_dataset_is_cached(const at_dataset *set)
{
    assert(set);
    return set->cached;
}

bool at_dataset_is_sparse(const at_dataset *set)
{
    assert(set);
    return set->starts != NULL;
}

at_sparse_row at_dataset_sparse_row(const at_dataset *set, uint64_t index)
{
    assert(set->starts);
    assert(index < set->count);
    uint64_t first = set->starts[index];
    return (at_sparse_row){.indices = set->indices + first,
                           .values = set->values + first,
                           .count = (uint32_t)(set->starts[index + 1] - first)};
}

at_sparse_rows at_dataset_sparse_rows(const at_dataset *set)
{
    assert(set->starts);
    return (at_sparse_rows){.starts = set->starts,
                            .indices = set->indices,
                            .values = set->values,
                            .labels = set->labels,
                            .count = set->count};
}

at_err at_dataset_check_dense(const at_dataset *set, at_fail *fail)
{
    assert(set);
    if (!set->starts || set->features <= DENSE_FEATURES_MAX) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use --model sparse-lr or sparse-linear, which read sparse rows directly",
                       "the data has %u features; models that read dense rows accept at most %d",
                       set->features, DENSE_FEATURES_MAX);
}

uint32_t at_dataset_label(const at_dataset *set, uint64_t index)
{
    assert(index < set->count);
    return set->labels[index];
}

/* The locality argument of __builtin_prefetch must be a constant, hence the two loops. */
static void prefetch_row(const at_dataset *set, uint64_t index, distance how)
{
    assert(index < set->count);
    if (set->starts) { /* rows are short, mostly within one cache line */
        __builtin_prefetch(set->indices + set->starts[index], 0, 3);
        __builtin_prefetch(set->values + set->starts[index], 0, 3);
        return;
    }
    const unsigned char *row = set->rows + index * set->row_size, *end = row + set->row_size;
    if (how == NEAR) {
        for (; row < end; row += LINE_SIZE) __builtin_prefetch(row, 0, 3);
        __builtin_prefetch(end - 1, 0, 3);
    } else {
        for (; row < end; row += LINE_SIZE) __builtin_prefetch(row, 0, 2);
        __builtin_prefetch(end - 1, 0, 2);
    }
    __builtin_prefetch(&set->labels[index], 0, 2);
}

void at_dataset_prefetch(const at_dataset *set, const uint64_t *indices, uint32_t count)
{
    assert(count == 0 || indices);
    if (count > PREFETCH_ROWS_MAX) count = PREFETCH_ROWS_MAX;
    for (uint32_t i = 0; i < count; i++) prefetch_row(set, indices[i], FAR);
}

static void expand_row(const at_dataset *set, float *x, uint64_t index)
{
    assert(set->features <= DENSE_FEATURES_MAX);
    at_sparse_row row = at_dataset_sparse_row(set, index);
    memset(x, 0, set->features * sizeof *x);
    for (uint32_t i = 0; i < row.count; i++) x[row.indices[i]] = row.values[i];
}

static void copy_row(const at_dataset *set, float *x, uint64_t index)
{
    assert(index < set->count);
    if (set->starts) {
        expand_row(set, x, index);
        return;
    }
    const unsigned char *row = set->rows + index * set->row_size;
    switch (set->element) {
    case AT_ELEMENT_BYTE: set->widen(x, row, set->features); return;
    case AT_ELEMENT_FLOAT: memcpy(x, row, set->row_size); return;
    }
    assert(!"unreachable");
}

void at_dataset_rows(const at_dataset *set, float *x, uint32_t *labels, const uint64_t *indices,
                     uint32_t count)
{
    assert(count == 0 || (x && labels && indices));
    for (uint32_t i = 0; i < count; i++) {
        if (i + ROWS_AHEAD < count) prefetch_row(set, indices[i + ROWS_AHEAD], NEAR);
        copy_row(set, x + (size_t)i * set->features, indices[i]);
        labels[i] = set->labels[indices[i]];
    }
}

/* The bytes of row `index`, at most `size_max`. */
static const void *row_bytes(const at_dataset *set, uint64_t index, size_t size_max, size_t *size)
{
    assert(index < set->count);
    if (!set->starts) {
        *size = set->row_size < size_max ? set->row_size : size_max;
        return set->rows + index * set->row_size;
    }
    uint64_t count = set->starts[index + 1] - set->starts[index], most = size_max / sizeof(float);
    *size = (size_t)(count < most ? count : most) * sizeof(float);
    return set->indices + set->starts[index];
}

uint32_t at_dataset_fingerprint(const at_dataset *set)
{
    enum { ROWS = 256, ROW_SIZE_MAX = 4096 };
    uint64_t rows = set->count < ROWS ? set->count : ROWS;
    uint32_t words[] = {(uint32_t)set->count, (uint32_t)(set->count >> 32), set->features,
                        set->classes, 0};
    for (uint64_t i = 0; i < rows; i++) {
        size_t      size;
        uint64_t    index = rows > 1 ? i * (set->count - 1) / (rows - 1) : 0;
        const void *bytes = row_bytes(set, index, ROW_SIZE_MAX, &size);
        uint32_t    row[] = {words[4], at_crc32c(bytes, size), set->labels[index]};
        words[4] = at_crc32c(row, sizeof row);
    }
    return at_crc32c(words, sizeof words);
}

#include "data/set/sparse_builder.h"

#include "base/arena.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CLASSES_MAX = 1 << 16, NAME_SIZE = 12, ROOM_FIRST = 16 };

static at_err no_memory(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FAILED, "use a smaller set or a machine with more memory",
                       "not enough memory for the rows of the data");
}

/* ---- one builder ----------------------------------------------------------------------------- */

/* Reserves address space; NULL when there is none. */
static void *map(uint64_t count, size_t size_each)
{
    size_t size;
    if (!at_size_product(count, size_each, &size) || size == 0) return NULL;
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

static void unmap(void *bytes, uint64_t count, size_t size_each)
{
    if (bytes) munmap(bytes, count * size_each);
}

static void builder_deinit(at_sparse_builder *builder)
{
    assert(builder->rows <= builder->rows_max);
    unmap(builder->labels, builder->rows_max, sizeof *builder->labels);
    unmap(builder->counts, builder->rows_max, sizeof *builder->counts);
    unmap(builder->indices, builder->numbers_max, sizeof *builder->indices);
    unmap(builder->values, builder->numbers_max, sizeof *builder->values);
    *builder = (at_sparse_builder){0};
}

static bool builder_init(at_sparse_builder *builder, uint64_t rows_max, uint64_t numbers_max)
{
    assert(rows_max > 0 && numbers_max > 0);
    *builder = (at_sparse_builder){.rows_max = rows_max, .numbers_max = numbers_max};
    builder->labels = map(rows_max, sizeof *builder->labels);
    builder->counts = map(rows_max, sizeof *builder->counts);
    builder->indices = map(numbers_max, sizeof *builder->indices);
    builder->values = map(numbers_max, sizeof *builder->values);
    if (builder->labels && builder->counts && builder->indices && builder->values) return true;
    builder_deinit(builder);
    return false;
}

/* Shrinks a mapping in place. */
static void shrink(void *bytes, uint64_t count, uint64_t count_new, size_t size_each)
{
    assert(count_new <= count);
    void *same = mremap(bytes, count * size_each, count_new * size_each, 0);
    assert(same == bytes);
}

void at_sparse_builder_trim(at_sparse_builder *builder)
{
    assert(builder->row_start == builder->numbers);
    uint64_t rows = builder->rows ? builder->rows : 1,
             numbers = builder->numbers ? builder->numbers : 1;
    shrink(builder->labels, builder->rows_max, rows, sizeof *builder->labels);
    shrink(builder->counts, builder->rows_max, rows, sizeof *builder->counts);
    shrink(builder->indices, builder->numbers_max, numbers, sizeof *builder->indices);
    shrink(builder->values, builder->numbers_max, numbers, sizeof *builder->values);
    builder->rows_max = rows;
    builder->numbers_max = numbers;
}

/* ---- all builders ---------------------------------------------------------------------------- */

static at_err make_room(at_sparse_builders *builders, size_t count, at_fail *fail)
{
    size_t room = builders->room ? builders->room : ROOM_FIRST;
    while (room < builders->count + count) room *= 2;
    if (room == builders->room) return AT_OK;
    at_sparse_builder *more = reallocarray(builders->builder, room, sizeof *more);
    if (!more) return no_memory(fail);
    builders->builder = more;
    builders->room = room;
    return AT_OK;
}

at_err at_sparse_builders_add(at_sparse_builders *builders, size_t count, uint64_t rows_max,
                              uint64_t numbers_max, at_sparse_builder **first, at_fail *fail)
{
    assert(builders && count > 0);
    size_t begin = builders->count;
    AT_TRY(make_room(builders, count, fail));
    for (size_t i = 0; i < count; i++, builders->count++)
        if (!builder_init(&builders->builder[builders->count], rows_max, numbers_max))
            return no_memory(fail);
    *first = builders->builder + begin;
    return AT_OK;
}

void at_sparse_builders_deinit(at_sparse_builders *builders)
{
    assert(builders);
    for (size_t i = 0; i < builders->count; i++) builder_deinit(&builders->builder[i]);
    free(builders->builder);
    *builders = (at_sparse_builders){0};
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The distinct labels of a set, in ascending order. */
typedef struct labels {
    int32_t  value[CLASSES_MAX];
    uint32_t count;
} labels;

/* Position of the label, or where to insert it. */
static uint32_t position_of(const labels *all, int32_t value)
{
    uint32_t low = 0, high = all->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (all->value[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* False when there are too many labels. */
static bool add_label(labels *all, int32_t value)
{
    uint32_t at = position_of(all, value);
    if (at < all->count && all->value[at] == value) return true;
    if (all->count == CLASSES_MAX) return false;
    memmove(all->value + at + 1, all->value + at, (all->count - at) * sizeof *all->value);
    all->value[at] = value;
    all->count++;
    return true;
}

static bool collect_builder_labels(labels *all, const at_sparse_builder *builder)
{
    for (uint64_t i = 0; i < builder->rows; i++) {
        if (i > 0 && builder->labels[i] == builder->labels[i - 1]) continue;
        if (!add_label(all, builder->labels[i])) return false;
    }
    return true;
}

static at_err collect_labels(labels *all, const at_sparse_builders *builders,
                             const at_sparse_build_options *options, at_fail *fail)
{
    if (options->real_labels) return AT_OK;
    for (size_t i = 0; i < builders->count; i++)
        if (!collect_builder_labels(all, &builders->builder[i]))
            return at_fail_set(fail, AT_ERR_FORMAT,
                               "labels must be class numbers; for regression use --model linear",
                               "%s: more than %d distinct labels", options->path, CLASSES_MAX);
    assert(all->count > 0);
    /* A file with only one class of the pairs 0, 1 and -1, 1 still has two classes. */
    if (options->unnamed_labels) return add_label(all, 0), add_label(all, 1), AT_OK;
    if (all->count == 1 && all->value[0] == 0) add_label(all, 1);
    if (all->count == 1 && (all->value[0] == 1 || all->value[0] == -1))
        add_label(all, -all->value[0]);
    return AT_OK;
}

/* Writes each number as text; returns the size in bytes. NULL: only returns the size. */
static size_t write_names(const labels *all, char *names)
{
    size_t used = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        char name[NAME_SIZE];
        int  length = snprintf(name, sizeof name, "%d", all->value[i]);
        assert(length > 0 && length < NAME_SIZE);
        if (names) memcpy(names + used, name, (size_t)length + 1);
        used += (size_t)length + 1;
    }
    return used;
}

/* ---- the set --------------------------------------------------------------------------------- */

typedef struct totals {
    uint64_t rows, numbers;
    uint32_t index_max;
    bool     index_zero;
} totals;

static totals add_up(const at_sparse_builders *builders)
{
    totals all = {0};
    for (size_t i = 0; i < builders->count; i++) {
        const at_sparse_builder *builder = &builders->builder[i];
        all.rows += builder->rows;
        all.numbers += builder->numbers;
        if (builder->index_max > all.index_max) all.index_max = builder->index_max;
        all.index_zero |= builder->index_zero;
    }
    return all;
}

static void copy_numbers(at_dataset *set, uint64_t at, const at_sparse_builder *builder)
{
    uint32_t        base = set->index_base;
    uint32_t       *to = set->indices + at;
    const uint32_t *from = builder->indices;
    for (uint64_t i = 0; i < builder->numbers; i++) to[i] = from[i] - base;
    if (builder->numbers > 0)
        memcpy(set->values + at, builder->values, builder->numbers * sizeof *set->values);
}

static void copy_rows(at_dataset *set, uint64_t row, const at_sparse_builder *builder,
                      const labels *all)
{
    assert(row + builder->rows <= set->count);
    for (uint64_t i = 0; i < builder->rows; i++, row++) {
        set->labels[row] =
            set->classes ? position_of(all, builder->labels[i]) : (uint32_t)builder->labels[i];
        set->starts[row + 1] = set->starts[row] + builder->counts[i];
    }
}

static void fill(at_dataset *set, at_sparse_builders *builders, const labels *all)
{
    uint64_t row = 0, at = 0;
    for (size_t i = 0; i < builders->count; i++) {
        at_sparse_builder *builder = &builders->builder[i];
        copy_numbers(set, at, builder);
        copy_rows(set, row, builder, all);
        row += builder->rows;
        at += builder->numbers;
        builder_deinit(builder);
    }
    assert(row == set->count);
    assert(at == set->starts[row]);
}

static at_err finish(at_sparse_builders *builders, at_dataset *set, labels *all,
                     const at_sparse_build_options *options, at_fail *fail)
{
    totals total = add_up(builders);
    if (total.rows == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "check that it is the right file",
                           "%s: no rows found", options->path);
    AT_TRY(collect_labels(all, builders, options, fail));
    set->index_base = options->zero_based || total.index_zero ? 0 : 1;
    uint32_t features =
        options->features ? options->features : total.index_max + 1 - set->index_base;
    if (features == 0) features = 1; /* no number in the whole file */
    if (!options->unnamed_labels) set->names_size = write_names(all, NULL);
    AT_TRY(at_store_reserve_sparse(set, total.rows, total.numbers, features, fail));
    if (set->names) write_names(all, set->names);
    set->classes = all->count;
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "sparse, %.3g numbers per row", (double)total.numbers / (double)total.rows);
    fill(set, builders, all);
    return AT_OK;
}

at_err at_sparse_builders_finish(at_sparse_builders *builders, at_dataset *set,
                                 const at_sparse_build_options *options, at_fail *fail)
{
    assert(builders && set && options);
    assert(options->path);
    labels *all = calloc(1, sizeof *all);
    if (!all) return no_memory(fail);
    at_err err = finish(builders, set, all, options, fail);
    free(all);
    return err;
}

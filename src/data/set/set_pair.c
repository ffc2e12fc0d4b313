#include "data/set/set_pair.h"

#include "base/rng.h"
#include "data/files/folder.h"
#include "data/formats/csv_columns.h"
#include "data/set/inputs.h"
#include "data/set/missing.h"
#include "data/set/resolve.h"
#include "data/set/store.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Chooses `wanted` of `count` rows one after the other, all equally likely (Knuth's algorithm S).
 * Two passes with the same start choose the same rows. */
typedef struct chooser {
    at_rng   rng;
    uint64_t left, wanted;
} chooser;

static chooser start(uint64_t count, uint64_t wanted)
{
    assert(wanted <= count);
    return (chooser){at_rng_stream(0, 0, AT_RNG_PURPOSE_SHUFFLE, 0), count, wanted};
}

static bool choose(chooser *c)
{
    assert(c->left > 0);
    bool is_chosen = at_rng_below(&c->rng, c->left--) < c->wanted;
    c->wanted -= is_chosen;
    return is_chosen;
}

static uint64_t chosen_numbers(const at_dataset *set, uint64_t wanted)
{
    chooser  c = start(set->count, wanted);
    uint64_t numbers = 0;
    for (uint64_t i = 0; i < set->count; i++)
        if (choose(&c)) numbers += set->starts[i + 1] - set->starts[i];
    return numbers;
}

/* An empty set of the same kind. */
static at_err reserve_like(const at_dataset *set, uint64_t count, at_dataset **out, at_fail *fail)
{
    at_dataset *made = calloc(1, sizeof *made);
    if (!made) return at_fail_memory_for(fail, "for the test set");
    made->classes = set->classes;
    made->shape = set->shape;
    made->index_base = set->index_base;
    made->format_name = set->format_name;
    memcpy(made->form, set->form, sizeof made->form);
    *out = made;
    return set->starts ? at_store_reserve_sparse(made, count, chosen_numbers(set, count),
                                                 set->features, fail)
                       : at_store_reserve(made, count, set->features, set->element, fail);
}

/* Appends row `index` of `from` to `to`, of which `to->count` rows are filled. The sets may be the
 * same; then the row moves to the front. `begin` and `end` are the numbers of a sparse row. */
static void append_row(at_dataset *to, const at_dataset *from, uint64_t index, uint64_t begin,
                       uint64_t end)
{
    uint64_t row = to->count++;
    to->labels[row] = from->labels[index];
    if (!from->starts) {
        memmove(to->rows + row * to->row_size, from->rows + index * from->row_size, to->row_size);
        return;
    }
    uint64_t at = to->starts[row], count = end - begin;
    memmove(to->indices + at, from->indices + begin, count * sizeof *to->indices);
    memmove(to->values + at, from->values + begin, count * sizeof *to->values);
    to->starts[row + 1] = at + count;
}

static void move_rows(at_dataset *train, at_dataset *test)
{
    uint64_t count = train->count, end = 0;
    chooser  c = start(count, test->count);
    train->count = test->count = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t begin = end;
        if (train->starts) end = train->starts[i + 1]; /* before it is overwritten */
        append_row(choose(&c) ? test : train, train, i, begin, end);
    }
    assert(train->count + test->count == count);
}

at_err at_dataset_hold_out(at_dataset *train, double share, at_dataset **test, at_fail *fail)
{
    assert(share > 0 && share < 1);
    uint64_t wanted = (uint64_t)llround(share * (double)train->count);
    if (wanted == 0) wanted = 1;
    *test = NULL;
    if (wanted >= train->count)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "give a test set with --test-data, or --test-split 0",
                           "no samples are left to train on: there are %llu, and --test-split %g "
                           "holds out %llu",
                           (unsigned long long)train->count, share, (unsigned long long)wanted);
    at_err err = reserve_like(train, wanted, test, fail);
    if (!err) err = at_store_unseal(train, fail);
    if (!err) {
        move_rows(train, *test);
        err = at_store_seal(train, fail);
    }
    return err ? err : at_store_seal(*test, fail);
}

bool at_dataset_has_test(const char *data)
{
    at_resolved found;
    if (at_resolve(data, &found, NULL)) return false;
    return found.row || (found.format->fixed_names && at_folder_is(found.path)) ||
           at_format_has_split(found.format, found.path, AT_SPLIT_TEST);
}

/* Whether its format has chosen the test part. */
static bool is_divided(const char *data)
{
    at_resolved found;
    return !at_resolve(data, &found, NULL) && found.format->divides &&
           found.format->divides(found.path);
}

/* A table is read by the columns of the train set. */
static at_err open_test(at_set_pair *pair, const char *test, const at_read_options *options,
                        at_fail *fail)
{
    at_read_options reading = options ? *options : (at_read_options){0};
    reading.columns = at_dataset_columns(pair->train);
    AT_TRY(at_dataset_open_as(test, AT_SPLIT_TEST, &reading, &pair->test, fail));
    return at_dataset_match(pair->train, pair->test, fail);
}

static at_err open_both(at_set_pair *pair, const char *data, const char *test_data,
                        double test_split, const at_read_options *options, at_fail *fail)
{
    bool has_test = test_data || at_dataset_has_test(data);
    AT_TRY(at_dataset_open_as(data, AT_SPLIT_TRAIN, options, &pair->train, fail));
    if (!has_test && test_split > 0) {
        AT_TRY(at_dataset_hold_out(pair->train, test_split, &pair->test, fail));
        pair->held_out = at_dataset_count(pair->test);
        return at_missing_fill(pair->train, pair->test, fail);
    }
    AT_TRY(at_missing_fill(pair->train, NULL, fail));
    pair->tests_on_train = !has_test;
    pair->divided = !test_data && is_divided(data);
    return open_test(pair, test_data ? test_data : data, options, fail);
}

at_err at_set_pair_open(at_set_pair *pair, const char *data, const char *test_data,
                        double test_split, const at_read_options *options, at_fail *fail)
{
    assert(data && test_split >= 0 && test_split < 1);
    *pair = (at_set_pair){0};
    at_err err = open_both(pair, data, test_data, test_split, options, fail);
    if (err) at_set_pair_close(pair);
    return err;
}

static at_err open_inputs(at_set_pair *pair, const char *inputs, const char *test_data,
                          const at_read_options *options, at_fail *fail)
{
    at_read_options reading = *options;
    pair->described = true;
    AT_TRY(at_inputs_open(inputs, &pair->train, fail));
    if (!test_data) return at_inputs_open(inputs, &pair->test, fail);
    reading.real_labels = at_dataset_classes(pair->train) == 0;
    reading.shape = at_dataset_shape(pair->train);
    return open_test(pair, test_data, &reading, fail);
}

at_err at_set_pair_open_inputs(at_set_pair *pair, const char *inputs, const char *test_data,
                               const at_read_options *options, at_fail *fail)
{
    assert(inputs && options);
    *pair = (at_set_pair){0};
    at_err err = open_inputs(pair, inputs, test_data, options, fail);
    if (err) at_set_pair_close(pair);
    return err;
}

static void add_names(const at_csv_columns *columns, at_csv_kind kind, at_text *text)
{
    const char *between = "";
    for (size_t i = 0; i < columns->count; i++) {
        if (columns->column[i].kind != kind) continue;
        at_text_add(text, "%s'%.60s'", between, columns->column[i].name);
        between = ", ";
    }
}

static uint64_t missing_in(const at_csv_columns *columns, uint32_t *of)
{
    uint64_t missing = 0;
    *of = 0;
    for (size_t i = 0; i < columns->count; i++) {
        if (columns->column[i].kind != AT_CSV_NUMBER) continue;
        missing += columns->column[i].missing;
        *of += columns->column[i].missing > 0;
    }
    return missing;
}

/* What was decided about the columns of a table. */
static void note_columns(const at_dataset *train, const char *data, at_text *notes)
{
    at_csv_columns columns;
    char           names[240];
    uint32_t       of;
    at_text        list = at_text_in(names, sizeof names);
    if (!train->columns || at_csv_columns_parse(&columns, train->columns, NULL)) return;
    if (columns.headerless && train->read_options.header == AT_HEADER_AUTO)
        at_text_add(notes,
                    "the first line of %s has numbers, so it is a row; the columns are called 1, "
                    "2, .. (--header yes: it has their names)\n",
                    data);
    add_names(&columns, AT_CSV_IDENTIFIER, &list);
    if (list.used > 0)
        at_text_add(notes,
                    "left out, because it is different in every row: column %s (--ignore none "
                    "keeps it)\n",
                    names);
    uint64_t missing = missing_in(&columns, &of);
    if (missing > 0 && train->read_options.missing == AT_MISSING_FILL)
        at_text_add(notes,
                    "%llu missing numbers in %u column%s are replaced by the mean of their "
                    "column\n",
                    (unsigned long long)missing, of, of == 1 ? "" : "s");
    if (train->dropped > 0)
        at_text_add(notes, "%llu rows that lack a value are left out\n",
                    (unsigned long long)train->dropped);
    at_csv_columns_deinit(&columns);
}

void at_set_pair_note(const at_set_pair *pair, const char *data, at_text *notes)
{
    unsigned long long held_out = pair->held_out;
    if (pair->tests_on_train)
        at_text_add(
            notes,
            "%s has no test part, so test results are those of the training rows; hold some "
            "out with --test-split 0.1\n",
            data);
    if (held_out > 0)
        at_text_add(notes,
                    "%s has no test part: %llu of %llu rows are held out for testing (change it "
                    "with --test-split or --test-data)\n",
                    data, held_out, held_out + (unsigned long long)pair->train->count);
    if (pair->divided)
        at_text_add(notes,
                    "%s has no folders train and test: %llu of %llu pictures, chosen by their "
                    "names, are held out for testing (change it with --test-data)\n",
                    data, (unsigned long long)pair->test->count,
                    (unsigned long long)(pair->train->count + pair->test->count));
    note_columns(pair->train, data, notes);
}

void at_set_pair_close(at_set_pair *pair)
{
    at_dataset_free(pair->train);
    at_dataset_free(pair->test);
    *pair = (at_set_pair){0};
}

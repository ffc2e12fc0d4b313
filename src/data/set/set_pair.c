#include "data/set/set_pair.h"

#include "base/rng.h"
#include "data/files/folder.h"
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

/* Whether the data has a test part, or should have: then opening it says what is missing. */
static bool expects_test(const char *data)
{
    at_resolved found;
    if (at_resolve(data, &found, NULL)) return false;
    return found.row || (found.format->fixed_names && at_folder_is(found.path)) ||
           at_format_has_split(found.format, found.path, AT_SPLIT_TEST);
}

static at_err open_both(at_set_pair *pair, const char *data, const char *test_data,
                        double test_split, const at_read_options *options, at_fail *fail)
{
    bool has_test = test_data || expects_test(data);
    AT_TRY(at_dataset_open_as(data, AT_SPLIT_TRAIN, options, &pair->train, fail));
    if (!has_test && test_split > 0) {
        AT_TRY(at_dataset_hold_out(pair->train, test_split, &pair->test, fail));
        pair->held_out = at_dataset_count(pair->test);
        return AT_OK;
    }
    const char *test = test_data ? test_data : data;
    AT_TRY(at_dataset_open_as(test, AT_SPLIT_TEST, options, &pair->test, fail));
    pair->tests_on_train = !has_test;
    return at_dataset_match(pair->train, pair->test, fail);
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
}

void at_set_pair_close(at_set_pair *pair)
{
    at_dataset_free(pair->train);
    at_dataset_free(pair->test);
    *pair = (at_set_pair){0};
}

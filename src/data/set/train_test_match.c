/* A test set is made to fit its train set: what has a name goes by it, the rest by its number.
 *
 * Labels and sparse rows are rewritten in place. A feature that the train set does not know is left
 * out of its row, which therefore only ever becomes shorter.
 */
#include "data/set/store.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HINT "use two files of the same set"

static const uint32_t NOWHERE = UINT32_MAX;

/* Where each class or feature of the test set is in the train set; NOWHERE: not there. */
typedef struct change {
    uint32_t *to;
    uint32_t  count;
} change;

typedef struct named {
    const char *name;
    uint32_t    index;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* The names first .. first + count - 1 of a set, in alphabetical order; NULL without memory. */
static named *sorted_names(const at_dataset *set, uint32_t first, uint32_t count)
{
    named      *list = calloc(count, sizeof *list);
    const char *name = at_store_name(set, first);
    assert(name && count > 0);
    for (uint32_t i = 0; list && i < count; i++, name += strlen(name) + 1)
        list[i] = (named){name, i};
    if (list) qsort(list, count, sizeof *list, by_name);
    return list;
}

/* Finds every name of the test set from test_first on among those of the train set. */
static at_err change_by_name(change *c, const at_dataset *train, uint32_t train_first,
                             const at_dataset *test, uint32_t test_first, at_fail *fail)
{
    uint32_t train_count = train_first ? train->features : train->classes;
    named   *known = sorted_names(train, train_first, train_count);
    c->count = test_first ? test->features : test->classes;
    c->to = calloc(c->count, sizeof *c->to);
    if (!known || !c->to) {
        free(known);
        return at_fail_memory_for(fail, "to compare names");
    }
    const char *name = at_store_name(test, test_first);
    assert(name);
    for (uint32_t i = 0; i < c->count; i++, name += strlen(name) + 1) {
        const named *found =
            bsearch(&(named){.name = name}, known, train_count, sizeof *known, by_name);
        c->to[i] = found ? found->index : NOWHERE;
    }
    free(known);
    return AT_OK;
}

static at_err change_labels(const change *c, at_dataset *test, at_fail *fail)
{
    assert(c->count == test->classes);
    for (uint64_t i = 0; i < test->count; i++)
        if (c->to[test->labels[i]] == NOWHERE)
            return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                               "the test set has a label '%s' that the train set does not have",
                               at_store_name(test, test->labels[i]));
    for (uint64_t i = 0; i < test->count; i++) test->labels[i] = c->to[test->labels[i]];
    return AT_OK;
}

static at_err agree_on_classes(const at_dataset *train, at_dataset *test, at_fail *fail)
{
    uint32_t label_max = at_store_label_max(test);
    change   c = {0};
    if (train->names && test->names) {
        at_err err = change_by_name(&c, train, 0, test, 0, fail);
        if (!err) err = change_labels(&c, test, fail);
        free(c.to);
        if (err) return err;
    } else if (label_max >= train->classes) {
        return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                           "the test set has a label %u, but the train set's labels end at %u",
                           label_max, train->classes - 1);
    }
    return AT_OK;
}

/* Where a feature of the test set is in the train set: by name, or by its number in the file. */
static uint32_t changed(const change *c, const at_dataset *train, const at_dataset *test,
                        uint32_t index)
{
    if (c->to) return c->to[index];
    uint64_t number = (uint64_t)index + test->index_base;
    if (number < train->index_base) return NOWHERE;
    number -= train->index_base;
    return number < train->features ? (uint32_t)number : NOWHERE;
}

/* Brings a row into order whose columns stand in another one in the train file; short, and nearly
 * in order. */
static void sort_row(uint32_t *indices, float *values, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++) {
        uint32_t index = indices[i];
        float    value = values[i];
        uint64_t k = i;
        for (; k > 0 && indices[k - 1] > index; k--) {
            indices[k] = indices[k - 1];
            values[k] = values[k - 1];
        }
        indices[k] = index;
        values[k] = value;
    }
}

static void change_rows(const change *c, const at_dataset *train, at_dataset *test)
{
    uint64_t out = 0, first = 0;
    for (uint64_t i = 0; i < test->count; i++) {
        uint64_t begin = out, end = test->starts[i + 1];
        for (uint64_t k = first; k < end; k++) {
            uint32_t to = changed(c, train, test, test->indices[k]);
            if (to == NOWHERE) continue;
            assert(out <= k);
            test->indices[out] = to;
            test->values[out++] = test->values[k];
        }
        sort_row(test->indices + begin, test->values + begin, out - begin);
        first = end;
        test->starts[i + 1] = out;
    }
}

static at_err agree_on_sparse(const at_dataset *train, at_dataset *test, at_fail *fail)
{
    assert(train->starts && test->starts);
    change c = {0};
    bool   by_names = train->names && at_store_name(train, train->classes) && test->names &&
                    at_store_name(test, test->classes);
    if (by_names) {
        at_err err = change_by_name(&c, train, train->classes, test, test->classes, fail);
        if (err) {
            free(c.to);
            return err;
        }
    }
    change_rows(&c, train, test);
    free(c.to);
    test->features = train->features;
    test->index_base = train->index_base;
    return AT_OK;
}

/* Columns of numbers must be the same ones in the same order. */
static at_err agree_on_columns(const at_dataset *train, const at_dataset *test, at_fail *fail)
{
    if (test->features != train->features)
        return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                           "a train sample has %u features (%s), but a test sample has %u (%s)",
                           train->features, train->form, test->features, test->form);
    if (!train->names || !test->names) return AT_OK;
    const char *a = at_store_name(train, train->classes), *b = at_store_name(test, test->classes);
    for (uint32_t f = 0; a && b && f < train->features; f++) {
        if (strcmp(a, b) != 0)
            return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                               "feature %u is '%s' in the train set, but '%s' in the test set",
                               f + 1, a, b);
        a += strlen(a) + 1;
        b += strlen(b) + 1;
    }
    return AT_OK;
}

static at_err agree(const at_dataset *train, at_dataset *test, at_fail *fail)
{
    if (!train->starts != !test->starts)
        return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                           "of train set (%s) and test set (%s) only one is sparse", train->form,
                           test->form);
    AT_TRY(train->starts ? agree_on_sparse(train, test, fail)
                         : agree_on_columns(train, test, fail));
    AT_TRY(agree_on_classes(train, test, fail));
    test->classes = train->classes;
    test->names = NULL; /* they were those of its own classes */
    test->names_size = 0;
    return AT_OK;
}

at_err at_dataset_agree(const at_dataset *train, at_dataset *test, at_fail *fail)
{
    assert(train && test && train != test);
    AT_TRY(at_store_unseal(test, fail));
    AT_TRY(agree(train, test, fail));
    return at_store_seal(test, fail);
}

/* Adapts a test set to its train set: classes and features are matched by name, or by number when
 * they have no names.
 *
 * Labels and sparse rows are rewritten in place. A feature unknown to the train set is dropped, so
 * rows only become shorter.
 */
#include "data/set/store.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HINT "use train and test files of the same data set"

static const uint32_t ABSENT = UINT32_MAX;

/* Maps each class or feature of the test set to the train set; ABSENT: not in the train set. */
typedef struct mapping {
    uint32_t *to;
    uint32_t  count;
} mapping;

typedef struct named {
    const char *name;
    uint32_t    index;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* The names first .. first + count - 1 of a set, sorted; NULL when memory runs out. */
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

/* Names that follow each other in a set. */
typedef struct name_range {
    const at_dataset *set;
    uint32_t          first, count;
} name_range;

static name_range class_names(const at_dataset *set)
{
    return (name_range){set, 0, set->classes};
}

static name_range feature_names(const at_dataset *set)
{
    return (name_range){set, set->classes, set->features};
}

/* Looks up every name of the test set in the train set. */
static at_err map_by_name(mapping *m, name_range train, name_range test, at_fail *fail)
{
    named *known = sorted_names(train.set, train.first, train.count);
    m->count = test.count;
    m->to = calloc(m->count, sizeof *m->to);
    if (!known || !m->to) {
        free(known);
        return at_fail_memory_for(fail, "to compare names");
    }
    const char *name = at_store_name(test.set, test.first);
    assert(name);
    for (uint32_t i = 0; i < m->count; i++, name += strlen(name) + 1) {
        const named *found =
            bsearch(&(named){.name = name}, known, train.count, sizeof *known, by_name);
        m->to[i] = found ? found->index : ABSENT;
    }
    free(known);
    return AT_OK;
}

static at_err map_labels(const mapping *m, at_dataset *test, at_fail *fail)
{
    assert(m->count == test->classes);
    for (uint64_t i = 0; i < test->count; i++)
        if (m->to[test->labels[i]] == ABSENT)
            return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                               "the test set has a label '%s' that does not occur in the train set",
                               at_store_name(test, test->labels[i]));
    for (uint64_t i = 0; i < test->count; i++) test->labels[i] = m->to[test->labels[i]];
    return AT_OK;
}

static at_err match_classes(const at_dataset *train, at_dataset *test, at_fail *fail)
{
    mapping m = {0};
    if (test->read_options.unlabeled) {
        memset(test->labels, 0, test->count * sizeof *test->labels);
        return AT_OK;
    }
    if (!train->classes != !test->classes)
        return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                           "labels are real numbers in the %s set, but classes in the %s set",
                           train->classes ? "test" : "train", train->classes ? "train" : "test");
    if (!train->classes) return AT_OK;
    uint32_t label_max = at_store_label_max(test);
    if (train->names && test->names) {
        at_err err = map_by_name(&m, class_names(train), class_names(test), fail);
        if (!err) err = map_labels(&m, test, fail);
        free(m.to);
        if (err) return err;
    } else if (label_max >= train->classes) {
        return at_fail_set(
            fail, AT_ERR_FORMAT, HINT,
            "the test set has a label %u, but the largest label of the train set is %u", label_max,
            train->classes - 1);
    }
    return AT_OK;
}

/* The feature of the train set: by name, or by its number in the file. */
static uint32_t map_feature(const mapping *m, const at_dataset *train, const at_dataset *test,
                            uint32_t index)
{
    if (m->to) return m->to[index];
    uint64_t number = (uint64_t)index + test->index_base;
    if (number < train->index_base) return ABSENT;
    number -= train->index_base;
    return number < train->features ? (uint32_t)number : ABSENT;
}

/* Insertion sort: rows are short and nearly sorted, out of order only when the train file has its
 * columns in another order. */
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

static void map_rows(const mapping *m, const at_dataset *train, at_dataset *test)
{
    uint64_t out = 0, first = 0;
    for (uint64_t i = 0; i < test->count; i++) {
        uint64_t begin = out, end = test->starts[i + 1];
        for (uint64_t k = first; k < end; k++) {
            uint32_t to = map_feature(m, train, test, test->indices[k]);
            if (to == ABSENT) continue;
            assert(out <= k);
            test->indices[out] = to;
            test->values[out++] = test->values[k];
        }
        sort_row(test->indices + begin, test->values + begin, out - begin);
        first = end;
        test->starts[i + 1] = out;
    }
}

static at_err match_sparse(const at_dataset *train, at_dataset *test, at_fail *fail)
{
    assert(train->starts && test->starts);
    mapping m = {0};
    bool    by_names = train->names && at_store_name(train, train->classes) && test->names &&
                    at_store_name(test, test->classes);
    if (by_names) {
        at_err err = map_by_name(&m, feature_names(train), feature_names(test), fail);
        if (err) {
            free(m.to);
            return err;
        }
    }
    map_rows(&m, train, test);
    free(m.to);
    test->features = train->features;
    test->index_base = train->index_base;
    return AT_OK;
}

/* Numeric columns must be the same and in the same order. */
static at_err match_columns(const at_dataset *train, const at_dataset *test, at_fail *fail)
{
    if (test->features != train->features)
        return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                           "train samples have %u features (%s), but test samples have %u (%s)",
                           train->features, train->form, test->features, test->form);
    if (!train->names || !test->names) return AT_OK;
    const char *a = at_store_name(train, train->classes), *b = at_store_name(test, test->classes);
    for (uint32_t f = 0; a && b && f < train->features; f++) {
        if (strcmp(a, b) != 0)
            return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                               "feature %u is '%s' in the train set but '%s' in the test set",
                               f + 1, a, b);
        a += strlen(a) + 1;
        b += strlen(b) + 1;
    }
    return AT_OK;
}

static at_err match(const at_dataset *train, at_dataset *test, at_fail *fail)
{
    if (!train->starts != !test->starts)
        return at_fail_set(fail, AT_ERR_FORMAT, HINT,
                           "only one of train set (%s) and test set (%s) is sparse", train->form,
                           test->form);
    AT_TRY(train->starts ? match_sparse(train, test, fail) : match_columns(train, test, fail));
    AT_TRY(match_classes(train, test, fail));
    test->classes = train->classes;
    test->names = NULL; /* they named its own classes */
    test->names_size = 0;
    return AT_OK;
}

at_err at_dataset_match(const at_dataset *train, at_dataset *test, at_fail *fail)
{
    assert(train && test && train != test);
    AT_TRY(at_store_unseal(test, fail));
    AT_TRY(match(train, test, fail));
    return at_store_seal(test, fail);
}

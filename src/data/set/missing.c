#include "data/set/missing.h"

#include "data/formats/csv_columns.h"
#include "data/set/store.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

typedef struct sum {
    double   of;
    uint64_t missing;
} sum;

static void add(sum *s, float value)
{
    if (isnan(value))
        s->missing++;
    else
        s->of += (double)value;
}

/* The stored numbers of a set, and the feature of each. */
static uint64_t number_count(const at_dataset *set)
{
    return set->starts ? set->starts[set->count] : set->count * set->features;
}

static float *number_at(const at_dataset *set, uint64_t i, uint32_t *feature)
{
    *feature = set->starts ? set->indices[i] : (uint32_t)(i % set->features);
    return set->starts ? &set->values[i] : &((float *)(void *)set->rows)[i];
}

/* Numbers that are not stored are 0. A column without any number is filled with 0. */
static void find_means(const at_dataset *train, sum *sums, double *means)
{
    uint32_t feature;
    for (uint64_t i = 0; i < number_count(train); i++) {
        float value = *number_at(train, i, &feature);
        add(&sums[feature], value);
    }
    for (uint32_t f = 0; f < train->features; f++) {
        uint64_t there = train->count - sums[f].missing;
        means[f] = there > 0 ? sums[f].of / (double)there : 0;
    }
}

static at_err fill(at_dataset *set, const double *means, at_fail *fail)
{
    uint32_t feature;
    AT_TRY(at_store_unseal(set, fail));
    for (uint64_t i = 0; i < number_count(set); i++) {
        float *value = number_at(set, i, &feature);
        if (isnan(*value)) *value = (float)means[feature];
    }
    return at_store_seal(set, fail);
}

static at_err keep_means(at_dataset *train, const double *means, at_fail *fail)
{
    at_csv_columns columns;
    at_err         err = at_csv_columns_parse(&columns, train->columns, fail);
    for (size_t i = 0; !err && i < columns.count; i++)
        if (columns.column[i].kind == AT_CSV_NUMBER)
            columns.column[i].fill = means[columns.column[i].feature];
    char *text = err ? NULL : at_csv_columns_text(&columns);
    at_csv_columns_deinit(&columns);
    if (err) return err;
    if (!text) return at_fail_memory_for(fail, "for the columns of the data");
    free(train->columns);
    train->columns = text;
    return AT_OK;
}

at_err at_missing_fill(at_dataset *train, at_dataset *test, at_fail *fail)
{
    assert(train);
    if (!train->columns || train->read_options.missing != AT_MISSING_FILL) return AT_OK;
    sum    *sums = calloc(train->features, sizeof *sums);
    double *means = calloc(train->features, sizeof *means);
    at_err  err = sums && means ? AT_OK : at_fail_memory_for(fail, "for missing numbers");
    if (!err) {
        find_means(train, sums, means);
        err = fill(train, means, fail);
    }
    if (!err && test) err = fill(test, means, fail);
    if (!err) err = keep_means(train, means, fail);
    free(sums);
    free(means);
    return err;
}

#include "data/set/describe.h"

#include "base/label.h"
#include "base/text.h"
#include "data/formats/idx.h"
#include "data/set/resolve.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static at_err make_counts(at_description *description, at_split split, at_fail *fail)
{
    assert(description->classes > 0);
    description->labels[split] = calloc(description->classes, sizeof **description->labels);
    if (description->labels[split]) return AT_OK;
    return at_fail_memory_for(fail, "to count labels");
}

static at_label_range describe_real_labels(const at_dataset *set)
{
    double         count = (double)at_dataset_count(set), squares = 0;
    at_label_range all = {.min = INFINITY, .max = -INFINITY};
    for (uint64_t i = 0; i < at_dataset_count(set); i++) {
        double value = (double)at_label_real(at_dataset_label(set, i));
        all.min = fmin(all.min, value);
        all.max = fmax(all.max, value);
        all.mean += value / count;
    }
    for (uint64_t i = 0; i < at_dataset_count(set); i++) {
        double off = (double)at_label_real(at_dataset_label(set, i)) - all.mean;
        squares += off * off;
    }
    all.deviation = sqrt(squares / count);
    return all;
}

static at_err describe_split(at_description *description, const at_dataset *set, at_split split,
                             at_fail *fail)
{
    assert(set);
    description->format = at_dataset_format(set);
    description->features = at_dataset_features(set);
    description->classes = at_dataset_classes(set);
    description->count[split] = at_dataset_count(set);
    description->cached[split] = at_dataset_is_cached(set);
    if (!description->form[0]) {
        at_text form = at_text_in(description->form, sizeof description->form);
        at_text_add(&form, "%s", at_dataset_form(set));
    }
    description->real_labels = description->classes == 0;
    if (description->real_labels) {
        description->real[split] = describe_real_labels(set);
        return AT_OK;
    }
    AT_TRY(make_counts(description, split, fail));
    for (uint64_t i = 0; i < at_dataset_count(set); i++)
        description->labels[split][at_dataset_label(set, i)]++;
    return AT_OK;
}

/* A folder may have only one split; when it has none, opening one explains why. */
static at_err open_splits(at_dataset *sets[2], const char *name, const at_read_options *options,
                          at_fail *fail)
{
    bool test = at_dataset_has(name, AT_SPLIT_TEST);
    if (at_dataset_has(name, AT_SPLIT_TRAIN) || !test)
        AT_TRY(at_dataset_open_as(name, AT_SPLIT_TRAIN, options, &sets[AT_SPLIT_TRAIN], fail));
    if (test) AT_TRY(at_dataset_open_as(name, AT_SPLIT_TEST, options, &sets[AT_SPLIT_TEST], fail));
    if (!sets[AT_SPLIT_TRAIN] || !test) return AT_OK;
    return at_dataset_match(sets[AT_SPLIT_TRAIN], sets[AT_SPLIT_TEST], fail);
}

static at_err describe_set(at_description *description, const char *name,
                           const at_read_options *options, at_fail *fail)
{
    at_dataset *sets[2] = {NULL, NULL};
    at_err      err = open_splits(sets, name, options, fail);
    for (int split = AT_SPLIT_TRAIN; split <= AT_SPLIT_TEST; split++) {
        if (!err && sets[split])
            err = describe_split(description, sets[split], (at_split)split, fail);
        at_dataset_free(sets[split]);
    }
    return err;
}

/* One IDX file: labels when it has one dimension, images otherwise. */
static at_err describe_file(at_description *description, const char *path, at_fail *fail)
{
    assert(!description->count[AT_SPLIT_TRAIN]);
    at_idx   idx;
    uint64_t values[256];
    char     shape[48];
    AT_TRY(at_idx_scan(path, &idx, values, fail));
    description->format = at_format_idx.name;
    description->features = idx.features;
    description->count[AT_SPLIT_TRAIN] = idx.extent[0];
    at_idx_shape(&idx, shape, sizeof shape);
    at_text form = at_text_in(description->form, sizeof description->form);
    if (idx.dims > 1) {
        at_text_add(&form, "%s bytes", shape);
        return AT_OK;
    }
    at_text_add(&form, "labels");
    description->classes = 256;
    while (values[description->classes - 1] == 0) description->classes--;
    AT_TRY(make_counts(description, AT_SPLIT_TRAIN, fail));
    memcpy(description->labels[AT_SPLIT_TRAIN], values, description->classes * sizeof *values);
    return AT_OK;
}

/* A single IDX file is not a data set (images need labels), but it can be described. */
static bool is_one_idx_file(const at_resolved *found)
{
    struct stat status;
    return found->format == &at_format_idx && stat(found->path, &status) == 0 &&
           S_ISREG(status.st_mode) && at_idx_is_file(found->path);
}

at_err at_describe(const char *name, const at_read_options *options, at_description *description,
                   at_fail *fail)
{
    assert(name && description);
    *description = (at_description){0};
    at_resolved found;
    AT_TRY(at_resolve(name, &found, fail));
    at_err err = is_one_idx_file(&found) ? describe_file(description, found.path, fail)
                                         : describe_set(description, name, options, fail);
    if (err) {
        at_describe_deinit(description);
        return err;
    }
    description->summary = found.row ? found.row->summary : found.format->summary;
    description->license = found.row ? found.row->license : NULL;
    return AT_OK;
}

void at_describe_deinit(at_description *description)
{
    assert(description);
    for (int split = 0; split < 2; split++) free(description->labels[split]);
    *description = (at_description){0};
}

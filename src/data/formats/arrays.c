#include "data/formats/arrays.h"

#include "base/text.h"
#include "data/files/source.h"

#include <assert.h>
#include <string.h>

enum { SAMPLES, LABELS };

const at_arrays_names at_arrays_usual[] = {
    {{"x_train.npy", "x_test.npy"}, {"y_train.npy", "y_test.npy"}},
    {{"train_images.npy", "test_images.npy"}, {"train_labels.npy", "test_labels.npy"}},
    {{"data.npy", NULL}, {"labels.npy", NULL}},
    {{"images.npy", NULL}, {"labels.npy", NULL}},
    {{"x.npy", NULL}, {"y.npy", NULL}},
    {{"X.npy", NULL}, {"y.npy", NULL}},
    {{NULL, NULL}, {NULL, NULL}},
};

const at_arrays_names *at_arrays_in(const at_zip *zip)
{
    assert(zip);
    for (const at_arrays_names *row = at_arrays_usual; row->samples[0]; row++)
        if (at_zip_has(zip, row->samples[0]) && at_zip_has(zip, row->labels[0])) return row;
    return NULL;
}

/* An array that is being read. */
typedef struct opened {
    at_npy_input input;
    at_source   *source;
    at_zip      *zip;
    char         name[PATH_MAX + 40];
} opened;

static at_err read_source(void *self, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    return at_source_read(self, bytes, size, got, fail);
}

static at_err read_zip(void *self, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    return at_zip_read(self, bytes, size, got, fail);
}

static at_err open_inside(opened *array, const char *path, const char *inside, at_fail *fail)
{
    assert(inside[0]);
    AT_TRY(at_zip_open(path, &array->zip, fail));
    if (!at_zip_has(array->zip, inside))
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "numpy.savez needs x= and y= (or data= and labels=, x_train= ...)",
                           "%s: at its end, the list of entries has no %s", path, inside);
    array->input = (at_npy_input){.read = read_zip, .self = array->zip, .name = array->name};
    return at_zip_enter(array->zip, inside, &array->input.size_max, fail);
}

static at_err open_file(opened *array, const char *path, at_fail *fail)
{
    AT_TRY(at_source_open(path, &array->source, fail));
    array->input = (at_npy_input){.read = read_source,
                                  .self = array->source,
                                  .name = array->name,
                                  .size_max = at_source_size_max(array->source)};
    return AT_OK;
}

/* Opens one of the two and reads its header. To be closed whatever happens. */
static at_err open_array(opened *array, const at_arrays *arrays, int which, at_npy *npy,
                         at_fail *fail)
{
    assert(which == SAMPLES || which == LABELS);
    const char *path = arrays->path[which], *inside = arrays->inside[which];
    *array = (opened){0};
    at_text name = at_text_in(array->name, sizeof array->name);
    at_text_add(&name, inside[0] ? "%s: %s" : "%s", path, inside);
    AT_TRY(inside[0] ? open_inside(array, path, inside, fail) : open_file(array, path, fail));
    return at_npy_read_header(npy, &array->input, fail);
}

static void close_array(opened *array)
{
    at_source_close(array->source);
    at_zip_close(array->zip);
}

/* Nothing may follow the elements, and the checksum must be right. */
static at_err end_array(opened *array, at_fail *fail)
{
    assert(!array->source != !array->zip);
    return array->source ? at_source_end(array->source, fail) : at_zip_leave(array->zip, fail);
}

static at_err measure_one(const at_arrays *arrays, int which, at_npy *npy, at_fail *fail)
{
    opened array;
    at_err err = open_array(&array, arrays, which, npy, fail);
    close_array(&array);
    return err;
}

at_err at_arrays_measure(at_arrays *arrays, at_fail *fail)
{
    AT_TRY(measure_one(arrays, SAMPLES, &arrays->samples, fail));
    AT_TRY(measure_one(arrays, LABELS, &arrays->labels, fail));
    if (arrays->labels.features != 1)
        return at_fail_set(fail, AT_ERR_FORMAT, "are samples and labels swapped?",
                           "%s: before byte %llu, labels of %u numbers each (1 makes sense)",
                           arrays->path[LABELS], (unsigned long long)arrays->labels.header_size,
                           arrays->labels.features);
    if (arrays->samples.count == arrays->labels.count) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use two arrays that belong together",
                       "%s has %llu samples, but %s%s has %llu labels", arrays->path[SAMPLES],
                       (unsigned long long)arrays->samples.count, arrays->path[LABELS],
                       arrays->inside[LABELS][0] ? " itself" : "",
                       (unsigned long long)arrays->labels.count);
}

/* The file may have changed since it was measured. */
static at_err check_same(const at_npy *now, const at_npy *before, const char *path, at_fail *fail)
{
    if (now->type == before->type && now->count == before->count &&
        now->features == before->features)
        return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                       "%s: changed while it was read", path);
}

at_err at_arrays_read_samples(const at_arrays *arrays, unsigned char *rows, at_fail *fail)
{
    assert(arrays->samples.count > 0);
    opened array;
    at_npy npy;
    at_err err = open_array(&array, arrays, SAMPLES, &npy, fail);
    if (!err) err = check_same(&npy, &arrays->samples, arrays->path[SAMPLES], fail);
    if (!err) err = at_npy_read_rows(&npy, &array.input, rows, fail);
    if (!err) err = end_array(&array, fail);
    close_array(&array);
    return err;
}

at_err at_arrays_read_labels(const at_arrays *arrays, uint32_t *labels, at_fail *fail)
{
    assert(arrays->labels.count > 0);
    opened array;
    at_npy npy;
    at_err err = open_array(&array, arrays, LABELS, &npy, fail);
    if (!err) err = check_same(&npy, &arrays->labels, arrays->path[LABELS], fail);
    if (!err) err = at_npy_read_labels(&npy, &array.input, labels, fail);
    if (!err) err = end_array(&array, fail);
    close_array(&array);
    return err;
}

/* open_sets.h - opens and checks data sets in tests. */
#ifndef AT_TESTS_UNIT_DATA_OPEN_SETS_H
#define AT_TESTS_UNIT_DATA_OPEN_SETS_H

#include "files.h"

#include "base/rng.h"
#include "base/text.h"
#include "data/set/dataset.h"

static at_fail fail;

static inline void write_text(const char *path, const char *text)
{
    write_raw(path, text, strlen(text));
}

static inline at_dataset *open_set_as(const char *name, at_split split,
                                      const at_read_options *options)
{
    at_dataset *set;
    at_err      err = at_dataset_open_as(name, split, options, &set, &fail);
    if (err) fail_msg("%s (%s)", fail.text, fail.hint);
    return set;
}

static inline at_dataset *open_set(const char *name, at_split split)
{
    return open_set_as(name, split, NULL);
}

/* Opening the train split must fail with that code, text and hint. */
static inline void refuse(const char *name, at_err code, const char *words, const char *hint)
{
    at_dataset *set;
    fail = (at_fail){0};
    assert_int_equal(at_dataset_open(name, AT_SPLIT_TRAIN, &set, &fail), code);
    assert_null(set);
    if (!strstr(fail.text, words)) fail_msg("\"%s\" lacks \"%s\"", fail.text, words);
    if (!strstr(fail.hint, hint)) fail_msg("\"%s\" lacks \"%s\"", fail.hint, hint);
}

static inline void assert_shape(const at_dataset *set, uint32_t channels, uint32_t height,
                                uint32_t width)
{
    at_image_shape shape = at_dataset_shape(set);
    assert_int_equal(shape.channels, channels);
    assert_int_equal(shape.height, height);
    assert_int_equal(shape.width, width);
}

static inline at_dataset *open_sparse(const char *name, at_split split)
{
    at_dataset *set = open_set_as(name, split, NULL);
    assert_true(at_dataset_is_sparse(set));
    return set;
}

/* Compares the label and the numbers of a row, as "0:0.5 2:-0.2". */
static inline void check_row(const at_dataset *set, uint64_t index, uint32_t label,
                             const char *wanted)
{
    char          text[1024];
    at_text       got = at_text_in(text, sizeof text);
    at_sparse_row row = at_dataset_sparse_row(set, index);
    for (uint32_t i = 0; i < row.count; i++)
        at_text_add(&got, i ? " %u:%.6g" : "%u:%.6g", row.indices[i], (double)row.values[i]);
    assert_string_equal(text, wanted);
    assert_int_equal(at_dataset_label(set, index), label);
}

/* Opening the train split must fail with that text, the file name and a hint. */
static inline void refuse_set_as(const char *name, const at_read_options *options, const char *word)
{
    at_dataset *set = NULL;
    at_err      err = at_dataset_open_as(name, AT_SPLIT_TRAIN, options, &set, &fail);
    const char *colon = strchr(name, ':');
    assert_null(set);
    assert_int_equal(err, AT_ERR_FORMAT);
    if (!strstr(fail.text, word)) fail_msg("no '%s' in: %s", word, fail.text);
    if (!strstr(fail.text, colon ? colon + 1 : name)) fail_msg("no file name in: %s", fail.text);
    if (!fail.hint[0]) fail_msg("no hint for: %s", fail.text);
}

static inline void refuse_set(const char *name, const char *word)
{
    refuse_set_as(name, NULL, word);
}

#endif

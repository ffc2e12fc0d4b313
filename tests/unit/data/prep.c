/* Preparation of samples. */
#include "data/prep/prep_kind.h"

#include "data/set/store.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NUMBERS_MAX = 1 << 16 };

static at_fail fail;
static float   in[NUMBERS_MAX], out[NUMBERS_MAX], again[NUMBERS_MAX];

static at_prep *make(const char *text, at_image_shape shape)
{
    at_prep *prep;
    if (at_prep_new(text, shape, &prep, &fail)) fail_msg("%s (%s)", fail.text, fail.hint);
    return prep;
}

/* A preparation fitted to a set of that shape; the data matters only to some steps. */
static at_prep *fitted(const char *text, at_image_shape shape)
{
    at_prep    *prep = make(text, shape);
    char        name[64];
    at_dataset *set;
    snprintf(name, sizeof name, "synthetic:20,%zu,2", at_image_shape_size(shape));
    assert_int_equal(at_dataset_open(name, AT_SPLIT_TRAIN, &set, &fail), AT_OK);
    assert_int_equal(at_prep_fit(prep, set, &fail), AT_OK);
    at_dataset_free(set);
    return prep;
}

/* A set whose only sample is the first `size` numbers of `in`. */
static at_dataset *set_of_one(size_t size)
{
    at_dataset *set = calloc(1, sizeof *set);
    assert_non_null(set);
    assert_int_equal(at_store_reserve(set, 1, (uint32_t)size, AT_ELEMENT_FLOAT, &fail), AT_OK);
    memcpy(set->rows, in, size * sizeof *in);
    set->classes = 1;
    return set;
}

static void apply(const at_prep *prep, float *to, const at_prep_key *key)
{
    float *scratch = malloc(at_prep_scratch_size(prep) * sizeof *scratch);
    assert_non_null(scratch);
    at_dataset *set = set_of_one(at_image_shape_size(prep->in));
    at_prep_rows(prep, to, &(uint32_t){0}, set, &(uint64_t){0}, 1, scratch, key);
    at_dataset_free(set);
    free(scratch);
}

static at_image_shape run(const char *text, at_image_shape shape, const at_prep_key *key)
{
    at_prep       *prep = fitted(text, shape);
    at_image_shape shape_out = at_prep_out(prep);
    apply(prep, out, key);
    at_prep_free(prep);
    return shape_out;
}

static void count_up(size_t size)
{
    for (size_t i = 0; i < size; i++) in[i] = (float)(i + 1);
}

static void expect(const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fabsf(out[i] - expected[i]) > 1e-5f * (1.0f + fabsf(expected[i])))
            fail_msg("number %zu is %g, not %g", i, (double)out[i], (double)expected[i]);
}

#define EXPECT(...)                                \
    do {                                           \
        static const float want[] = {__VA_ARGS__}; \
        expect(want, sizeof want / sizeof *want);  \
    } while (0)

static void expect_shape(const char *text, at_image_shape from, at_image_shape to)
{
    at_prep       *prep = make(text, from);
    at_image_shape got = at_prep_out(prep);
    if (memcmp(&got, &to, sizeof got))
        fail_msg("%s gives %ux%ux%u", text, got.channels, got.height, got.width);
    at_prep_free(prep);
}

static void shapes_follow_the_list(void **state)
{
    (void)state;
    at_image_shape cifar = {3, 32, 32}, mnist = {1, 28, 28}, line = {1, 1, 40};
    expect_shape("pad:4,crop:32,flip,normalise", cifar, cifar);
    expect_shape("scale, resize:224 , pad:4,crop:32,flip,normalise", cifar, cifar);
    expect_shape("rgb,resize:224", mnist, (at_image_shape){3, 224, 224});
    expect_shape("resize:10x20,grey,pad:1:reflect", cifar, (at_image_shape){1, 12, 22});
    expect_shape("crop:5x7", cifar, (at_image_shape){3, 5, 7});
    expect_shape("normalise:0.49,0.48,0.45/0.25,0.24,0.26,flip", cifar, cifar);
    expect_shape("normalise:-0.5/.5", cifar, cifar);
    expect_shape("rgb", cifar, cifar);
    expect_shape("scale,normalise,standardise", line, line);
}

static void impossible_steps_are_refused_with_both_shapes(void **state)
{
    (void)state;
    static const struct {
        const char    *text;
        at_image_shape shape;
        const char    *words, *hint;
    } cases[] = {
        {"flip,crop:40", {3, 32, 32}, "step 2, crop:40, cannot make 3x40x40 from 3x32x32", "pad"},
        {"pad:32:reflect", {3, 32, 32}, "cannot be applied to 3x32x32", "narrower"},
        {"pad:4:mirror", {3, 32, 32}, "pad:4:mirror", "pad:4:reflect"},
        {"pad:3x4", {3, 32, 32}, "pad:3x4", "pad:4"},
        {"pad", {3, 32, 32}, "pad", "pad:4"},
        {"pad:0", {3, 32, 32}, "pad:0", "pad:4"},
        {"crop", {3, 32, 32}, "crop", "crop:32"},
        {"crop:0", {3, 32, 32}, "crop:0", "crop:32"},
        {"crop:3x", {3, 32, 32}, "crop:3x", "crop:32"},
        {"resize:5000", {3, 32, 32}, "resize:5000", "4096"},
        {"resize:4096,resize:4096", {9, 32, 32}, "resize:4096", "too large"},
        {"grey", {2, 8, 8}, "cannot make 1x8x8 from 2x8x8", "three channels"},
        {"rgb", {2, 8, 8}, "cannot make 3x8x8 from 2x8x8", "one channel"},
        {"flip", {1, 1, 40}, "cannot be applied to 1x1x40", "feature vectors"},
        {"resize:8", {1, 1, 40}, "resize:8", "feature vectors"},
        {"flip:1", {3, 8, 8}, "flip:1", "no numbers"},
        {"normalise:1,2/1,2", {3, 8, 8}, "normalise:1,2/1,2", "MEANS/DEVIATIONS"},
        {"normalise:1,2,3", {3, 8, 8}, "normalise:1,2,3", "MEANS/DEVIATIONS"},
        {"normalise:1,2,3/1,0,1", {3, 8, 8}, "normalise", "MEANS/DEVIATIONS"},
        {"normalise:1/", {3, 8, 8}, "normalise", "MEANS/DEVIATIONS"},
        {"normalise:nan/1", {3, 8, 8}, "normalise", "MEANS/DEVIATIONS"},
        {"", {3, 8, 8}, "step 1 is empty", "commas"},
        {"flip,", {3, 8, 8}, "step 2 is empty", "commas"},
        {"flip,,grey", {3, 8, 8}, "step 2 is empty", "commas"},
        {"flop", {3, 8, 8}, "unknown --prep step 'flop'", "did you mean flip?"},
        {"normalse", {3, 8, 8}, "normalse", "did you mean normalise?"},
        {"flip,flip,flip,flip,flip,flip,flip,flip,flip,flip,flip,flip,flip,flip,flip,flip,flip",
         {3, 8, 8},
         "more than 16 steps",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_prep *prep;
        at_err   err = at_prep_new(cases[i].text, cases[i].shape, &prep, &fail);
        assert_int_equal(err, AT_ERR_USAGE);
        assert_null(prep);
        if (!strstr(fail.text, cases[i].words))
            fail_msg("\"%s\" lacks \"%s\"", fail.text, cases[i].words);
        if (!strstr(fail.hint, cases[i].hint))
            fail_msg("\"%s\" lacks \"%s\"", fail.hint, cases[i].hint);
    }
}

static void padding_is_zeros_or_mirrored(void **state)
{
    (void)state;
    count_up(4);
    run("pad:1", (at_image_shape){1, 2, 2}, NULL);
    EXPECT(0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0);
    count_up(9);
    run("pad:2:reflect", (at_image_shape){1, 3, 3}, NULL);
    EXPECT(9, 8, 7, 8, 9, 8, 7, 6, 5, 4, 5, 6, 5, 4, 3, 2, 1, 2, 3, 2, 1, 6, 5, 4, 5, 6, 5, 4, 9, 8,
           7, 8, 9, 8, 7, 6, 5, 4, 5, 6, 5, 4, 3, 2, 1, 2, 3, 2, 1);
}

static void for_testing_a_crop_is_the_center_and_nothing_flips(void **state)
{
    (void)state;
    count_up(32);
    run("crop:2,flip", (at_image_shape){2, 4, 4}, NULL);
    EXPECT(6, 7, 10, 11, 22, 23, 26, 27);
    run("pad:3,crop:4,flip", (at_image_shape){2, 4, 4}, NULL);
    for (int i = 0; i < 32; i++) assert_true(out[i] == in[i]);
}

/* Reference: pads, crops and flips one after the other, with draws in the order of the list. */
static void reference(float *to, at_image_shape p, uint32_t pad, at_rng *rng)
{
    uint32_t top = (uint32_t)at_rng_below(rng, 2 * pad + 1);
    uint32_t left = (uint32_t)at_rng_below(rng, 2 * pad + 1);
    bool     mirror = !(at_rng_next(rng) >> 63);
    for (uint32_t c = 0; c < p.channels; c++)
        for (uint32_t y = 0; y < p.height; y++)
            for (uint32_t x = 0; x < p.width; x++) {
                uint32_t sx = (mirror ? p.width - 1 - x : x) + left, sy = y + top;
                bool inside = sy >= pad && sy < pad + p.height && sx >= pad && sx < pad + p.width;
                *to++ = inside ? in[(c * p.height + sy - pad) * p.width + sx - pad] : 0.0f;
            }
}

static void for_training_one_copy_equals_the_separate_steps(void **state)
{
    (void)state;
    static float   want[3 * 32 * 32];
    at_image_shape cifar = {3, 32, 32};
    at_prep       *prep = fitted("pad:4,crop:32,flip", cifar);
    count_up(at_image_shape_size(cifar));
    for (uint64_t position = 0; position < 200; position++) {
        at_prep_key key = {.seed = 5, .walk = position % 3, .position = position};
        at_rng      rng = at_rng_stream(key.seed, key.walk, AT_RNG_PURPOSE_PREP, position);
        apply(prep, out, &key);
        reference(want, cifar, 4, &rng);
        assert_memory_equal(out, want, sizeof want);
    }
    at_prep_free(prep);
}

static void a_sample_depends_on_seed_walk_and_position_only(void **state)
{
    (void)state;
    at_image_shape shape = {1, 8, 8};
    at_prep       *prep = fitted("pad:2:reflect,crop:8,flip", shape);
    at_prep_key    key = {1, 2, 3}, other[] = {{2, 2, 3}, {1, 3, 3}, {1, 2, 4}};
    int            same = 0;
    count_up(64);
    apply(prep, out, &key);
    apply(prep, again, &key);
    assert_memory_equal(out, again, 64 * sizeof *out);
    for (int i = 0; i < 3; i++) {
        apply(prep, again, &other[i]);
        same += !memcmp(out, again, 64 * sizeof *out);
    }
    assert_true(same < 2); /* one in fifty is equal by chance */
    at_prep_free(prep);
}

static void crops_and_flips_are_evenly_spread(void **state)
{
    (void)state;
    at_image_shape shape = {1, 3, 3};
    at_prep       *prep = fitted("crop:1", shape), *mirror = fitted("flip", shape);
    int            seen[10] = {0}, flipped = 0;
    count_up(9);
    for (uint64_t position = 0; position < 9000; position++) {
        apply(prep, out, &(at_prep_key){1, 1, position});
        seen[(int)out[0]]++;
        apply(mirror, out, &(at_prep_key){1, 1, position});
        flipped += out[0] == 3.0f;
    }
    for (int i = 1; i < 10; i++) assert_in_range(seen[i], 850, 1150);
    assert_in_range(flipped, 4200, 4800);
    at_prep_free(prep);
    at_prep_free(mirror);
}

static void resizing_is_bilinear(void **state)
{
    (void)state;
    in[0] = 0, in[1] = 4, in[2] = 8, in[3] = 12;
    run("resize:2x4", (at_image_shape){1, 2, 2}, NULL);
    EXPECT(0, 1, 3, 4, 8, 9, 11, 12);
    run("resize:4x2", (at_image_shape){1, 2, 2}, NULL);
    EXPECT(0, 4, 2, 6, 6, 10, 8, 12);
    run("resize:2", (at_image_shape){1, 2, 2}, NULL); /* same size: exact */
    EXPECT(0, 4, 8, 12);
    run("resize:1", (at_image_shape){1, 2, 2}, NULL);
    EXPECT(6);
    run("resize:3", (at_image_shape){4, 1, 1}, NULL);
    EXPECT(0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4);
    for (int i = 0; i < 8 * 8; i++) in[i] = 1.0f; /* one color stays one color */
    at_image_shape shape = run("resize:3x29", (at_image_shape){1, 8, 8}, NULL);
    for (size_t i = 0; i < at_image_shape_size(shape); i++)
        assert_true(fabsf(out[i] - 1.0f) < 1e-6f);
    for (int i = 0; i < 64; i++) in[i] = (float)(i % 8 == 3); /* shrinking skips no pixel */
    run("resize:8x2", (at_image_shape){1, 8, 8}, NULL);
    assert_true(out[0] > 0.1f);
}

static void color_and_grey(void **state)
{
    (void)state;
    count_up(12);
    run("rgb", (at_image_shape){1, 2, 2}, NULL);
    EXPECT(1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4);
    run("grey", (at_image_shape){3, 2, 1}, NULL);
    EXPECT(0.299f * 1 + 0.587f * 3 + 0.114f * 5, 0.299f * 2 + 0.587f * 4 + 0.114f * 6);
    run("grey,rgb,rgb,grey", (at_image_shape){1, 2, 1}, NULL);
    EXPECT(1, 2);
}

static void given_numbers_normalise_each_channel(void **state)
{
    (void)state;
    count_up(6);
    run("normalise:1,2,3/1,2,0.5", (at_image_shape){3, 2, 1}, NULL);
    EXPECT(0, 1, 0.5f, 1, 4, 6);
    run("normalise:2/4", (at_image_shape){3, 2, 1}, NULL);
    EXPECT(-0.25f, 0, 0.25f, 0.5f, 0.75f, 1);
    run("normalise:1,2/2,4", (at_image_shape){1, 1, 2}, NULL); /* a vector: each element */
    EXPECT(0, 0);
}

static void each_image_gets_mean_0_and_deviation_1(void **state)
{
    (void)state;
    in[0] = 1, in[1] = 3;
    run("standardise", (at_image_shape){1, 2, 1}, NULL);
    EXPECT(-1, 1);
    in[0] = in[1] = 7;
    run("standardise", (at_image_shape){1, 2, 1}, NULL);
    EXPECT(0, 0);
    in[0] = 0, in[1] = in[2] = in[3] = 0.01f; /* deviation below 1/sqrt(4) */
    run("standardise", (at_image_shape){1, 2, 2}, NULL);
    EXPECT(-0.015f, 0.005f, 0.005f, 0.005f);
}

/* Mean and deviation of one number (or of all when `every`) over prepared training samples. */
static void moments(const at_prep *prep, const at_dataset *set, size_t number, double *mean,
                    double *deviation)
{
    size_t   size = at_image_shape_size(at_prep_out(prep));
    float   *scratch = malloc(at_prep_scratch_size(prep) * sizeof *scratch);
    double   sum = 0.0, squares = 0.0, count = (double)at_dataset_count(set);
    uint32_t label;
    assert_true(number < size);
    for (uint64_t i = 0; i < at_dataset_count(set); i++) {
        at_prep_rows(prep, out, &label, set, &i, 1, scratch, NULL);
        sum += (double)out[number];
        squares += (double)out[number] * (double)out[number];
    }
    *mean = sum / count;
    *deviation = sqrt(squares / count - *mean * *mean);
    free(scratch);
}

static void statistics_are_those_of_the_training_set(void **state)
{
    (void)state;
    at_dataset *set;
    double      mean, deviation;
    assert_int_equal(at_dataset_open("synthetic:500,6,4", AT_SPLIT_TRAIN, &set, &fail), AT_OK);
    at_image_shape line = {1, 1, 6};
    at_prep       *prep = make("normalise", line), *range = make("normalise:100/0.01,scale", line);
    assert_int_equal(at_prep_fit(prep, set, &fail), AT_OK);
    assert_int_equal(at_prep_fit(range, set, &fail), AT_OK);
    float   *scratch = malloc(at_prep_scratch_size(range) * sizeof *scratch), low = 1, high = 0;
    uint32_t label;
    for (size_t f = 0; f < 6; f++) {
        moments(prep, set, f, &mean, &deviation);
        assert_true(fabs(mean) < 1e-5 && fabs(deviation - 1.0) < 1e-5);
    }
    for (uint64_t i = 0; i < 500; i++) {
        at_prep_rows(range, out, &label, set, &i, 1, scratch, NULL);
        for (int f = 0; f < 6; f++) low = fminf(low, out[f]), high = fmaxf(high, out[f]);
    }
    assert_true(fabsf(low) < 1e-3f && fabsf(high - 1.0f) < 1e-3f);
    free(scratch);
    at_prep_free(prep);
    at_prep_free(range);
    at_dataset_free(set);
}

static void constant_numbers_are_not_divided_by_zero(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) in[i] = 0.5f;
    run("normalise:0.5/1,normalise", (at_image_shape){1, 2, 2}, NULL);
    for (int i = 0; i < 4; i++) assert_true(isfinite(out[i]));
}

/* For any micro-batch, row i is the sample at position + i. */
static void rows_are_prepared(void **state)
{
    (void)state;
    enum { ROWS = 7, SIZE = 16 };
    at_dataset *set;
    uint32_t    labels[ROWS], label;
    uint64_t    indices[ROWS] = {3, 1, 4, 1, 5, 9, 2};
    at_prep_key key = {3, 1, 100};
    assert_int_equal(at_dataset_open("synthetic:10,16,2", AT_SPLIT_TRAIN, &set, &fail), AT_OK);
    at_prep *prep = make("pad:1,crop:4,flip,standardise", (at_image_shape){1, 4, 4});
    assert_int_equal(at_prep_fit(prep, set, &fail), AT_OK);
    float *scratch = malloc(at_prep_scratch_size(prep) * sizeof *scratch);
    at_prep_rows(prep, again, labels, set, indices, ROWS, scratch, &key);
    for (uint32_t i = 0; i < ROWS; i++) {
        at_prep_key here = {3, 1, 100 + i};
        at_dataset_rows(set, in, &label, &indices[i], 1);
        assert_int_equal(label, labels[i]);
        apply(prep, out, &here);
        assert_memory_equal(out, again + (size_t)i * SIZE, SIZE * sizeof *out);
    }
    free(scratch);
    at_prep_free(prep);
    at_dataset_free(set);
}

/* Any list of steps equals its steps applied separately. */
static void a_list_equals_its_separate_steps(void **state)
{
    (void)state;
    static const char *const steps[] = {"flip",       "pad:1",       "crop:3",
                                        "resize:4x5", "standardise", "normalise:0.5/2"};
    enum { STEPS = sizeof steps / sizeof *steps };
    at_rng rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, 0);
    for (int round = 0; round < 300; round++) {
        char           text[128] = "";
        at_image_shape shape = {2, 6, 5}, first = shape;
        float          start[64];
        for (size_t i = 0; i < 60; i++) start[i] = (float)at_rng_uniform(&rng);
        memcpy(in, start, 60 * sizeof *in);
        for (int i = 0; i < 5; i++) {
            const char *step = steps[at_rng_below(&rng, STEPS)];
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "," : "", step);
            shape = run(step, shape, NULL);
            memcpy(in, out, at_image_shape_size(shape) * sizeof *in);
        }
        at_prep *prep = fitted(text, first);
        memcpy(in, start, 60 * sizeof *in);
        apply(prep, again, NULL);
        if (memcmp(again, out, at_image_shape_size(shape) * sizeof *again)) fail_msg("%s", text);
        at_prep_free(prep);
    }
}

/* The text of a fitted list, parsed again, gives the same preparation. */
static void the_text_of_a_fitted_list_reproduces_it(void **state)
{
    (void)state;
    const at_image_shape shape = {3, 4, 4};
    const char          *lists[] = {"flip,crop:3,normalise", "normalise:0.5/0.25,grey", "scale,rgb",
                                    "pad:1:reflect,standardise,normalise"};
    count_up(at_image_shape_size(shape));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        at_prep *prep = fitted(lists[i], shape);
        char    *text = at_prep_text(prep);
        assert_non_null(text);
        apply(prep, out, NULL);
        at_prep *twin = fitted(text, shape);
        apply(twin, again, NULL);
        for (size_t n = 0; n < at_image_shape_size(at_prep_out(prep)); n++)
            assert_float_equal(again[n], out[n], 1e-4 * (1 + fabsf(out[n])));
        char *shown = at_prep_text(twin);
        assert_string_equal(shown, text);
        free(shown);
        free(text);
        at_prep_free(prep);
        at_prep_free(twin);
    }
}

static void raw_gives_back_every_byte_exactly(void **state)
{
    enum { BYTES = 256 };
    (void)state;
    at_dataset *set = calloc(1, sizeof *set);
    assert_non_null(set);
    assert_int_equal(at_store_reserve(set, 1, BYTES, AT_ELEMENT_BYTE, &fail), AT_OK);
    for (int i = 0; i < BYTES; i++) set->rows[i] = (unsigned char)i;
    set->classes = 1;
    set->shape = (at_image_shape){1, 16, 16};
    at_prep *prep = make("raw", set->shape);
    assert_int_equal(at_prep_fit(prep, set, &fail), AT_OK);
    float *scratch = malloc(at_prep_scratch_size(prep) * sizeof *scratch);
    assert_non_null(scratch);
    at_prep_rows(prep, out, &(uint32_t){0}, set, &(uint64_t){0}, 1, scratch, NULL);
    for (int i = 0; i < BYTES; i++) assert_true(out[i] == (float)i);
    free(scratch);
    at_prep_free(prep);
    at_dataset_free(set);
}

static void raw_needs_bytes_and_comes_first(void **state)
{
    (void)state;
    at_prep    *prep;
    at_dataset *set = set_of_one(4);
    assert_int_equal(at_prep_new("flip,raw", (at_image_shape){1, 2, 2}, &prep, &fail),
                     AT_ERR_USAGE);
    assert_non_null(strstr(fail.hint, "first"));
    assert_int_equal(at_prep_new("raw:2", (at_image_shape){1, 2, 2}, &prep, &fail), AT_ERR_USAGE);
    prep = make("raw", (at_image_shape){1, 1, 4});
    assert_int_equal(at_prep_fit(prep, set, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "bytes"));
    at_prep_free(prep);
    at_dataset_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow_the_list),
        cmocka_unit_test(impossible_steps_are_refused_with_both_shapes),
        cmocka_unit_test(padding_is_zeros_or_mirrored),
        cmocka_unit_test(for_testing_a_crop_is_the_center_and_nothing_flips),
        cmocka_unit_test(for_training_one_copy_equals_the_separate_steps),
        cmocka_unit_test(a_sample_depends_on_seed_walk_and_position_only),
        cmocka_unit_test(crops_and_flips_are_evenly_spread),
        cmocka_unit_test(resizing_is_bilinear),
        cmocka_unit_test(color_and_grey),
        cmocka_unit_test(given_numbers_normalise_each_channel),
        cmocka_unit_test(each_image_gets_mean_0_and_deviation_1),
        cmocka_unit_test(statistics_are_those_of_the_training_set),
        cmocka_unit_test(constant_numbers_are_not_divided_by_zero),
        cmocka_unit_test(rows_are_prepared),
        cmocka_unit_test(a_list_equals_its_separate_steps),
        cmocka_unit_test(the_text_of_a_fitted_list_reproduces_it),
        cmocka_unit_test(raw_gives_back_every_byte_exactly),
        cmocka_unit_test(raw_needs_bytes_and_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

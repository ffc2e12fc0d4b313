/* Real-valued labels: reading them, matching sets, synthetic-linear. */
#include "open_sets.h"

#include <math.h>

#include "base/label.h"
#include "data/draw/shards.h"
#include "data/formats/synthetic.h"
#include "data/set/describe.h"
#include "data/set/store.h"

static const at_read_options REAL = {.real_labels = true};

static at_dataset *open_real(const char *name, at_split split)
{
    at_dataset *set = open_set_as(name, split, &REAL);
    assert_int_equal(at_dataset_classes(set), 0);
    return set;
}

static void check_label(const at_dataset *set, uint64_t index, float wanted)
{
    float got = at_label_real(at_dataset_label(set, index));
    if (got != wanted) fail_msg("label %llu is %g", (unsigned long long)index, (double)got);
}

static void csv_labels_are_numbers(void **state)
{
    (void)state;
    write_text("x.csv", "size,rooms,price\n70,3,-1.5e2\n42,2,0.25\n10,1,0.25\n");
    at_dataset *set = open_real("x.csv", AT_SPLIT_TRAIN);
    float       x[6];
    uint32_t    labels[3];
    assert_int_equal(at_dataset_features(set), 2);
    assert_string_equal(at_store_name(set, 0), "size");
    check_label(set, 0, -150);
    at_dataset_rows(set, x, labels, (uint64_t[]){0, 1, 2}, 3);
    assert_memory_equal(x, ((float[]){70, 3, 42, 2, 10, 1}), sizeof x);
    assert_true(at_label_real(labels[1]) == 0.25f);
    at_dataset_free(set);
    at_read_options other = {.real_labels = true, .label = "size"};
    set = open_set_as("x.csv", AT_SPLIT_TRAIN, &other);
    check_label(set, 1, 42);
    at_dataset_free(set);
}

static void csv_labels_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const labels[] = {"cheap", "", "nan", "inf", "1e999", "1,5", "0x10"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char text[100];
        snprintf(text, sizeof text, "size,price\n70,3\n42,\"%s\"\n", labels[i]);
        write_text("x.csv", text);
        refuse_set_as("x.csv", &REAL, "line 3");
        assert_non_null(strstr(fail.text, "price"));
    }
}

static void csv_test_columns_are_matched_by_name(void **state)
{
    (void)state;
    write_text("train.csv", "color,size,price\nred,1,10\nblue,2,20\n");
    write_text("test.csv", "color,size,price\nblue,5,7.5\ngreen,3,8\n");
    at_dataset *train = open_real("train.csv", AT_SPLIT_TRAIN);
    at_dataset *test = open_real("test.csv", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_OK);
    at_sparse_row row = at_dataset_sparse_row(test, 0); /* blue is the first feature of both */
    assert_int_equal(row.count, 2);
    assert_int_equal(row.indices[0], 0);
    assert_int_equal(at_dataset_sparse_row(test, 1).count, 1); /* green is unknown */
    check_label(test, 0, 7.5f);
    at_dataset_free(train);
    at_dataset_free(test);
}

static void libsvm_labels_are_numbers(void **state)
{
    (void)state;
    write_text("rows", "-0.5 1:1 3:2\n1e3 2:1\n7 qid:3 1:4 # seven\n");
    at_dataset *set = open_real("libsvm:rows", AT_SPLIT_TRAIN);
    assert_true(at_dataset_is_sparse(set));
    assert_int_equal(at_dataset_features(set), 3);
    check_label(set, 0, -0.5f);
    check_label(set, 1, 1000);
    check_label(set, 2, 7);
    check_row(set, 0, at_label_of_real(-0.5f), "0:1 2:2");
    at_dataset_free(set);
    refuse_set("libsvm:rows", "not an integer"); /* as classes */
    assert_non_null(strstr(fail.hint, "linear"));
    write_text("rows", "nan 1:1\n");
    refuse_set_as("libsvm:rows", &REAL, "label");
    write_text("rows", "1e99 1:1\n");
    refuse_set_as("libsvm:rows", &REAL, "label");
}

static void write_npy(const char *path, const char *type, const char *shape, const void *numbers,
                      size_t size)
{
    char   bytes[512] = {0};
    size_t head = 128;
    int    used = snprintf(bytes + 10, head - 10,
                           "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    memcpy(bytes, "\x93NUMPY\x01", 7);
    bytes[8] = (char)(head - 10);
    memset(bytes + 10 + used, ' ', head - 11 - (size_t)used);
    bytes[head - 1] = '\n';
    memcpy(bytes + head, numbers, size);
    write_raw(path, bytes, head + size);
}

static void numpy_labels_are_numbers_of_any_type(void **state)
{
    (void)state;
    const float   x[] = {1, 2, 3, 4};
    const double  doubles[] = {-1.5, 1e-3};
    const int64_t longs[] = {-7, 12};
    write_npy("x.npy", "<f4", "2, 2", x, sizeof x);
    write_npy("y.npy", "<f8", "2,", doubles, sizeof doubles);
    at_dataset *set = open_real("x.npy,y.npy", AT_SPLIT_TRAIN);
    check_label(set, 0, -1.5f);
    check_label(set, 1, 1e-3f);
    at_dataset_free(set);
    write_npy("y.npy", "<i8", "2, 1", longs, sizeof longs);
    set = open_real("x.npy,y.npy", AT_SPLIT_TRAIN);
    check_label(set, 0, -7);
    at_dataset_free(set);
    const double wrong[] = {1, (double)INFINITY};
    write_npy("y.npy", "<f8", "2,", wrong, sizeof wrong);
    assert_int_equal(at_dataset_open_as("x.npy,y.npy", AT_SPLIT_TRAIN, &REAL, &set, &fail),
                     AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "y.npy: byte 136: element 1 is not a finite number"));
}

static void other_formats_have_only_classes(void **state)
{
    (void)state;
    at_dataset *set;
    assert_int_equal(at_dataset_open_as("synthetic:60,4,3", AT_SPLIT_TRAIN, &REAL, &set, &fail),
                     AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "classes"));
    assert_non_null(strstr(fail.hint, "synthetic-linear"));
}

static void real_labels_and_classes_do_not_match(void **state)
{
    (void)state;
    write_text("x.csv", "a,b,c,label\n1,2,3,4\n5,6,7,8\n");
    at_dataset *real = open_real("x.csv", AT_SPLIT_TRAIN);
    at_dataset *classes = open_set("x.csv", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_match(real, classes, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "real numbers in the train set"));
    at_shards shards;
    assert_int_equal(at_shards_init(&shards, AT_SHARD_BY_CLASS, real, 2, 1, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "classes"));
    at_dataset_free(real);
    at_dataset_free(classes);
}

/* The weights are those that the format draws; the data must follow them up to the noise. */
static void synthetic_labels_are_a_linear_function_and_noise(void **state)
{
    enum { COUNT = 2000, FEATURES = 7 };
    const double noise = 0.5;
    (void)state;
    for (int split = AT_SPLIT_TRAIN; split <= AT_SPLIT_TEST; split++) {
        at_dataset *set = open_real("synthetic-linear:2000,7,0.5", (at_split)split);
        at_rng      rng = at_rng_stream(1, 48, AT_RNG_PURPOSE_SYNTHETIC, 0);
        double      w[FEATURES], squares = 0;
        uint64_t    count = at_dataset_count(set);
        assert_int_equal(count, split == AT_SPLIT_TRAIN ? COUNT : COUNT / 5);
        for (int f = 0; f < FEATURES; f++) w[f] = at_synthetic_normal(&rng);
        for (uint64_t i = 0; i < count; i++) {
            float    x[FEATURES];
            uint32_t label;
            at_dataset_rows(set, x, &label, &i, 1);
            double off = (double)at_label_real(label);
            for (int f = 0; f < FEATURES; f++) off -= w[f] * (double)x[f];
            squares += off * off;
        }
        double deviation = sqrt(squares / (double)count);
        assert_true(fabs(deviation / noise - 1) < 0.1);
        at_dataset_free(set);
    }
}

static void synthetic_names_are_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "synthetic-linear:",
        "synthetic-linear:5",
        "synthetic-linear:5,3",
        "synthetic-linear:5,3,x",
        "synthetic-linear:0,3,1",
        "synthetic-linear:5,0,1",
        "synthetic-linear:5,3,-1",
        "synthetic-linear:5,3,nan",
        "synthetic-linear:5,3,1,1",
        "synthetic-linear:5,3,1e30",
        "synthetic-linear:99999999,1048576,1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuse(wrong[i], AT_ERR_USAGE, wrong[i], "synthetic-linear:ROWS,FEATURES,NOISE");
}

static void the_description_has_the_range_of_the_labels(void **state)
{
    (void)state;
    write_text("x.csv", "a,label\n1,-2\n1,0\n1,2\n1,4\n");
    at_description d;
    assert_int_equal(at_describe("x.csv", &REAL, &d, &fail), AT_OK);
    assert_true(d.real_labels);
    assert_int_equal(d.classes, 0);
    assert_true(d.real[AT_SPLIT_TRAIN].min == -2 && d.real[AT_SPLIT_TRAIN].max == 4);
    assert_true(d.real[AT_SPLIT_TRAIN].mean == 1);
    assert_true(fabs(d.real[AT_SPLIT_TRAIN].deviation - sqrt(5)) < 1e-12);
    at_describe_deinit(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(csv_labels_are_numbers, empty_home),
        cmocka_unit_test_setup(csv_labels_that_are_no_numbers_are_refused, empty_home),
        cmocka_unit_test_setup(csv_test_columns_are_matched_by_name, empty_home),
        cmocka_unit_test_setup(libsvm_labels_are_numbers, empty_home),
        cmocka_unit_test_setup(numpy_labels_are_numbers_of_any_type, empty_home),
        cmocka_unit_test_setup(other_formats_have_only_classes, empty_home),
        cmocka_unit_test_setup(real_labels_and_classes_do_not_match, empty_home),
        cmocka_unit_test_setup(synthetic_labels_are_a_linear_function_and_noise, empty_home),
        cmocka_unit_test_setup(synthetic_names_are_checked, empty_home),
        cmocka_unit_test_setup(the_description_has_the_range_of_the_labels, empty_home),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

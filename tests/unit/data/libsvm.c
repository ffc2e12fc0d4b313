/* LIBSVM text. */
#include "open_sets.h"

#include "../base/comma_locale.h"
#include "base/machine.h"
#include "data/files/decimal.h"
#include "data/set/describe.h"
#include "data/set/store.h"

#include <float.h>
#include <math.h>

static void a_file_is_read(void **state)
{
    (void)state;
    write_text("rows", "+1 1:0.5 3:-2e-1 7:1\n-1 2:1\n-1\n+1 7:+3.25\n");
    at_dataset *set = open_sparse("rows", AT_SPLIT_TRAIN);
    assert_string_equal(at_dataset_format(set), "libsvm");
    assert_int_equal(at_dataset_count(set), 4);
    assert_int_equal(at_dataset_features(set), 7);
    assert_int_equal(at_dataset_classes(set), 2);
    assert_string_equal(at_store_name(set, 0), "-1");
    assert_string_equal(at_store_name(set, 1), "1");
    check_row(set, 0, 1, "0:0.5 2:-0.2 6:1");
    check_row(set, 1, 0, "1:1");
    check_row(set, 2, 0, "");
    check_row(set, 3, 1, "6:3.25");
    at_dataset_free(set);
}

static void unusual_but_valid_lines_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *row;
    } cases[] = {
        {"1 1:1 2:2", "0:1 1:2"},             /* no line feed at the end */
        {"1 1:1 2:2   \n", "0:1 1:2"},        /* blanks at the end */
        {"1 1:1 2:2\r\n", "0:1 1:2"},         /* Windows line ends */
        {"\n\n  \n1 1:1 2:2\n\n", "0:1 1:2"}, /* blank lines */
        {"# a comment\n1 1:1 2:2 # another 9:9\n", "0:1 1:2"},
        {"1\t1:1\t\t2:2\n", "0:1 1:2"},
        {"+1 1:1 2:2\n", "0:1 1:2"},
        {"1.0 1:1 2:2\n", "0:1 1:2"},
        {"1 qid:7 1:1 2:2\n", "0:1 1:2"},
        {"1 0:1 1:2\n", "0:1 1:2"}, /* indices from 0 on */
        {"1 1:1.000 2:+2.0e0\n", "0:1 1:2"},
        {"1 1:1 2:2 3:0\n", "0:1 1:2"}, /* zeros are dropped */
        {"1 1:1 2:.2e1\n", "0:1 1:2"},
        {"1 01:1 002:2.\n", "0:1 1:2"},
        {"1 1:1 2:2#\n", "0:1 1:2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("rows", cases[i].text);
        at_dataset *set = open_sparse("libsvm:rows", AT_SPLIT_TRAIN);
        assert_int_equal(at_dataset_count(set), 1);
        check_row(set, 0, 1, cases[i].row);
        at_dataset_free(set);
    }
}

static void invalid_lines_are_reported_with_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *what;
    } cases[] = {
        {"1 1:1\n1 2:1 2:1\n", "line 2, column 7", "occurs twice"},
        {"1 3:1 2:1\n", "line 1, column 7", "smaller"},
        {"1 1:x\n", "line 1, column 5", "not a finite number"},
        {"1 1:\n", "line 1, column 5", "number after"},
        {"1 1\n", "line 1, column 4", "':'"},
        {"1 a:1\n", "line 1, column 3", "INDEX:VALUE"},
        {"1 -1:1\n", "line 1, column 3", "negative"},
        {"1 1:1e999\n", "line 1, column 5", "not a finite number"},
        {"1 1:nan\n", "line 1, column 5", "not a finite number"},
        {"1 1:inf\n", "line 1, column 5", "not a finite number"},
        {"1 1:1x\n", "line 1, column 6", "'x'"},
        {"1 1:1e\n", "line 1, column 5", "not a finite number"},
        {"1 2147483648:1\n", "line 1, column 3", "too large"},
        {"1 99999999999999999999999:1\n", "line 1, column 3", "too large"},
        {"1:1 2:1\n", "line 1, column 1", "no label"},
        {"x 1:1\n", "line 1, column 1", "label"},
        {"1 1:1\n\n# comment\n0.5 1:1\n", "line 4, column 1", "integer"},
        {"1,2 1:1\n", "line 1, column 2", "several labels"},
        {"1 qid:x 1:1\n", "line 1, column 3", "qid"},
        {"1e30 1:1\n", "line 1, column 1", "integer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("rows", cases[i].text);
        refuse_set("libsvm:rows", cases[i].where);
        refuse_set("libsvm:rows", cases[i].what);
    }
    write_text("rows", "# nothing\n\n");
    refuse_set("libsvm:rows", "no rows found");
}

/* Labels become classes in ascending order. */
static void labels_of_many_classes_keep_their_order(void **state)
{
    (void)state;
    write_text("rows", "7 1:1\n-3 1:1\n100 1:1\n7 1:1\n");
    at_dataset *set = open_sparse("rows", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_classes(set), 3);
    assert_int_equal(at_dataset_label(set, 0), 1);
    assert_int_equal(at_dataset_label(set, 1), 0);
    assert_int_equal(at_dataset_label(set, 2), 2);
    assert_string_equal(at_store_name(set, 2), "100");
    at_dataset_free(set);

    FILE *file = fopen("many", "wb");
    for (int i = 0; i <= 65536; i++) fprintf(file, "%d 1:1\n", i);
    fclose(file);
    refuse_set("many", "more than 65536 distinct labels");
}

/* A test file may lack features and classes of the train file, and have others. */
static void a_test_file_takes_over_features_and_classes(void **state)
{
    (void)state;
    write_text("rows", "1 1:1 5:1\n2 2:1\n3 3:1\n");
    write_text("rows.t", "3 1:1 2:1\n1 4:1 9:1\n");
    assert_true(at_dataset_has("rows", AT_SPLIT_TEST));
    at_dataset *train = open_sparse("rows", AT_SPLIT_TRAIN);
    at_dataset *test = open_sparse("rows", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_features(test), 9);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_OK);
    assert_int_equal(at_dataset_features(test), 5);
    assert_int_equal(at_dataset_classes(test), 3);
    check_row(test, 0, 2, "0:1 1:1");
    check_row(test, 1, 0, "3:1");
    at_dataset_free(test);

    write_text("other", "4 1:1\n");
    test = open_sparse("other", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "'4'"));
    at_dataset_free(test);
    at_dataset_free(train);
}

/* The train file decides whether indices begin with 0. */
static void a_test_file_counts_features_like_its_train_file(void **state)
{
    (void)state;
    write_text("zero", "1 0:1 2:1\n-1 1:1\n");
    write_text("zero.t", "1 1:1 2:1\n");
    write_text("one", "1 1:1 2:1\n-1 1:1\n");
    write_text("one.t", "1 0:5 2:1\n");
    at_dataset *train = open_sparse("zero", AT_SPLIT_TRAIN);
    at_dataset *test = open_sparse("zero", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_OK);
    check_row(test, 0, 1, "1:1 2:1");
    at_dataset_free(train);
    at_dataset_free(test);
    train = open_sparse("one", AT_SPLIT_TRAIN);
    test = open_sparse("one", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_OK);
    check_row(test, 0, 1, "1:1");
    at_dataset_free(train);
    at_dataset_free(test);
}

static void packed_files_are_found_beside_each_other(void **state)
{
    (void)state;
    write_gz("rows.gz", "1 1:1\n", 6);
    write_text("rows.t", "1 1:2\n");
    write_text("train.txt", "1 1:3\n");
    write_text("test.txt", "1 1:4\n");
    at_dataset *set = open_sparse("rows.gz", AT_SPLIT_TEST);
    check_row(set, 0, 1, "0:2");
    at_dataset_free(set);
    set = open_sparse("train.txt", AT_SPLIT_TEST);
    check_row(set, 0, 1, "0:4");
    at_dataset_free(set);
    set = open_sparse("test.txt", AT_SPLIT_TEST); /* a single file serves as either split */
    check_row(set, 0, 1, "0:4");
    at_dataset_free(set);
    assert_false(at_dataset_has("test.txt", AT_SPLIT_TEST));
}

/* With any number of threads and blocks the result is the same. */
static void a_large_file_is_read_completely_and_in_order(void **state)
{
    (void)state;
    enum { ROWS = 120000, NUMBERS = 10 };
    FILE *file = fopen("rows", "wb");
    assert_non_null(file);
    for (int i = 0; i < ROWS; i++) {
        fprintf(file, i % 2 ? "+1" : "-1");
        for (int k = 0; k < NUMBERS; k++)
            fprintf(file, " %d:%d.%d", 1 + k * 1000 + i % 1000, i % 977, k);
        fputc('\n', file);
    }
    assert_int_equal(fclose(file), 0);
    at_dataset *set = open_sparse("rows", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_count(set), ROWS);
    for (int i = 0; i < ROWS; i++) {
        at_sparse_row row = at_dataset_sparse_row(set, (uint64_t)i);
        if (row.count != NUMBERS - (i % 977 == 0)) fail_msg("row %d has %u numbers", i, row.count);
        for (uint32_t n = 0; n < row.count; n++) {
            int k = (int)n + (i % 977 == 0);
            assert_int_equal(row.indices[n], k * 1000 + i % 1000);
            assert_true(row.values[n] == (float)((double)(i % 977 * 10 + k) / 10.0));
        }
        assert_int_equal(at_dataset_label(set, (uint64_t)i), i % 2);
    }
    at_dataset_free(set);

    file = fopen("rows", "ab");
    fprintf(file, "+1 3:1 x\n");
    fclose(file);
    refuse_set("rows", "line 120001, column 8");
}

static void one_line_may_be_very_long(void **state)
{
    (void)state;
    enum { NUMBERS = 3 << 20 };
    FILE *file = fopen("rows", "wb");
    fprintf(file, "1");
    for (int i = 1; i <= NUMBERS; i++) fprintf(file, " %d:1", i);
    fclose(file);
    at_dataset *set = open_sparse("rows", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_sparse_row(set, 0).count, NUMBERS);
    assert_int_equal(at_dataset_check_dense(set, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.hint, "sparse-lr"));
    at_dataset_free(set);
}

static void sparse_rows_can_be_read_as_dense_ones(void **state)
{
    (void)state;
    write_text("rows", "1 1:1 3:-2\n0 2:5\n");
    at_dataset *set = open_sparse("rows", AT_SPLIT_TRAIN);
    float       x[6];
    uint32_t    labels[2];
    assert_int_equal(at_dataset_check_dense(set, &fail), AT_OK);
    at_dataset_prefetch(set, (uint64_t[]){1, 0}, 2);
    at_dataset_rows(set, x, labels, (uint64_t[]){1, 0}, 2);
    assert_memory_equal(x, ((float[]){0, 5, 0, 1, 0, -2}), sizeof x);
    assert_memory_equal(labels, ((uint32_t[]){0, 1}), sizeof labels);
    at_dataset_free(set);
}

/* A float printed in any format is parsed to the same float, and a printed double to the nearest
 * float. */
/* The real set, if available. */
static void a9a_is_complete(void **state)
{
    (void)state;
    const char    *path = getenv("ANYTIME_A9A");
    at_description d;
    if (!path) {
        print_message("skipped: set ANYTIME_A9A to the path of a9a (or a9a.xz)\n");
        skip();
    }
    assert_int_equal(at_describe(path, NULL, &d, &fail), AT_OK);
    assert_int_equal(d.count[AT_SPLIT_TRAIN], 32561);
    assert_int_equal(d.count[AT_SPLIT_TEST], 16281);
    assert_int_equal(d.features, 123);
    assert_int_equal(d.labels[AT_SPLIT_TRAIN][1], 7841);
    assert_int_equal(d.labels[AT_SPLIT_TEST][1], 3846);
    at_describe_deinit(&d);
}

/* A number half-way between two floats is left to the C library. */
static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    static const char half_way[] = "0.500000029802322387695312500000000001";
    float             value = 0;
    if (!comma_locale_set()) {
        print_message("skipped: no locale with a decimal comma, and localedef cannot build one\n");
        skip();
    }
    const char *end = at_decimal_float(half_way, &value);
    setlocale(LC_NUMERIC, "C");
    assert_ptr_equal(end, half_way + strlen(half_way));
    assert_true(value == 0x1.000002p-1f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_file_is_read, empty_home),
        cmocka_unit_test_setup(unusual_but_valid_lines_are_read, empty_home),
        cmocka_unit_test_setup(invalid_lines_are_reported_with_line_and_column, empty_home),
        cmocka_unit_test_setup(labels_of_many_classes_keep_their_order, empty_home),
        cmocka_unit_test_setup(a_test_file_takes_over_features_and_classes, empty_home),
        cmocka_unit_test_setup(a_test_file_counts_features_like_its_train_file, empty_home),
        cmocka_unit_test_setup(packed_files_are_found_beside_each_other, empty_home),
        cmocka_unit_test_setup(a_large_file_is_read_completely_and_in_order, empty_home),
        cmocka_unit_test_setup(one_line_may_be_very_long, empty_home),
        cmocka_unit_test_setup(sparse_rows_can_be_read_as_dense_ones, empty_home),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(a9a_is_complete),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

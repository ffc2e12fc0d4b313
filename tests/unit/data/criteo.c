/* Criteo click logs. */
#include "open_sets.h"

#include <math.h>

/* A line: the label, the first two numbers (the others are 7), the first category (the others
 * are "x"). */
static const char *line(const char *label, const char *one, const char *two, const char *category)
{
    static char text[512];
    at_text     t = at_text_in(text, sizeof text);
    at_text_add(&t, "%s\t%s\t%s", label, one, two);
    for (int i = 2; i < 13; i++) at_text_add(&t, "\t7");
    at_text_add(&t, "\t%s", category);
    for (int i = 1; i < 26; i++) at_text_add(&t, "\tx");
    at_text_add(&t, "\n");
    return text;
}

static float at(const at_dataset *set, uint64_t row, uint32_t index)
{
    at_sparse_row r = at_dataset_sparse_row(set, row);
    for (uint32_t i = 0; i < r.count; i++)
        if (r.indices[i] == index) return r.values[i];
    return 0.0f;
}

static void numbers_are_scaled_and_missing_ones_are_marked(void **state)
{
    (void)state;
    write_text("clicks", line("1", "0", "", "68fd1e64"));
    at_dataset *set = open_sparse("clicks", AT_SPLIT_TRAIN);
    assert_string_equal(at_dataset_format(set), "criteo");
    assert_int_equal(at_dataset_features(set), 1 << 20);
    assert_int_equal(at_dataset_classes(set), 2);
    assert_int_equal(at_dataset_label(set, 0), 1);
    assert_true(at(set, 0, 0) == 0.0f);
    assert_true(at(set, 0, 1) == 0.0f);
    assert_true(at(set, 0, 14) == 1.0f); /* the second number is missing */
    assert_true(at(set, 0, 13) == 0.0f);
    assert_true(at(set, 0, 2) == (float)log1p(7.0));
    at_dataset_free(set);

    write_text("clicks", line("0", "-2", "1000000", ""));
    set = open_sparse("clicks", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_label(set, 0), 0);
    assert_true(at(set, 0, 0) == (float)-log1p(2.0));
    assert_true(at(set, 0, 1) == (float)log1p(1e6));
    at_dataset_free(set);
}

static void categories_are_hashed_by_column_and_text(void **state)
{
    (void)state;
    char both[1024];
    snprintf(both, sizeof both, "%s", line("1", "1", "1", "a"));
    snprintf(both + strlen(both), sizeof both - strlen(both), "%s", line("0", "1", "1", "b"));
    write_text("clicks", both);
    at_dataset   *set = open_sparse("clicks", AT_SPLIT_TRAIN);
    at_sparse_row a = at_dataset_sparse_row(set, 0), b = at_dataset_sparse_row(set, 1);
    uint32_t      differ = 0;
    assert_int_equal(a.count, 39); /* the same text in another column is another feature */
    assert_int_equal(b.count, 39);
    for (uint32_t i = 0; i < a.count; i++) {
        bool in_b = false;
        for (uint32_t k = 0; k < b.count; k++) in_b |= b.indices[k] == a.indices[i];
        differ += !in_b;
        assert_true(a.indices[i] < 13 || a.indices[i] >= 26);
    }
    assert_int_equal(differ, 1);
    at_dataset_free(set);
}

/* Trained models depend on the hashes: they must never change. */
static void hashes_never_change(void **state)
{
    (void)state;
    write_text("clicks", line("1", "1", "1", "68fd1e64"));
    at_dataset   *set = open_sparse("clicks", AT_SPLIT_TRAIN);
    at_sparse_row row = at_dataset_sparse_row(set, 0);
    uint64_t      sum = 0;
    for (uint32_t i = 13; i < row.count; i++) sum = sum * 31 + row.indices[i];
    assert_int_equal(sum, 0x7ea153399cd86fca);
    at_dataset_free(set);
}

static void colliding_features_add_up(void **state)
{
    (void)state;
    write_text("clicks", line("1", "1", "1", "a"));
    at_dataset   *set = open_set_as("clicks", AT_SPLIT_TRAIN, &(at_read_options){.hash_bits = 8});
    at_sparse_row row = at_dataset_sparse_row(set, 0);
    float         sum = 0.0f;
    assert_int_equal(at_dataset_features(set), 256);
    for (uint32_t i = 13; i < row.count; i++) sum += row.values[i];
    assert_true(sum == 26.0f);
    assert_true(row.count < 39);
    at_dataset_free(set);
    at_dataset *none = NULL;
    assert_int_equal(at_dataset_open_as("clicks", AT_SPLIT_TRAIN,
                                        &(at_read_options){.hash_bits = 40}, &none, &fail),
                     AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "--hash-bits"));
}

static void invalid_lines_are_reported_with_line_and_column(void **state)
{
    (void)state;
    char two[1024];
    refuse_set((write_text("clicks", line("2", "1", "1", "a")), "criteo:clicks"),
               "line 1, column 1: the label is not 0 or 1");
    refuse_set((write_text("clicks", line("", "1", "1", "a")), "criteo:clicks"), "label");
    refuse_set((write_text("clicks", line("1", "1.5", "1", "a")), "criteo:clicks"),
               "line 1, column 3: field 2 is not an integer");
    refuse_set((write_text("clicks", line("1", "99999999999999999999", "1", "a")), "clicks"),
               "not an integer");
    refuse_set((write_text("clicks", line("1", "1", "1", "a\tb")), "criteo:clicks"),
               "more than 40 fields");
    refuse_set((write_text("clicks", "1\t2\t3\n"), "criteo:clicks"), "only 3 of 40 fields");
    refuse_set((write_text("clicks", "\n"), "criteo:clicks"), "no rows found");
    snprintf(two, sizeof two, "%s", line("1", "1", "1", "a"));
    snprintf(two + strlen(two), sizeof two - strlen(two), "0\t\t");
    write_text("clicks", two);
    refuse_set("clicks", "line 2, column 4: the line has only 3 of 40 fields");
}

static void windows_line_ends_and_a_missing_last_one_are_accepted(void **state)
{
    (void)state;
    char        text[512];
    const char *plain = line("1", "1", "1", "a");
    write_text("clicks", plain);
    at_dataset *a = open_sparse("clicks", AT_SPLIT_TRAIN);
    snprintf(text, sizeof text, "%.*s\r\n", (int)strlen(plain) - 1, plain);
    write_text("clicks", text);
    at_dataset *b = open_sparse("clicks", AT_SPLIT_TRAIN);
    text[strlen(text) - 2] = '\0';
    write_text("clicks", text);
    at_dataset *c = open_sparse("clicks", AT_SPLIT_TRAIN);
    for (uint32_t i = 0; i < 39; i++) {
        uint32_t index = at_dataset_sparse_row(a, 0).indices[i];
        assert_int_equal(at_dataset_sparse_row(b, 0).indices[i], index);
        assert_int_equal(at_dataset_sparse_row(c, 0).indices[i], index);
    }
    at_dataset_free(a);
    at_dataset_free(b);
    at_dataset_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(numbers_are_scaled_and_missing_ones_are_marked, empty_home),
        cmocka_unit_test_setup(categories_are_hashed_by_column_and_text, empty_home),
        cmocka_unit_test_setup(hashes_never_change, empty_home),
        cmocka_unit_test_setup(colliding_features_add_up, empty_home),
        cmocka_unit_test_setup(invalid_lines_are_reported_with_line_and_column, empty_home),
        cmocka_unit_test_setup(windows_line_ends_and_a_missing_last_one_are_accepted, empty_home),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

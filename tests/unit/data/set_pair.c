/* Rows held out for testing. */
#include "data/set/set_pair.h"

#include "open_sets.h"

enum { ROWS = 200 };

/* Row i has the features i and 1, or in a text column "t<i % 7>", and the label i % 3. */
static void write_table(const char *path, bool text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "a,b,label\n");
    for (int i = 0; i < ROWS; i++)
        fprintf(file, text ? "%d,t%d,%d\n" : "%d,1,%d\n", i, text ? i % 7 : i % 3, i % 3);
    assert_int_equal(fclose(file), 0);
}

static at_set_pair open_pair(const char *data, const char *test_data, double split)
{
    at_set_pair pair;
    /* The numbers of the rows would be taken for identifiers. */
    at_read_options every = {.ignore = "none"};
    at_err          err = at_set_pair_open(&pair, data, test_data, split, &every, &fail);
    if (err) fail_msg("%s (%s)", fail.text, fail.hint);
    return pair;
}

/* The number in column a; checks that the label is still that of the row. */
static uint32_t number_of(const at_dataset *set, uint64_t index)
{
    float    x[16];
    uint32_t label;
    assert_true(at_dataset_features(set) <= 16);
    at_dataset_rows(set, x, &label, &index, 1);
    assert_int_equal(label, (uint32_t)x[0] % 3);
    return (uint32_t)x[0];
}

static void every_row_is_in_one_of_the_two_sets(void **state)
{
    (void)state;
    for (int text = 0; text < 2; text++) {
        bool seen[ROWS] = {false};
        write_table("x.csv", text);
        at_set_pair       pair = open_pair("x.csv", NULL, 0.1);
        const at_dataset *sets[] = {pair.train, pair.test};
        assert_int_equal(pair.held_out, ROWS / 10);
        assert_int_equal(at_dataset_is_sparse(pair.train), text);
        for (size_t s = 0; s < 2; s++)
            for (uint64_t i = 0; i < at_dataset_count(sets[s]); i++) {
                uint32_t number = number_of(sets[s], i);
                assert_true(number < ROWS && !seen[number]);
                seen[number] = true;
            }
        for (size_t i = 0; i < ROWS; i++) assert_true(seen[i]);
        at_set_pair_close(&pair);
    }
}

static void the_same_rows_are_held_out_each_time(void **state)
{
    (void)state;
    write_table("x.csv", false);
    at_set_pair one = open_pair("x.csv", NULL, 0.25), two = open_pair("x.csv", NULL, 0.25);
    assert_int_equal(one.held_out, ROWS / 4);
    for (uint64_t i = 0; i < one.held_out; i++)
        assert_int_equal(number_of(one.test, i), number_of(two.test, i));
    at_set_pair_close(&one);
    at_set_pair_close(&two);
}

static void a_test_set_of_its_own_is_used_instead(void **state)
{
    (void)state;
    write_table("train.csv", false);
    write_table("other.csv", false);
    at_set_pair other = open_pair("train.csv", "other.csv", 0.1);
    assert_int_equal(other.held_out, 0);
    assert_int_equal(at_dataset_count(other.train), ROWS);
    at_set_pair_close(&other);
    write_table("test.csv", false);
    at_set_pair beside = open_pair("train.csv", NULL, 0.1);
    assert_int_equal(beside.held_out, 0);
    assert_false(beside.tests_on_train);
    at_set_pair_close(&beside);
}

static void without_a_share_the_training_rows_are_tested_and_a_note_says_so(void **state)
{
    (void)state;
    char    text[400];
    at_text notes = at_text_in(text, sizeof text);
    write_table("x.csv", false);
    at_set_pair pair = open_pair("x.csv", NULL, 0);
    assert_true(pair.tests_on_train);
    assert_int_equal(at_dataset_count(pair.test), ROWS);
    at_set_pair_note(&pair, "x.csv", &notes);
    assert_non_null(strstr(text, "training rows"));
    at_set_pair_close(&pair);
}

static void a_single_row_cannot_be_split(void **state)
{
    (void)state;
    at_set_pair pair;
    write_text("x.csv", "a,label\n1,0\n");
    assert_int_equal(at_set_pair_open(&pair, "x.csv", NULL, 0.1, NULL, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.hint, "--test-split 0"));
    assert_null(pair.train);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_row_is_in_one_of_the_two_sets, empty_home),
        cmocka_unit_test_setup(the_same_rows_are_held_out_each_time, empty_home),
        cmocka_unit_test_setup(a_test_set_of_its_own_is_used_instead, empty_home),
        cmocka_unit_test_setup(without_a_share_the_training_rows_are_tested_and_a_note_says_so,
                               empty_home),
        cmocka_unit_test_setup(a_single_row_cannot_be_split, empty_home),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

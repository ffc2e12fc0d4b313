/* CSV files with a header. */
#include "open_sets.h"

#include "data/set/store.h"

#include <sys/stat.h>

static void numbers_become_dense_floats(void **state)
{
    (void)state;
    write_text("x.csv", "height,width,label\n1.5,2,b\n-3,0,a\n1e3,.5,b\n");
    at_dataset *set = open_set_as("x.csv", AT_SPLIT_TRAIN, NULL);
    float       x[6];
    uint32_t    labels[3];
    assert_string_equal(at_dataset_format(set), "csv");
    assert_false(at_dataset_is_sparse(set));
    assert_int_equal(at_dataset_features(set), 2);
    assert_int_equal(at_dataset_classes(set), 2);
    assert_string_equal(at_store_name(set, 0), "a");
    assert_string_equal(at_store_name(set, 3), "width");
    at_dataset_rows(set, x, labels, (uint64_t[]){0, 1, 2}, 3);
    assert_memory_equal(x, ((float[]){1.5f, 2, -3, 0, 1000, 0.5f}), sizeof x);
    assert_memory_equal(labels, ((uint32_t[]){1, 0, 1}), sizeof labels);
    at_dataset_free(set);
}

static void each_distinct_text_becomes_a_feature(void **state)
{
    (void)state;
    write_text("x.csv", "color,size,class\nred,1,no\nblue,0,yes\n,2,no\nred,3,no\n");
    at_dataset *set = open_sparse("x.csv", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_features(set), 4); /* empty, blue, red; size */
    assert_string_equal(at_store_name(set, 2), "color=");
    assert_string_equal(at_store_name(set, 4), "color=red");
    assert_string_equal(at_store_name(set, 5), "size");
    check_row(set, 0, 0, "2:1 3:1");
    check_row(set, 1, 1, "1:1");
    check_row(set, 2, 0, "0:1 3:2");
    check_row(set, 3, 0, "2:1 3:3");
    at_dataset_free(set);
}

static void quotes_blanks_and_separators_are_parsed(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a,b,label\n1,\"x, y\",p\n2,z,q\n",
        "a,b,label\r\n1,\"x, y\",p\r\n2,z,q\r\n",
        "a , b,label\n 1 , \"x, y\" ,p\n2, z, q\n\n\n",
        "\xef\xbb\xbf\"a\",\"b\",\"label\"\n\"1\",\"x, y\",\"p\"\n2,z,q",
        "a;b;label\n1;x, y;p\n2;z;q\n",
        "a\tb\tlabel\n1\tx, y\tp\n2\tz\tq\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_text("x.csv", texts[i]);
        at_dataset *set = open_sparse("x.csv", AT_SPLIT_TRAIN);
        assert_int_equal(at_dataset_count(set), 2);
        assert_string_equal(at_store_name(set, 3), "b=x, y");
        check_row(set, 0, 0, "0:1 1:1");
        check_row(set, 1, 1, "0:2 2:1");
        at_dataset_free(set);
    }
    write_text("x.csv", "a,label\n\"one\ntwo \"\"2\"\"\",p\n1,q\n");
    at_dataset *set = open_sparse("x.csv", AT_SPLIT_TRAIN);
    assert_string_equal(at_store_name(set, 3), "a=one\ntwo \"2\"");
    at_dataset_free(set);
}

/* Fields are found sixteen bytes at a time in a buffer of 128 KiB: here they meet its end at every
 * offset. */
static void fields_are_whole_wherever_the_buffer_ends(void **state)
{
    (void)state;
    enum { ROWS = 4000, SHIFTS = 40 };
    size_t room = (size_t)ROWS * 48 + 200;
    char  *text = malloc(room);
    assert_non_null(text);
    for (int shift = 0; shift < SHIFTS; shift++) {
        size_t used = (size_t)snprintf(text, room, "%0*d,b,label\n", shift + 1, 0);
        for (int i = 0; i < ROWS; i++)
            used += (size_t)snprintf(text + used, room - used, "%d.%0*d,%d,%d\n", i, i % 18 + 1, 5,
                                     i, i & 1);
        assert_true(used < room);
        write_text("x.csv", text);
        at_read_options every = {.header = AT_HEADER_YES, .ignore = "none"};
        at_dataset     *set = open_set_as("x.csv", AT_SPLIT_TRAIN, &every);
        assert_int_equal(at_dataset_count(set), ROWS);
        for (uint64_t i = 0; i < ROWS; i++) {
            float    x[2];
            uint32_t label;
            at_dataset_rows(set, x, &label, &i, 1);
            assert_int_equal((int)x[0], i);
            assert_true(x[1] == (float)i);
            assert_int_equal(label, i & 1);
        }
        at_dataset_free(set);
    }
    free(text);
}

/* A column of numbers is collected as text up to 4096 distinct values: what was read before is the
 * same as what is read afterwards. */
static void numbers_do_not_depend_on_how_many_differ(void **state)
{
    (void)state;
    enum { ROWS = 12000 };
    FILE *file = fopen("x.csv", "wb");
    fprintf(file, "few,many,late,label\n");
    for (int i = 0; i < ROWS; i++)
        fprintf(file, i % 7 ? "%d,%d.5,%d,%d\n" : "\"%d\", %d.5 ,%d,%d\n", i % 3, i / 2,
                i < 8000 ? 4 : i, i & 1);
    fclose(file);
    at_dataset *set = open_set_as("x.csv", AT_SPLIT_TRAIN, NULL);
    assert_int_equal(at_dataset_features(set), 3);
    for (uint64_t i = 0; i < ROWS; i++) {
        float x[3], expected[3] = {(float)(i % 3), (float)(i / 2) + 0.5f, i < 8000 ? 4 : (float)i};
        uint32_t label;
        at_dataset_rows(set, x, &label, &i, 1);
        assert_memory_equal(x, expected, sizeof x);
        assert_int_equal(label, i & 1);
    }
    at_dataset_free(set);
}

/* Above 65536 distinct labels, only numbers can be labels. */
static void many_labels_are_numbers(void **state)
{
    (void)state;
    enum { ROWS = 70000 };
    at_read_options any = {.any_labels = true};
    for (int text = 0; text < 2; text++) {
        FILE *file = fopen("x.csv", "wb");
        fprintf(file, "a,label\n");
        for (int i = 0; i < ROWS; i++) fprintf(file, "%d,%d\n", i % 5, i * 2);
        if (text) fprintf(file, "1,x\n");
        fclose(file);
        at_dataset *set;
        at_err      err = at_dataset_open_as("x.csv", AT_SPLIT_TRAIN, &any, &set, &fail);
        assert_int_equal(err, text ? AT_ERR_FORMAT : AT_OK);
        if (text) assert_non_null(strstr(fail.text, "more than 65536 distinct labels"));
        for (uint64_t i = 0; !text && i < ROWS; i += 1000) {
            float    x, expected = (float)i * 2;
            uint32_t label;
            at_dataset_rows(set, &x, &label, &i, 1);
            assert_memory_equal(&label, &expected, sizeof label);
        }
        at_dataset_free(set);
    }
}

static void the_label_may_be_any_column(void **state)
{
    (void)state;
    write_text("x.csv", "kind,a,b\n10,1,5\n9,2,6\n10,3,5\n");
    at_dataset *last = open_set_as("x.csv", AT_SPLIT_TRAIN, NULL);
    at_dataset *kind = open_set_as("x.csv", AT_SPLIT_TRAIN, &(at_read_options){.label = "kind"});
    assert_string_equal(at_store_name(last, 1), "6");
    assert_string_equal(at_store_name(kind, 0), "9"); /* by value, not by first digit */
    assert_int_equal(at_dataset_label(kind, 0), 1);
    at_dataset_free(last);
    at_dataset_free(kind);
    at_dataset *none = NULL;
    assert_int_equal(at_dataset_open_as("x.csv", AT_SPLIT_TRAIN,
                                        &(at_read_options){.label = "kinds"}, &none, &fail),
                     AT_ERR_USAGE);
    assert_non_null(strstr(fail.hint, "kind"));
}

/* Classes and texts of a test file are renumbered like those of the train file. */
static void a_test_file_is_matched_by_names(void **state)
{
    (void)state;
    write_text("train.csv", "c,n,label\nred,1,x\nblue,1,y\ngreen,1,z\n");
    write_text("test.csv", "c,n,label\ngreen,5,z\npink,6,x\n");
    at_dataset *train = open_sparse("train.csv", AT_SPLIT_TRAIN);
    at_dataset *test = open_sparse("train.csv", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_OK);
    assert_int_equal(at_dataset_features(test), 4);
    check_row(test, 0, 2, "1:1 3:5");
    check_row(test, 1, 0, "3:6"); /* pink is not in the train file */
    at_dataset_free(test);

    write_text("test.csv", "n,label,c\n5,z,green\n6,y,red\n"); /* columns in another order */
    test = open_set_as("train.csv", AT_SPLIT_TEST, &(at_read_options){.label = "label"});
    assert_int_equal(at_dataset_match(train, test, &fail), AT_OK);
    check_row(test, 0, 2, "1:1 3:5");
    check_row(test, 1, 1, "2:1 3:6");
    at_dataset_free(test);

    write_text("test.csv", "c,n,label\ngreen,5,w\n");
    test = open_sparse("test.csv", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "'w'"));
    at_dataset_free(test);
    write_text("test.csv", "c,n,label\n1,5,x\n");
    test = open_set_as("test.csv", AT_SPLIT_TEST, NULL);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_ERR_FORMAT);
    at_dataset_free(test);
    at_dataset_free(train);
}

static void dense_files_must_have_the_same_columns(void **state)
{
    (void)state;
    write_text("a.csv", "p,q,label\n1,2,x\n3,4,y\n");
    write_text("b.csv", "p,r,label\n1,2,y\n");
    at_dataset *a = open_set_as("a.csv", AT_SPLIT_TRAIN, NULL);
    at_dataset *b = open_set_as("b.csv", AT_SPLIT_TEST, NULL);
    assert_int_equal(at_dataset_match(a, b, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "'q'"));
    at_dataset_free(b);
    write_text("b.csv", "p,q,label\n1,2,y\n");
    b = open_set_as("b.csv", AT_SPLIT_TEST, NULL);
    assert_int_equal(at_dataset_match(a, b, &fail), AT_OK);
    assert_int_equal(at_dataset_label(b, 0), 1);
    at_dataset_free(a);
    at_dataset_free(b);
}

static void files_in_a_folder_are_one_set(void **state)
{
    (void)state;
    mkdir("set", 0700);
    write_text("set/part-2.csv", "a,label\n3,x\n");
    write_text("set/part-1.csv", "a,label\n1,x\n2,y\n");
    write_text("set/test.csv", "a,label\n4,y\n");
    write_text("set/_SUCCESS", "");
    at_dataset *set = open_set_as("set", AT_SPLIT_TRAIN, NULL);
    float       x[3];
    uint32_t    labels[3];
    assert_int_equal(at_dataset_count(set), 3);
    at_dataset_rows(set, x, labels, (uint64_t[]){0, 1, 2}, 3);
    assert_memory_equal(x, ((float[]){1, 2, 3}), sizeof x);
    assert_true(at_dataset_has("set", AT_SPLIT_TEST));
    at_dataset_free(set);
    write_text("set/part-3.csv", "b,label\n3,x\n");
    at_dataset *none = NULL;
    assert_int_equal(at_dataset_open("set", AT_SPLIT_TRAIN, &none, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "set/part-3.csv: line 1"));
}

static void invalid_files_are_reported_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"a,b\n1,2\n1\n", "line 3: 1 fields, but the header has 2"},
        {"a,b\n1,2,3\n", "line 2: 3 fields"},
        {"a,b\n1,\"2\n", "line 2: the closing quote of a field is missing"},
        {"a,b\n1,\"2\"x\n", "line 2: field 2 has text after its closing quote"},
        {"a,b\n1,x\n,y\n", "line 3: column 'a' is numeric, but the value is missing here"},
        {"a,b\n1,x\nNaN,y\n", "line 3: column 'a'"},
        {"a,b\n1,\n", "line 2: column 'b' is empty"},
        {"a,b\n", "no rows after the header"},
        {"a\n1\n", "line 1: only one column"},
        {"a,b,b,c\nx,1,2,y\n", "line 1: two features are named 'b'"},
        {"a,a=x,c\nx,1,y\n", "line 1: two features are named 'a=x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text("x.csv", cases[i].text);
        refuse_set("csv:x.csv", cases[i].word);
    }
    FILE *file = fopen("x.csv", "wb");
    fprintf(file, "id,label\n");
    for (int i = 0; i < 5000; i++) fprintf(file, "user-%d,%d\n", i, i % 2);
    fclose(file);
    refuse_set("x.csv", "no column is left besides the label");
    file = fopen("x.csv", "wb");
    fprintf(file, "id,label\n");
    for (int i = 0; i < 5000; i++) fprintf(file, "user-%d,%d\n", i > 0 ? i : 1, i % 2);
    fclose(file);
    refuse_set("x.csv", "column 'id' is text with more than 4096 distinct values");
}

static void the_columns_of_a_set_are_those_of_the_next(void **state)
{
    (void)state;
    write_text("x.csv", "size,color,kind\n1,red,a\n2,blue,b\n4,7,a\n");
    at_dataset *set = open_sparse("x.csv", AT_SPLIT_TRAIN);
    write_text("y.csv", "more,color,size\n?,7,5\n?,green,6\n");
    at_read_options reading = {.columns = at_dataset_columns(set), .unlabeled = true};
    at_dataset     *other;
    assert_int_equal(at_dataset_open_as("y.csv", AT_SPLIT_TEST, &reading, &other, &fail), AT_OK);
    assert_int_equal(at_dataset_features(other), at_dataset_features(set));
    check_row(other, 0, 0, "0:5 1:1"); /* 7 is a color here, although it is a number */
    check_row(other, 1, 0, "0:6");     /* nothing has been green */
    at_dataset_free(other);
    reading.unlabeled = false;
    assert_int_equal(at_dataset_open_as("y.csv", AT_SPLIT_TEST, &reading, &other, &fail),
                     AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "no column 'kind'"));
    at_dataset_free(set);
}

static void a_file_without_suffix_is_recognized_by_content(void **state)
{
    (void)state;
    write_text("data", "a,label\n1,x\n2,y\n");
    at_dataset *set = open_set_as("data", AT_SPLIT_TRAIN, NULL);
    assert_string_equal(at_dataset_format(set), "csv");
    at_dataset_free(set);
    write_text("x.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n");
    refuse_set("x.csv", "git-lfs pointer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(numbers_become_dense_floats, empty_home),
        cmocka_unit_test_setup(each_distinct_text_becomes_a_feature, empty_home),
        cmocka_unit_test_setup(quotes_blanks_and_separators_are_parsed, empty_home),
        cmocka_unit_test_setup(fields_are_whole_wherever_the_buffer_ends, empty_home),
        cmocka_unit_test_setup(numbers_do_not_depend_on_how_many_differ, empty_home),
        cmocka_unit_test_setup(many_labels_are_numbers, empty_home),
        cmocka_unit_test_setup(the_label_may_be_any_column, empty_home),
        cmocka_unit_test_setup(a_test_file_is_matched_by_names, empty_home),
        cmocka_unit_test_setup(dense_files_must_have_the_same_columns, empty_home),
        cmocka_unit_test_setup(files_in_a_folder_are_one_set, empty_home),
        cmocka_unit_test_setup(invalid_files_are_reported_with_their_line, empty_home),
        cmocka_unit_test_setup(the_columns_of_a_set_are_those_of_the_next, empty_home),
        cmocka_unit_test_setup(a_file_without_suffix_is_recognized_by_content, empty_home),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

/* How the argument of --data selects a format. */
#include "files.h"

#include "data/set/describe.h"
#include "data/set/resolve.h"

#include <sys/stat.h>

static at_fail     fail;
static at_resolved found;

static int make_set(void **state)
{
    static idx_bytes images, labels;
    if (empty_home(state)) return 1;
    idx_make(&images, 200, 3, 6u, 2u, 2u);
    idx_make(&labels, 3, 1, 6u);
    mkdir("set", 0777);
    write_raw("set/train-images", images.bytes, images.size);
    write_raw("set/train-labels", labels.bytes, labels.size);
    return 0;
}

static void resolve(const char *name, const char *format, const char *path)
{
    if (at_resolve(name, &found, &fail)) fail_msg("%s: %s", name, fail.text);
    assert_string_equal(found.format->name, format);
    assert_string_equal(found.path, path);
}

static void refuse(const char *name, at_err code, const char *words, const char *hint)
{
    fail = (at_fail){0};
    assert_int_equal(at_resolve(name, &found, &fail), code);
    if (!strstr(fail.text, words)) fail_msg("\"%s\" lacks \"%s\"", fail.text, words);
    if (!strstr(fail.hint, hint)) fail_msg("\"%s\" lacks \"%s\"", fail.hint, hint);
}

static void content_decides_unless_a_format_is_forced(void **state)
{
    (void)state;
    resolve("set", "idx", "set");
    resolve("idx:set", "idx", "set");
    resolve("idx:./set", "idx", "./set");
    resolve("idx:set/train-images,set/train-labels", "idx", "set/train-images,set/train-labels");
    resolve("synthetic:10,2,2", "synthetic", "synthetic:10,2,2");
    resolve("synthetic", "synthetic", "synthetic");
}

static void a_colon_in_a_path_is_only_a_colon(void **state)
{
    (void)state;
    assert_int_equal(rename("set", "a:b"), 0);
    resolve("a:b", "idx", "a:b");
    resolve("./a:b", "idx", "./a:b");
    resolve("idx:a:b", "idx", "a:b");
    assert_int_equal(rename("a:b", "idx:set"), 0);
    resolve("./idx:set", "idx", "./idx:set");
}

static void an_unknown_format_suggests_the_nearest_one(void **state)
{
    (void)state;
    refuse("idc:set", AT_ERR_USAGE, "unknown data format 'idc'", "did you mean idx?");
    refuse("a/b:c", AT_ERR_MISSING, "a/b:c", "data list");
    refuse(":", AT_ERR_MISSING, ":", "data list");
}

static void errors_list_the_expected_files(void **state)
{
    (void)state;
    assert_int_equal(mkdir("empty", 0777), 0);
    refuse("empty", AT_ERR_MISSING, "idx (train-images*", "FORMAT:PATH");
    write_raw("page", "<html>", 6);
    refuse("page", AT_ERR_FORMAT, "a web page", "data list");
    resolve("idx:empty", "idx", "empty"); /* the format reports the error */
    at_dataset *set;
    assert_int_equal(at_dataset_open("idx:empty", AT_SPLIT_TRAIN, &set, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "train-images"));
}

static void a_forced_format_is_described(void **state)
{
    (void)state;
    at_description d;
    assert_int_equal(at_describe("idx:set", NULL, &d, &fail), AT_OK);
    assert_int_equal(d.count[AT_SPLIT_TRAIN], 6);
    assert_string_equal(d.format, "idx");
    at_describe_deinit(&d);
    assert_int_equal(at_describe("idx:set/train-labels", NULL, &d, &fail), AT_OK);
    assert_string_equal(d.form, "labels");
    at_describe_deinit(&d);
    assert_true(at_dataset_has("idx:set", AT_SPLIT_TRAIN));
    assert_false(at_dataset_has("idx:set", AT_SPLIT_TEST));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(content_decides_unless_a_format_is_forced, make_set),
        cmocka_unit_test_setup(a_colon_in_a_path_is_only_a_colon, make_set),
        cmocka_unit_test_setup(an_unknown_format_suggests_the_nearest_one, make_set),
        cmocka_unit_test_setup(errors_list_the_expected_files, make_set),
        cmocka_unit_test_setup(a_forced_format_is_described, make_set),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

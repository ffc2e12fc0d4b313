/* Synthetic click data. */
#include "open_sets.h"

#include "base/file.h"
#include "data/set/store.h"

/* SHA-256 over all labels, indices and values. */
static void hash_set(const at_dataset *set, char hex[65])
{
    uint64_t       numbers = set->starts[set->count];
    size_t         size = set->count * 4 + numbers * 8;
    unsigned char *all = malloc(size);
    assert_non_null(all);
    memcpy(all, set->labels, set->count * 4);
    memcpy(all + set->count * 4, set->indices, numbers * 4);
    memcpy(all + set->count * 4 + numbers * 4, set->values, numbers * 4);
    at_file_sha256(all, size, hex);
    free(all);
}

static void click_data_is_the_same_on_every_machine(void **state)
{
    (void)state;
    char        hex[65], again[65];
    at_dataset *set = open_sparse("synthetic-clicks:1000,65536", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_count(set), 1000);
    assert_int_equal(at_dataset_features(set), 65536);
    assert_int_equal(at_dataset_classes(set), 2);
    hash_set(set, hex);
    at_dataset_free(set);
    assert_string_equal(hex, "47da0bfc9afc955e361f58df51b00690eaf0d416e96c48af01084506a0918c33");
    /* A larger set begins with the same rows; the test split has other rows. */
    set = open_sparse("synthetic-clicks:2000,65536", AT_SPLIT_TRAIN);
    at_dataset *test = open_sparse("synthetic-clicks:5000,65536", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_count(test), 1000);
    hash_set(test, again);
    assert_string_not_equal(hex, again);
    set->count = 1000;
    hash_set(set, again);
    assert_string_equal(hex, again);
    at_dataset_free(set);
    at_dataset_free(test);
}

static void a_row_is_a_third_numbers_and_the_rest_categories(void **state)
{
    (void)state;
    at_dataset *set = open_sparse("synthetic-clicks:20000,1048576", AT_SPLIT_TRAIN);
    uint64_t    clicks = 0;
    uint32_t   *seen = calloc(1 << 20, sizeof *seen);
    for (uint64_t i = 0; i < at_dataset_count(set); i++) {
        at_sparse_row row = at_dataset_sparse_row(set, i);
        assert_int_equal(row.count, 39);
        assert_int_equal(row.indices[12], 12);
        assert_true(row.indices[13] >= 13);
        assert_true(row.values[0] > 0.0f && row.values[13] == 1.0f);
        clicks += at_dataset_label(set, i);
        for (uint32_t k = 13; k < 39; k++) seen[row.indices[k]]++;
    }
    assert_in_range(clicks, 4000, 8000);
    uint32_t often = 0, once = 0;
    for (uint32_t i = 13; i < 1 << 20; i++) {
        often += seen[i] > 1000;
        once += seen[i] == 1;
    }
    assert_true(often >= 26);  /* Zipf: a few are in every row, */
    assert_true(once > 10000); /* many are rare */
    free(seen);
    at_dataset_free(set);
}

static void extreme_sizes_are_accepted(void **state)
{
    (void)state;
    static const char *const names[] = {"synthetic-clicks:1,6,3", "synthetic-clicks:5,2147483648",
                                        "synthetic-clicks:3,33762578,4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        at_dataset *set = open_sparse(names[i], AT_SPLIT_TRAIN);
        at_dataset_free(set);
        set = open_sparse(names[i], AT_SPLIT_TEST);
        assert_true(at_dataset_count(set) >= 1);
        at_dataset_free(set);
    }
}

static void invalid_sizes_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "synthetic-clicks:",      "synthetic-clicks:5",         "synthetic-clicks:0,100",
        "synthetic-clicks:5,5",   "synthetic-clicks:5,1e12",    "synthetic-clicks:5,100,2",
        "synthetic-clicks:x,100", "synthetic-clicks:5,100,3,4", "synthetic-clicks:1e8,1e6,4000",
        "synthetic-clicks:5,100,"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        at_dataset *set = NULL;
        at_err      err = at_dataset_open(names[i], AT_SPLIT_TRAIN, &set, &fail);
        if (err != AT_ERR_USAGE) fail_msg("%s was accepted", names[i]);
        assert_non_null(strstr(fail.hint, "synthetic-clicks:"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(click_data_is_the_same_on_every_machine),
        cmocka_unit_test(a_row_is_a_third_numbers_and_the_rest_categories),
        cmocka_unit_test(extreme_sizes_are_accepted),
        cmocka_unit_test(invalid_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

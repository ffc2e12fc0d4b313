#include "open_sets.h"

#include "base/file.h"
#include "data/fetch/catalog.h"
#include "data/fetch/fetch.h"
#include "data/prep/widen.h"
#include "data/set/dataset.h"
#include "data/set/describe.h"
#include "data/set/store.h"

#include <errno.h>
#include <sys/wait.h>

/* SHA-256 over all rows as floats and all labels. */
static void hash_set(const at_dataset *set, char hex[65])
{
    size_t    features = at_dataset_features(set), count = at_dataset_count(set);
    float    *x = malloc(count * features * sizeof *x + count * sizeof(uint32_t));
    uint32_t *labels = (uint32_t *)(void *)(x + count * features);
    for (uint64_t i = 0; i < count; i++) at_dataset_rows(set, x + i * features, &labels[i], &i, 1);
    at_file_sha256(x, count * features * sizeof *x + count * sizeof *labels, hex);
    free(x);
}

static void a_synthetic_set_is_the_same_on_every_machine(void **state)
{
    (void)state;
    char        hex[65];
    at_dataset *train = open_set("synthetic:600,8,5", AT_SPLIT_TRAIN);
    hash_set(train, hex);
    assert_string_equal(hex, "3c84c265232c25bdae0794ab98d888b340c72aecb070a86674602c03f80fb98b");
    at_dataset *test = open_set("synthetic:600,8,5", AT_SPLIT_TEST);
    hash_set(test, hex);
    assert_string_equal(hex, "90ac3c913187806afbe835de4c44061ffc9cd34a4672c5cad3b2d449116e3d73");
    assert_int_equal(at_dataset_count(test), 120);
    assert_int_equal(at_dataset_classes(test), 5);
    at_dataset_free(train);
    at_dataset_free(test);
}

static void a_synthetic_set_has_defaults(void **state)
{
    (void)state;
    at_dataset *set = open_set("synthetic", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_count(set), 6000);
    assert_int_equal(at_dataset_features(set), 64);
    assert_int_equal(at_dataset_classes(set), 10);
    assert_string_equal(at_dataset_form(set), "64 floats");
    assert_true(at_dataset_has("synthetic", AT_SPLIT_TEST));
    at_dataset_free(set);
    set = open_set("synthetic:12,1,12", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_count(set), 12); /* one per class, although a fifth would be two */
    at_dataset_free(set);
}

static void mean_row(const at_dataset *set, uint32_t label, double *mean)
{
    uint32_t features = at_dataset_features(set), drawn;
    float    x[64];
    double   count = 0.0;
    for (uint32_t f = 0; f < features; f++) mean[f] = 0.0;
    for (uint64_t i = 0; i < at_dataset_count(set); i++) {
        at_dataset_rows(set, x, &drawn, &i, 1);
        if (drawn != label) continue;
        for (uint32_t f = 0; f < features; f++) mean[f] += (double)x[f];
        count++;
    }
    for (uint32_t f = 0; f < features; f++) mean[f] /= count;
}

static double distance2(const double *a, const double *b, uint32_t count)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* Test samples are closest to the train mean of their own class. */
static void synthetic_classes_are_separable(void **state)
{
    (void)state;
    at_dataset *train = open_set("synthetic", AT_SPLIT_TRAIN);
    at_dataset *test = open_set("synthetic", AT_SPLIT_TEST);
    double      mean[10][64], sample[64];
    for (uint32_t c = 0; c < 10; c++) mean_row(train, c, mean[c]);
    unsigned right = 0, count = (unsigned)at_dataset_count(test);
    for (uint64_t i = 0; i < count; i++) {
        float    x[64];
        uint32_t label, best = 0;
        at_dataset_rows(test, x, &label, &i, 1);
        for (int f = 0; f < 64; f++) sample[f] = (double)x[f];
        for (uint32_t c = 1; c < 10; c++)
            if (distance2(sample, mean[c], 64) < distance2(sample, mean[best], 64)) best = c;
        right += best == label;
    }
    assert_in_range(right, count * 92 / 100, count * 99 / 100);
    at_dataset_free(train);
    at_dataset_free(test);
}

static void invalid_synthetic_sets_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "synthetic:",          "synthetic:10",       "synthetic:10,2",       "synthetic:10,2,2,2",
        "synthetic:0,2,2",     "synthetic:10,0,2",   "synthetic:10,2,0",     "synthetic:-1,2,2",
        "synthetic:x,2,2",     "synthetic:10,2,11",  "synthetic:1e12,2,2",   "synthetic:10,1e9,2",
        "synthetic:1e8,1e6,2", "synthetic:10,2,1e6", "synthetic:9e18,9e18,2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        at_dataset *set;
        assert_int_equal(at_dataset_open(names[i], AT_SPLIT_TRAIN, &set, &fail), AT_ERR_USAGE);
        assert_non_null(strstr(fail.text, names[i]));
        assert_non_null(strstr(fail.hint, "synthetic:SAMPLES"));
    }
}

static void all_versions_of_widen_give_the_same_bits(void **state)
{
    (void)state;
    enum { SIZE = 200 };
    unsigned char bytes[SIZE];
    float         portable[SIZE], best[SIZE];
    for (int i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i * 37 % 256);
    for (size_t count = 0; count < 150; count++)
        for (size_t offset = 0; offset < 40; offset += 3) {
            memset(portable, 1, sizeof portable);
            memset(best, 1, sizeof best);
            at_widen_portable(portable, bytes + offset, count);
            at_widen_best()(best, bytes + offset, count);
            assert_memory_equal(portable, best, sizeof portable);
        }
    at_widen_best()(best, (const unsigned char[]){0, 255}, 2);
    assert_true(best[0] == 0.0f && best[1] == 1.0f);
}

/* read() into read-only memory fails without a crash. */
static void samples_are_read_only(void **state)
{
    (void)state;
    at_dataset *set = open_set("synthetic:10,2,2", AT_SPLIT_TRAIN);
    int         ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(read(ends[0], set->rows, 1), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(read(ends[0], set->labels, 1), -1);
    assert_int_equal(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
    at_dataset_free(set);
}

static void forked_workers_see_the_same_samples(void **state)
{
    (void)state;
    at_dataset *set = open_set("synthetic:10,2,2", AT_SPLIT_TRAIN);
    float       mine[20], theirs[20];
    uint32_t    labels[10];
    uint64_t    indices[10] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    int         ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    at_dataset_prefetch(set, indices, 10);
    at_dataset_rows(set, mine, labels, indices, 10);
    if (pid == 0) _exit(write(ends[1], mine, sizeof mine) != sizeof mine);
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    assert_memory_equal(mine, theirs, sizeof mine);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    close(ends[1]);
    at_dataset_free(set);
}

static void every_named_set_is_described(void **state)
{
    (void)state;
    size_t                count;
    const at_catalog_row *rows = at_catalog_rows(&count);
    assert_true(count >= 2);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(at_catalog_find(rows[i].name), &rows[i]);
        assert_true(*rows[i].summary && *rows[i].license);
        assert_true(!rows[i].package.apt || !rows[i].package.npm);
        assert_true(rows[i].package.apt || rows[i].package.npm || rows[i].mirrors[0].url);
        for (size_t f = 0; f < AT_CATALOG_FILES_MAX && rows[i].files[f].name; f++)
            assert_int_equal(strlen(rows[i].files[f].sha256), 64);
    }
    assert_null(at_catalog_find("no-such-set"));
}

static void a_missing_named_set_hints_at_how_to_get_it(void **state)
{
    (void)state;
    at_dataset *set;
    setenv("XDG_CACHE_HOME", home, 1);
    assert_false(at_dataset_has("mnist", AT_SPLIT_TRAIN));
    assert_int_equal(at_dataset_open("mnist", AT_SPLIT_TRAIN, &set, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "mnist"));
    assert_non_null(strstr(fail.hint, "anytime data get mnist"));
    assert_int_equal(at_fetch("mnsit", NULL, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.hint, "mnist"));
}

static void a_named_set_has_the_number_of_classes_in_the_catalog(void **state)
{
    (void)state;
    static idx_bytes images, labels;
    char             cache[PATH_MAX];
    at_dataset      *set;
    setenv("XDG_CACHE_HOME", home, 1);
    assert_int_equal(at_catalog_cache(cache, &fail), AT_OK);
    assert_int_equal(at_file_make_folder("anytime/mnist", &fail), AT_OK);
    idx_make(&images, 251, 3, 3u, 2u, 2u);
    idx_make(&labels, 3, 1, 3u);
    write_raw("anytime/mnist/train-images-idx3-ubyte", images.bytes, images.size);
    write_raw("anytime/mnist/train-labels-idx1-ubyte", labels.bytes, labels.size);
    set = open_set("mnist", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_classes(set), 10);
    at_dataset_free(set);
    labels.bytes[8] = 10;
    write_raw("anytime/mnist/train-labels-idx1-ubyte", labels.bytes, labels.size);
    assert_int_equal(at_dataset_open("mnist", AT_SPLIT_TRAIN, &set, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "10"));
}

static void the_cache_folder_follows_the_environment(void **state)
{
    (void)state;
    char path[PATH_MAX];
    setenv("XDG_CACHE_HOME", "/x", 1);
    assert_int_equal(at_catalog_cache(path, &fail), AT_OK);
    assert_string_equal(path, "/x/anytime");
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", "/h", 1);
    assert_int_equal(at_catalog_cache(path, &fail), AT_OK);
    assert_string_equal(path, "/h/.cache/anytime");
    unsetenv("HOME");
    assert_int_equal(at_catalog_cache(path, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.hint, "XDG_CACHE_HOME"));
}

static void fashion_mnist_is_complete(void **state)
{
    (void)state;
    char                  folder[PATH_MAX];
    const at_catalog_row *row = at_catalog_find("fashion-mnist");
    at_description        d;
    assert_non_null(row);
    if (at_catalog_locate(row, folder, &fail)) {
        print_message("skipped: %s (%s)\n", fail.text, fail.hint);
        skip();
    }
    assert_int_equal(at_fetch_verify(row, folder, &fail), AT_OK);
    assert_int_equal(at_describe("fashion-mnist", NULL, &d, &fail), AT_OK);
    assert_int_equal(d.count[AT_SPLIT_TRAIN], 60000);
    assert_int_equal(d.count[AT_SPLIT_TEST], 10000);
    assert_int_equal(d.features, 784);
    assert_int_equal(d.classes, 10);
    assert_string_equal(d.form, "28x28 bytes");
    assert_string_equal(d.license, "MIT");
    for (int c = 0; c < 10; c++) {
        assert_int_equal(d.labels[AT_SPLIT_TRAIN][c], 6000);
        assert_int_equal(d.labels[AT_SPLIT_TEST][c], 1000);
    }
    at_describe_deinit(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synthetic_set_is_the_same_on_every_machine),
        cmocka_unit_test(a_synthetic_set_has_defaults),
        cmocka_unit_test(synthetic_classes_are_separable),
        cmocka_unit_test(invalid_synthetic_sets_are_refused),
        cmocka_unit_test(all_versions_of_widen_give_the_same_bits),
        cmocka_unit_test(samples_are_read_only),
        cmocka_unit_test(forked_workers_see_the_same_samples),
        cmocka_unit_test(every_named_set_is_described),
        cmocka_unit_test_setup(a_missing_named_set_hints_at_how_to_get_it, empty_home),
        cmocka_unit_test_setup(a_named_set_has_the_number_of_classes_in_the_catalog, empty_home),
        cmocka_unit_test(the_cache_folder_follows_the_environment),
        cmocka_unit_test(fashion_mnist_is_complete),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

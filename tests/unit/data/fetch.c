/* Downloads, tested with fake npm and curl programs written by the test, and with the real curl on
 * file URLs. */
#include "files.h"

#include "base/disk.h"
#include "base/file.h"
#include "data/fetch/fetch.h"
#include "data/fetch/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

static at_fail      fail;
static char         reported[4096]; /* all lines of progress */
static char         path_before[4096];
static volatile int interrupts;
static pid_t        on_waiting; /* killed when the progress reports that it is waited for */

static void hear(void *self, const char *line)
{
    (void)self;
    if (on_waiting && strstr(line, "waiting")) kill(on_waiting, SIGKILL);
    snprintf(reported + strlen(reported), sizeof reported - strlen(reported), "%s\n", line);
}

static const at_fetch_progress progress = {.report = hear};

static void on_interrupt(int number)
{
    (void)number;
    interrupts++;
}

/* A set of one small file, whose hashes are filled in by prepare(). */
static char           tarball_sha256[65], file_sha256[65], archive_sha256[65];
static at_catalog_row row = {
    .name = "toy",
    .package = {.npm = "toy-data@1.0.0",
                .tarball = "toy-data-1.0.0.tgz",
                .tarball_sha256 = tarball_sha256,
                .tarball_folder = "package/data"},
    .files = {{"words", 6, file_sha256}},
};

static void run(const char *command)
{
    const char *const arguments[] = {"sh", "-c", command, NULL};
    assert_int_equal(at_subprocess_run(arguments, home, NULL, NULL, &fail), AT_OK);
}

/* Installs a script as that program, first in PATH. */
static void fake(const char *program, const char *script)
{
    char text[1024], path[4200], file[64];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    snprintf(file, sizeof file, "bin/%s", program);
    write_raw(file, text, strlen(text));
    assert_int_equal(chmod(file, 0755), 0);
    snprintf(path, sizeof path, "%s/bin:%s", home, path_before);
    setenv("PATH", path, 1);
}

static void fake_npm(const char *script)
{
    fake("npm", script);
}

/* An empty home with a valid tarball, and a fake npm that delivers it. */
static int prepare(void **state)
{
    size_t size;
    at_disk = &at_disk_posix; /* whatever the last test has left */
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
    memset(row.mirrors, 0, sizeof row.mirrors);
    on_waiting = 0;
    reported[0] = '\0';
    fail = (at_fail){0};
    interrupts = 0;
    return 0;
}

/* No file and no folder is left below the cache folder. */
static void nothing_is_left(void)
{
    run("mkdir -p anytime && test -z \"$(ls -A anytime)\"");
}

static void a_set_is_verified_and_installed(void **state)
{
    (void)state;
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    run("test \"$(ls -A anytime)\" = toy && test \"$(ls -A anytime/toy)\" = words");
    assert_non_null(strstr(reported, "downloading toy-data@1.0.0"));
    assert_non_null(strstr(reported, "toy is installed in"));
}

static int synced;

static int count_sync(int fd)
{
    synced++;
    return at_disk_posix.fsync(fd);
}

static int do_not_sync(int fd)
{
    (void)fd;
    errno = EIO;
    return -1;
}

/* The disk has it before it has its name. */
static void an_installed_set_is_synced(void **state)
{
    (void)state;
    at_disk_ops ops = at_disk_posix;
    run("mkdir anytime");
    at_disk = &ops;
    ops.fsync = do_not_sync;
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_IO);
    nothing_is_left();
    ops.fsync = count_sync;
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_OK);
    assert_int_equal(synced, 3); /* the file, its folder, and the name of that */
    at_disk = &at_disk_posix;
}

static void an_installed_set_is_not_downloaded_again(void **state)
{
    (void)state;
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_OK);
    fake_npm("exit 1");
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    assert_non_null(strstr(reported, "already"));
}

static void a_broken_set_is_replaced(void **state)
{
    (void)state;
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_OK);
    write_raw("anytime/toy/words", "hellO\n", 6);
    assert_int_equal(at_fetch_verify(&row, "anytime/toy", &fail), AT_ERR_FORMAT);
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    assert_non_null(strstr(reported, "broken"));
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

static void the_output_of_npm_is_in_the_error(void **state)
{
    (void)state;
    fake_npm("echo no network today >&2; echo part > toy-data-1.0.0.tgz; exit 3");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "exit code 3"));
    assert_non_null(strstr(fail.text, "no network today"));
    assert_non_null(strstr(fail.hint, "network"));
    nothing_is_left();
}

static void lines_that_are_repeated_are_in_the_error_once(void **state)
{
    (void)state;
    fake_npm("echo trying; for i in 1 2 3; do echo no host; done; exit 6");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, ": trying|no host"));
    assert_null(strstr(fail.text, "no host|"));
}

static void only_the_end_of_a_long_output_is_kept(void **state)
{
    (void)state;
    fake_npm("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 1");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_FAILED);
    assert_null(strstr(fail.text, "line 1|"));
    assert_non_null(strstr(fail.text, "line 2999"));
    assert_null(strchr(fail.text, '\n'));
}

static void a_wrong_tarball_leaves_nothing(void **state)
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

static void a_wrong_file_in_the_tarball_leaves_nothing(void **state)
{
    (void)state;
    at_file_sha256("other\n", 6, file_sha256);
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "words"));
    nothing_is_left();
}

static void an_npm_killed_by_a_signal_leaves_nothing(void **state)
{
    (void)state;
    fake_npm("touch started; kill -INT $$; sleep 60");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_STOPPED);
    assert_non_null(strstr(fail.hint, "again"));
    nothing_is_left();
}

/* The signal reaches only this process; it is delivered after the child was stopped. */
static void an_interrupt_is_delivered_after_the_cleanup(void **state)
{
    (void)state;
    signal(SIGINT, on_interrupt);
    fake_npm("touch started; kill -INT $PPID; sleep 60");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_STOPPED);
    signal(SIGINT, SIG_DFL);
    assert_int_equal(interrupts, 1);
    nothing_is_left();
}

static void a_cache_folder_that_cannot_be_created_is_an_io_error(void **state)
{
    (void)state;
    write_raw("anytime", "a file", 6);
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_ERR_IO);
    assert_true(fail.text[0]);
}

/* ---- web mirrors ----------------------------------------------------------------------------- */

/* npm does not work; words.gz is in ./mirror, whose url is returned. */
static const char *make_mirror(void)
{
    static char url[128];
    fake_npm("echo no network >&2; exit 1");
    run("mkdir mirror && printf 'hello\n' | gzip -n > mirror/words.gz");
    snprintf(url, sizeof url, "file://%s/mirror", home);
    return url;
}

/* A mirror with an archive, which `command` makes there as all.tar.gz. */
static at_catalog_mirror make_archive(const char *command)
{
    at_catalog_mirror mirror = {.url = make_mirror(),
                                .archive = "all.tar.gz",
                                .archive_sha256 = archive_sha256,
                                .folder = "inner"};
    size_t            size;
    run(command);
    unsigned char *bytes = read_all("mirror/all.tar.gz", &size);
    at_file_sha256(bytes, size, archive_sha256);
    free(bytes);
    return mirror;
}

static void only_the_set_is_there(void)
{
    run("test \"$(ls -A anytime)\" = toy");
    assert_int_equal(at_fetch_verify(&row, "anytime/toy", &fail), AT_OK);
}

static bool without_curl(void)
{
    const char *const arguments[] = {"curl", "--version", NULL};
    if (at_subprocess_run(arguments, home, NULL, NULL, NULL) == AT_OK) return false;
    print_message("skipped: the program curl is not installed\n");
    return true;
}

static void a_mirror_is_used_when_the_package_fails(void **state)
{
    (void)state;
    if (without_curl()) skip();
    row.mirrors[0] = (at_catalog_mirror){.url = "file:///nowhere"};
    row.mirrors[1] = (at_catalog_mirror){.url = make_mirror()};
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    assert_non_null(strstr(reported, "trying the web"));
    only_the_set_is_there();
}

static void a_set_without_a_package_comes_from_the_web_as_it_is(void **state)
{
    (void)state;
    if (without_curl()) skip();
    char           url[4200];
    at_catalog_row plain = row;
    plain.package = (at_catalog_package){0};
    plain.mirrors[0] = (at_catalog_mirror){.url = url, .plain = true};
    snprintf(url, sizeof url, "file://%s/web", home);
    run("mkdir web && printf 'hello\n' > web/words");
    assert_int_equal(at_fetch_row(&plain, &progress, &fail), AT_OK);
    run("test \"$(ls -A anytime/toy)\" = words");
    assert_null(strstr(reported, "npm"));
    run("rm -r anytime web");
    assert_int_not_equal(at_fetch_row(&plain, NULL, &fail), AT_OK);
    assert_non_null(strstr(fail.text, "curl"));
}

static void a_mirror_may_have_an_archive(void **state)
{
    (void)state;
    if (without_curl()) skip();
    row.mirrors[0] = make_archive("cd mirror && mkdir inner other && mv words.gz inner && "
                                  "tar -czf all.tar.gz inner other");
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    only_the_set_is_there();
}

/* Names that lead elsewhere, and a link in place of a file. */
static void an_archive_cannot_reach_files_elsewhere(void **state)
{
    (void)state;
    if (without_curl()) skip();
    row.mirrors[0] = make_archive(
        "printf secret > secret && cd mirror && mkdir inner && ln -s \"$PWD/../secret\" "
        "inner/words.gz && printf evil > evil && "
        "tar -czPf all.tar.gz --transform 's,^evil,../../evil,' inner evil");
    assert_int_not_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    assert_true(fail.text[0]);
    run("test ! -e evil && test ! -e anytime/evil && test ! -e ../evil && test ! -e anytime/toy");
    run("test \"$(cat secret)\" = secret");
}

static void an_archive_with_other_content_is_not_unpacked(void **state)
{
    (void)state;
    if (without_curl()) skip();
    row.mirrors[0] = make_archive("cd mirror && mkdir inner && mv words.gz inner && "
                                  "tar -czf all.tar.gz inner");
    run("cd mirror && head -c 1000000 /dev/zero > inner/more && tar -czf all.tar.gz inner");
    fake("tar", "touch ../../unpacked");
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "all.tar.gz: curl downloaded"));
    run("test ! -e unpacked");
    nothing_is_left();
}

/* The file has holes, so the test needs no room. */
static void a_download_without_end_does_not_fill_the_disk(void **state)
{
    (void)state;
    row.mirrors[0] = (at_catalog_mirror){.url = make_mirror()};
    fake("curl", "for a; do case $a in *.part)\n"
                 "truncate -s 4G $a && echo more >> $a && touch ../../endless;; esac; done");
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_ERR_FAILED);
    run("test ! -e endless");
    run("test -z \"$(find anytime -type f)\"");
}

static void a_partial_download_is_resumed(void **state)
{
    (void)state;
    if (without_curl()) skip();
    row.mirrors[0] = (at_catalog_mirror){.url = make_mirror()};
    fake("curl", "for a; do case $a in *.part) head -c 9 ../../mirror/words.gz > $a;; esac; done\n"
                 "echo the line is dead >&2; exit 18");
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "the line is dead"));
    assert_non_null(strstr(fail.text, "no network"));
    run("test \"$(ls -A anytime)\" = .part-toy-0");
    run("test $(wc -c < anytime/.part-toy-0/words.gz.part) = 9");
    assert_int_equal(remove("bin/curl"), 0);
    run("printf XXXXXXXXX | dd of=mirror/words.gz conv=notrunc 2>&1"); /* must not be read again */
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    only_the_set_is_there();
}

static void a_download_restarts_when_the_server_cannot_resume(void **state)
{
    (void)state;
    row.mirrors[0] = (at_catalog_mirror){.url = make_mirror()};
    run("mkdir -p anytime/.part-toy-0 && echo half > anytime/.part-toy-0/words.gz.part");
    fake("curl", "for a; do case $a in *.part) f=$a;; esac; done\n"
                 "test -e $f && exit 33; cp ../../mirror/words.gz $f");
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    only_the_set_is_there();
}

/* Lets the fake curl below finish when half of the file is reported. */
static void note_half(void *self, uint64_t done, uint64_t total)
{
    (void)self;
    if (done == 3 && total == 6) run("touch go");
}

static void the_bytes_of_a_download_are_reported(void **state)
{
    (void)state;
    at_fetch_progress half = {.report = hear, .bytes = note_half};
    at_catalog_row    plain = row;
    plain.package = (at_catalog_package){0};
    plain.mirrors[0] = (at_catalog_mirror){.url = "http://nowhere", .plain = true};
    fake("curl", "for a; do case $a in *.part) f=$a;; *.head) h=$a;; esac; done\n"
                 "printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n' > $h; printf hel > $f\n"
                 "until [ -e ../../go ]; do sleep 0.02; done; printf 'lo\\n' >> $f");
    assert_int_equal(at_fetch_row(&plain, &half, &fail), AT_OK);
    run("test \"$(ls -A anytime)\" = toy && test \"$(ls -A anytime/toy)\" = words");
}

static void wrong_content_from_a_mirror_is_removed(void **state)
{
    (void)state;
    row.mirrors[0] = (at_catalog_mirror){.url = make_mirror()};
    fake("curl", "for a; do case $a in *.part) echo '<html>404</html>' > $a;; esac; done");
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "a web page"));
    nothing_is_left();
}

/* ---- leftovers and other processes ----------------------------------------------------------- */

static void leftovers_of_a_killed_process_are_removed(void **state)
{
    (void)state;
    run("mkdir -p anytime/.get-toy-abcdef/package && touch anytime/.get-toy-abcdef/package/big");
    assert_int_equal(at_fetch_row(&row, NULL, &fail), AT_OK);
    only_the_set_is_there();
}

static void a_running_download_is_waited_for(void **state)
{
    (void)state;
    int  ends[2];
    char ready;
    assert_int_equal(mkdir("anytime", 0777), 0);
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    on_waiting = fork();
    if (on_waiting == 0) {
        int folder = open("anytime", O_RDONLY | O_DIRECTORY);
        if (flock(folder, LOCK_EX) || write(ends[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ends[0], &ready, 1), 1);
    assert_int_equal(at_fetch_row(&row, &progress, &fail), AT_OK);
    assert_non_null(strstr(reported, "waiting for another"));
    only_the_set_is_there();
    assert_int_equal(waitpid(on_waiting, NULL, 0), on_waiting);
    close(ends[0]);
    close(ends[1]);
}

static at_err convert_words(const char *from, const char *to, at_fail *why)
{
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "tr a-z A-Z < %s/words > %s/words", from, to);
    const char *const arguments[] = {"sh", "-c", command, NULL};
    return at_subprocess_run(arguments, "/", NULL, NULL, why);
}

static void a_package_may_be_converted(void **state)
{
    (void)state;
    at_catalog_row converted = row;
    converted.package.convert = convert_words;
    at_file_sha256("HELLO\n", 6, file_sha256);
    assert_int_equal(at_fetch_row(&converted, NULL, &fail), AT_OK);
    run("test \"$(cat anytime/toy/words)\" = HELLO");
}

int main(void)
{
    const char *path = getenv("PATH");
    snprintf(path_before, sizeof path_before, "%s", path ? path : "/usr/bin:/bin");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_set_is_verified_and_installed, prepare),
        cmocka_unit_test_setup(an_installed_set_is_synced, prepare),
        cmocka_unit_test_setup(an_installed_set_is_not_downloaded_again, prepare),
        cmocka_unit_test_setup(a_broken_set_is_replaced, prepare),
        cmocka_unit_test_setup(a_missing_npm_is_named, prepare),
        cmocka_unit_test_setup(the_output_of_npm_is_in_the_error, prepare),
        cmocka_unit_test_setup(lines_that_are_repeated_are_in_the_error_once, prepare),
        cmocka_unit_test_setup(only_the_end_of_a_long_output_is_kept, prepare),
        cmocka_unit_test_setup(a_wrong_tarball_leaves_nothing, prepare),
        cmocka_unit_test_setup(a_wrong_file_in_the_tarball_leaves_nothing, prepare),
        cmocka_unit_test_setup(an_npm_killed_by_a_signal_leaves_nothing, prepare),
        cmocka_unit_test_setup(an_interrupt_is_delivered_after_the_cleanup, prepare),
        cmocka_unit_test_setup(a_cache_folder_that_cannot_be_created_is_an_io_error, prepare),
        cmocka_unit_test_setup(a_mirror_is_used_when_the_package_fails, prepare),
        cmocka_unit_test_setup(a_set_without_a_package_comes_from_the_web_as_it_is, prepare),
        cmocka_unit_test_setup(a_mirror_may_have_an_archive, prepare),
        cmocka_unit_test_setup(an_archive_cannot_reach_files_elsewhere, prepare),
        cmocka_unit_test_setup(an_archive_with_other_content_is_not_unpacked, prepare),
        cmocka_unit_test_setup(a_download_without_end_does_not_fill_the_disk, prepare),
        cmocka_unit_test_setup(a_partial_download_is_resumed, prepare),
        cmocka_unit_test_setup(a_download_restarts_when_the_server_cannot_resume, prepare),
        cmocka_unit_test_setup(the_bytes_of_a_download_are_reported, prepare),
        cmocka_unit_test_setup(wrong_content_from_a_mirror_is_removed, prepare),
        cmocka_unit_test_setup(leftovers_of_a_killed_process_are_removed, prepare),
        cmocka_unit_test_setup(a_running_download_is_waited_for, prepare),
        cmocka_unit_test_setup(a_package_may_be_converted, prepare),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

/* Sleeps of a recorded run as a file, which a resumed simulation reads again. */
#include "report/summary/pace_from_run.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/disk.h"
#include "base/file.h"

enum { WORKERS = 2, ROUNDS = 2 };

static char home[] = "/tmp/anytime-pace-XXXXXX";

static int enter_home(void **state)
{
    (void)state;
    return !mkdtemp(home) || chdir(home);
}

static int leave_home(void **state)
{
    (void)state;
    at_disk = &at_disk_posix;
    unlink("pace.trace");
    return chdir("/") || rmdir(home); /* nothing else remains */
}

static at_err write_sleeps(double first, at_fail *fail)
{
    double      sleeps[WORKERS * ROUNDS] = {first, 0, 0.25, 1234.5};
    at_run_pace pace = {.workers = WORKERS, .rounds = ROUNDS, .sleep_s = sleeps};
    return at_run_pace_write_trace(&pace, "pace.trace", fail);
}

static void assert_contents(const char *wanted)
{
    unsigned char *bytes;
    size_t         size;
    at_fail        fail = {0};
    if (at_file_read("pace.trace", 1000, &bytes, &size, &fail)) fail_msg("%s", fail.text);
    assert_string_equal((char *)bytes, wanted);
    free(bytes);
}

static ssize_t write_until_full(int fd, const void *bytes, size_t size)
{
    static int writes;
    if (writes++ == 0) return at_disk_posix.write(fd, bytes, size);
    errno = ENOSPC;
    return -1;
}

static int do_not_sync(int fd)
{
    (void)fd;
    errno = EIO;
    return -1;
}

static void a_full_disk_does_not_leave_a_part_of_the_sleeps(void **state)
{
    static const char text[] =
        "# induced sleep in seconds: one line per round, one column per worker\n"
        "0.500000000 0.000000000\n0.250000000 1234.500000000\n";
    (void)state;
    at_fail     fail = {0};
    at_disk_ops ops = at_disk_posix;
    at_disk = &ops;
    assert_int_equal(write_sleeps(0.5, &fail), AT_OK);
    assert_contents(text);
    ops.write = write_until_full;
    assert_int_equal(write_sleeps(7, &fail), AT_ERR_IO);
    assert_contents(text);
    ops = at_disk_posix;
    ops.fsync = do_not_sync;
    assert_int_equal(write_sleeps(7, &fail), AT_ERR_IO);
    assert_contents(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_does_not_leave_a_part_of_the_sleeps),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}

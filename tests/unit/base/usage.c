#include "base/usage.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PID = 4711 };

static char proc[] = "/tmp/anytime-usage-XXXXXX"; /* a fake /proc with one process */

static const char *const names[] = {"stat", "statm", "io", "net/dev"};

static const char stat_text[] =
    "4711 (any) R 1 4711 4711 0 -1 4194304 103 0 0 0 250 50 0 0 20 0 1 0 2180597 2998272 395 0\n";
static const char io_text[] = "rchar: 6998\nwchar: 22\nsyscr: 12\nsyscw: 1\nread_bytes: 4096\n"
                              "write_bytes: 8192\ncancelled_write_bytes: 77\n";
static const char dev_text[] =
    "Inter-|   Receive      |  Transmit\n face |bytes packets errs drop fifo frame compressed "
    "multicast|bytes packets errs drop fifo colls carrier compressed\n"
    "    lo: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
    "  eth0: 1000 1 0 0 0 0 0 0 70 1 0 0 0 0 0 0\n"
    "  eth1:2000 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n";

static const char *path_of(const char *name)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/%d/%s", proc, PID, name);
    return path;
}

static void put_file(const char *name, const char *bytes, size_t size)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void put_text(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

static int make_proc(void **state)
{
    (void)state;
    if (!mkdtemp(proc) || mkdir(path_of(""), 0777) || mkdir(path_of("net"), 0777)) return -1;
    return 0;
}

static int remove_proc(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
    return rmdir(path_of("net")) || rmdir(path_of("")) || rmdir(proc);
}

static int fill_proc(void **state)
{
    (void)state;
    put_text("stat", stat_text);
    put_text("statm", "765 425 396 5 0 123 0\n");
    put_text("io", io_text);
    put_text("net/dev", dev_text);
    return 0;
}

static at_usage read_it(void)
{
    at_usage usage;
    assert_true(at_usage_read_from(proc, PID, &usage));
    return usage;
}

static void all_values_are_read(void **state)
{
    (void)state;
    at_usage usage = read_it();
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    at_ns    tick = 1000000000 / sysconf(_SC_CLK_TCK);
    assert_int_equal(usage.pid, PID);
    assert_int_equal(usage.user_ns, 250 * tick);
    assert_int_equal(usage.system_ns, 50 * tick);
    assert_int_equal(at_usage_cpu(&usage), 300 * tick);
    assert_int_equal(usage.rss_bytes, 425 * page);
    assert_int_equal(usage.shared_bytes, 396 * page);
    assert_int_equal(usage.read_bytes, 4096);
    assert_int_equal(usage.write_bytes, 8192);
    assert_int_equal(usage.net_in_bytes, 3000);
    assert_int_equal(usage.net_out_bytes, 100);
    assert_int_equal(usage.loopback_bytes, 500);
}

static void a_name_with_parentheses_and_numbers_is_skipped(void **state)
{
    (void)state;
    char text[300];
    snprintf(text, sizeof text, "4711 (a) R 9 9 9 9 9 9 9 9 9 9 9 9 9 9 (b)%s",
             strchr(stat_text, ')'));
    put_text("stat", text);
    at_usage usage = read_it();
    assert_int_equal(at_usage_cpu(&usage), 300 * (1000000000 / sysconf(_SC_CLK_TCK)));
}

static void missing_values_are_unknown(void **state)
{
    (void)state;
    unlink(path_of("statm"));
    unlink(path_of("io"));
    unlink(path_of("net/dev"));
    at_usage usage = read_it();
    assert_true(usage.user_ns > 0);
    assert_int_equal(usage.rss_bytes, AT_USAGE_UNKNOWN);
    assert_int_equal(usage.shared_bytes, AT_USAGE_UNKNOWN);
    assert_int_equal(usage.peak_bytes, AT_USAGE_UNKNOWN);
    assert_int_equal(usage.read_bytes, AT_USAGE_UNKNOWN);
    assert_int_equal(usage.net_in_bytes, AT_USAGE_UNKNOWN);
    assert_int_equal(usage.loopback_bytes, AT_USAGE_UNKNOWN);
}

static void a_process_without_stat_is_gone(void **state)
{
    (void)state;
    at_usage usage;
    unlink(path_of("stat"));
    assert_false(at_usage_read_from(proc, PID, &usage));
    assert_false(at_usage_read_from(proc, 0, &usage));
    assert_false(at_usage_read_from(proc, -1, &usage));
    put_text("stat", "");
    assert_false(at_usage_read_from(proc, PID, &usage));
}

/* Files of another kernel: malformed, truncated, or with huge numbers. */
static void malformed_files_give_unknown_values(void **state)
{
    (void)state;
    static const char *const strange[] = {
        "",
        "\n",
        ":",
        ")",
        "99999999999999999999999999 99999999999999999999999999",
        "18446744073709551615 18446744073709551615 18446744073709551615",
        "-5 -5 -5 -5",
        "\nread_bytes: x\nwrite_bytes: 99999999999999999999999",
        "lo:\nlo:\neth0: 1\n:::\n",
        "a: 18446744073709551614\na: 18446744073709551614 1 1 1 1 1 1 1 18446744073709551614\n"};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        for (size_t k = 1; k < sizeof names / sizeof *names; k++) put_text(names[k], strange[i]);
        at_usage usage = read_it();
        assert_int_equal(usage.read_bytes, AT_USAGE_UNKNOWN);
        assert_int_equal(usage.write_bytes, AT_USAGE_UNKNOWN);
        assert_true(at_usage_cpu(&usage) > 0);
    }
    put_text("stat", "1 (x) R 1 1 1 1 1 1 1 1 1 1 18446744073709551615 99999999999999999999999");
    at_usage usage = read_it();
    assert_int_equal(at_usage_cpu(&usage), 0);
}

static void truncated_files_do_no_harm(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof dev_text; size++) {
        put_file("net/dev", dev_text, size);
        put_file("io", io_text, size < sizeof io_text ? size : sizeof io_text - 1);
        put_file("stat", stat_text, size < sizeof stat_text ? size : sizeof stat_text - 1);
        at_usage usage;
        bool     there = at_usage_read_from(proc, PID, &usage);
        assert_int_equal(there, size > strcspn(stat_text, ")"));
    }
}

static void the_calling_process_can_be_read(void **state)
{
    (void)state;
    at_usage usage, again;
    assert_true(at_usage_read(getpid(), &usage));
    for (volatile int i = 0; i < 1000000; i = i + 1) continue;
    assert_true(at_usage_read_process(getpid(), &again));
    assert_int_equal(usage.pid, getpid());
    assert_true(usage.rss_bytes > 0 && usage.rss_bytes != AT_USAGE_UNKNOWN);
    assert_true(usage.peak_bytes > 0 && usage.peak_bytes != AT_USAGE_UNKNOWN);
    assert_true(at_usage_cpu(&again) >= at_usage_cpu(&usage));
    assert_int_equal(again.net_in_bytes, AT_USAGE_UNKNOWN);
}

static void a_process_that_was_waited_for_has_its_final_usage(void **state)
{
    (void)state;
    struct rusage rusage;
    at_usage      usage;
    int           status;
    pid_t         pid = fork();
    if (pid == 0) _exit(0);
    assert_true(pid > 0);
    assert_int_equal(wait4(pid, &status, 0, &rusage), pid);
    assert_false(at_usage_read(pid, &usage));
    at_usage_ended(pid, &rusage, &usage);
    assert_int_equal(usage.pid, pid);
    assert_int_equal(usage.rss_bytes, 0);
    assert_true(usage.peak_bytes > 0);
    assert_true(at_usage_cpu(&usage) >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_values_are_read, fill_proc),
        cmocka_unit_test_setup(a_name_with_parentheses_and_numbers_is_skipped, fill_proc),
        cmocka_unit_test_setup(missing_values_are_unknown, fill_proc),
        cmocka_unit_test_setup(a_process_without_stat_is_gone, fill_proc),
        cmocka_unit_test_setup(malformed_files_give_unknown_values, fill_proc),
        cmocka_unit_test_setup(truncated_files_do_no_harm, fill_proc),
        cmocka_unit_test(the_calling_process_can_be_read),
        cmocka_unit_test(a_process_that_was_waited_for_has_its_final_usage),
    };
    return cmocka_run_group_tests_name("base: what a process takes", tests, make_proc, remove_proc);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "world/process/child.h"
#include "world/process/supervisor.h"

static int exit_with(void *self, at_fail *fail)
{
    (void)fail;
    return *(int *)self;
}

static int complain(void *self, at_fail *fail)
{
    (void)self;
    return (int)at_fail_set(fail, AT_ERR_FORMAT, "gunzip it first", "%s: not an IDX file", "x.gz");
}

static int sleep_on(void *self, at_fail *fail)
{
    (void)self;
    (void)fail;
    for (;;) pause();
    return 0;
}

static at_supervisor *open_for(uint32_t children)
{
    at_supervisor *s;
    at_fail        fail;
    assert_int_equal(at_supervisor_open(children, &s, &fail), AT_OK);
    return s;
}

/* Waits for the next death; the test's time limit bounds it. */
static at_death next_death(at_supervisor *s)
{
    at_death death;
    while (!at_supervisor_reap(s, &death)) at_clock_sleep_until(at_clock_now() + AT_MS(1));
    return death;
}

static int open_files(void)
{
    int  count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

static void each_end_is_reported_once_with_its_status(void **state)
{
    (void)state;
    int            seven = 7;
    at_fail        fail;
    at_death       death;
    at_supervisor *s = open_for(3);
    assert_int_equal(at_supervisor_start(s, 1, exit_with, &seven, &fail), AT_OK);
    pid_t pid = at_supervisor_pid(s, 1);
    assert_true(pid > 0);
    death = next_death(s);
    assert_int_equal(death.child, 1);
    assert_int_equal(death.pid, pid);
    assert_int_equal(WEXITSTATUS(death.status), 7);
    assert_int_equal(death.fail.err, AT_OK);
    assert_int_equal(at_supervisor_pid(s, 1), 0);
    assert_false(at_supervisor_reap(s, &death));
    at_supervisor_close(s);
}

static void what_a_child_says_reaches_its_parent(void **state)
{
    (void)state;
    at_fail        fail;
    int            zero = 0;
    at_supervisor *s = open_for(1);
    assert_int_equal(at_supervisor_start(s, 0, complain, NULL, &fail), AT_OK);
    at_death death = next_death(s);
    assert_int_equal(death.fail.err, AT_ERR_FORMAT);
    assert_string_equal(death.fail.text, "x.gz: not an IDX file");
    assert_string_equal(death.fail.hint, "gunzip it first");
    /* .. and its successor does not inherit it. */
    assert_int_equal(at_supervisor_start(s, 0, exit_with, &zero, &fail), AT_OK);
    assert_int_equal(next_death(s).fail.err, AT_OK);
    at_supervisor_close(s);
}

static void other_children_of_the_program_are_left_alone(void **state)
{
    (void)state;
    int            status;
    at_death       death;
    at_supervisor *s = open_for(2);
    pid_t          other = fork();
    if (other == 0) _exit(3);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)other, &info, WEXITED | WNOWAIT), 0);
    assert_false(at_supervisor_reap(s, &death));
    assert_int_equal(waitpid(other, &status, 0), other);
    at_supervisor_close(s);
}

/* Fails as with a full table of processes: at the limit of files there is no pipe. */
static void a_failed_fork_leaves_nothing_and_counts_as_a_failure(void **state)
{
    (void)state;
    int            zero = 0, before = open_files();
    struct rlimit  files, few;
    at_death       death;
    at_fail        fail = {0};
    at_supervisor *s = open_for(2);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    few = files;
    few.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    at_err err = at_supervisor_start(s, 0, exit_with, &zero, &fail);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(err, AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "cannot start another process"));
    assert_int_equal(at_supervisor_pid(s, 0), 0);
    assert_int_equal(at_supervisor_failures(s, 0), 1);
    assert_int_equal(open_files(), before);
    /* It does not stand for any process: a neighbour's end is still the neighbour's. */
    at_supervisor_kill(s, 0);
    assert_int_equal(at_supervisor_start(s, 1, exit_with, &zero, &fail), AT_OK);
    death = next_death(s);
    assert_int_equal(death.child, 1);
    at_supervisor_close(s);
}

static at_ns pause_of(at_supervisor *s, at_ns before)
{
    at_ns after = at_clock_now(), ready = at_supervisor_ready_at(s, 0);
    for (at_ns pause = 0; pause <= AT_SEC(16); pause = pause ? 2 * pause : AT_SEC(1))
        if (ready >= before + pause && ready <= after + pause) return pause;
    return AT_NEVER;
}

static void pauses_double_until_the_child_works(void **state)
{
    (void)state;
    static const at_ns pauses[] = {0, AT_SEC(1), AT_SEC(2), AT_SEC(4), AT_SEC(8), AT_SEC(8)};
    at_fail            fail;
    int                one = 1;
    at_supervisor     *s = open_for(1);
    for (uint32_t i = 0; i < 6; i++) {
        at_ns before = at_clock_now();
        assert_int_equal(at_supervisor_start(s, 0, exit_with, &one, &fail), AT_OK);
        next_death(s);
        assert_int_equal(at_supervisor_failures(s, 0), i + 1);
        assert_int_equal(pause_of(s, before), pauses[i]);
    }
    at_supervisor_well(s, 0);
    at_ns before = at_clock_now();
    assert_int_equal(at_supervisor_start(s, 0, complain, NULL, &fail), AT_OK);
    next_death(s);
    assert_int_equal(at_supervisor_failures(s, 0), 1);
    assert_int_equal(pause_of(s, before), AT_SEC(1)); /* it said why: not at once */
    at_supervisor_close(s);
}

static void one_that_was_given_up_is_tried_again_at_growing_intervals(void **state)
{
    (void)state;
    enum { PATIENCE = 2, FAILURES = 12 };
    at_fail        fail;
    int            one = 1;
    at_supervisor *s = open_for(1);
    for (uint32_t i = 0; i < FAILURES; i++) {
        at_ns before = at_clock_now();
        assert_int_equal(at_supervisor_start(s, 0, exit_with, &one, &fail), AT_OK);
        next_death(s);
        at_ns after = at_clock_now();
        if (i + 1 < PATIENCE) continue;
        uint32_t more = i + 1 - PATIENCE;
        at_ns    pause = AT_SEC(30) << (more < 6 ? more : 6);
        at_ns    retry = at_supervisor_retry_at(s, 0, PATIENCE);
        assert_true(retry >= before + pause && retry <= after + pause);
    }
    at_supervisor_close(s);
}

static void signals_to_the_group_do_not_end_a_child(void **state)
{
    (void)state;
    at_fail        fail;
    at_death       death;
    at_supervisor *s = open_for(1);
    assert_int_equal(at_supervisor_start(s, 0, sleep_on, NULL, &fail), AT_OK);
    kill(at_supervisor_pid(s, 0), SIGTERM);
    kill(at_supervisor_pid(s, 0), SIGINT);
    kill(at_supervisor_pid(s, 0), SIGUSR1); /* this one does */
    death = next_death(s);
    assert_int_equal(WTERMSIG(death.status), SIGUSR1);
    at_supervisor_close(s);
}

static void closing_ends_every_child_even_a_stopped_one(void **state)
{
    (void)state;
    at_fail        fail;
    pid_t          pid[3];
    at_supervisor *s = open_for(3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(at_supervisor_start(s, i, sleep_on, NULL, &fail), AT_OK);
        pid[i] = at_supervisor_pid(s, i);
    }
    kill(pid[1], SIGSTOP);
    at_supervisor_end(s, 2);
    assert_int_equal(at_supervisor_failures(s, 2), 0);
    at_supervisor_close(s);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(kill(pid[i], 0), -1);
    at_supervisor_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_end_is_reported_once_with_its_status),
        cmocka_unit_test(what_a_child_says_reaches_its_parent),
        cmocka_unit_test(other_children_of_the_program_are_left_alone),
        cmocka_unit_test(a_failed_fork_leaves_nothing_and_counts_as_a_failure),
        cmocka_unit_test(pauses_double_until_the_child_works),
        cmocka_unit_test(one_that_was_given_up_is_tried_again_at_growing_intervals),
        cmocka_unit_test(signals_to_the_group_do_not_end_a_child),
        cmocka_unit_test(closing_ends_every_child_even_a_stopped_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tests of record/run_lock.h. */
#include "record/run_lock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "run-lock-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if a lock is left */
}

static void a_folder_is_locked_once_and_again_after_its_release(void **state)
{
    at_run_lock one, other;
    at_fail     fail = {0};
    char        process[40];
    (void)state;
    assert_int_equal(at_run_lock_take(folder, &one, NULL), AT_OK);
    assert_int_equal(at_run_lock_take(folder, &other, &fail), AT_ERR_USAGE);
    snprintf(process, sizeof process, "process %ld ", (long)getpid());
    assert_non_null(strstr(fail.text, process));
    at_run_lock_release(&other); /* was not taken */
    at_run_lock_release(&one);
    assert_int_equal(at_run_lock_take(folder, &one, NULL), AT_OK);
    at_run_lock_release(&one);
}

static void a_child_that_outlives_its_parent_does_not_hold_the_lock(void **state)
{
    int         alive[2], end[2];
    char        byte;
    at_run_lock lock;
    (void)state;
    assert_int_equal(pipe(alive), 0);
    assert_int_equal(pipe(end), 0);
    pid_t parent = fork();
    if (parent == 0) {
        close(end[1]);
        if (at_run_lock_take(folder, &lock, NULL)) _exit(1);
        if (fork() > 0) { /* dies while it holds the lock, its child lives on */
            ssize_t got = read(alive[0], &byte, 1);
            _exit(got == 1 ? 0 : 2);
        }
        ssize_t done = write(alive[1], "x", 1);
        done += read(end[0], &byte, 1);
        _exit(done == 1 ? 0 : 3);
    }
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    assert_int_equal(at_run_lock_take(folder, &lock, NULL), AT_OK);
    at_run_lock_release(&lock);
    close(end[1]);
    close(end[0]);
    close(alive[0]);
    close(alive[1]);
}

/* It was renamed, and another run has begun at its old path. */
static void the_lock_of_another_run_at_the_same_path_stays(void **state)
{
    at_run_lock one, other, third;
    char        moved[sizeof folder + 8];
    (void)state;
    snprintf(moved, sizeof moved, "%s-moved", folder);
    assert_int_equal(at_run_lock_take(folder, &one, NULL), AT_OK);
    assert_int_equal(rename(folder, moved), 0);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(at_run_lock_take(folder, &other, NULL), AT_OK);
    at_run_lock_release(&one);
    assert_int_equal(at_run_lock_take(folder, &third, NULL), AT_ERR_USAGE);
    at_run_lock_release(&other);
    assert_int_equal(at_run_lock_take(moved, &third, NULL), AT_OK); /* free, with its old file */
    at_run_lock_release(&third);
    assert_int_equal(rmdir(moved), 0);
}

static void a_missing_folder_is_an_error(void **state)
{
    at_run_lock lock;
    at_fail     fail = {0};
    (void)state;
    assert_int_equal(at_run_lock_take("nowhere", &lock, &fail), AT_ERR_MISSING);
    at_run_lock_release(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_locked_once_and_again_after_its_release),
        cmocka_unit_test(a_child_that_outlives_its_parent_does_not_hold_the_lock),
        cmocka_unit_test(the_lock_of_another_run_at_the_same_path_stays),
        cmocka_unit_test(a_missing_folder_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

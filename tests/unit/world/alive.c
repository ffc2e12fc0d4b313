#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "world/process/alive.h"

static void a_process_is_known_by_its_birth(void **state)
{
    (void)state;
    uint64_t born = at_alive_born(getpid());
    assert_true(born > 0);
    assert_true(at_alive(getpid(), born));
    assert_false(at_alive(getpid(), born + 1)); /* the pid was given to somebody else */
    pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t ended;
    waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT); /* dead, and not buried */
    assert_int_equal(at_alive_born(child), 0);
    waitpid(child, NULL, 0);
    assert_int_equal(at_alive_born(child), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_known_by_its_birth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

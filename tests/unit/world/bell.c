#include "world/process/bell.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/machine.h"

enum { RINGS = 20000 };

/* Two bells in memory shared with a child. */
static at_bell *new_bells(void)
{
    at_bell *bells =
        mmap(NULL, 2 * sizeof *bells, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(bells != MAP_FAILED);
    return bells;
}

static void await(at_bell *bell, uint32_t *heard, at_ns spin_ns)
{
    while (at_bell_heard(bell) == *heard)
        at_bell_wait(bell, *heard, 1, AT_BELL_ALL, at_clock_now() + AT_SEC(60), spin_ns);
    *heard = at_bell_heard(bell);
}

/* A lost ring would make one of them wait for a minute; the alarm ends the test before. */
static void answer(at_bell *bells, bool loud, at_ns spin_ns)
{
    uint32_t heard = 0;
    for (int i = 0; i < RINGS; i++) {
        await(&bells[0], &heard, spin_ns);
        if (loud)
            at_bell_ring_loud(&bells[1], 1);
        else
            at_bell_ring(&bells[1]);
    }
}

static void no_ring_is_lost_whether_the_other_sleeps_or_spins(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        at_bell *bells = new_bells();
        at_ns    spin_ns = variant & 1 ? AT_US(20) : 0;
        pid_t    child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            answer(bells, variant & 2, spin_ns);
            _exit(0);
        }
        uint32_t heard = 0;
        alarm(50);
        for (int i = 0; i < RINGS; i++) {
            at_bell_ring(&bells[0]);
            await(&bells[1], &heard, spin_ns);
        }
        alarm(0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(atomic_load(&bells[0].sleepers), 0);
        assert_int_equal(atomic_load(&bells[1].sleepers), 0);
        munmap(bells, 2 * sizeof *bells);
    }
}

static void a_wait_ends_at_its_time_and_nobody_sleeps_then(void **state)
{
    (void)state;
    at_bell  bell = {0};
    uint32_t heard = at_bell_heard(&bell);
    assert_false(at_bell_wait(&bell, heard, 1, AT_BELL_ALL, at_clock_now() + AT_MS(1), 0));
    assert_int_equal(at_bell_heard(&bell), heard);
    assert_int_equal(atomic_load(&bell.sleepers), 0);
    at_bell_ring(&bell);
    assert_int_equal(at_bell_heard(&bell), heard + 1);
}

static void a_thread_that_stays_gets_its_cores_back(void **state)
{
    (void)state;
    cpu_set_t before, within, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    at_cores cores = at_machine_stay();
    assert_int_equal(sched_getaffinity(0, sizeof within, &within), 0);
    at_machine_unstay(&cores);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(cores.known);
    assert_int_equal(CPU_COUNT(&within), 1);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_ring_is_lost_whether_the_other_sleeps_or_spins),
        cmocka_unit_test(a_wait_ends_at_its_time_and_nobody_sleeps_then),
        cmocka_unit_test(a_thread_that_stays_gets_its_cores_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The clock of a hub stands still while its process is stopped. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "world/core/host.h"
#include "world/process/signals.h"

static const at_ns STOP = AT_SEC(3600);

static at_bell bell;
static at_ns   time_now;
static bool    stops_after_reading;

static void stop(void)
{
    time_now += STOP;
    raise(SIGCONT); /* its handler runs before anything else */
}

static at_ns read_clock(void)
{
    at_ns now = time_now;
    if (stops_after_reading) {
        stops_after_reading = false;
        stop();
    }
    return now;
}

static int open_clock(void **state)
{
    (void)state;
    at_signals_open(&bell);
    time_now = AT_SEC(5);
    at_clock_use(read_clock);
    return 0;
}

static int close_clock(void **state)
{
    (void)state;
    at_clock_use(NULL);
    at_signals_close();
    return 0;
}

static void a_stop_between_two_looks_at_the_clock_does_not_count(void **state)
{
    (void)state;
    at_host host = {0};
    assert_int_equal(at_host_now(&host), AT_SEC(5));
    stop();
    assert_int_equal(at_host_now(&host), AT_SEC(5));
    time_now += AT_SEC(1);
    assert_int_equal(at_host_now(&host), AT_SEC(6));
    assert_int_equal(host.stopped, STOP);
}

static void a_stop_while_it_looks_does_not_count(void **state)
{
    (void)state;
    at_host host = {0};
    assert_int_equal(at_host_now(&host), AT_SEC(5));
    stops_after_reading = true;
    assert_int_equal(at_host_now(&host), AT_SEC(5));
    time_now += AT_SEC(1);
    assert_int_equal(at_host_now(&host), AT_SEC(6));
    assert_int_equal(host.stopped, STOP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stop_between_two_looks_at_the_clock_does_not_count,
                                        open_clock, close_clock),
        cmocka_unit_test_setup_teardown(a_stop_while_it_looks_does_not_count, open_clock,
                                        close_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

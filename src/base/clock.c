#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

static at_ns read_clock(clockid_t id)
{
    struct timespec t;
    int             failed = clock_gettime(id, &t);
    assert(!failed);
    return (at_ns)t.tv_sec * 1000000000 + t.tv_nsec;
}

static at_clock *in_use; /* NULL: the machine's */

void at_clock_use(at_clock *clock)
{
    in_use = clock;
}

at_ns at_clock_now(void)
{
    return in_use ? in_use() : read_clock(CLOCK_MONOTONIC);
}

at_ns at_clock_processor(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

double at_clock_date(void)
{
    return at_seconds(read_clock(CLOCK_REALTIME));
}

void at_clock_stamp(char *text, size_t size)
{
    assert(size >= 16);
    time_t    now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    size_t length = strftime(text, size, "%Y%m%d-%H%M%S", &local);
    assert(length > 0);
}

void at_clock_sleep_until(at_ns until)
{
    assert(until >= 0);
    struct timespec t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* Ticks of the system from its start to that of this process; -1: unknown. The name of the program,
 * in parentheses, may contain anything. */
static long long start_ticks(void)
{
    char  text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file) return -1;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at ? strtoll(at, NULL, 10) : -1;
}

at_ns at_clock_process_start(void)
{
    at_ns     age = at_clock_processor(), tick = 1000000000 / sysconf(_SC_CLK_TCK);
    long long ticks = start_ticks();
    at_ns     least = ticks < 0 ? 0 : read_clock(CLOCK_BOOTTIME) - (ticks + 1) * tick;
    return at_clock_now() - (least > age ? least : age);
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

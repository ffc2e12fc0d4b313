/* time.h - the unit of time: nanoseconds in a signed 64-bit number.
 *
 * State machines get the time from event->now; only base/clock.c reads a clock.
 */
#ifndef AT_BASE_TIME_H
#define AT_BASE_TIME_H

#include <stdint.h>

typedef int64_t at_ns;

#define AT_US(n)  ((at_ns)(1000.0 * (n)))
#define AT_MS(n)  ((at_ns)(1000000.0 * (n)))
#define AT_SEC(n) ((at_ns)(1000000000.0 * (n)))
#define AT_NEVER  INT64_MAX

/* Nine years: no run lasts longer, and leases of ten times as much do not overflow. */
#define AT_RUN_MAX ((at_ns)1 << 58)

/* Nanoseconds to seconds. */
static inline double at_seconds(at_ns ns)
{
    return (double)ns / 1e9;
}

/* How much one turn of a wait counts: at most a second, so that time in which all processes were
 * stopped (Ctrl-Z) does not. */
static inline at_ns at_waited(at_ns before, at_ns now)
{
    return now - before < AT_SEC(1) ? now - before : AT_SEC(1);
}

#endif

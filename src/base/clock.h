/* clock.h - reading the clock and sleeping. tools/lint bans both everywhere else. */
#ifndef AT_BASE_CLOCK_H
#define AT_BASE_CLOCK_H

#include <stddef.h>

#include "base/time.h"

/* Monotonic time with an arbitrary zero. */
at_ns at_clock_now(void);

typedef at_ns at_clock(void);

/* For tests in virtual time: at_clock_now asks this function instead of the machine; NULL: the
 * machine again. */
void at_clock_use(at_clock *clock);

/* Processor time of all threads of this process so far. */
at_ns at_clock_processor(void);

/* When this process was started, in the time of at_clock_now. The kernel tells it to 10 ms. Called
 * early, while most of its life was processor time (loading libraries), it is exact to a
 * millisecond or two. Never before the true start. */
at_ns at_clock_process_start(void);

/* Seconds since 1970, for time stamps in files; not for measuring durations. */
double at_clock_date(void);

/* Writes the local date and time as 20261115-210313 into text (at least 16 bytes). */
void at_clock_stamp(char *text, size_t size);

/* Sleeps until the monotonic time `until`; returns at once when it has passed. */
void at_clock_sleep_until(at_ns until);

#endif

/* clock.h - the only place that reads a clock or sleeps. Banned everywhere else by tools/lint. */
#ifndef AT_BASE_CLOCK_H
#define AT_BASE_CLOCK_H

#include <stddef.h>

#include "base/time.h"

/* Monotonic time; its zero means nothing. */
at_ns at_clock_now(void);

/* Seconds since 1970, for stamps in files; never for measuring. */
double at_clock_date(void);

/* Writes local date and time as 20261115-210313 into text (at least 16 bytes). */
void at_clock_stamp(char *text, size_t size);

/* Sleeps until the monotonic time `until`; returns at once when that has passed. */
void at_clock_sleep_until(at_ns until);

#endif

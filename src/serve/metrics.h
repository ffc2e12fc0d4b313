/* metrics.h - the newest state of runs as Prometheus reads it (text format 0.0.4). */
#ifndef AT_SERVE_METRICS_H
#define AT_SERVE_METRICS_H

#include <stddef.h>
#include <stdio.h>

#include "base/time.h"
#include "serve/run_follower.h"

enum { AT_METRICS_WORKERS_MAX = 1000 }; /* LIMIT: with lines of their own */

/* The type of such a text. */
extern const char at_metrics_type[];

/* Writes all families of all runs; `now` is the monotonic time. */
void at_metrics_write(FILE *file, at_run_follower *const *tails, size_t count, at_ns now);

/* A label's value: quotes, backslashes and line ends escaped, other control characters and bytes
 * that are not UTF-8 as '?'. */
void at_metrics_label(FILE *file, const char *value);

#endif

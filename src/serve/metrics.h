/* metrics.h - the current state of runs as Prometheus metrics (text format 0.0.4). */
#ifndef AT_SERVE_METRICS_H
#define AT_SERVE_METRICS_H

#include <stddef.h>
#include <stdio.h>

#include "base/time.h"
#include "serve/run_follower.h"

enum { AT_METRICS_WORKERS_MAX = 1000 }; /* LIMIT: workers with metrics of their own, per run */

/* The content type. */
extern const char at_metrics_type[];

/* Writes all metrics of all runs; `now` is the monotonic time. */
void at_metrics_write(FILE *file, at_run_follower *const *followers, size_t count, at_ns now);

/* Writes the value of a label: quotes, backslashes and newlines are escaped; other control
 * characters and bytes that are not UTF-8 become '?'. */
void at_metrics_label(FILE *file, const char *value);

#endif

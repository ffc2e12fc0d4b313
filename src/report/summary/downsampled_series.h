/* downsampled_series.h - numbers that change over a run, thinned to a fixed number of points;
 * inside the report layer only.
 *
 * A series is a table: each line has a time, a step and one number a channel. While they fit, every
 * line is a point. Past that, neighbours become one point that keeps the smallest, the largest and
 * the mean of its lines, so that no peak is ever lost. Time and step of a point are those of its
 * last line.
 */
#ifndef AT_REPORT_SUMMARY_DOWNSAMPLED_SERIES_H
#define AT_REPORT_SUMMARY_DOWNSAMPLED_SERIES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct at_downsampled at_downsampled;

/* An empty table; `names`, one for each channel, are kept. Holds `points` points, at least 2. NULL
 * when there is no memory. */
at_downsampled *at_downsampled_new(const char *const *names, size_t channels, uint32_t points);
void            at_downsampled_free(at_downsampled *series); /* accepts NULL */

/* Adds a line. A value that is not finite is a gap. `serial` never falls. */
void at_downsampled_add(at_downsampled *series, uint64_t serial, double seconds, uint64_t step,
                        const double *values);

/* Forgets the points that reach step `step` or go past it. */
void at_downsampled_rewind(at_downsampled *series, uint64_t step);

/* The points that are new or have changed after serial `since`:
 *
 *     {"from": 12, "every": 2, "t": [..], "step": [..],
 *      "loss": {"mean": [..], "min": [..], "max": [..]}, ..}
 *
 * A client keeps the first `from` points that it has and appends these. `min` and `max` are left
 * out while every line is a point, and so are channels that never had a value. */
json_t *at_downsampled_json(const at_downsampled *series, uint64_t since);

#endif

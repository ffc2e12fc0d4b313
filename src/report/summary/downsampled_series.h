/* downsampled_series.h - time series of a run, downsampled to a fixed number of points; inside the
 * report layer only.
 *
 * Each row has a time, a step and one number per channel. While the rows fit, every row is a point.
 * Beyond that, neighbors are merged into points that keep minimum, maximum and mean of their rows,
 * so no peak is lost. The time and step of a point are those of its last row.
 */
#ifndef AT_REPORT_SUMMARY_DOWNSAMPLED_SERIES_H
#define AT_REPORT_SUMMARY_DOWNSAMPLED_SERIES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct at_downsampled at_downsampled;

/* An empty series with room for `points` >= 2 points; `names`, one per channel, are borrowed. NULL
 * when out of memory. */
at_downsampled *at_downsampled_new(const char *const *names, size_t channels, uint32_t points);
void            at_downsampled_free(at_downsampled *series); /* accepts NULL */

/* Adds a row. A value that is not finite is a gap. `serial` never decreases. */
void at_downsampled_add(at_downsampled *series, uint64_t serial, double seconds, uint64_t step,
                        const double *values);

/* Removes all points that include step `step` or a later one. */
void at_downsampled_rewind(at_downsampled *series, uint64_t step);

/* The points that are new or have changed after serial `since`:
 *
 *     {"from": 12, "every": 2, "t": [..], "step": [..],
 *      "loss": {"mean": [..], "min": [..], "max": [..]}, ..}
 *
 * A client keeps its first `from` points and appends these. `every` is the number of rows per
 * point; while it is 1, `min` and `max` are left out. So are channels that never had a value. */
json_t *at_downsampled_json(const at_downsampled *series, uint64_t since);

#endif

/* curve.h - one column of a CSV file against another, downsampled for plotting.
 *
 * A curve has at most AT_CURVE_POINTS_MAX points: while they fit, every row of the file is a point;
 * beyond that, neighbors are averaged. So a long run needs no more memory than a short one, and its
 * training loss is smoothed.
 */
#ifndef AT_REPORT_PLOT_CURVE_H
#define AT_REPORT_PLOT_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { AT_CURVE_POINTS_MAX = 200 };

typedef struct at_curve {
    size_t count;
    double x[AT_CURVE_POINTS_MAX]; /* never decreasing */
    double y[AT_CURVE_POINTS_MAX];
} at_curve;

/* Names of the columns to read. */
typedef struct at_curve_source {
    const char *x, *y;
    const char *where; /* rows where this column is empty are skipped, too; NULL: all rows count */
    bool        sum;   /* y is the running sum of the column */
} at_curve_source;

/* Reads two columns of FOLDER/NAME; rows where y is empty or not finite are skipped.
 * AT_ERR_MISSING when the file does not exist, AT_ERR_FORMAT with the line number when it is
 * malformed or x decreases. */
at_err at_curve_read(const char *folder, const char *name, const at_curve_source *source,
                     at_curve *curve, at_fail *fail);

/* The value at x, linearly interpolated; constant before the first and after the last point. The
 * curve MUST have a point. */
double at_curve_at(const at_curve *curve, double x);

/* The mean of several curves, from the latest of their starts to the latest of their ends. A curve
 * that has ended keeps its last value: its model does not change any more. Empty curves are
 * ignored. */
void at_curve_mean(const at_curve *curves, size_t count, at_curve *mean);

#endif

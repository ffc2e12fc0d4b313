/* curve.h - a column of a run's table against another one, thinned for plotting.
 *
 * A curve never holds more than AT_CURVE_POINTS_MAX points: while it fits, every line of the file
 * is a point; past that, neighbours are averaged, so a long run costs no more memory than a short
 * one and its training loss comes out smooth.
 */
#ifndef AT_REPORT_PLOT_CURVE_H
#define AT_REPORT_PLOT_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { AT_CURVE_POINTS_MAX = 200 };

typedef struct at_curve {
    size_t count;
    double x[AT_CURVE_POINTS_MAX]; /* never falling */
    double y[AT_CURVE_POINTS_MAX];
} at_curve;

/* What to read: names of columns. */
typedef struct at_curve_source {
    const char *x, *y;
    const char *where; /* lines where this one is empty are left out, too; NULL: all count */
    bool        sum;   /* of all y so far, instead of y */
} at_curve_source;

/* Reads two columns; lines where y is empty or not finite are left out. AT_ERR_MISSING when there
 * is no such file, AT_ERR_FORMAT with the line when it is not such a table or x ever falls. */
at_err at_curve_read_from(const char *path, const at_curve_source *from, at_curve *curve,
                          at_fail *fail);

/* Reads `column` against `time`, in seconds. */
at_err at_curve_read(const char *path, const char *column, at_curve *curve, at_fail *fail);

/* The mean of several runs' curves, from where the last of them begins to where the last one ends.
 * A run that has ended keeps its last value: that is what its model is worth from then on. Empty
 * curves do not count. */
void at_curve_mean(const at_curve *curves, size_t count, at_curve *mean);

#endif

/* plot.h - line plots as PNG and SVG, drawn by gnuplot.
 *
 * Beside each picture stay its data (.csv: series, x, y, name) and its script (.gp), so that a
 * picture can be drawn again, or drawn differently: cd FOLDER && gnuplot NAME.gp
 */
#ifndef AT_REPORT_PLOT_H
#define AT_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* One line. A point whose x or y is not finite (or past 1e100), or not positive on a
 * logarithmic axis, is a gap. */
typedef struct at_series {
    const char   *name; /* in the legend; any text is safe */
    const double *x, *y;
    size_t        count;
} at_series;

typedef struct at_plot {
    const char      *title, *x_label, *y_label; /* NULL: none */
    bool             x_log, y_log;
    bool             legend; /* at least two series have one anyway */
    const at_series *series;
    size_t           series_count;
} at_plot;

/* True when at least one point can be drawn. */
bool at_plot_has_points(const at_plot *plot);

/* Writes NAME.csv, NAME.gp, NAME.png and NAME.svg into the folder, which must exist. `name` is our
 * own and not the user's: letters, digits, '-', '_' and '.', a letter or digit first. Without a
 * point to draw it is AT_ERR_FORMAT and nothing is written; without gnuplot AT_ERR_MISSING, and the
 * .csv and .gp are there nevertheless. */
at_err at_plot_write(const at_plot *plot, const char *folder, const char *name, at_fail *fail);

#endif

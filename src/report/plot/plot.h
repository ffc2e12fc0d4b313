/* plot.h - line plots and histograms as PNG and SVG, drawn by gnuplot.
 *
 * Beside each plot stay its data (.csv: series, x, y, name) and its script (.gp), so that it can be
 * redrawn or changed: cd FOLDER && gnuplot NAME.gp
 */
#ifndef AT_REPORT_PLOT_PLOT_H
#define AT_REPORT_PLOT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* One line. A point whose x or y is not finite, exceeds 1e100, or is not positive on a logarithmic
 * axis, is a gap. */
typedef struct at_series {
    const char   *name; /* in the legend; any text is safe */
    const double *x, *y;
    size_t        count;
} at_series;

typedef enum at_plot_kind {
    AT_PLOT_LINES,
    AT_PLOT_STEPS /* filled: y is constant from its x to the next one */
} at_plot_kind;

typedef struct at_plot {
    at_plot_kind     kind;
    const char      *title, *x_label, *y_label; /* NULL: none */
    bool             x_log, y_log;
    bool             x_time, y_time; /* in seconds; drawn in the unit that fits: s, ms or us */
    bool             y_rate;         /* per second of x; drawn per unit of x */
    bool             x_whole;        /* integers: no ticks between them */
    bool             legend;         /* also for a single series */
    const at_series *series;
    size_t           series_count;
    const double    *mean; /* NULL, or an x per series for a dashed vertical line; NAN: none */
    const char      *note; /* shown instead when there are no points; NULL: nothing */
} at_plot;

/* True when at least one point can be drawn. */
bool at_plot_has_points(const at_plot *plot);

/* A plot with a name for its files. The name is chosen by the program, not by the user: letters,
 * digits, '-', '_' and '.', beginning with a letter or digit. */
typedef struct at_named_plot {
    const char *name;
    const char *heading; /* its title on a sheet */
    at_plot     plot;
    bool        alone; /* has its own script and images; otherwise only NAME.csv */
} at_named_plot;

/* Several plots on one page with a common legend: NAME.gp, NAME.png and NAME.svg. All plots MUST
 * have the same series. */
typedef struct at_sheet {
    const char          *name, *title;
    const at_named_plot *plots;
    size_t               count, columns;
} at_sheet;

/* Writes NAME.csv, NAME.gp, NAME.png and NAME.svg into the folder, which must exist, with a single
 * run of gnuplot. A plot without points has no files and shows its note on its sheet; a sheet
 * without points is left out. Without gnuplot AT_ERR_MISSING: the .csv and .gp files are written
 * nevertheless. */
at_err at_plot_write_all(const at_named_plot *plots, size_t plot_count, const at_sheet *sheets,
                         size_t sheet_count, const char *folder, at_fail *fail);

/* True when at least one of the sheet's plots has points. */
bool at_sheet_has_points(const at_sheet *sheet);

#endif

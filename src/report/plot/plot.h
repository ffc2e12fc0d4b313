/* plot.h - lines and histograms as PNG and SVG, drawn by gnuplot.
 *
 * Beside each picture stay its data (.csv: series, x, y, name) and its script (.gp), so that a
 * picture can be drawn again, or drawn differently: cd FOLDER && gnuplot NAME.gp
 */
#ifndef AT_REPORT_PLOT_PLOT_H
#define AT_REPORT_PLOT_PLOT_H

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

typedef enum at_plot_kind {
    AT_PLOT_LINES,
    AT_PLOT_STEPS /* filled: y holds from its x to the next one */
} at_plot_kind;

typedef struct at_plot {
    at_plot_kind     kind;
    const char      *title, *x_label, *y_label; /* NULL: none */
    bool             x_log, y_log;
    bool             x_time, y_time; /* seconds: drawn as s, ms or us, and so told in the label */
    bool             y_rate;         /* y is per second of x, and drawn per unit of x */
    bool             x_whole;        /* whole numbers: no marks between them */
    bool             legend;         /* at least two series have one anyway */
    const at_series *series;
    size_t           series_count;
    const double    *mean; /* of each series, on x, for a dashed upright; NAN: none. Or NULL */
    const char      *note; /* what to say in the middle when there is no point; NULL: nothing */
} at_plot;

/* True when at least one point can be drawn. */
bool at_plot_has_points(const at_plot *plot);

/* Writes NAME.csv, NAME.gp, NAME.png and NAME.svg into the folder, which must exist. `name` is our
 * own and not the user's: letters, digits, '-', '_' and '.', a letter or digit first. Without a
 * point to draw it is AT_ERR_FORMAT and nothing is written; without gnuplot AT_ERR_MISSING, and the
 * .csv and .gp are there nevertheless. */
at_err at_plot_write(const at_plot *plot, const char *folder, const char *name, at_fail *fail);

/* ---- several at once ----------------------------------------------------------------------- */

/* A plot that has a name for its files. */
typedef struct at_named_plot {
    const char *name;
    const char *heading; /* its title on a sheet */
    at_plot     plot;
    bool        alone; /* has a script and pictures of its own; if not, only NAME.csv */
} at_named_plot;

/* Several pictures on one page, with one legend for all: NAME.gp, NAME.png and NAME.svg. All of
 * them MUST have the same series. */
typedef struct at_sheet {
    const char          *name, *title;
    const at_named_plot *pictures;
    size_t               count, columns;
} at_sheet;

/* Writes all of them as at_plot_write does, with a single run of gnuplot. A picture without points
 * has no files and shows its note on its sheet; a sheet of nothing else is left out. */
at_err at_plot_write_all(const at_named_plot *pictures, size_t picture_count,
                         const at_sheet *sheets, size_t sheet_count, const char *folder,
                         at_fail *fail);

/* True when at least one of the sheet's pictures has points. */
bool at_sheet_has_points(const at_sheet *sheet);

#endif

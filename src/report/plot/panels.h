/* panels.h - plots that compare one or more runs.
 *
 *     CSV files of the runs ─► curves and histograms ─► NAME.csv ─► panels.png      sheet of nine
 *                                                               ├─► histograms.png  sheet of four
 *                                                               └─► NAME.png        one plot each
 *
 * docs/guide/compare.md describes each panel.
 */
#ifndef AT_REPORT_PLOT_PANELS_H
#define AT_REPORT_PLOT_PANELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* One series in every panel. */
typedef struct at_panel_runs {
    const char        *label;
    const char *const *folders; /* of its runs; curves against the step show only the first one,
                                   because a mean over runs is not meaningful there */
    size_t             count;
} at_panel_runs;

typedef struct at_panel_options {
    const char          *title;
    const char          *folder; /* output; must exist */
    const at_panel_runs *runs;
    size_t               run_count;
    bool                 all; /* every panel also as a plot of its own, not only the curves against
                                 time */
} at_panel_options;

/* Writes the plots with their data and scripts. `names` becomes the list of plots drawn, separated
 * by blanks; runs that recorded nothing leave it empty. A CSV file that was not recorded is not an
 * error; AT_ERR_FORMAT when one is malformed, otherwise as at_plot_write_all. */
at_err at_panels_write(const at_panel_options *options, char *names, size_t size, at_fail *fail);

#endif

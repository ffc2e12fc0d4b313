/* panels.h - the pictures of one or more runs side by side.
 *
 *     runs' CSV files ─► curves and histograms ─► NAME.csv ─► panels.png      a page of nine
 *                                                         ├─► histograms.png  a page of four
 *                                                         └─► NAME.png        one picture each
 *
 * docs/guide/compare.md tells what each panel shows.
 */
#ifndef AT_REPORT_PLOT_PANELS_H
#define AT_REPORT_PLOT_PANELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* One series of every panel. */
typedef struct at_panel_runs {
    const char        *label;
    const char *const *folders; /* of its runs, the first of which stands for it where a mean would
                                   mean nothing: against the number of the step */
    size_t             count;
} at_panel_runs;

typedef struct at_panel_options {
    const char          *title;  /* what was run */
    const char          *folder; /* to write to; must exist */
    const at_panel_runs *runs;
    size_t               run_count;
    bool                 all; /* every panel also as a picture of its own, not only the curves
                                 against time */
} at_panel_options;

/* Writes the pictures, with their data and scripts. `names` becomes the list of those drawn,
 * parted by blanks; runs that recorded nothing leave it empty. A table that a run was told not to
 * write is no failure; AT_ERR_FORMAT when one is malformed, otherwise as at_plot_write. */
at_err at_panels_write(const at_panel_options *options, char *names, size_t size, at_fail *fail);

#endif

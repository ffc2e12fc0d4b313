/* panel_list.h - what there is to see of a run, one row a panel; inside the report layer only. */
#ifndef AT_REPORT_PLOT_PANEL_LIST_H
#define AT_REPORT_PLOT_PANEL_LIST_H

#include <stdbool.h>

#include "report/plot/curve.h"

/* What histograms are made of, from worker_stats.csv and collect_stats.csv. */
typedef enum at_panel_quantity {
    AT_PANEL_DELAY,
    AT_PANEL_COMPUTE,
    AT_PANEL_SAMPLES,
    AT_PANEL_STALENESS,
    AT_PANEL_MESSAGES,
    AT_PANEL_WAIT,
    AT_PANEL_BATCH,
    AT_PANEL_QUANTITIES
} at_panel_quantity;

typedef struct at_panel {
    const char *name, *heading, *x_label, *y_label;
    bool        x_time, y_time, x_whole; /* as in a plot */

    /* A curve: */
    const char     *table; /* NULL: it is a histogram */
    at_curve_source source;
    bool            mean; /* of all runs, not the first one alone */

    /* A histogram: */
    at_panel_quantity of;
    bool              density; /* its area is 1 */

    bool        alone; /* a picture of its own, always */
    const char *note;  /* when there is nothing to draw */
} at_panel;

/* The first nine are the page `panels`, row by row; the next four are `histograms`. */
enum { AT_PAGE_PANELS = 9, AT_PAGE_HISTOGRAMS = 4, AT_PANELS = 14 };
extern const at_panel at_panels[AT_PANELS];

#endif

/* plot_script.h - the gnuplot script of a plot; inside the report layer only. */
#ifndef AT_REPORT_PLOT_SCRIPT_H
#define AT_REPORT_PLOT_SCRIPT_H

#include <stdio.h>

#include "report/plot.h"

/* True when point i of the series can be drawn on the plot's axes. */
bool at_plot_is_point(const at_plot *plot, const at_series *series, size_t i);

/* Writes the script that draws NAME.csv as NAME.png and NAME.svg. At least one point MUST be
 * drawable. */
void at_plot_script(FILE *file, const at_plot *plot, const char *name);

#endif

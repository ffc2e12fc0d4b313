/* plot_script.h - the gnuplot scripts of plots; inside the report layer only. */
#ifndef AT_REPORT_PLOT_PLOT_SCRIPT_H
#define AT_REPORT_PLOT_PLOT_SCRIPT_H

#include <stdio.h>

#include "report/plot/plot.h"

/* True when point i of the series can be drawn on the plot's axes. */
bool at_plot_is_point(const at_plot *plot, const at_series *series, size_t i);

/* Writes the script that draws NAME.csv as NAME.png and NAME.svg. At least one point MUST be
 * drawable. */
void at_plot_script(FILE *file, const at_plot *plot, const char *name);

/* Writes the script that draws the pictures' .csv files as NAME.png and NAME.svg of the sheet. */
void at_sheet_script(FILE *file, const at_sheet *sheet);

/* ---- parts of both (plot_script.c) --------------------------------------------------------- */

/* Starts a script: nothing of an earlier one stays. */
void at_script_begin(FILE *file, const char *comment);

/* Axes, labels and uprights of a plot. */
void at_script_frame(FILE *file, const at_plot *plot, const char *title);

/* The plot command, which reads NAME.csv; or the plot's note when it has no points. */
void at_script_plot(FILE *file, const at_plot *plot, const char *name);

/* "set SETTING 'TEXT' noenhanced FONT", or nothing when the text is NULL. */
void at_script_text(FILE *file, const char *setting, const char *text, const char *font);

/* What a sheet's legend shows: the look of a series without its data. */
void at_script_legend(FILE *file, const at_plot *plot);

#endif

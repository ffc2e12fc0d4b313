/* plot_script.h - gnuplot scripts for plots and sheets; inside the report layer only. */
#ifndef AT_REPORT_PLOT_PLOT_SCRIPT_H
#define AT_REPORT_PLOT_PLOT_SCRIPT_H

#include <stdio.h>

#include "report/plot/plot.h"

/* Writes the script that draws NAME.csv as NAME.png and NAME.svg. The plot MUST have points. */
void at_plot_script(FILE *file, const at_plot *plot, const char *name);

/* Writes the script that draws the plots' .csv files as NAME.png and NAME.svg of the sheet, which
 * MUST have points. */
void at_sheet_script(FILE *file, const at_sheet *sheet);

#endif

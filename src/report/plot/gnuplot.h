/* gnuplot.h - runs gnuplot scripts. */
#ifndef AT_REPORT_PLOT_GNUPLOT_H
#define AT_REPORT_PLOT_GNUPLOT_H

#include <stddef.h>

#include "base/err.h"

enum { AT_GNUPLOT_SCRIPTS_MAX = 32 };

/* Runs NAME.gp of each name inside the folder, in this order and in one gnuplot process (which
 * takes longer to start than to draw), without a shell and without the user's gnuplot settings, and
 * waits for it. AT_ERR_MISSING with a hint when gnuplot is not installed, AT_ERR_FAILED with its
 * output when a script fails. */
at_err at_gnuplot_run(const char *folder, const char *const *names, size_t count, at_fail *fail);

#endif

/* gnuplot.h - runs gnuplot on a script. */
#ifndef AT_REPORT_GNUPLOT_H
#define AT_REPORT_GNUPLOT_H

#include "base/err.h"

/* Runs `gnuplot SCRIPT` inside the folder, without a shell and without the user's own gnuplot
 * settings, and waits for it. AT_ERR_MISSING with a hint when it is not installed, AT_ERR_FAILED
 * with its own words when it does not like the script. */
at_err at_gnuplot_run(const char *folder, const char *script, at_fail *fail);

#endif

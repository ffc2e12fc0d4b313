/* plots.h - pictures as verbs make them: wanted or not, and no reason to fail. */
#ifndef AT_CLI_PLOTS_H
#define AT_CLI_PLOTS_H

#include "report/plot/panels.h"

/* Refuses what --plots cannot be. */
at_err at_plots_check(const char *plots, at_fail *fail);

/* Draws as --plots says (which replaces options->all). `names` becomes a list of the pictures,
 * parted by blanks. Pictures that cannot be drawn are told on stderr and are no failure; a full
 * disk is, and a table that is malformed. */
at_err at_plots_write(const char *plots, at_panel_options options, char *names, size_t size,
                      at_fail *fail);

enum { AT_PLOTS_NAMES_SIZE = 600 };

#endif

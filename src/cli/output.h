/* output.h - how verbs present results: JSON, tables and plots. */
#ifndef AT_CLI_OUTPUT_H
#define AT_CLI_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "report/plot/panels.h"
#include "report/summary/table.h"

/* printf to stdout, and to stderr, for texts that quote files, folders or other machines: terminals
 * obey control characters, so question marks are printed instead (at_text_remove_controls). */
void at_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void at_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a JSON document and a newline to stdout, all control characters escaped. */
at_err at_print_json(const json_t *document, at_fail *fail);

/* The same, then releases the document, also on failure. NULL (out of memory) is an error. */
at_err at_print_json_take(json_t *document, at_fail *fail);

/* Prints the metrics of a test set (the "test" object of result.json) as one line. */
void at_print_test(const json_t *test);

/* Prints a table and releases it, also on failure. NULL (out of memory) is an error. */
at_err at_print_table_take(at_table *table, at_fail *fail);

/* Refuses unknown values of --plots. */
at_err at_plots_check(const char *plots, at_fail *fail);

/* Draws the panels that --plots asks for (it replaces options->all). `names` receives the names of
 * the plots, separated by blanks. Plots that cannot be drawn are a warning on stderr; a full disk
 * or a malformed table is an error. */
at_err at_plots_write(const char *plots, at_panel_options options, char *names, size_t size,
                      at_fail *fail);

/* From now on, says at once when a signal has asked the program to stop, which may take as long as
 * a micro-batch. On a terminal the text has no end of line: what is drawn there replaces it. */
void at_announce_stop(bool quiet);

/* Warns on stderr if others can read this token file. NULL: there is none. */
void at_warn_exposed_token(const char *path);

/* Warns on stderr that plots are missing. */
void at_plots_warn(const at_fail *failed);

enum { AT_PLOTS_NAMES_SIZE = 600 };

#endif

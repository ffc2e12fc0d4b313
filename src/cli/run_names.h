/* run_names.h - finds run folders on disk, and reads their result.
 *
 * Wherever a verb takes RUN, `latest` (or runs/latest) is the run in runs/ that was written to
 * last, and NAME may stand for runs/NAME. So it is with comparisons and `compare --resume`.
 */
#ifndef AT_CLI_RUN_NAMES_H
#define AT_CLI_RUN_NAMES_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "cli/options/options.h"

enum { AT_RUN_PATH_SIZE = 4096 };

#define AT_RUNS_FOLDER "runs"

/* Whether the folder was written by a run, finished or not. */
bool at_run_is_folder(const char *folder);

/* When the run was last written to; 0 if it is not there. */
struct timespec at_run_changed(const char *folder);

/* Replaces names of runs in the words and options of these verbs by their paths. AT_ERR_MISSING for
 * `latest` when there is no run. */
at_err at_run_names_resolve(at_parsed *parsed, unsigned verb, at_fail *fail);

/* Removes the folder of a run and all that is in it. AT_ERR_USAGE when a run writes to it. */
at_err at_run_folder_remove(const char *folder, at_fail *fail);

/* Reads an object from FOLDER/NAME, to be released by the caller. AT_ERR_MISSING, AT_ERR_FORMAT. */
at_err at_run_json_read(const char *folder, const char *name, json_t **document, at_fail *fail);

/* Reads FOLDER/result.json, to be released by the caller. AT_ERR_MISSING when the run is not over,
 * AT_ERR_FORMAT. */
at_err at_run_result_read(const char *folder, json_t **result, at_fail *fail);

#endif

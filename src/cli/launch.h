/* launch.h - from settings to a run: shared by train and compare. */
#ifndef AT_CLI_LAUNCH_H
#define AT_CLI_LAUNCH_H

#include "cli/options/options.h"
#include "world/core/run.h"

/* A run that is ready to go: settings checked, data loaded. */
typedef struct at_launch {
    at_task        task;
    at_run_options run;
} at_launch;

/* Checks the settings of a train-like verb and loads the data. `parsed` MUST outlive the launch. */
at_err at_launch_open(at_launch *launch, const at_parsed *parsed, const char *command,
                      at_fail *fail);
/* The same for a user's own model (anytime.h), which starts from and ends in `params`. */
at_err at_launch_own(at_launch *launch, const at_parsed *parsed, const at_own_model *model,
                     float *params, at_fail *fail);
/* Releases it; accepts a zeroed one. */
void at_launch_close(at_launch *launch);

/* Finds out whether this is a rank of the MPI world, and makes it one: ranks decide how many
 * workers there are. The launcher is borrowed; it MUST outlive `parsed`. */
at_err at_launch_ranks(at_parsed *parsed, const at_launcher *launcher, at_fail *fail);

/* Reads "accuracy=0.9,loss=0.2". */
at_err at_launch_targets(const char *text, at_limits *limits, at_fail *fail);

/* Reads "fast" or "ref". */
at_err at_launch_engine(const char *text, at_engine *engine, at_fail *fail);

/* The folder a verb writes to: `given`, which must not exist yet, or a new name runs/DATE-name. */
at_err at_launch_folder(const char *given, const char *name, char *path, size_t size,
                        at_fail *fail);

#endif

/* launch.h - turns settings into a run that is ready to start. */
#ifndef AT_CLI_LAUNCH_H
#define AT_CLI_LAUNCH_H

#include "cli/options/options.h"
#include "data/set/dataset.h"
#include "world/core/run.h"

/* A run that is ready to start: settings checked, data loaded. */
typedef struct at_launch {
    at_task        task;
    at_run_options run;
} at_launch;

/* Checks the settings and loads the data. `parsed` MUST outlive the launch. `inputs`, if not NULL,
 * is what samples the model reads (data/set/inputs.h): then only test samples are loaded. */
at_err at_launch_open_inputs(at_launch *launch, const at_parsed *parsed, const char *command,
                             const char *inputs, at_fail *fail);
/* The same with the data of the settings. */
at_err at_launch_open(at_launch *launch, const at_parsed *parsed, const char *command,
                      at_fail *fail);
/* The same for a user's own model (anytime.h). Training starts from `params` and ends there. */
at_err at_launch_own(at_launch *launch, const at_parsed *parsed, const at_own_model *model,
                     float *params, at_fail *fail);
/* Checks the settings for programs that take seats, as far as that is possible before they have
 * said what they train. */
at_err at_launch_check_seats(const at_parsed *parsed, at_fail *fail);
/* The same for them, when that is known. `seats` is borrowed. */
at_err at_launch_seats(at_launch *launch, at_parsed *parsed, const char *command,
                       struct at_seat_hub *seats, at_fail *fail);
/* Releases it; accepts a zeroed one. */
void at_launch_close(at_launch *launch);

/* If this process is to be a rank of the MPI world, sets the world and derives the number of
 * workers from the number of ranks. The launcher is borrowed; it MUST outlive `parsed`. */
at_err at_launch_ranks(at_parsed *parsed, const at_launcher *launcher, at_fail *fail);

/* Parses "accuracy=0.9,loss=0.2". */
at_err at_launch_targets(const char *text, at_limits *limits, at_fail *fail);

/* How to read data, by --label, --missing and others. */
at_err at_launch_reading(const at_settings *settings, at_read_options *reading, at_fail *fail);

/* Parses "fast" or "ref". */
at_err at_launch_engine(const char *text, at_engine *engine, at_fail *fail);

/* Creates the folder a verb writes to: `given`, which must not exist, or runs/DATE-name with the
 * next free suffix (-2, -3, ..). After a failure `path` is empty. */
at_err at_launch_folder(const char *given, const char *name, char *path, size_t size,
                        at_fail *fail);

/* Removes that folder again if nothing was written to it; accepts an empty path. */
void at_launch_drop_folder(const char *path);

#endif

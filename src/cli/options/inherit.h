/* inherit.h - takes options from a recorded run: --resume, --from, eval, predict, export. */
#ifndef AT_CLI_OPTIONS_INHERIT_H
#define AT_CLI_OPTIONS_INHERIT_H

#include "cli/options/options.h"
#include "model_io/checkpoint.h"

/* Takes every option echoed in RUN/result.json that was not given, except the names in `except`.
 * For an unfinished run, reads the echo of its newest checkpoint. AT_ERR_MISSING or AT_ERR_FORMAT
 * when there is neither. */
at_err at_inherit_run_options(at_parsed *parsed, const char *run, const char *const *except,
                              size_t except_count, at_fail *fail);

/* Takes the text of the net that was kept in a file of weights, if it was a file of the user's, so
 * that the model can be built although that file has changed or is gone. */
at_err at_inherit_net_text(at_parsed *parsed, const char *weights, at_fail *fail);

/* Opens the newest valid checkpoint of parsed->settings.resume and takes the settings of its run,
 * except those that the user changes. AT_ERR_USAGE for an option that must not change. */
at_err at_resume_open(at_parsed *parsed, at_checkpoint *checkpoint, at_fail *fail);

/* Makes the options of a run those of its resumption: at_resume_open can follow. */
void at_resume_again(at_parsed *parsed, const char *run);

#endif

/* resume.h - --resume RUN: the settings of a run that goes on, and its newest checkpoint. */
#ifndef AT_CLI_OPTIONS_RESUME_H
#define AT_CLI_OPTIONS_RESUME_H

#include "cli/options/options.h"
#include "model_io/checkpoint.h"

/* Opens the newest sound checkpoint of parsed->settings.resume and takes over every setting of the
 * run that may not or was not given anew. AT_ERR_USAGE for an option that cannot change. */
at_err at_resume_open(at_parsed *parsed, at_checkpoint *checkpoint, at_fail *fail);

#endif

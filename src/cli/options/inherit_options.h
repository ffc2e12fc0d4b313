/* inherit_options.h - the options of a recorded run, taken over by a verb that builds on it. */
#ifndef AT_CLI_OPTIONS_INHERIT_OPTIONS_H
#define AT_CLI_OPTIONS_INHERIT_OPTIONS_H

#include "cli/options/options.h"

/* Takes every option that RUN/result.json echoes and that was not given, but for the names in
 * `except`; of a run that has not ended, those that its newest checkpoint echoes. AT_ERR_MISSING or
 * AT_ERR_FORMAT when there is neither. */
at_err at_inherit_run_options(at_parsed *parsed, const char *run, const char *const *except,
                              size_t except_count, at_fail *fail);

#endif

/* measured_options.h - the options that `advise` and `calibrate` share. */
#ifndef AT_CLI_VERBS_MEASURED_OPTIONS_H
#define AT_CLI_VERBS_MEASURED_OPTIONS_H

#include "advise/fit.h"
#include "cli/options/options.h"

/* Reads --unit, --normalised and --delays. AT_ERR_USAGE for unknown values. */
at_err at_measured_options(const at_settings *settings, at_step_log_options *log, at_delays *delays,
                           at_fail *fail);

#endif

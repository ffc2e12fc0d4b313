/* whatif.h - `simulate --from RUN`: the machines of a recorded run, under another strategy. */
#ifndef AT_CLI_VERBS_WHATIF_H
#define AT_CLI_VERBS_WHATIF_H

#include "cli/options/options.h"

/* Takes every option that the user did not give from RUN's result.json, and speeds, sleeps and
 * message times from its event log; the sleeps are written to `folder`, which is made. */
at_err at_whatif_apply(at_parsed *parsed, const char *folder, at_fail *fail);

#endif

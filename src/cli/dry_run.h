/* dry_run.h - what a run would do, without doing it (--dry-run). */
#ifndef AT_CLI_DRY_RUN_H
#define AT_CLI_DRY_RUN_H

#include "cli/launch.h"

/* Checks everything that is checked before a run starts, and prints its sizes, the memory it needs
 * and about how long it takes, with --json as a document. Measures the time of a sample here. */
at_err at_dry_run(const at_launch *launch, const at_settings *settings, at_fail *fail);

#endif

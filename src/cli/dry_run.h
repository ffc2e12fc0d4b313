/* dry_run.h - what a run would do, without doing it (--dry-run). */
#ifndef AT_CLI_DRY_RUN_H
#define AT_CLI_DRY_RUN_H

#include "cli/launch.h"

/* What a run would take; NAN: it depends on time or a target. */
typedef struct at_dry_estimate {
    at_run_preview preview;
    double         step_samples; /* mean, of all workers */
    double         samples;      /* of the whole run */
    double         sample_seconds;
    double         seconds; /* of computing, without delays and waiting */
} at_dry_estimate;

/* Checks the run and measures the time of a sample here. */
at_err at_dry_run_estimate(const at_launch *launch, at_dry_estimate *estimate, at_fail *fail);

/* Checks everything that is checked before a run starts, and prints its sizes, the memory it needs
 * and about how long it takes, with --json as a document. Measures the time of a sample here. */
at_err at_dry_run(const at_launch *launch, const at_settings *settings, at_fail *fail);

#endif

/* run.h - one run whose workers are programs; for `run`, `hub`, `compare` and `sweep`. */
#ifndef AT_CLI_VERBS_RUN_H
#define AT_CLI_VERBS_RUN_H

#include <jansson.h>

#include "cli/options/options.h"
#include "model_io/checkpoint.h"
#include "world/seat/seat_hub.h"

typedef struct at_program_run {
    const char          *command; /* as typed, for the record */
    const char          *folder;  /* exists and is locked */
    const at_checkpoint *resume;  /* NULL: start at step 0 */
    bool                 shows;   /* prints progress and result, may serve a dashboard */
    bool                 listens; /* others start the programs: the hub listens for them */
} at_program_run;

/* Opens a hub for programs, or for workers of our own, as the settings say. */
at_err at_run_open_hub(const at_parsed *parsed, const at_program_run *run, at_seat_hub *hub,
                       at_fail *fail);

/* Starts a hub and the programs of parsed->command, trains, and waits until the programs have
 * ended. *result is set as by at_run; the caller owns it. A run that ended well ends with the worst
 * code of its programs. */
at_err at_run_programs(at_parsed *parsed, const at_program_run *run, json_t **result,
                       at_fail *fail);

#endif

/* trained_model.h - a trained model taken up again: how predict, eval and export begin. */
#ifndef AT_CLI_TRAINED_MODEL_H
#define AT_CLI_TRAINED_MODEL_H

#include "cli/launch.h"

typedef struct at_trained_model {
    at_launch   launch;
    const char *source; /* the folder of a run or the file, as typed */
    float      *params; /* the flat vector of launch.task */
} at_trained_model;

/* Takes up the model that the one word behind the verb names: the newest weights of a run, or a
 * .safetensors file. Options that are not given are those of the run, or what the file says about
 * itself. The task is open, for scoring. AT_ERR_USAGE, AT_ERR_MISSING, AT_ERR_FORMAT. */
at_err at_trained_model_open(at_trained_model *trained, const char *verb, at_parsed *parsed,
                             const char *command, at_fail *fail);
/* Releases it; accepts a zeroed one. */
void at_trained_model_close(at_trained_model *trained);

#endif

/* trained_model.h - loads a trained model for predict, eval and export. */
#ifndef AT_CLI_TRAINED_MODEL_H
#define AT_CLI_TRAINED_MODEL_H

#include "cli/launch.h"

typedef struct at_trained_model {
    at_launch   launch;
    const char *source; /* run folder or file, as typed */
    float      *params; /* flat parameter vector of launch.task */
} at_trained_model;

/* Loads the model named by the one word after the verb: the newest weights of a run, or a
 * .safetensors file. Options that are not given come from the run or from the metadata of the file.
 * Leaves the task open for scoring. AT_ERR_USAGE, AT_ERR_MISSING, AT_ERR_FORMAT. */
at_err at_trained_model_open(at_trained_model *trained, const char *verb, at_parsed *parsed,
                             const char *command, at_fail *fail);
/* Releases it; accepts a zeroed one. */
void at_trained_model_close(at_trained_model *trained);

#endif

/* trained_model.h - loads a trained model for predict, eval and export. */
#ifndef AT_CLI_TRAINED_MODEL_H
#define AT_CLI_TRAINED_MODEL_H

#include "cli/launch.h"

/* The samples that a verb needs. */
typedef enum at_samples {
    AT_SAMPLES_NONE,    /* the model alone */
    AT_SAMPLES_LABELED, /* the test set, with labels */
    AT_SAMPLES_ANY      /* the test set, or rows or pictures without labels */
} at_samples;

typedef struct at_trained_model {
    at_launch   launch;
    const char *source;        /* run folder or file, as typed */
    float      *params;        /* flat parameter vector of launch.task */
    char       *inputs, *prep; /* kept with the weights; NULL: they are of an older version */
} at_trained_model;

/* Loads the model named by the first word after the verb: the newest weights of a run, or a
 * .safetensors file. Options that are not given come from the run or from the metadata of the file.
 * The training data is needed only for a test set that is a part of it. Leaves the task open for
 * scoring. AT_ERR_USAGE, AT_ERR_MISSING, AT_ERR_FORMAT. */
at_err at_trained_model_open(at_trained_model *trained, const char *verb, at_samples samples,
                             at_parsed *parsed, const char *command, at_fail *fail);
/* Releases it; accepts a zeroed one. */
void at_trained_model_close(at_trained_model *trained);

#endif

/* train.h - what verbs that train have in common. */
#ifndef AT_CLI_VERBS_TRAIN_H
#define AT_CLI_VERBS_TRAIN_H

#include <jansson.h>

#include "cli/options/options.h"

/* Writes trace.json if `writes`, and prints the result of a run that ended with `err`. Returns the
 * first error. */
at_err at_show_result(const at_parsed *parsed, const char *folder, const json_t *result,
                      bool writes, at_err err, at_fail *fail);

#endif

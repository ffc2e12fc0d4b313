/* subcommands.h - verbs with a word of their own: `anytime data list`, `anytime models show
 * NAME`. */
#ifndef AT_CLI_OPTIONS_SUBCOMMANDS_H
#define AT_CLI_OPTIONS_SUBCOMMANDS_H

#include "cli/options/options.h"

typedef struct at_subcommand {
    const char *name;
    const char *argument; /* what must follow, for messages: "NAME"; NULL: nothing may */
    at_err (*run)(const at_parsed *parsed, const char *argument, at_fail *fail);
} at_subcommand;

/* Runs the action (of a table that ends with a row of zeros) that the words behind the verb ask
 * for. AT_ERR_USAGE when there is none of that name, or when its argument is missing or one too
 * many. */
at_err at_subcommand_run(const char *verb, const at_subcommand *actions, const at_parsed *parsed,
                         at_fail *fail);

#endif

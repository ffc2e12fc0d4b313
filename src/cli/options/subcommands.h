/* subcommands.h - verbs with subcommands: `anytime data list`, `anytime models show NAME`. */
#ifndef AT_CLI_OPTIONS_SUBCOMMANDS_H
#define AT_CLI_OPTIONS_SUBCOMMANDS_H

#include "cli/options/options.h"

typedef struct at_subcommand {
    const char *name;
    const char *argument; /* its one required argument, for messages: "NAME"; NULL: none */
    at_err (*run)(const at_parsed *parsed, const char *argument, at_fail *fail);
} at_subcommand;

/* Runs the subcommand that the words after the verb name; the table ends with a row of zeros.
 * AT_ERR_USAGE for an unknown name, a missing argument or too many arguments. */
at_err at_subcommand_run(const char *verb, const at_subcommand *subcommands,
                         const at_parsed *parsed, at_fail *fail);

#endif

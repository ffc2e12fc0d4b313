/* Which options make sense when the workers are programs with their own loop. */
#include <string.h>

#include "cli/options/options.h"

/* Of groups that otherwise belong to the hub. */
static const char *const refused[] = {
    "micro-batch", "deal",       "shard",      "topology", "hubs",      "respawn", "world",
    "threads",     "eval-every", "comm-delay", "latency",  "bandwidth", "faults",  "dry-run"};

bool at_option_works_with_seats(const at_option *option)
{
    if (option->group == AT_GROUP_MODEL || option->group == AT_GROUP_OPTIMIZATION ||
        option->group == AT_GROUP_COMPUTATION)
        return false;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(option->name, refused[i]) == 0) return false;
    return true;
}

at_err at_options_refuse_for_seats(const at_parsed *parsed, at_fail *fail)
{
    for (const at_option *option = at_options; option->name; option++)
        if (parsed->given[option - at_options] && !at_option_works_with_seats(option))
            return at_fail_set(fail, AT_ERR_USAGE, "leave it out; the program decides about it",
                               "--%s does not work with programs as workers: model, data, "
                               "optimizer and evaluation belong to the program",
                               option->name);
    return AT_OK;
}

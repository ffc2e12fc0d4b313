#include "cli/options/subcommands.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

enum { ACTIONS_MAX = 16 };

/* "write: anytime data list, anytime data get NAME, ..." */
static void describe(at_text *text, const char *verb, const at_subcommand *actions)
{
    at_text_add(text, "write");
    for (const at_subcommand *a = actions; a->name; a++)
        at_text_add(text, "%s anytime %s %s%s%s", a == actions ? "" : " or", verb, a->name,
                    a->argument ? " " : "", a->argument ? a->argument : "");
}

static at_err no_such_action(const char *verb, const at_subcommand *actions, const char *name,
                             at_fail *fail)
{
    const char *names[ACTIONS_MAX];
    char        hint[200];
    size_t      count = 0;
    at_text     text = at_text_in(hint, sizeof hint);
    for (const at_subcommand *a = actions; a->name; a++) {
        assert(count < ACTIONS_MAX);
        names[count++] = a->name;
    }
    const char *nearest = name ? at_text_nearest(name, names, count) : NULL;
    if (nearest) at_text_add(&text, "did you mean %s? ", nearest);
    describe(&text, verb, actions);
    if (!name) return at_fail_set(fail, AT_ERR_USAGE, hint, "%s needs to know what to do", verb);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "%s cannot '%s'", verb, name);
}

at_err at_subcommand_run(const char *verb, const at_subcommand *actions, const at_parsed *parsed,
                         at_fail *fail)
{
    const at_subcommand *action = actions;
    const char          *name = parsed->words > 0 ? parsed->word[0] : NULL;
    assert(actions->name);
    while (name && action->name && strcmp(action->name, name) != 0) action++;
    if (!name || !action->name) return no_such_action(verb, actions, name, fail);

    uint32_t words = action->argument ? 2 : 1;
    if (parsed->words < words)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "anytime %s %s needs a %s", verb, name,
                           action->argument);
    if (parsed->words > words)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "anytime %s %s: one argument too many: '%s'",
                           verb, name, parsed->word[words]);
    return action->run(parsed, action->argument ? parsed->word[1] : NULL, fail);
}

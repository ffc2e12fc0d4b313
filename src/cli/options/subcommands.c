#include "cli/options/subcommands.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

enum { SUBCOMMANDS_MAX = 16 };

/* "subcommands: list, get NAME, .." */
static void add_subcommands(at_text *text, const at_subcommand *subcommands)
{
    at_text_add(text, "subcommands:");
    for (const at_subcommand *s = subcommands; s->name; s++)
        at_text_add(text, "%s %s%s%s", s == subcommands ? "" : ",", s->name, s->argument ? " " : "",
                    s->argument ? s->argument : "");
}

static at_err unknown_subcommand(const char *verb, const at_subcommand *subcommands,
                                 const char *name, at_fail *fail)
{
    const char *names[SUBCOMMANDS_MAX];
    char        hint[200];
    size_t      count = 0;
    at_text     text = at_text_in(hint, sizeof hint);
    for (const at_subcommand *s = subcommands; s->name; s++) {
        assert(count < SUBCOMMANDS_MAX);
        names[count++] = s->name;
    }
    const char *nearest = name ? at_text_nearest(name, names, count) : NULL;
    if (nearest) at_text_add(&text, "did you mean %s? ", nearest);
    add_subcommands(&text, subcommands);
    if (!name) return at_fail_set(fail, AT_ERR_USAGE, hint, "%s needs a subcommand", verb);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "unknown subcommand '%s %s'", verb, name);
}

at_err at_subcommand_run(const char *verb, const at_subcommand *subcommands,
                         const at_parsed *parsed, at_fail *fail)
{
    const at_subcommand *subcommand = subcommands;
    const char          *name = parsed->words > 0 ? parsed->word[0] : NULL;
    assert(subcommands->name);
    while (name && subcommand->name && strcmp(subcommand->name, name) != 0) subcommand++;
    if (!name || !subcommand->name) return unknown_subcommand(verb, subcommands, name, fail);

    uint32_t words = subcommand->argument ? 2 : 1;
    if (parsed->words < words) {
        char    hint[64];
        at_text text = at_text_in(hint, sizeof hint);
        at_text_add(&text, "`anytime %s list` shows all names", verb);
        return at_fail_set(fail, AT_ERR_USAGE, hint, "anytime %s %s needs a %s", verb, name,
                           subcommand->argument);
    }
    if (parsed->words > words)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "anytime %s %s: unexpected argument '%s'",
                           verb, name, parsed->word[words]);
    return subcommand->run(parsed, subcommand->argument ? parsed->word[1] : NULL, fail);
}

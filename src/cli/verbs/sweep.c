/* `anytime sweep --over NAME=V1,V2,..`: a comparison of entries that differ in one option. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/verbs/verbs.h"

enum { ENTRY_SIZE = 256, NAME_SIZE = 64 };

/* Labels become folder names, so other characters than letters, digits and dots become dashes. */
static void add_label(at_text *text, const char *name, const char *value)
{
    at_text_add(text, "%s-", name);
    for (; *value; value++) {
        bool plain = isalnum((unsigned char)*value) || *value == '.';
        at_text_add(text, "%c", plain ? *value : '-');
    }
}

static at_err add_entry(at_parsed *parsed, const char *name, const char *value, at_fail *fail)
{
    char *entry = at_arena_get(&parsed->texts, 1, ENTRY_SIZE);
    if (!entry || parsed->words == AT_WORDS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--over: more than %d values", AT_WORDS_MAX);
    at_text text = at_text_in(entry, ENTRY_SIZE);
    at_text_add(&text, "%s%c%s%s=%s,label=", parsed->settings.strategy,
                strchr(parsed->settings.strategy, ':') ? ',' : ':',
                strcmp(name, "label") == 0 ? "--" : "", name, value);
    add_label(&text, name, value);
    if (!*value || text.full)
        return at_fail_set(fail, AT_ERR_USAGE, "write it as --over batch=16,32,64",
                           "--over: '%s' is not a value to sweep over", value);
    parsed->word[parsed->words++] = entry;
    return AT_OK;
}

at_err at_verb_sweep(at_parsed *parsed, const char *command, at_fail *fail)
{
    const char *over = parsed->settings.over, *equals = over ? strchr(over, '=') : NULL;
    char        name[NAME_SIZE], values[1024], *rest = values, *value;
    AT_TRY(at_options_refuse_words(parsed, fail));
    if (!equals || equals == over || (size_t)(equals - over) >= sizeof name ||
        strlen(equals + 1) >= sizeof values)
        return at_fail_set(fail, AT_ERR_USAGE, "for example --over batch=16,32,64",
                           "sweep needs --over NAME=V1,V2,..");
    snprintf(name, sizeof name, "%.*s", (int)(equals - over), over);
    snprintf(values, sizeof values, "%s", equals + 1);
    while ((value = strsep(&rest, ","))) AT_TRY(add_entry(parsed, name, value, fail));
    return at_verb_compare(parsed, command, fail);
}

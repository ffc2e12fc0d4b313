/* `anytime sweep --over NAME=V1,V2,..`: a comparison of entries that differ in one option, or in
 * several: a grid of all combinations. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/verbs/verbs.h"

enum { ENTRY_SIZE = 512, NAME_SIZE = 64, OPTIONS_MAX = 6 };

/* An option that is varied. */
typedef struct axis {
    char  name[NAME_SIZE];
    char  values[1024]; /* zero-terminated, one after the other */
    char *value[AT_WORDS_MAX];
    int   count;
} axis;

/* Labels become folder names, so other characters than letters, digits and dots become dashes. */
static void add_label(at_text *text, const char *name, const char *value)
{
    at_text_add(text, "%s-", name);
    for (; *value; value++) {
        bool plain = isalnum((unsigned char)*value) || *value == '.';
        at_text_add(text, "%c", plain ? *value : '-');
    }
}

/* Adds the entry with these values, one of each axis. */
static at_err add_entry(at_parsed *parsed, const axis *axes, int count, const int *at,
                        at_fail *fail)
{
    char *entry = at_arena_get(&parsed->texts, 1, ENTRY_SIZE);
    if (!entry || parsed->words == AT_WORDS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--over: more than %d combinations",
                           AT_WORDS_MAX);
    at_text text = at_text_in(entry, ENTRY_SIZE);
    at_text_add(&text, "%s%c", parsed->settings.strategy,
                strchr(parsed->settings.strategy, ':') ? ',' : ':');
    for (int i = 0; i < count; i++)
        at_text_add(&text, "%s%s=%s,", strcmp(axes[i].name, "label") == 0 ? "--" : "", axes[i].name,
                    axes[i].value[at[i]]);
    at_text_add(&text, "label=");
    for (int i = 0; i < count; i++) {
        if (i > 0) at_text_add(&text, "-");
        add_label(&text, axes[i].name, axes[i].value[at[i]]);
    }
    if (text.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "--over: the values are too long");
    parsed->word[parsed->words++] = entry;
    return AT_OK;
}

/* All combinations; the last axis changes first. */
static at_err add_entries(at_parsed *parsed, const axis *axes, int count, at_fail *fail)
{
    int at[OPTIONS_MAX] = {0};
    for (;;) {
        AT_TRY(add_entry(parsed, axes, count, at, fail));
        int i = count - 1;
        while (i >= 0 && ++at[i] == axes[i].count) at[i--] = 0;
        if (i < 0) return AT_OK;
    }
}

/* NAME=V1,V2,.. */
static at_err read_axis(axis *a, const char *over, size_t length, at_fail *fail)
{
    const char *equals = memchr(over, '=', length);
    size_t      name = equals ? (size_t)(equals - over) : 0;
    char       *rest = a->values, *value;
    if (!equals || name == 0 || name >= sizeof a->name || length - name > sizeof a->values)
        return at_fail_set(fail, AT_ERR_USAGE, "for example --over batch=16,32,64",
                           "sweep needs --over NAME=V1,V2,..");
    snprintf(a->name, sizeof a->name, "%.*s", (int)name, over);
    snprintf(a->values, sizeof a->values, "%.*s", (int)(length - name - 1), equals + 1);
    while ((value = strsep(&rest, ","))) {
        if (!*value || a->count == AT_WORDS_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, "write it as --over batch=16,32,64",
                               "--over: '%s' is not a value to sweep over", value);
        a->value[a->count++] = value;
    }
    return AT_OK;
}

/* An option that is given twice is meant as one with the values of both. */
static at_err refuse_again(const axis *axes, int last, at_fail *fail)
{
    for (int i = 0; i < last; i++)
        if (strcmp(axes[i].name, axes[last].name) == 0)
            return at_fail_set(fail, AT_ERR_USAGE, "write all its values as --over NAME=V1,V2,..",
                               "--over: %s is given twice", axes[i].name);
    return AT_OK;
}

at_err at_verb_sweep(at_parsed *parsed, const char *command, at_fail *fail)
{
    static axis axes[OPTIONS_MAX];
    int         count = 0;
    const char *over = parsed->settings.over;
    if (parsed->settings.resume) return at_verb_compare(parsed, command, fail);
    AT_TRY(at_options_refuse_words(parsed, fail));
    if (!over) return read_axis(&axes[0], "", 0, fail);
    memset(axes, 0, sizeof axes);
    for (size_t length; *over; over += length + (over[length] == '\n')) {
        length = strcspn(over, "\n");
        if (count == OPTIONS_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "--over: more than %d options",
                               OPTIONS_MAX);
        AT_TRY(read_axis(&axes[count], over, length, fail));
        AT_TRY(refuse_again(axes, count++, fail));
    }
    AT_TRY(add_entries(parsed, axes, count, fail));
    return at_verb_compare(parsed, command, fail);
}

/* Prints the options of a verb for --help. */
#include <string.h>

#include "cli/options/options.h"
#include "step/plan.h"

enum { COLUMN = 33, COLUMNS_MAX = 100 }; /* where texts begin, and the width of a line */

/* The level of an option for this verb. What belongs to another verb is not listed: -1. */
static int level_of(const at_option *row, unsigned verb)
{
    bool trains = (verb & AT_FOR_TRAIN) && !(verb & AT_FOR_SIMULATE);
    bool elsewhere = row->level == AT_LEVEL_SIMULATION ? trains : !(verb & AT_FOR_WATCH);
    if (!(row->verbs & verb)) return -1;
    if ((verb & AT_FOR_RUN) && !at_option_works_with_seats(row)) return -1;
    if ((verb & AT_FOR_HUB) && strcmp(row->name, "world") == 0) return -1;
    if ((verb & AT_FOR_HUB) && strcmp(row->name, "workers-max") == 0) return AT_LEVEL_RARE;
    if (row->level <= AT_LEVEL_RARE) return (int)row->level;
    return elsewhere ? -1 : AT_LEVEL_RARE;
}

bool at_option_is_listed(const at_option *row, unsigned verb)
{
    return level_of(row, verb) >= 0;
}

/* Options of `train` with which other verbs mean something else. They have no row of their own,
 * because they are settings of the same run. */
static const struct {
    unsigned    verb;
    const char *name, *help;
} meanings[] = {
    {AT_FOR_HUB, "workers",
     "Workers with which the run begins; others may join later, up to --workers-max [1]"},
    {AT_FOR_HUB, "workers-max", "Most workers at a time [64, or --workers if that is more]"},
    {AT_FOR_RUN, "workers", "Copies of COMMAND to start, also as -n N [one per core]"},
    {AT_FOR_RUN, "epochs", "Stop after X passes over the data, counted in samples used [no limit]"},
};

static const char *help_of(const at_option *row, unsigned verb)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if ((verb & meanings[i].verb) && strcmp(row->name, meanings[i].name) == 0)
            return meanings[i].help;
    return row->help;
}

static size_t count_options(unsigned verb, at_option_level rarest)
{
    size_t count = 0;
    for (const at_option *row = at_options; row->name; row++) {
        int level = level_of(row, verb);
        count += level >= 0 && level <= (int)rarest;
    }
    return count;
}

static void add_list(at_text *text, const at_option *row)
{
    if (row->type == AT_OPTION_STRATEGY) {
        at_text_add(text, ":");
        for (size_t i = 0; i < at_strategies_count; i++)
            at_text_add(text, " %s", at_strategies[i].name);
    }
    for (int i = 0; row->type == AT_OPTION_RULE && i < AT_FAMILY_COUNT; i++) {
        if (strcmp(row->name, at_family_name[i]) != 0) continue;
        at_text_add(text, ": ");
        at_rule_list((enum at_family)i, text);
        at_text_add(text, " [set by the strategy]");
    }
}

/* Prints text in lines of at most COLUMNS_MAX columns, continuation lines indented. */
static void print_wrapped(FILE *file, const char *text)
{
    int column = COLUMN;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column + 1 + word > COLUMNS_MAX && column > COLUMN) {
            fprintf(file, "\n%*s", COLUMN, "");
            column = COLUMN;
        }
        fprintf(file, " %.*s", word, text);
        column += 1 + word;
        text += word;
        text += strspn(text, " ");
    }
    fprintf(file, "\n");
}

static void add_default(at_text *text, const at_option *row, const char *help)
{
    size_t length = strlen(help);
    bool   stated = length > 0 && help[length - 1] == ']';
    if (!row->fallback || stated) return;
    if (row->value)
        at_text_add(text, " [%s]", row->fallback);
    else if (strcmp(row->fallback, "yes") == 0)
        at_text_add(text, " [yes; --no-%s]", row->name);
}

void at_option_describe(const at_option *row, unsigned verb, at_text *text)
{
    const char *help = help_of(row, verb);
    at_text_add(text, "%s", help);
    add_list(text, row);
    add_default(text, row, help);
}

/* A placeholder in brackets is optional; it is shown only where it makes a difference. */
static void print_option(FILE *file, const at_option *row, unsigned verb, bool has_more)
{
    char    name[64], help[600];
    at_text text = at_text_in(name, sizeof name), about = at_text_in(help, sizeof help);
    bool    shows_value = row->value && (row->value[0] != '[' || has_more);
    at_text_add(&text, "--%s%s%s", row->name, shows_value ? " " : "",
                shows_value ? row->value : "");
    at_option_describe(row, verb, &about);
    fprintf(file, "  %-*s", COLUMN - 2, name);
    print_wrapped(file, help);
}

/* Prints the options of `verb` in this group with a level from `first` to `last`. */
static void print_group(FILE *file, unsigned verb, at_option_group group, at_option_level first,
                        at_option_level last, bool has_more)
{
    bool has_heading = false;
    for (const at_option *row = at_options; row->name; row++) {
        int level = level_of(row, verb);
        if (row->group != group || level < (int)first || level > (int)last) continue;
        if (!has_heading) fprintf(file, "\n%s:\n", at_option_group_name[group]);
        has_heading = true;
        print_option(file, row, verb, has_more);
    }
}

size_t at_options_help(FILE *file, unsigned verb, bool all)
{
    size_t count = count_options(verb, AT_LEVEL_RARE);
    bool   has_more = count > AT_HELP_SHORT_MAX, is_short = has_more && !all;
    if (is_short) {
        fprintf(file, "\nMain options:\n");
        for (const at_option *row = at_options; row->name; row++)
            if (level_of(row, verb) == AT_LEVEL_MAIN) print_option(file, row, verb, true);
    }
    for (int group = 0; group < AT_GROUP_COUNT; group++)
        print_group(file, verb, (at_option_group)group, is_short ? AT_LEVEL_COMMON : AT_LEVEL_MAIN,
                    is_short ? AT_LEVEL_COMMON : AT_LEVEL_RARE, has_more);
    return is_short ? count - count_options(verb, AT_LEVEL_COMMON) : 0;
}

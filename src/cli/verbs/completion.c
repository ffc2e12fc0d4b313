/* `anytime completion`: scripts for bash and zsh from the tables of verbs and options. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/verbs/verbs.h"
#include "data/fetch/catalog.h"
#include "learn/net/model.h"
#include "learn/net/net.h"
#include "learn/optim/optim.h"
#include "learn/optim/schedule.h"
#include "pace/pace.h"
#include "step/plan.h"

enum { VALUES_SIZE = 2000, ABOUT_SIZE = 90 };

/* ---- values ---------------------------------------------------------------------------------- */

static void add_strategies(at_text *text)
{
    for (size_t i = 0; i < at_strategies_count; i++)
        at_text_add(text, "%s ", at_strategies[i].name);
}

/* A family may have several rules of one name, next to each other. */
static void add_rules(at_text *text, enum at_family family)
{
    const char *last = "";
    for (size_t i = 0; at_rule_row(family, i); i++) {
        const char *name = at_rule_row(family, i)->name;
        if (strcmp(name, last) != 0) at_text_add(text, "%s ", name);
        last = name;
    }
}

static void add_models(at_text *text)
{
    for (size_t i = 0; i < at_model_families_count; i++)
        at_text_add(text, "%s ", at_model_families[i].name);
    at_text_add(text, "sparse-lr sparse-linear ");
    for (size_t i = 0; i < at_net_builtins_count; i++)
        at_text_add(text, "%s ", at_net_builtins[i].name);
}

static void add_data_sets(at_text *text)
{
    size_t                count;
    const at_catalog_row *rows = at_catalog_rows(&count);
    for (size_t i = 0; i < count; i++) at_text_add(text, "%s ", rows[i].name);
}

static void add_optimizers(at_text *text)
{
    for (size_t i = 0; at_optims[i]; i++) at_text_add(text, "%s ", at_optims[i]->name);
}

static void add_names(at_text *text, const char *(*name)(size_t))
{
    for (size_t i = 0; name(i); i++) at_text_add(text, "%s ", name(i));
}

/* The words of a placeholder such as no|yes|by-class; capitals stand for something else. */
static void add_words(at_text *text, const char *value)
{
    while (*value) {
        size_t length = strcspn(value, "|");
        size_t plain = 0;
        while (plain < length && (islower((unsigned char)value[plain]) || value[plain] == '-' ||
                                  isdigit((unsigned char)value[plain])))
            plain++;
        if (plain == length && length > 1) at_text_add(text, "%.*s ", (int)length, value);
        value += length + (value[length] == '|');
    }
}

/* Appends the values that an option is known to take, each followed by a space. */
static void add_values(at_text *text, const at_option *row)
{
    if (row->type == AT_OPTION_STRATEGY) add_strategies(text);
    for (int i = 0; row->type == AT_OPTION_RULE && i < AT_FAMILY_COUNT; i++)
        if (strcmp(row->name, at_family_name[i]) == 0) add_rules(text, (enum at_family)i);
    if (strcmp(row->name, "model") == 0) add_models(text);
    if (strcmp(row->name, "data") == 0 || strcmp(row->name, "test-data") == 0) add_data_sets(text);
    if (strcmp(row->name, "optimizer") == 0) add_optimizers(text);
    if (strcmp(row->name, "lr-schedule") == 0) add_names(text, at_schedule_name);
    if (strcmp(row->name, "straggler") == 0) add_names(text, at_pace_model_name);
    if (row->value && strchr(row->value, '|')) add_words(text, row->value);
}

/* What may follow a verb that takes words instead of options. */
static void add_verb_words(at_text *text, const char *verb)
{
    if (strcmp(verb, "compare") == 0) add_strategies(text);
    if (strcmp(verb, "data") == 0) {
        at_text_add(text, "list get info ");
        add_data_sets(text);
    }
    if (strcmp(verb, "models") == 0) {
        at_text_add(text, "list show ");
        add_models(text);
    }
    if (strcmp(verb, "completion") == 0) at_text_add(text, "bash zsh");
    for (const at_verb *each = at_verbs; strcmp(verb, "manual") == 0 && each->name; each++)
        at_text_add(text, "%s ", each->name);
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* The values of each option; rows of the same name mean the same values. */
static void print_bash_values(void)
{
    for (const at_option *row = at_options; row->name; row++) {
        char    values[VALUES_SIZE];
        at_text text = at_text_in(values, sizeof values);
        bool    again = row > at_options && strcmp(row[-1].name, row->name) == 0;
        add_values(&text, row);
        if (*values && !again) printf("        --%s) words=\"%s\" ;;\n", row->name, values);
    }
}

/* A switch that is on by default is only ever turned off. */
static bool is_on(const at_option *row)
{
    return row->type == AT_OPTION_YES_NO && row->fallback && strcmp(row->fallback, "yes") == 0;
}

static void print_bash_verbs(void)
{
    for (const at_verb *verb = at_verbs; verb->name; verb++) {
        char    words[VALUES_SIZE];
        at_text text = at_text_in(words, sizeof words);
        add_verb_words(&text, verb->name);
        printf("        %s) words=\"%s\" options=\"", verb->name, words);
        for (const at_option *row = at_options; row->name; row++)
            if (at_option_is_listed(row, verb->options))
                printf("--%s%s ", is_on(row) ? "no-" : "", row->name);
        printf("\" ;;\n");
    }
}

static void print_bash(void)
{
    printf("# Completes command lines of anytime in bash.\n"
           "_anytime() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local words='' options=''\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W '");
    for (const at_verb *verb = at_verbs; verb->name; verb++) printf("%s ", verb->name);
    printf("--help --version' -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    case $before in\n");
    print_bash_values();
    printf("    esac\n"
           "    [[ -n $words ]] || case ${COMP_WORDS[1]} in\n");
    print_bash_verbs();
    printf("    esac\n"
           "    [[ $word != -* ]] || words=$options\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\n"
           "complete -o default -F _anytime anytime\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* The beginning of a description, without the characters that mean something to _arguments. */
static void print_about(const char *text)
{
    for (int i = 0; text[i] && i < ABOUT_SIZE; i++)
        putchar(strchr("[]:'\\\"`$", text[i]) ? ' ' : text[i]);
}

static void print_zsh_option(const at_option *row)
{
    char    values[VALUES_SIZE];
    at_text text = at_text_in(values, sizeof values);
    add_values(&text, row);
    printf(" \\\n            '*--%s[", row->name);
    print_about(row->help);
    printf("]");
    if (row->value && *values)
        printf(":value:(%s)", values);
    else if (row->value && row->value[0] != '[')
        printf(":value:_files");
    printf("'");
}

static void print_zsh_verb(const at_verb *verb)
{
    char    words[VALUES_SIZE];
    at_text text = at_text_in(words, sizeof words);
    add_verb_words(&text, verb->name);
    printf("        %s) _arguments", verb->name);
    for (const at_option *row = at_options; row->name; row++)
        if (at_option_is_listed(row, verb->options)) print_zsh_option(row);
    if (*words)
        printf(" \\\n            '*:word:(%s)' ;;\n", words);
    else
        printf(" \\\n            '*:file:_files' ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef anytime\n"
           "# Completes command lines of anytime in zsh.\n"
           "_anytime() {\n"
           "    local -a verbs\n"
           "    verbs=(");
    for (const at_verb *verb = at_verbs; verb->name; verb++) {
        printf("'%s:", verb->name);
        print_about(verb->summary);
        printf("' ");
    }
    printf(")\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe verb verbs\n"
           "        return\n"
           "    fi\n"
           "    local verb=$words[2]\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $verb in\n");
    for (const at_verb *verb = at_verbs; verb->name; verb++) print_zsh_verb(verb);
    printf("    esac\n"
           "}\n"
           "if [[ $funcstack[1] == _anytime ]]; then _anytime \"$@\"; else compdef _anytime "
           "anytime; fi\n");
}

at_err at_verb_completion(at_parsed *parsed, const char *command, at_fail *fail)
{
    const char *shell = parsed->words == 1 ? parsed->word[0] : "";
    (void)command;
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else
        return at_fail_set(fail, AT_ERR_USAGE,
                           "use `anytime completion bash` or `anytime completion zsh`",
                           "completion needs the name of a shell: bash or zsh");
    return AT_OK;
}

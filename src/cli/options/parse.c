/* Parses the command line and config files with the option table, and echoes the result. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/options/options.h"

enum { TEXTS_SIZE = 1 << 18, CONFIG_SIZE_MAX = 1 << 16 };

/* ---- rows and fields ------------------------------------------------------------------------- */

static void *field(at_settings *settings, const at_option *row)
{
    return (char *)settings + row->offset;
}

static size_t row_count(void)
{
    size_t count = 0;
    while (at_options[count].name) count++;
    assert(count <= AT_OPTIONS_MAX);
    return count;
}

static bool is_text(const at_option *row)
{
    return row->type == AT_OPTION_TEXT || row->type == AT_OPTION_LIST ||
           row->type == AT_OPTION_STRATEGY || row->type == AT_OPTION_RULE ||
           row->type == AT_OPTION_SWITCH;
}

static const at_option *find_row(const char *name, unsigned verb)
{
    for (const at_option *row = at_options; row->name; row++)
        if ((row->verbs & verb) && strcmp(row->name, name) == 0) return row;
    return NULL;
}

/* The alias of this name for this value; with NULL, for any value. */
static const at_option_alias *find_alias(const char *name, const char *value, unsigned verb)
{
    for (const at_option_alias *alias = at_option_aliases; alias->name; alias++)
        if (strcmp(alias->name, name) == 0 && find_row(alias->option, verb) &&
            (!value || !alias->value || strcmp(alias->value, value) == 0))
            return alias;
    return NULL;
}

static const char *keep_text(at_parsed *parsed, const char *text)
{
    size_t size = strlen(text) + 1;
    char  *copy = at_arena_get(&parsed->texts, 1, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

at_err at_options_keep(at_parsed *parsed, const char *text, const char **copy, at_fail *fail)
{
    const char *kept = keep_text(parsed, text);
    if (!kept) return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s is too long", text);
    *copy = kept;
    return AT_OK;
}

static at_err unknown_option(const char *name, unsigned verb, at_fail *fail)
{
    const char *names[AT_OPTIONS_MAX];
    size_t      count = 0;
    for (const at_option *row = at_options; row->name; row++)
        if (row->verbs & verb) names[count++] = row->name;
    char        hint[160];
    at_text     text = at_text_in(hint, sizeof hint);
    const char *nearest = at_text_nearest(name, names, count);
    if (nearest) at_text_add(&text, "did you mean --%s? ", nearest);
    at_text_add(&text, "--help all lists every option");
    return at_fail_set(fail, AT_ERR_USAGE, hint, "unknown option --%s", name);
}

/* ---- values ---------------------------------------------------------------------------------- */

static at_err out_of_range(const at_option *row, const char *value, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s %s is out of range (%.12g to %.12g)",
                       row->name, value, row->min, row->max);
}

static at_err lacks_value(const char *name, unsigned verb, at_fail *fail)
{
    const at_option *row = find_row(name, verb);
    char             hint[256];
    at_text          text = at_text_in(hint, sizeof hint);
    at_text_add(&text, "write --%s %s", name, row && row->value ? row->value : "VALUE");
    return at_fail_set(fail, AT_ERR_USAGE, hint, "--%s needs a value", name);
}

static bool is_yes_no(const char *text, bool *yes)
{
    static const char *const words[] = {"yes", "no", "on", "off", "true", "false", "1", "0"};
    for (int i = 0; i < 8; i++) {
        *yes = i % 2 == 0;
        if (strcmp(text, words[i]) == 0) return true;
    }
    return false;
}

/* Whether `list`, such as "no|yes|by-class" or "[all]", contains the word. */
static bool is_listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    if (length == 0) return false;
    for (const char *at = list + strspn(list, "|[]"); *at; at += strspn(at, "|[]")) {
        size_t size = strcspn(at, "|[]");
        if (size == length && strncmp(at, word, length) == 0) return true;
        at += size;
    }
    return false;
}

/* The value may be left out, and means yes then; but what follows is never a word. */
static bool has_optional_value(const at_option *row)
{
    return row && row->value && row->value[0] == '[';
}

/* `row` is a flag or a switch. */
static at_err unknown_value(const at_option *row, const char *value, at_fail *fail)
{
    char    hint[120];
    at_text text = at_text_in(hint, sizeof hint);
    if (has_optional_value(row))
        at_text_add(&text, "write --%s or --%s %.*s", row->name, row->name,
                    (int)strcspn(row->value + 1, "]"), row->value + 1);
    else
        at_text_add(&text, "write one of %s", row->value ? row->value : "yes|no");
    return at_fail_set(fail, AT_ERR_USAGE, hint, "--%s: unknown value '%s'", row->name, value);
}

static at_err set_text(at_parsed *parsed, const at_option *row, const char *value, at_fail *fail)
{
    const char *copy = keep_text(parsed, value);
    if (!copy) return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s is too long", row->name);
    *(const char **)field(&parsed->settings, row) = copy;
    return AT_OK;
}

/* Adds a line to those of earlier uses of the option. */
static at_err add_text(at_parsed *parsed, const at_option *row, const char *value, at_fail *fail)
{
    char        lines[4096];
    const char *before = *(const char **)field(&parsed->settings, row);
    int         size =
        snprintf(lines, sizeof lines, "%s%s%s", before ? before : "", before ? "\n" : "", value);
    if (size < 0 || (size_t)size >= sizeof lines)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s is too long", row->name);
    return set_text(parsed, row, lines, fail);
}

/* Synonyms of yes and no (on, off, ..) are stored as yes and no. */
static at_err set_switch(at_parsed *parsed, const at_option *row, const char *value, at_fail *fail)
{
    bool yes;
    if (is_yes_no(value, &yes)) return set_text(parsed, row, yes ? "yes" : "no", fail);
    if (is_listed(row->value, value)) return set_text(parsed, row, value, fail);
    return unknown_value(row, value, fail);
}

/* ":k=8" adds an argument to the rule given before, or to the one that is given later. */
static at_err set_rule(at_parsed *parsed, const at_option *row, const char *value, at_fail *fail)
{
    const char *old = *(const char **)field(&parsed->settings, row);
    bool        adds = old && value[0] == ':', completes = old && old[0] == ':' && !adds;
    const char *first = adds ? old : value, *second = adds ? value : old;
    char        both[256];
    at_text     text = at_text_in(both, sizeof both);
    if (!adds && !completes) return set_text(parsed, row, value, fail);
    at_text_add(&text, "%s%c%s", first, strchr(first, ':') ? ',' : ':', second + 1);
    if (text.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s is too long", row->name);
    return set_text(parsed, row, both, fail);
}

static at_err set_value(at_parsed *parsed, const at_option *row, const char *value, at_fail *fail)
{
    void *place = field(&parsed->settings, row);
    switch (row->type) {
    case AT_OPTION_TEXT:
    case AT_OPTION_STRATEGY: return set_text(parsed, row, value, fail);
    case AT_OPTION_LIST: return add_text(parsed, row, value, fail);
    case AT_OPTION_RULE: return set_rule(parsed, row, value, fail);
    case AT_OPTION_SWITCH: return set_switch(parsed, row, value, fail);
    case AT_OPTION_WHOLE: {
        int64_t whole;
        if (!at_text_whole(value, &whole))
            return at_fail_set(fail, AT_ERR_USAGE, "write it as 60000, 6e4 or 60k",
                               "--%s %s is not a whole number", row->name, value);
        if ((double)whole < row->min || (double)whole > row->max)
            return out_of_range(row, value, fail);
        *(int64_t *)place = whole;
        return AT_OK;
    }
    case AT_OPTION_REAL: {
        double real;
        if (!at_text_real(value, &real))
            return at_fail_set(fail, AT_ERR_USAGE, "write it as 0.1, 1e-1 or 10%",
                               "--%s %s is not a number", row->name, value);
        if (real < row->min || real > row->max) return out_of_range(row, value, fail);
        *(double *)place = real;
        return AT_OK;
    }
    case AT_OPTION_DURATION: {
        if (!at_text_duration(value, (at_ns *)place) || *(at_ns *)place == 0)
            return at_fail_set(fail, AT_ERR_USAGE, "write it as 5.5s, 20ms or 100us",
                               "--%s %s is not a duration above 0", row->name, value);
        return AT_OK;
    }
    case AT_OPTION_YES_NO: return is_yes_no(value, place) ? AT_OK : unknown_value(row, value, fail);
    }
    assert(!"unreachable");
    return AT_ERR_FAILED;
}

/* Marks the option as not given: -1 for whole numbers, because 0 may be a valid value. */
static void set_absent(at_settings *settings, const at_option *row)
{
    switch (row->type) {
    case AT_OPTION_TEXT:
    case AT_OPTION_LIST:
    case AT_OPTION_STRATEGY:
    case AT_OPTION_RULE:
    case AT_OPTION_SWITCH: *(const char **)field(settings, row) = NULL; break;
    case AT_OPTION_WHOLE: *(int64_t *)field(settings, row) = -1; break;
    case AT_OPTION_REAL: *(double *)field(settings, row) = 0; break;
    case AT_OPTION_DURATION: *(at_ns *)field(settings, row) = 0; break;
    case AT_OPTION_YES_NO: *(bool *)field(settings, row) = false; break;
    }
}

at_err at_options_init(at_parsed *parsed, at_fail *fail)
{
    *parsed = (at_parsed){0};
    assert(row_count() > 0);
    if (!at_arena_init(&parsed->texts, TEXTS_SIZE)) return at_fail_memory(fail);
    for (const at_option *row = at_options; row->name; row++) {
        set_absent(&parsed->settings, row);
        if (row->fallback) AT_TRY(set_value(parsed, row, row->fallback, fail));
    }
    return AT_OK;
}

void at_options_deinit(at_parsed *parsed)
{
    at_arena_deinit(&parsed->texts);
    *parsed = (at_parsed){0};
}

at_err at_options_copy(at_parsed *to, const at_parsed *from, at_fail *fail)
{
    at_arena texts;
    if (!at_arena_init(&texts, TEXTS_SIZE)) return at_fail_memory(fail);
    *to = *from;
    to->texts = texts;
    for (const at_option *row = at_options; row->name; row++) {
        const char **place = field(&to->settings, row);
        if (!is_text(row) || !*place) continue;
        *place = keep_text(to, *place);
        assert(*place); /* the arena has the same size, so everything fits again */
    }
    return AT_OK;
}

/* ---- one option ------------------------------------------------------------------------------ */

static at_err read_config(at_parsed *parsed, unsigned verb, const char *path, at_fail *fail);

/* An alias with rows for certain values only. */
static at_err unknown_alias_value(const char *name, const char *value, at_fail *fail)
{
    char    hint[160];
    at_text text = at_text_in(hint, sizeof hint);
    at_text_add(&text, "known:");
    for (const at_option_alias *alias = at_option_aliases; alias->name; alias++)
        if (strcmp(alias->name, name) == 0) at_text_add(&text, " %s", alias->value);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "--%s: unknown value '%s'", name, value);
}

static at_err set_alias(at_parsed *parsed, unsigned verb, const char *name, const char *value,
                        at_fail *fail)
{
    const at_option_alias *alias = find_alias(name, value, verb);
    char                   meant[128];
    at_text                text = at_text_in(meant, sizeof meant);
    if (!alias) return unknown_alias_value(name, value, fail);
    const char *place = strstr(alias->text, "%s");
    if (!place)
        at_text_add(&text, "%s", alias->text);
    else
        at_text_add(&text, "%.*s%s", (int)(place - alias->text), alias->text, value);
    if (!*value || text.full || strchr(value, ','))
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s: '%s' is not a value", name, value);
    return at_options_set(parsed, verb, alias->option, meant, fail);
}

at_err at_options_set(at_parsed *parsed, unsigned verb, const char *name, const char *value,
                      at_fail *fail)
{
    const at_option *row = find_row(name, verb);
    if (!row && find_alias(name, NULL, verb)) return set_alias(parsed, verb, name, value, fail);
    if (!row) return unknown_option(name, verb, fail);
    AT_TRY(set_value(parsed, row, value, fail));
    parsed->given[row - at_options] = true;
    return strcmp(name, "config") == 0 ? read_config(parsed, verb, value, fail) : AT_OK;
}

/* Converts a number or flag of an echo to text; false for null and for other types. */
static bool echo_number(const json_t *value, char *text, size_t size)
{
    if (json_is_integer(value))
        snprintf(text, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, size, "%.17g", json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(text, size, "%s", json_is_true(value) ? "yes" : "no");
    else
        return false;
    return true;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* The value of an echo as text, which the caller frees; NULL: none. */
static char *echo_text(const json_t *echo, const char *name)
{
    const json_t *value = json_object_get(echo, name);
    char          number[64], *text = at_text_of_json(value); /* of any length: a list of speeds */
    return !text && echo_number(value, number, sizeof number) ? strdup(number) : text;
}

/* Options that an earlier version echoed under the names that are aliases now. */
static at_err inherit_aliases(at_parsed *parsed, unsigned verb, const json_t *echo,
                              const char *const *except, size_t except_count, at_fail *fail)
{
    at_err err = AT_OK;
    for (const at_option_alias *alias = at_option_aliases; !err && alias->name; alias++) {
        if (at_options_given(parsed, alias->option) ||
            is_among(alias->option, except, except_count))
            continue;
        char *text = echo_text(echo, alias->name);
        if (text && find_alias(alias->name, text, verb) == alias) {
            err = set_alias(parsed, verb, alias->name, text, fail);
            parsed->given[find_row(alias->option, verb) - at_options] = false;
        }
        free(text);
    }
    return err;
}

at_err at_options_inherit(at_parsed *parsed, unsigned verb, const json_t *echo,
                          const char *const *except, size_t except_count, at_fail *fail)
{
    for (const at_option *row = at_options; row->name; row++) {
        bool wanted = (row->verbs & verb) && !at_options_given(parsed, row->name) &&
                      !is_among(row->name, except, except_count);
        char  *text = wanted ? echo_text(echo, row->name) : NULL;
        at_err err = text ? set_value(parsed, row, text, fail) : AT_OK;
        free(text);
        AT_TRY(err);
    }
    return inherit_aliases(parsed, verb, echo, except, except_count, fail);
}

void at_options_settle(at_parsed *parsed, const char *name)
{
    for (const at_option *row = at_options; row->name; row++)
        if (strcmp(row->name, name) == 0) parsed->given[row - at_options] = true;
}

bool at_options_given(const at_parsed *parsed, const char *name)
{
    assert(find_row(name, AT_FOR_ALL));
    for (const at_option *row = at_options; row->name; row++)
        if (parsed->given[row - at_options] && strcmp(row->name, name) == 0) return true;
    return false;
}

/* ---- config files ---------------------------------------------------------------------------- */

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    for (size_t length = strlen(text); length > 0 && strchr(" \t\r", text[length - 1]);)
        text[--length] = '\0';
    return text;
}

/* Defaults are for all verbs: options that only others have are skipped. */
static bool is_for_others(unsigned verb, const char *name)
{
    bool is_known = find_row(name, AT_FOR_ALL) || find_alias(name, NULL, AT_FOR_ALL);
    return is_known && !find_row(name, verb) && !find_alias(name, NULL, verb);
}

static at_err read_config_line(at_parsed *parsed, unsigned verb, char *line, bool defaults,
                               at_fail *fail)
{
    for (char *hash = strchr(line, '#'); hash; hash = strchr(hash + 1, '#'))
        if (hash == line || strchr(" \t", hash[-1]))
            *hash = '\0'; /* runs/a#1 is a name, not a comment */
    line = trim(line);
    if (!*line) return AT_OK;
    char *equals = strchr(line, '=');
    if (!equals)
        return at_fail_set(fail, AT_ERR_USAGE, "write `name = value`", "'%s' has no value", line);
    *equals = '\0';
    char *name = trim(line), *value = trim(equals + 1);
    if (strcmp(name, "config") == 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL,
                           "a config file cannot include another config file");
    if (defaults && is_for_others(verb, name)) return AT_OK;
    return at_options_set(parsed, verb, name, value, fail);
}

static at_err read_file(at_parsed *parsed, unsigned verb, const char *path, bool defaults,
                        at_fail *fail)
{
    unsigned char *bytes = NULL;
    size_t         size;
    AT_TRY(at_file_read(path, CONFIG_SIZE_MAX, &bytes, &size, fail));
    at_err err = AT_OK;
    char  *rest = (char *)bytes, *line;
    if (memchr(bytes, 0, size))
        err = at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: not a text file", path);
    for (int number = 1; !err && (line = strsep(&rest, "\n")); number++) {
        err = read_config_line(parsed, verb, line, defaults, fail);
        if (err) at_fail_wrap(fail, "%s:%d", path, number);
    }
    free(bytes);
    return err;
}

static at_err read_config(at_parsed *parsed, unsigned verb, const char *path, at_fail *fail)
{
    return read_file(parsed, verb, path, false, fail);
}

/* The file with the user's defaults; false: there is none. */
static bool defaults_path(char *path, size_t size)
{
    const char *given = getenv("ANYTIME_CONFIG"), *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    at_text     text = at_text_in(path, size);
    if (given)
        at_text_add(&text, "%s", given);
    else if (config && *config)
        at_text_add(&text, "%s/anytime/config", config);
    else if (home)
        at_text_add(&text, "%s/.config/anytime/config", home);
    return text.used > 0 && !text.full && (given || access(path, F_OK) == 0);
}

at_err at_options_defaults(at_parsed *parsed, unsigned verb, at_fail *fail)
{
    char path[PATH_MAX];
    if (!defaults_path(path, sizeof path) || (verb & AT_FOR_TEXTS)) return AT_OK;
    AT_TRY(read_file(parsed, verb, path, true, fail));
    memset(parsed->given, 0, sizeof parsed->given);
    return AT_OK;
}

/* ---- the command line ------------------------------------------------------------------------ */

static at_err add_word(at_parsed *parsed, const char *word, at_fail *fail)
{
    if (parsed->words == AT_WORDS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "more than %d arguments", AT_WORDS_MAX);
    parsed->word[parsed->words++] = word;
    return AT_OK;
}

static bool is_flag(const char *name, unsigned verb)
{
    const at_option *row = find_row(name, verb);
    return row && (row->type == AT_OPTION_YES_NO || row->type == AT_OPTION_SWITCH);
}

/* Whether the next argument is the value of this flag, which may also stand alone. */
static bool is_value_of_flag(const char *name, unsigned verb, const char *next)
{
    const at_option *row = find_row(name, verb);
    bool             ignored;
    if (!is_flag(name, verb)) return false;
    if (has_optional_value(row)) return true;
    return is_yes_no(next, &ignored) || (row->value && is_listed(row->value, next));
}

/* A yes/no option may stand alone, with =yes, or as --no-NAME. */
static at_err set_flag(at_parsed *parsed, unsigned verb, const char *name, const char *value,
                       bool *done, at_fail *fail)
{
    const at_option *row = find_row(name, verb);
    *done = true;
    if (is_flag(name, verb)) return at_options_set(parsed, verb, name, value ? value : "yes", fail);
    if (!row && !value && strncmp(name, "no-", 3) == 0 && is_flag(name + 3, verb))
        return at_options_set(parsed, verb, name + 3, "no", fail);
    *done = false;
    return AT_OK;
}

static at_err parse_one(at_parsed *parsed, unsigned verb, int argc, const char *const *argv, int *i,
                        at_fail *fail)
{
    char        name[64];
    const char *text = strcmp(argv[*i], "-h") == 0   ? "help"
                       : strcmp(argv[*i], "-n") == 0 ? "workers"
                                                     : argv[*i] + 2;
    const char *equals = strchr(text, '=');
    size_t      length = equals ? (size_t)(equals - text) : strlen(text);
    if (length >= sizeof name) return unknown_option(text, verb, fail);
    memcpy(name, text, length);
    name[length] = '\0';
    const char *value = equals ? equals + 1 : NULL;
    const char *next = *i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0 ? argv[*i + 1] : NULL;
    bool        done;
    if (!value && next && is_value_of_flag(name, verb, next)) value = argv[++*i];
    AT_TRY(set_flag(parsed, verb, name, value, &done, fail));
    if (done) return AT_OK;
    if (!find_row(name, verb) && !find_alias(name, NULL, verb))
        return unknown_option(name, verb, fail);
    if (!value && next) value = argv[++*i];
    if (!value) return lacks_value(name, verb, fail);
    return at_options_set(parsed, verb, name, value, fail);
}

/* What follows `--` belongs to another program. */
static at_err take_command(at_parsed *parsed, unsigned verb, int argc, const char *const *argv,
                           at_fail *fail)
{
    if (!(verb & (AT_FOR_RUN | AT_FOR_COMPARE | AT_FOR_SWEEP)))
        return at_fail_set(fail, AT_ERR_USAGE, "use `anytime run -- COMMAND`",
                           "only run, compare and sweep take a command after --");
    if (argc < 2)
        return at_fail_set(fail, AT_ERR_USAGE, "write `anytime run -n 4 -- COMMAND`",
                           "no command after --");
    assert(!argv[argc]);
    parsed->command = argv + 1;
    return AT_OK;
}

at_err at_options_parse(at_parsed *parsed, unsigned verb, int argc, const char *const *argv,
                        at_fail *fail)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) return take_command(parsed, verb, argc - i, argv + i, fail);
        bool is_short = strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "-n") == 0;
        if (is_short || (strncmp(argv[i], "--", 2) == 0 && argv[i][2]))
            AT_TRY(parse_one(parsed, verb, argc, argv, &i, fail));
        else if (argv[i][0] == '-' && argv[i][1])
            return at_fail_set(fail, AT_ERR_USAGE,
                               "options start with two dashes; --help all lists every option",
                               "unknown option %s", argv[i]);
        else
            AT_TRY(add_word(parsed, argv[i], fail));
    }
    return AT_OK;
}

at_err at_options_refuse_words(const at_parsed *parsed, at_fail *fail)
{
    if (parsed->words == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "options look like --name value",
                       "unexpected argument '%s'", parsed->word[0]);
}

/* ---- echo ------------------------------------------------------------------------------------ */

static json_t *value_json(const at_settings *settings, const at_option *row)
{
    const void *place = (const char *)settings + row->offset;
    char        text[32];
    switch (row->type) {
    case AT_OPTION_TEXT:
    case AT_OPTION_LIST:
    case AT_OPTION_STRATEGY:
    case AT_OPTION_RULE:
    case AT_OPTION_SWITCH: {
        const char *value = *(const char *const *)place;
        return value ? at_text_to_json(value) : json_null();
    }
    case AT_OPTION_WHOLE: {
        int64_t value = *(const int64_t *)place;
        return value >= 0 ? json_integer(value) : json_null();
    }
    case AT_OPTION_REAL: {
        double value = *(const double *)place;
        bool   absent = value == 0 && !row->fallback;
        return absent ? json_null() : json_real(value);
    }
    case AT_OPTION_DURATION: {
        at_ns value = *(const at_ns *)place;
        snprintf(text, sizeof text, "%.9gs", at_seconds(value));
        return value > 0 ? json_string(text) : json_null();
    }
    case AT_OPTION_YES_NO: return json_boolean(*(const bool *)place);
    }
    assert(!"unreachable");
    return NULL;
}

json_t *at_options_echo(const at_parsed *parsed, unsigned verb)
{
    json_t *object = json_object();
    for (const at_option *row = at_options; row->name; row++) {
        bool not_a_setting = strcmp(row->name, "help") == 0 || strcmp(row->name, "config") == 0;
        if ((row->verbs & verb) && !not_a_setting)
            json_object_set_new(object, row->name, value_json(&parsed->settings, row));
    }
    return object;
}

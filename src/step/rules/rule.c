#include "step/rules/rule.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "step/plan.h"

enum { RULES_MAX = 32, PART_SIZE = AT_RULE_NAME_SIZE + 16 };

static const double TIME_MAX = 4e9; /* seconds: sums of two such times do not overflow */

const char *const at_family_name[AT_FAMILY_COUNT] = {
    [AT_WORK] = "work",   [AT_GATHER] = "gather", [AT_RELEASE] = "release", [AT_NEWER] = "newer",
    [AT_STALE] = "stale", [AT_SIZE] = "size",     [AT_MIX] = "mix",         [AT_OUTER] = "outer",
};

/* ---- rows ----------------------------------------------------------------------------------- */

/* Every row begins with its at_rule; a row without a name ends the table. */
static const struct {
    const void *rows;
    size_t      row_size;
} tables[AT_FAMILY_COUNT] = {
    [AT_WORK] = {at_work_rules, sizeof *at_work_rules},
    [AT_GATHER] = {at_gather_rules, sizeof *at_gather_rules},
    [AT_RELEASE] = {at_release_rules, sizeof *at_release_rules},
    [AT_NEWER] = {at_newer_rules, sizeof *at_newer_rules},
    [AT_STALE] = {at_stale_rules, sizeof *at_stale_rules},
    [AT_SIZE] = {at_size_rules, sizeof *at_size_rules},
    [AT_MIX] = {at_mix_rules, sizeof *at_mix_rules},
    [AT_OUTER] = {at_outer_rules, sizeof *at_outer_rules},
};

const at_rule *at_rule_row(enum at_family family, size_t index)
{
    assert(family < AT_FAMILY_COUNT);
    assert(index < RULES_MAX);
    const char    *row = (const char *)tables[family].rows + index * tables[family].row_size;
    const at_rule *rule = (const at_rule *)(const void *)row;
    return rule->name ? rule : NULL;
}

static int args_count(const at_rule *rule)
{
    int count = 0;
    while (count < AT_RULE_ARGS_MAX && rule->arg[count].name) count++;
    return count;
}

/* Does the first of these arguments fit a rule of this name? `text` is empty or ":ARG,..". */
static bool takes_first(const at_rule *rule, const char *text)
{
    if (text[0] != ':') return true;
    char    part[PART_SIZE];
    size_t  length = strcspn(++text, ","), name = strcspn(text, "=");
    int64_t whole;
    if (name < length) return at_rule_arg_find(rule, text, name) >= 0;
    if (args_count(rule) == 0 || length >= sizeof part) return false;
    memcpy(part, text, length);
    part[length] = '\0';
    return rule->arg[0].type != AT_ARG_WHOLE || at_text_whole(part, &whole);
}

at_err at_rule_find(enum at_family family, const char *text, size_t length, const at_rule **rule,
                    at_fail *fail)
{
    const char    *names[RULES_MAX];
    size_t         count = 0;
    const at_rule *row, *found = NULL;
    while ((row = at_rule_row(family, count))) {
        names[count++] = row->name;
        if (strlen(row->name) != length || strncmp(row->name, text, length) != 0) continue;
        if (!found || (!takes_first(found, text + length) && takes_first(row, text + length)))
            found = row;
    }
    if (found) {
        *rule = found;
        return AT_OK;
    }
    char    name[PART_SIZE];
    at_text only = at_text_in(name, sizeof name);
    at_text_add(&only, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
    return at_text_unknown(at_family_name[family], name, names, count, fail);
}

int at_rule_arg_find(const at_rule *rule, const char *name, size_t length)
{
    for (int i = args_count(rule) - 1; i >= 0; i--)
        if (strlen(rule->arg[i].name) == length && strncmp(rule->arg[i].name, name, length) == 0)
            return i;
    return -1;
}

/* ---- names of arguments in texts ------------------------------------------------------------ */

static void add_capitals(const at_rule_arg *arg, at_text *text)
{
    for (const char *c = arg->name; *c; c++) at_text_add(text, "%c", toupper(*c));
}

/* K, FACTOR; the words themselves where there are only some. */
static void add_placeholder(const at_rule_arg *arg, at_text *text)
{
    if (arg->type == AT_ARG_WORD)
        for (size_t i = 0; arg->words[i]; i++)
            at_text_add(text, "%s%s", i > 0 ? "|" : "", arg->words[i]);
    else
        add_capitals(arg, text);
}

/* "--gather first: K is '0'", with what it must be appended by the caller. */
typedef struct complaint {
    char    buffer[PART_SIZE + 200];
    at_text text;
} complaint;

static void begin_complaint(complaint *c, enum at_family family, const at_rule *rule,
                            const at_rule_arg *arg, const char *part)
{
    c->text = at_text_in(c->buffer, sizeof c->buffer);
    at_text_add(&c->text, "--%s %s: ", at_family_name[family], rule->name);
    if (arg->type == AT_ARG_WORD) at_text_add(&c->text, "'%s' is not one of ", part);
    add_placeholder(arg, &c->text);
    if (arg->type != AT_ARG_WORD) at_text_add(&c->text, " is '%s', ", part);
}

/* ---- parsing -------------------------------------------------------------------------------- */

static at_err wrong_type(enum at_family family, const at_rule *rule, const at_rule_arg *arg,
                         const char *part, at_fail *fail)
{
    static const char *const meant[] = {
        [AT_ARG_WHOLE] = "which is not a whole number",
        [AT_ARG_SPAN] = "which is not a whole number, or two as in 1-4",
        [AT_ARG_REAL] = "which is not a number",
        [AT_ARG_TIME] = "which is not a duration above 0",
        [AT_ARG_EITHER] = "which is not a whole number or a duration above 0",
        [AT_ARG_WORD] = "",
        [AT_ARG_NAME] = "which is too long"};
    complaint c;
    begin_complaint(&c, family, rule, arg, part);
    bool time = arg->type == AT_ARG_TIME || arg->type == AT_ARG_EITHER;
    return at_fail_set(fail, AT_ERR_USAGE, time ? "write it as 50ms or 5.5s" : NULL, "%s%s",
                       c.buffer, meant[arg->type]);
}

static at_err check_bounds(enum at_family family, const at_rule *rule, const at_rule_arg *arg,
                           const char *part, double value, at_fail *fail)
{
    bool low = arg->above ? value <= arg->min : value < arg->min;
    if (!low && value <= arg->max) return AT_OK;
    complaint c;
    begin_complaint(&c, family, rule, arg, part);
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "%sbut it must be %s%.12g to %.12g%s%s", c.buffer,
                       arg->above ? "above " : "", arg->min, arg->max, arg->unit ? " " : "",
                       arg->unit ? arg->unit : "");
}

static int word_index(const at_rule_arg *arg, const char *part)
{
    for (int i = 0; arg->words[i]; i++)
        if (strcmp(arg->words[i], part) == 0) return i;
    return -1;
}

/* 4, 1-4 or 1- */
static bool parse_span(const char *part, at_value *value)
{
    char        first[32];
    const char *dash = part[0] ? strchr(part + 1, '-') : NULL; /* not a sign */
    size_t      length = dash ? (size_t)(dash - part) : strlen(part);
    if (length >= sizeof first) return false;
    memcpy(first, part, length);
    first[length] = '\0';
    if (!at_text_whole(first, &value->whole)) return false;
    value->last = value->whole;
    if (dash && dash[1] == '\0') value->last = AT_SPAN_OPEN;
    if (dash && dash[1] != '\0' && !at_text_whole(dash + 1, &value->last)) return false;
    return value->last >= value->whole;
}

static at_err parse_value(enum at_family family, const at_rule *rule, const at_rule_arg *arg,
                          const char *part, at_value *value, at_fail *fail)
{
    bool fits = false;
    *value = (at_value){.given = true};
    switch (arg->type) {
    case AT_ARG_WHOLE:
        fits = at_text_whole(part, &value->whole);
        value->real = (double)value->whole;
        break;
    case AT_ARG_SPAN:
        fits = parse_span(part, value);
        if (fits && value->last != AT_SPAN_OPEN)
            AT_TRY(check_bounds(family, rule, arg, part, (double)value->last, fail));
        value->real = (double)value->whole;
        break;
    case AT_ARG_REAL: fits = at_text_real(part, &value->real); break;
    case AT_ARG_EITHER:
        if (at_text_whole(part, &value->whole))
            return check_bounds(family, rule, arg, part, (double)value->whole, fail);
        value->timed = at_text_duration(part, &value->whole) && value->whole > 0 &&
                       at_seconds(value->whole) <= TIME_MAX;
        return value->timed ? AT_OK : wrong_type(family, rule, arg, part, fail);
    case AT_ARG_TIME:
        value->whole = AT_NEVER;
        if (arg->open && strcmp(part, arg->open) == 0) return AT_OK;
        fits = at_text_duration(part, &value->whole) && value->whole > 0 &&
               at_seconds(value->whole) <= TIME_MAX;
        return fits ? AT_OK : wrong_type(family, rule, arg, part, fail);
    case AT_ARG_WORD:
        value->whole = word_index(arg, part);
        return value->whole >= 0 ? AT_OK : wrong_type(family, rule, arg, part, fail);
    case AT_ARG_NAME:
        if (strlen(part) >= sizeof value->name) return wrong_type(family, rule, arg, part, fail);
        memcpy(value->name, part, strlen(part) + 1);
        return AT_OK;
    }
    if (!fits) return wrong_type(family, rule, arg, part, fail);
    return check_bounds(family, rule, arg, part, value->real, fail);
}

/* How an argument of this call was given. */
enum how { NOT_YET, BY_POSITION, BY_NAME };

static at_err too_many(enum at_family family, const at_rule *rule, at_fail *fail)
{
    int count = args_count(rule);
    if (count == 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s %s takes no argument",
                           at_family_name[family], rule->name);
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s %s takes at most %d argument%s",
                       at_family_name[family], rule->name, count, count == 1 ? "" : "s");
}

static at_err no_such_argument(enum at_family family, const at_rule *rule, const char *part,
                               at_fail *fail)
{
    int length = (int)strcspn(part, "=");
    if (args_count(rule) == 0) return too_many(family, rule, fail);
    char    known[PART_SIZE * 2];
    at_text text = at_text_in(known, sizeof known);
    at_text_add(&text, "known:");
    for (int i = 0; i < args_count(rule); i++) at_text_add(&text, " %s", rule->arg[i].name);
    return at_fail_set(fail, AT_ERR_USAGE, known, "--%s %s has no argument '%.*s'",
                       at_family_name[family], rule->name, length, part);
}

/* An argument that this rule does not have must at least be a valid one of another rule. */
static at_err check_elsewhere(enum at_family family, const at_rule *rule, const char *part,
                              at_fail *fail)
{
    size_t         length = strcspn(part, "=");
    const at_rule *other;
    for (size_t i = 0; (other = at_rule_row(family, i)); i++) {
        int      index = at_rule_arg_find(other, part, length);
        at_value ignored;
        if (index >= 0)
            return parse_value(family, other, &other->arg[index], part + length + 1, &ignored,
                               fail);
    }
    return no_such_argument(family, rule, part, fail);
}

/* One "ARG" or "NAME=ARG"; `position` is the index of the next positional one. */
static at_err parse_part(enum at_family family, const at_rule *rule, const char *part, bool lenient,
                         int *position, enum how *how, at_value *value, at_fail *fail)
{
    const char *equals = strchr(part, '=');
    int         index = equals ? at_rule_arg_find(rule, part, (size_t)(equals - part)) : *position;
    if (equals && index < 0)
        return lenient ? check_elsewhere(family, rule, part, fail)
                       : no_such_argument(family, rule, part, fail);
    if (!equals && index >= args_count(rule)) return too_many(family, rule, fail);
    if (!equals) ++*position;
    if (equals && how[index] == BY_POSITION)
        return at_fail_set(fail, AT_ERR_USAGE, "give it once",
                           "--%s %s: two values for %s, the second one is %s",
                           at_family_name[family], rule->name, rule->arg[index].name, equals + 1);
    how[index] = equals ? BY_NAME : BY_POSITION;
    return parse_value(family, rule, &rule->arg[index], equals ? equals + 1 : part, &value[index],
                       fail);
}

at_err at_rule_parse(enum at_family family, const at_rule *rule, const char *text, bool lenient,
                     at_value *value, at_fail *fail)
{
    enum how how[AT_RULE_ARGS_MAX] = {NOT_YET};
    int      position = 0;
    for (bool more = true; more;) {
        size_t length = strcspn(text, ",");
        char   part[PART_SIZE];
        if (length >= sizeof part)
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s %s: an argument is too long",
                               at_family_name[family], rule->name);
        memcpy(part, text, length);
        part[length] = '\0';
        AT_TRY(parse_part(family, rule, part, lenient, &position, how, value, fail));
        more = text[length] == ',';
        text += length + 1;
    }
    return AT_OK;
}

void at_rule_complete(const at_rule *rule, const at_plan *plan, at_value *value)
{
    for (int i = 0; i < args_count(rule); i++) {
        const at_rule_arg *arg = &rule->arg[i];
        at_fail            fail;
        if (value[i].given) continue;
        value[i] = (at_value){.whole = arg->type == AT_ARG_TIME ? AT_NEVER : 0};
        if (arg->derive) value[i].whole = arg->derive(plan);
        value[i].real = (double)value[i].whole;
        value[i].last = value[i].whole;
        if (!arg->fallback) continue;
        at_err err = parse_value(AT_WORK, rule, arg, arg->fallback, &value[i], &fail);
        assert(!err); /* it is written in the row */
        (void)err;
        value[i].given = false;
    }
}

/* ---- showing -------------------------------------------------------------------------------- */

static void add_value(const at_rule_arg *arg, const at_value *value, at_text *text)
{
    switch (arg->type) {
    case AT_ARG_WHOLE: at_text_add(text, "%lld", (long long)value->whole); break;
    case AT_ARG_EITHER:
        if (value->timed)
            at_text_add_duration(text, value->whole, "s");
        else
            at_text_add(text, "%lld", (long long)value->whole);
        break;
    case AT_ARG_SPAN:
        at_text_add(text, "%lld", (long long)value->whole);
        if (value->last > value->whole) at_text_add(text, "-%lld", (long long)value->last);
        break;
    case AT_ARG_REAL: at_text_add_real(text, value->real); break;
    case AT_ARG_TIME:
        if (value->whole == AT_NEVER)
            at_text_add(text, "%s", arg->open);
        else
            at_text_add_duration(text, value->whole, arg->unit ? arg->unit : "");
        break;
    case AT_ARG_WORD: at_text_add(text, "%s", arg->words[value->whole]); break;
    case AT_ARG_NAME: at_text_add(text, "%s", value->name); break;
    }
}

static bool is_shown(const at_rule_arg *arg, const at_value *value)
{
    if (arg->brief && !value->given) return false;
    return arg->type != AT_ARG_TIME || value->whole != AT_NEVER || arg->open;
}

void at_rule_show(const at_rule *rule, const at_value *value, at_text *text)
{
    bool first = true, gap = false;
    at_text_add(text, "%s", rule->name);
    for (int i = 0; i < args_count(rule); i++) {
        const at_rule_arg *arg = &rule->arg[i];
        if (!is_shown(arg, &value[i])) {
            gap = true;
            continue;
        }
        if (strchr(value[i].name, '=')) gap = true; /* otherwise it would be read as NAME=VALUE */
        at_text_add(text, "%s", first ? ":" : ",");
        if (gap) at_text_add(text, "%s=", arg->name);
        add_value(arg, &value[i], text);
        first = false;
    }
}

void at_rule_list(enum at_family family, at_text *text)
{
    const at_rule *rule;
    for (size_t i = 0; (rule = at_rule_row(family, i)); i++) {
        at_text_add(text, "%s%s", i > 0 ? " " : "", rule->name);
        for (int j = 0; j < args_count(rule); j++) {
            at_text_add(text, "%s", j == 0 ? "[:" : ",");
            if (rule->arg[j].brief)
                add_capitals(&rule->arg[j], text);
            else
                add_placeholder(&rule->arg[j], text);
            if (rule->arg[j].type == AT_ARG_SPAN) at_text_add(text, "[-MAX]");
        }
        if (args_count(rule) > 0) at_text_add(text, "]");
    }
}

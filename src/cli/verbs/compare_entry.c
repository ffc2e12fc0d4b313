#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/verbs/compare.h"

enum { ENTRY_SIZE_MAX = 1024 };

/* What must be the same for all, or there would be nothing to compare. */
static const char *const common_only[] = {"strategy", "seed", "target", "run",  "out",   "repeats",
                                          "plots",    "json", "quiet",  "help", "config"};

static bool is_label_letter(char letter)
{
    return isalnum((unsigned char)letter) || strchr("-_.+", letter);
}

static at_err set_label(at_entry *entry, const char *label, at_fail *fail)
{
    bool fits = isalnum((unsigned char)*label) && strlen(label) < sizeof entry->label;
    for (const char *p = label; *p; p++) fits = fits && is_label_letter(*p);
    if (!fits)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "use letters, digits, '-', '_', '.' and '+', a letter or digit first",
                           "'%s' cannot be a label: it names folders", label);
    snprintf(entry->label, sizeof entry->label, "%s", label);
    entry->labelled = true;
    return AT_OK;
}

/* ---- own options --------------------------------------------------------------------------- */

/* Cuts the next "name=value" off; a comma ends it only when another "name=" follows. */
static char *next_option(char **rest)
{
    char *option = *rest;
    if (!option) return NULL;
    for (char *comma = option; (comma = strchr(comma, ',')); comma++) {
        char *next = comma + 1;
        if (next[strcspn(next, ",=")] != '=') continue;
        *comma = '\0';
        *rest = next;
        return option;
    }
    *rest = NULL;
    return option;
}

static at_err set_own(at_entry *entry, char *option, at_fail *fail)
{
    char *equals = strchr(option, '=');
    if (!equals)
        return at_fail_set(fail, AT_ERR_USAGE, "write it as 'amb:time-limit=50ms,lr=0.05'",
                           "'%s' has no value", option);
    *equals = '\0';
    const char *value = equals + 1;
    if (strcmp(option, "label") == 0) return set_label(entry, value, fail);
    for (size_t i = 0; i < sizeof common_only / sizeof *common_only; i++)
        if (strcmp(option, common_only[i]) == 0)
            return at_fail_set(fail, AT_ERR_USAGE, "give it to the whole comparison",
                               "an entry cannot have a %s of its own", option);
    AT_TRY(at_options_set(&entry->parsed, AT_FOR_TRAIN, option, value, fail));
    json_object_set_new(entry->own, option, json_string(value));
    return AT_OK;
}

static at_err read_entry(at_entry *entry, at_fail *fail)
{
    char copy[ENTRY_SIZE_MAX];
    if (strlen(entry->text) >= sizeof copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the entry is too long");
    snprintf(copy, sizeof copy, "%s", entry->text);
    char *rest = strchr(copy, ':'), *option;
    if (rest) *rest++ = '\0';
    if (!*copy)
        return at_fail_set(fail, AT_ERR_USAGE, "write it as 'amb:lr=0.05'", "it has no strategy");
    AT_TRY(at_options_set(&entry->parsed, AT_FOR_TRAIN, "strategy", copy, fail));
    while ((option = next_option(&rest))) AT_TRY(set_own(entry, option, fail));
    return AT_OK;
}

at_err at_entry_open(at_entry *entry, const char *text, const at_parsed *common, at_fail *fail)
{
    assert(text);
    *entry = (at_entry){.text = text, .own = json_object(), .runs = json_array()};
    size_t repeats = (size_t)common->settings.repeats;
    bool   memory = entry->own && entry->runs;
    for (int i = 0; i < AT_MEASURE_COUNT && memory; i++) {
        entry->value[i] = calloc(repeats, sizeof(double));
        memory = entry->value[i] != NULL;
    }
    if (!memory) return at_fail_memory(fail);
    AT_TRY(at_options_copy(&entry->parsed, common, fail));
    return read_entry(entry, fail);
}

void at_entry_close(at_entry *entry)
{
    for (int i = 0; i < AT_MEASURE_COUNT; i++) free(entry->value[i]);
    json_decref(entry->own);
    json_decref(entry->runs);
    at_options_deinit(&entry->parsed);
    *entry = (at_entry){0};
}

/* ---- labels -------------------------------------------------------------------------------- */

static const char *strategy_of(const at_entry *entry)
{
    return entry->parsed.settings.strategy;
}

/* Does another entry answer to this name already? */
static bool is_taken(const at_entry *entries, uint32_t count, const at_entry *self,
                     const char *label)
{
    for (const at_entry *other = entries; other < entries + count; other++)
        if (other != self && strcmp(other->label, label) == 0) return true;
    return false;
}

static bool is_only_one_of_its_kind(const at_entry *entries, uint32_t count, const at_entry *self)
{
    for (const at_entry *other = entries; other < entries + count; other++)
        if (other != self && !other->labelled && strcmp(strategy_of(other), strategy_of(self)) == 0)
            return false;
    return true;
}

/* The entry's text as a label: amb:lr=0.05 becomes amb-lr-0.05. */
static void label_by_text(at_entry *entry)
{
    size_t i = 0;
    for (const char *p = entry->text; *p && i + 1 < sizeof entry->label; p++)
        entry->label[i++] = is_label_letter(*p) ? *p : '-';
    entry->label[i] = '\0';
}

static void label_by_number(at_entry *entries, uint32_t count, at_entry *entry)
{
    enum { NUMBER_SIZE = 5 };
    char stem[AT_LABEL_SIZE - NUMBER_SIZE];
    snprintf(stem, sizeof stem, "%.*s", (int)sizeof stem - 1, entry->label);
    for (uint32_t number = 2; is_taken(entries, count, entry, entry->label); number++) {
        assert(number <= AT_WORDS_MAX + 1); /* one of so many names is free */
        snprintf(entry->label, sizeof entry->label, "%s-%u", stem, number);
    }
}

at_err at_entry_label_all(at_entry *entries, uint32_t count, at_fail *fail)
{
    for (at_entry *entry = entries; entry < entries + count; entry++)
        if (entry->labelled && is_taken(entries, count, entry, entry->label))
            return at_fail_set(fail, AT_ERR_USAGE, "a label must be an entry's own",
                               "two entries have the label %s", entry->label);
    for (at_entry *entry = entries; entry < entries + count; entry++) {
        if (entry->labelled) continue;
        if (is_only_one_of_its_kind(entries, count, entry))
            snprintf(entry->label, sizeof entry->label, "%s", strategy_of(entry));
        else
            label_by_text(entry);
        label_by_number(entries, count, entry);
        assert(*entry->label);
    }
    return AT_OK;
}

/* What a comparison would do, without doing it (--dry-run). */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "base/time.h"
#include "cli/dry_run.h"
#include "cli/output.h"
#include "cli/verbs/compare.h"
#include "report/summary/json_value.h"

static at_err estimate_entry(const at_compare *compare, const at_entry *entry, at_dry_estimate *e,
                             at_fail *fail)
{
    at_launch launch;
    if (entry->parsed.command)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "--dry-run: what a program computes is not known before it runs");
    AT_TRY(at_launch_open(&launch, &entry->parsed, compare->command, fail));
    at_err err = at_dry_run_estimate(&launch, e, fail);
    at_launch_close(&launch);
    return err;
}

/* Seconds of one run: of computing or, where only time ends it, that time; NAN: unknown. */
static double seconds_of(const at_entry *entry, const at_dry_estimate *e)
{
    bool timed = e->preview.limits.time > 0 && !entry->simulated;
    return isnan(e->seconds) && timed ? at_seconds(e->preview.limits.time) : e->seconds;
}

static json_t *entry_json(const at_entry *entry, const at_dry_estimate *e)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "label", entry->label, "steps",
                     at_json_number(e->samples / e->step_samples), "memory_bytes",
                     at_json_number(e->preview.memory), "sample_seconds",
                     at_json_number(e->sample_seconds), "seconds",
                     at_json_number(seconds_of(entry, e)));
}

static void add_time(at_table *table, double seconds)
{
    char text[32];
    if (isnan(seconds))
        at_table_add(table, "-");
    else
        at_table_add(table, "%s", at_text_show_duration(text, sizeof text, AT_SEC(seconds)));
}

static void add_entry(at_table *table, const at_entry *entry, const at_dry_estimate *e)
{
    double steps = e->samples / e->step_samples;
    at_table_add(table, "%s", entry->label);
    at_table_add(table, "%.0f", e->step_samples);
    at_table_add(table, isnan(steps) ? "-" : "%.0f", steps);
    at_table_add(table, "%.1f MB", e->preview.memory / 1e6);
    add_time(table, e->sample_seconds > 0 ? e->sample_seconds : (double)NAN);
    add_time(table, seconds_of(entry, e));
}

static at_err print_plan(const at_compare *compare, at_table *table, double seconds, at_fail *fail)
{
    char     text[32];
    uint32_t runs = compare->entries * compare->repeats;
    printf("would make %u runs: %u entries, %u repeats each%s\n\n", runs, compare->entries,
           compare->repeats, compare->parsed->settings.tune ? ", after those of --tune" : "");
    AT_TRY(at_print_table_take(table, fail));
    if (!isnan(seconds))
        printf("\nall runs take at least %s, without delays and waiting",
               at_text_show_duration(text, sizeof text, AT_SEC(seconds)));
    printf("\nnothing was written\n");
    return AT_OK;
}

at_err at_compare_dry_run(const at_compare *compare, at_fail *fail)
{
    static const at_column columns[] = {
        {"entry", AT_ALIGN_LEFT},       {"samples per step", AT_ALIGN_RIGHT},
        {"steps", AT_ALIGN_RIGHT},      {"memory", AT_ALIGN_RIGHT},
        {"per sample", AT_ALIGN_RIGHT}, {"per run", AT_ALIGN_RIGHT}};
    json_t   *entries = json_array();
    at_table *table = at_table_new(columns, sizeof columns / sizeof *columns);
    double    seconds = 0;
    at_err    err = entries && table ? AT_OK : at_fail_memory(fail);
    for (uint32_t i = 0; !err && i < compare->entries; i++) {
        const at_entry *entry = &compare->entry[i];
        at_dry_estimate e = {0};
        err = estimate_entry(compare, entry, &e, fail);
        if (err) break;
        seconds += seconds_of(entry, &e) * compare->repeats;
        add_entry(table, entry, &e);
        json_array_append_new(entries, entry_json(entry, &e));
    }
    if (!err && !compare->parsed->settings.json) {
        json_decref(entries);
        return print_plan(compare, table, seconds, fail);
    }
    at_table_free(table);
    if (err) return json_decref(entries), err;
    return at_print_json_take(json_pack("{s:i, s:o, s:o}", "repeats", (int)compare->repeats,
                                        "seconds", at_json_number(seconds), "entries", entries),
                              fail);
}

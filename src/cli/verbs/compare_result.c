/* The numbers of a comparison: statistics over runs, the table, compare.json and compare.csv. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/resource_table.h"
#include "cli/verbs/compare.h"
#include "record/sinks/sinks.h"

const char *const at_measure_name[AT_MEASURE_COUNT] = {
#define X(id, name, key, part) [AT_MEASURE_##id] = name,
    AT_MEASURE_MAP(X)
#undef X
};

static const struct {
    const char *key, *part;
} source[AT_MEASURE_COUNT] = {
#define X(id, name, key, part) [AT_MEASURE_##id] = {key, part},
    AT_MEASURE_MAP(X)
#undef X
};

/* ---- numbers of one run -------------------------------------------------------------------- */

static double number_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The time when the last target was reached; NAN if one was not, or if there is none. */
static double target_seconds(const json_t *result)
{
    const json_t *targets = json_object_get(result, "targets");
    double        last = json_array_size(targets) > 0 ? 0 : NAN;
    for (size_t i = 0; i < json_array_size(targets); i++) {
        double seconds = number_of(json_object_get(json_array_get(targets, i), "seconds"));
        if (isnan(seconds)) return NAN;
        last = fmax(last, seconds);
    }
    return last;
}

double at_measure_of(const json_t *result, at_measure measure)
{
    if (measure == AT_MEASURE_TARGET) return target_seconds(result);
    if (!source[measure].key) return NAN; /* needs the other runs */
    const json_t *value = json_object_get(result, source[measure].key);
    return number_of(source[measure].part ? json_object_get(value, source[measure].part) : value);
}

/* NAN becomes null. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *at_measure_json(at_measure measure, double value)
{
    bool whole = measure == AT_MEASURE_STEPS && value >= 0 && value < 9e15;
    return whole ? json_integer((json_int_t)value) : number(value);
}

at_err at_compare_add(at_compare *compare, at_entry *entry, const json_t *result,
                      const char *folder, at_fail *fail)
{
    uint32_t i = entry->run_count;
    assert(i < compare->repeats);
    json_t *run = json_object(), *stopped = json_object_get(result, "stopped");
    json_object_set_new(run, "seed", json_integer(compare->parsed->settings.seed + i));
    json_object_set_new(run, "folder", json_string(folder));
    json_object_set(run, "stopped", stopped);
    entry->lr = number_of(json_object_get(json_object_get(result, "options"), "lr"));
    for (int m = 0; m < AT_MEASURE_COUNT; m++) {
        entry->value[m][i] = at_measure_of(result, (at_measure)m);
        json_object_set_new(run, at_measure_name[m],
                            at_measure_json((at_measure)m, entry->value[m][i]));
    }
    json_object_set_new(run, "resources", at_resources_of(result));
    if (json_array_append_new(entry->runs, run)) return at_fail_memory(fail);
    entry->run_count++;
    return AT_OK;
}

/* ---- statistics ---------------------------------------------------------------------------- */

at_interval at_compare_mean(const at_entry *entry, at_measure measure)
{
    assert(measure < AT_MEASURE_COUNT);
    return at_stats_mean(entry->value[measure], entry->run_count);
}

at_interval at_compare_speedup(const at_compare *compare, const at_entry *entry, at_measure measure)
{
    const at_entry *first = compare->entry;
    assert(measure == AT_MEASURE_RATE || measure == AT_MEASURE_TARGET);
    assert(first->run_count >= entry->run_count); /* the first entry runs first */
    const double *values = entry->value[measure], *bases = first->value[measure];
    if (measure == AT_MEASURE_TARGET) return at_stats_ratio(bases, values, entry->run_count);
    return at_stats_ratio(values, bases, entry->run_count);
}

uint32_t at_compare_reached(const at_entry *entry)
{
    uint32_t reached = 0;
    for (uint32_t i = 0; i < entry->run_count; i++)
        reached += isnan(entry->value[AT_MEASURE_TARGET][i]) ? 0u : 1u;
    return reached;
}

/* ---- the table ----------------------------------------------------------------------------- */

static void add_mean(at_table *table, const at_entry *entry, at_measure measure, int digits)
{
    char        text[64];
    at_interval mean = at_compare_mean(entry, measure);
    at_table_add(table, "%s", at_interval_show_half(text, sizeof text, &mean, digits));
}

static void add_speedup(at_table *table, const at_compare *compare, const at_entry *entry,
                        at_measure measure)
{
    char        text[64];
    at_interval ratio = at_compare_speedup(compare, entry, measure);
    bool        first = entry == compare->entry;
    at_table_add(table, "%s", first ? "1" : at_interval_show(text, sizeof text, &ratio, 3));
}

/* Only asynchronous strategies have stale gradients; others need no column for them. */
static bool has_staleness(const at_compare *compare)
{
    for (uint32_t i = 0; i < compare->entries; i++)
        if (at_compare_mean(&compare->entry[i], AT_MEASURE_STALENESS).value > 0) return true;
    return false;
}

/* Bytes are shown where somebody cares about them. */
static bool is_compressed(const at_compare *compare)
{
    for (uint32_t i = 0; i < compare->entries; i++)
        if (strcmp(compare->entry[i].parsed.settings.compress, "none") != 0) return true;
    return false;
}

static void add_megabytes(at_table *table, const at_entry *entry, at_measure measure)
{
    double bytes = at_compare_mean(entry, measure).value;
    double steps = at_compare_mean(entry, AT_MEASURE_STEPS).value;
    assert(measure == AT_MEASURE_DOWN || measure == AT_MEASURE_UP);
    if (bytes >= 0 && steps > 0)
        at_table_add(table, "%.3g", bytes / steps / 1e6);
    else
        at_table_add(table, "-");
}

static bool shows_equal_time(const at_compare *compare)
{
    at_measure quality = at_compare_quality(compare);
    for (uint32_t i = 1; i < compare->entries; i++)
        if (!isnan(at_compare_at_equal_time(&compare->entry[i], quality).here)) return true;
    return false;
}

/* "0.820 : 0.848", the entry and the first one. */
static void add_equal_time(at_table *table, const at_compare *compare, const at_entry *entry)
{
    at_equal_time equal = at_compare_at_equal_time(entry, at_compare_quality(compare));
    if (isnan(equal.here) || isnan(equal.first))
        at_table_add(table, "-");
    else
        at_table_add(table, "%.3g : %.3g", equal.here, equal.first);
}

static bool is_sweep(const at_compare *compare)
{
    return compare->parsed->settings.over != NULL;
}

/* Learning rates are shown where they differ or were searched for; a sweep shows what it varies. */
static bool shows_lr(const at_compare *compare)
{
    if (is_sweep(compare)) return false;
    for (uint32_t i = 0; i < compare->entries; i++) {
        const at_entry *entry = &compare->entry[i];
        if (entry->tuned || (entry->run_count > 0 && entry->lr != compare->entry->lr)) return true;
    }
    return false;
}

static void add_lr(at_table *table, const at_entry *entry)
{
    if (isnan(entry->lr))
        at_table_add(table, "-");
    else
        at_table_add(table, "%.3g%s", entry->lr,
                     at_entry_lr_source(entry) == AT_LR_TUNED ? " tuned" : "");
}

/* The options that a sweep varies, "lr, batch", or their values in an entry, "0.1, 16". */
static const char *varied(const at_entry *entry, bool values, char *buffer, size_t size)
{
    at_text     text = at_text_in(buffer, size);
    const char *key;
    json_t     *value;
    json_object_foreach(entry->own, key, value) at_text_add(
        &text, "%s%s", text.used > 0 ? ", " : "", values ? json_string_value(value) : key);
    return buffer;
}

/* The same as on a command line: "--lr 0.1 --batch 16". */
static const char *varied_options(const at_entry *entry, char *buffer, size_t size)
{
    at_text     text = at_text_in(buffer, size);
    const char *key;
    json_t     *value;
    json_object_foreach(entry->own, key, value)
        at_text_add(&text, "%s--%s %s", text.used > 0 ? " " : "", key, json_string_value(value));
    return buffer;
}

/* How many of the entries run in virtual time. */
static uint32_t count_simulated(const at_compare *compare)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < compare->entries; i++) count += compare->entry[i].simulated ? 1 : 0;
    return count;
}

static bool shows_world(const at_compare *compare)
{
    uint32_t simulated = count_simulated(compare);
    return simulated > 0 && simulated < compare->entries;
}

static void add_row(at_table *table, const at_compare *compare, const at_entry *entry)
{
    char   step[32];
    double step_seconds = at_compare_mean(entry, AT_MEASURE_STEP_SECONDS).value;
    double useful = at_compare_mean(entry, AT_MEASURE_USEFUL).value;
    bool   target = compare->limits.targets > 0;
    char   values[AT_TITLE_SIZE];
    if (entry->run_count == 0) return;
    at_table_add(table, "%s",
                 is_sweep(compare) ? varied(entry, true, values, sizeof values) : entry->label);
    if (shows_world(compare)) at_table_add(table, entry->simulated ? "virtual" : "real");
    at_table_add(
        table, "%s",
        isnan(step_seconds) ? "-" : at_text_show_duration(step, sizeof step, AT_SEC(step_seconds)));
    add_mean(table, entry, AT_MEASURE_RATE, 4);
    at_table_add(table, "%.1f", at_compare_mean(entry, AT_MEASURE_BATCH).value);
    at_table_add(table, "%.0f %%", 100 * useful);
    if (shows_lr(compare)) add_lr(table, entry);
    if (has_staleness(compare)) add_mean(table, entry, AT_MEASURE_STALENESS, 3);
    if (is_compressed(compare)) add_megabytes(table, entry, AT_MEASURE_DOWN);
    if (is_compressed(compare)) add_megabytes(table, entry, AT_MEASURE_UP);
    add_mean(table, entry, at_compare_quality(compare), 3);
    if (shows_equal_time(compare)) add_equal_time(table, compare, entry);
    if (target) add_mean(table, entry, AT_MEASURE_TARGET, 3);
    if (target) at_table_add(table, "%u of %u", at_compare_reached(entry), entry->run_count);
    if (compare->entries == 1) return;
    add_speedup(table, compare, entry, AT_MEASURE_RATE);
    if (target) add_speedup(table, compare, entry, AT_MEASURE_TARGET);
}

static at_table *make_table(const at_compare *compare)
{
    enum { COLUMNS_MAX = 16 };
    char      names[AT_TITLE_SIZE];
    bool      target = compare->limits.targets > 0, several = compare->entries > 1;
    size_t    count = 0;
    at_column columns[COLUMNS_MAX];
    columns[count++] = (at_column){
        is_sweep(compare) ? varied(compare->entry, false, names, sizeof names) : "strategy",
        AT_ALIGN_LEFT};
    if (shows_world(compare)) columns[count++] = (at_column){"time", AT_ALIGN_LEFT};
    columns[count++] = (at_column){"step", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"samples/s", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"batch", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"useful", AT_ALIGN_RIGHT};
    if (shows_lr(compare)) columns[count++] = (at_column){"lr", AT_ALIGN_RIGHT};
    if (has_staleness(compare)) columns[count++] = (at_column){"staleness", AT_ALIGN_RIGHT};
    if (is_compressed(compare)) columns[count++] = (at_column){"MB/step out", AT_ALIGN_RIGHT};
    if (is_compressed(compare)) columns[count++] = (at_column){"MB/step in", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){at_compare_quality_name(compare), AT_ALIGN_RIGHT};
    if (shows_equal_time(compare)) columns[count++] = (at_column){"at equal time", AT_ALIGN_RIGHT};
    if (target) columns[count++] = (at_column){"s to target", AT_ALIGN_RIGHT};
    if (target) columns[count++] = (at_column){"reached", AT_ALIGN_RIGHT};
    if (several) columns[count++] = (at_column){"samples/s ratio", AT_ALIGN_RIGHT};
    if (several && target) columns[count++] = (at_column){"target speedup", AT_ALIGN_RIGHT};
    assert(count <= COLUMNS_MAX);
    at_table *table = at_table_new(columns, count);
    for (uint32_t i = 0; table && i < compare->entries; i++)
        add_row(table, compare, &compare->entry[i]);
    return table;
}

/* By what the values of a sweep are ranked, and whether less of it is better. */
static at_measure ranking_of(const at_compare *compare, bool *less)
{
    for (uint32_t i = 0; i < compare->entries; i++) {
        const at_entry *entry = &compare->entry[i];
        *less = true;
        if (entry->run_count > 0 && at_compare_reached(entry) == entry->run_count)
            return AT_MEASURE_TARGET;
    }
    *less = at_compare_quality(compare) == AT_MEASURE_TEST_LOSS;
    return at_compare_quality(compare);
}

/* "best: --batch 64, by accuracy at the end (0.8478)". Entries with a run that missed its target do
 * not compete with those that always reached it. */
static void print_best(const at_compare *compare)
{
    bool            less;
    char            options[AT_TITLE_SIZE];
    at_measure      measure = ranking_of(compare, &less);
    const at_entry *best = NULL;
    double          top = 0;
    for (uint32_t i = 0; i < compare->entries; i++) {
        const at_entry *entry = &compare->entry[i];
        double          value = at_compare_mean(entry, measure).value;
        bool            missed = at_compare_reached(entry) < entry->run_count;
        if (entry->run_count == 0 || isnan(value)) continue;
        if (measure == AT_MEASURE_TARGET && missed) continue;
        if (best && (less ? value >= top : value <= top)) continue;
        best = entry;
        top = value;
    }
    if (!best) return;
    varied_options(best, options, sizeof options);
    if (measure == AT_MEASURE_TARGET)
        at_print("best: %s, which reaches the target first (%.4g s)\n", options, top);
    else
        at_print("best: %s, by %s at the end (%.4g)\n", options, at_compare_quality_name(compare),
                 top);
}

/* Under the findings: what the strategies used, where that is known. */
static at_err print_resources(const at_compare *compare, at_fail *fail)
{
    const char   **label = calloc(compare->entries, sizeof *label);
    const json_t **runs = calloc(compare->entries, sizeof(json_t *));
    bool           known = false;
    at_err         err = label && runs ? AT_OK : at_fail_memory(fail);
    for (uint32_t i = 0; i < compare->entries && !err; i++) {
        label[i] = compare->entry[i].label;
        runs[i] = compare->entry[i].runs;
        known = known || at_resources_known(runs[i]);
    }
    if (!err && known) printf("\n");
    if (!err && known)
        err = at_print_table_take(at_resources_table(is_sweep(compare) ? "value" : "strategy",
                                                     label, runs, compare->entries),
                                  fail);
    free(label);
    free(runs);
    return err;
}

at_err at_compare_print(const at_compare *compare, at_fail *fail)
{
    char finding[AT_FINDING_SIZE];
    AT_TRY(at_print_table_take(make_table(compare), fail));
    printf("\n");
    for (uint32_t i = 1; i < compare->entries; i++)
        if (compare->entry[i].run_count > 0)
            at_print("%s\n",
                     at_compare_finding(compare, &compare->entry[i], finding, sizeof finding));
    if (is_sweep(compare) && compare->entries > 1) print_best(compare);
    at_tune_print(compare);
    if (count_simulated(compare) == compare->entries)
        printf("all times are virtual: these runs were simulated\n");
    if (compare->entry->run_count < 3)
        printf("no 95 %% confidence intervals: they need 3 repeats\n");
    else
        printf("%s and [ ]: 95 %% confidence intervals over %u repeats\n",
               at_console_is_ascii() ? "+-" : "±", compare->entry->run_count);
    return print_resources(compare, fail);
}

/* ---- compare.json -------------------------------------------------------------------------- */

static json_t *interval_json(at_interval interval)
{
    return json_pack("{s:o, s:o, s:o, s:i}", "value", number(interval.value), "low",
                     number(interval.low), "high", number(interval.high), "count",
                     (int)interval.count);
}

static json_t *summary_json(const at_entry *entry)
{
    json_t *summary = json_object();
    for (int m = 0; m < AT_MEASURE_COUNT; m++)
        json_object_set_new(summary, at_measure_name[m],
                            interval_json(at_compare_mean(entry, (at_measure)m)));
    json_object_set_new(summary, "reached", json_integer(at_compare_reached(entry)));
    return summary;
}

static json_t *speedup_json(const at_compare *compare, const at_entry *entry)
{
    json_t *speedup = json_object();
    if (entry == compare->entry) return json_decref(speedup), json_null();
    for (int m = 0; m < AT_MEASURE_COUNT; m++)
        if (m == AT_MEASURE_RATE || m == AT_MEASURE_TARGET)
            json_object_set_new(speedup, at_measure_name[m],
                                interval_json(at_compare_speedup(compare, entry, (at_measure)m)));
    return speedup;
}

static const char *const lr_source_name[] = {
    [AT_LR_COMMON] = "common", [AT_LR_OWN] = "own", [AT_LR_TUNED] = "tuned"};

/* How an entry differs from the first one at the same time. */
static json_t *equal_time_json(const at_compare *compare, const at_entry *entry)
{
    if (entry == compare->entry) return json_null();
    at_equal_time accuracy = at_compare_at_equal_time(entry, AT_MEASURE_ACCURACY);
    at_equal_time loss = at_compare_at_equal_time(entry, AT_MEASURE_TEST_LOSS);
    return json_pack("{s:o, s:o}", "accuracy_difference", interval_json(accuracy.difference),
                     "test_loss_difference", interval_json(loss.difference));
}

static json_t *entry_json(const at_compare *compare, const at_entry *entry)
{
    char    finding[AT_FINDING_SIZE];
    bool    has_finding = entry != compare->entry && entry->run_count > 0;
    json_t *object = json_object();
    json_object_set_new(object, "label", json_string(entry->label));
    json_object_set_new(object, "entry", json_string(entry->text));
    json_object_set_new(object, "strategy", json_string(entry->parsed.settings.strategy));
    json_object_set(object, "options", entry->own);
    json_object_set_new(object, "sample_time",
                        *entry->sample_time ? json_string(entry->sample_time) : json_null());
    json_object_set_new(object, "lr", number(entry->lr));
    json_object_set_new(object, "lr_source",
                        json_string(lr_source_name[at_entry_lr_source(entry)]));
    json_object_set_new(object, "tuned", entry->tuned ? json_incref(entry->tuned) : json_null());
    json_object_set(object, "runs", entry->runs);
    json_object_set_new(object, "summary", summary_json(entry));
    json_object_set_new(object, "speedup", speedup_json(compare, entry));
    json_object_set_new(object, "equal_time", equal_time_json(compare, entry));
    json_object_set_new(
        object, "finding",
        has_finding ? json_string(at_compare_finding(compare, entry, finding, sizeof finding))
                    : json_null());
    return object;
}

static json_t *targets_json(const at_limits *limits)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < limits->targets; i++)
        json_array_append_new(array, json_pack("{s:s, s:f}", "metric",
                                               at_metric_name[limits->target[i].metric], "value",
                                               limits->target[i].value));
    return array;
}

/* The command after `--`; null: there is none. */
static json_t *program_json(const at_parsed *parsed)
{
    if (!parsed->command) return json_null();
    json_t *words = json_array();
    for (const char *const *word = parsed->command; *word; word++)
        json_array_append_new(words, json_string(*word));
    return words;
}

/* Where the comparison was started: entries and programs may name files relative to it. */
static json_t *directory_json(void)
{
    char    here[PATH_MAX];
    json_t *directory = getcwd(here, sizeof here) ? json_string(here) : NULL;
    return directory ? directory : json_null();
}

json_t *at_compare_json(const at_compare *compare)
{
    json_t  *root = json_object(), *entries = json_array();
    uint64_t done = 0;
    for (uint32_t i = 0; i < compare->entries; i++) {
        done += compare->entry[i].run_count;
        json_array_append_new(entries, entry_json(compare, &compare->entry[i]));
    }
    bool complete = done == (uint64_t)compare->entries * compare->repeats;
    json_object_set_new(root, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(root, "command", json_string(compare->command));
    json_object_set_new(
        root, "options",
        at_options_echo(compare->parsed, is_sweep(compare) ? AT_FOR_SWEEP : AT_FOR_COMPARE));
    json_object_set_new(root, "program", program_json(compare->parsed));
    json_object_set_new(root, "directory", directory_json());
    json_object_set_new(root, "folder", json_string(compare->folder));
    json_object_set_new(root, "complete", json_boolean(complete));
    json_object_set_new(root, "targets", targets_json(&compare->limits));
    json_object_set_new(root, "tune", at_tune_json(compare));
    if (json_object_set_new(root, "entries", entries)) return json_decref(root), NULL;
    return root;
}

/* ---- files --------------------------------------------------------------------------------- */

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for the files of the comparison");
}

static at_err write_text(const at_compare *compare, const char *name, const char *text,
                         at_fail *fail)
{
    char path[AT_COMPARE_PATH_SIZE + 32];
    snprintf(path, sizeof path, "%s/%s", compare->folder, name);
    return at_file_write(path, text, strlen(text), fail);
}

static at_err write_json(const at_compare *compare, at_fail *fail)
{
    json_t *document = at_compare_json(compare);
    char   *text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    at_err  err = text ? write_text(compare, "compare.json", text, fail) : no_memory(fail);
    free(text);
    json_decref(document);
    return err;
}

static void add_csv_row(at_table *table, const at_entry *entry, uint32_t i)
{
    const json_t *run = json_array_get(entry->runs, i);
    at_table_add(table, "%s", entry->label);
    at_table_add(table, "%s", entry->parsed.settings.strategy);
    at_table_add(table, "%lld", (long long)json_integer_value(json_object_get(run, "seed")));
    at_table_add(table, "%s", json_string_value(json_object_get(run, "folder")));
    for (int m = 0; m < AT_MEASURE_COUNT; m++) {
        double value = entry->value[m][i];
        if (isnan(value))
            at_table_add(table, "%s", "");
        else
            at_table_add(table, "%.9g", value);
    }
}

/* One line per run; unknown values are empty. */
static at_table *csv_table(const at_compare *compare)
{
    at_column columns[4 + AT_MEASURE_COUNT] = {{"label", AT_ALIGN_LEFT},
                                               {"strategy", AT_ALIGN_LEFT},
                                               {"seed", AT_ALIGN_LEFT},
                                               {"folder", AT_ALIGN_LEFT}};
    for (int m = 0; m < AT_MEASURE_COUNT; m++) columns[4 + m].head = at_measure_name[m];
    at_table *table = at_table_new(columns, 4 + AT_MEASURE_COUNT);
    for (uint32_t i = 0; table && i < compare->entries; i++)
        for (uint32_t run = 0; run < compare->entry[i].run_count; run++)
            add_csv_row(table, &compare->entry[i], run);
    return table;
}

static at_err write_csv(const at_compare *compare, at_fail *fail)
{
    char     *text = NULL;
    size_t    size;
    at_table *table = csv_table(compare);
    FILE     *file = open_memstream(&text, &size);
    at_err    err = table && file ? at_table_print_csv(table, file, fail) : no_memory(fail);
    if (file && fclose(file) && !err) err = no_memory(fail);
    if (!err) err = write_text(compare, "compare.csv", text, fail);
    free(text);
    at_table_free(table);
    return err;
}

at_err at_compare_write(const at_compare *compare, at_fail *fail)
{
    AT_TRY(write_json(compare, fail));
    return write_csv(compare, fail);
}

/* `anytime compare --tune NAME=V1,V2,..`: every entry is compared at its own best value of an
 * option, in most cases the learning rate. A rate that suits the mean gradient of all workers is
 * often too high for steps of single, stale gradients, so a comparison at one rate says little
 * about asynchronous strategies.
 *
 * The search is a comparison in the subfolder `tune`: every entry with every value, one run each,
 * with the same limits as the runs that follow. So every entry has the same budget. Its seed is one
 * that the comparison does not use: a value that was lucky there has no advantage here. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/verbs/compare.h"

enum { VALUES_MAX = 32, NAME_SIZE = 64, LIST_SIZE = 1024 };

/* The parsed option. */
typedef struct tune_grid {
    char     name[NAME_SIZE], text[LIST_SIZE];
    char    *value[VALUES_MAX]; /* in text */
    uint32_t count;
} tune_grid;

static at_err bad_tune(const char *text, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, "write it as --tune lr=0.01,0.03,0.1",
                       "--tune %s is not an option with two to %d values", text, VALUES_MAX);
}

static at_err read_grid(const char *text, tune_grid *grid, at_fail *fail)
{
    const char *equals = strchr(text, '=');
    char       *rest = grid->text, *value;
    size_t      length = equals ? (size_t)(equals - text) : 0;
    *grid = (tune_grid){0};
    if (length == 0 || length >= sizeof grid->name || strlen(equals + 1) >= sizeof grid->text)
        return bad_tune(text, fail);
    snprintf(grid->name, sizeof grid->name, "%.*s", (int)length, text);
    snprintf(grid->text, sizeof grid->text, "%s", equals + 1);
    while ((value = strsep(&rest, ","))) {
        if (!*value || grid->count == VALUES_MAX) return bad_tune(text, fail);
        grid->value[grid->count++] = value;
    }
    return grid->count >= 2 ? AT_OK : bad_tune(text, fail);
}

at_err at_tune_check(at_compare *compare, at_fail *fail)
{
    static const char *const refused[] = {"seed", "strategy", "target", "repeats", "out", "tune"};
    const at_parsed         *parsed = compare->parsed;
    tune_grid                grid;
    at_parsed                trial;
    if (!parsed->settings.tune) return AT_OK;
    AT_TRY(read_grid(parsed->settings.tune, &grid, fail));
    if (parsed->command)
        return at_fail_set(fail, AT_ERR_USAGE, "tune the program by itself",
                           "--tune does not work with programs: they have their own options");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(grid.name, refused[i]) == 0)
            return at_fail_set(fail, AT_ERR_USAGE, "tune lr, or another option of the training",
                               "--tune cannot vary --%s", grid.name);
    AT_TRY(at_options_copy(&trial, parsed, fail));
    at_err err = AT_OK;
    for (uint32_t i = 0; i < grid.count && !err; i++)
        err = at_options_set(&trial, AT_FOR_TRAIN, grid.name, grid.value[i], fail);
    at_options_deinit(&trial);
    return err ? at_fail_wrap(fail, "--tune") : AT_OK;
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool sets_itself(const at_entry *entry, const char *name)
{
    return json_object_get(entry->own, name) != NULL;
}

static uint32_t count_tuned(const at_compare *compare, const char *name)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < compare->entries; i++) count += !sets_itself(&compare->entry[i], name);
    return count;
}

/* An entry of the search: `entry` with one of the values. */
static at_err open_trial(at_compare *search, const at_entry *entry, const char *name,
                         const char *value, at_fail *fail)
{
    char      stem[AT_LABEL_SIZE + NAME_SIZE + LIST_SIZE];
    at_entry *trial = &search->entry[search->entries++];
    snprintf(stem, sizeof stem, "%s-%s-%s", entry->label, name, value);
    AT_TRY(at_entry_open(trial, entry->text, &entry->parsed, search->repeats, fail));
    AT_TRY(at_options_set(&trial->parsed, AT_FOR_TRAIN, name, value, fail));
    at_entry_label(search, trial, stem);
    return at_entry_check(search, trial, fail);
}

static at_err open_trials(const at_compare *compare, const tune_grid *grid, at_compare *search,
                          at_fail *fail)
{
    for (uint32_t i = 0; i < compare->entries; i++)
        for (uint32_t v = 0; v < grid->count && !sets_itself(&compare->entry[i], grid->name); v++)
            if (open_trial(search, &compare->entry[i], grid->name, grid->value[v], fail))
                return at_fail_wrap(fail, "--tune %s=%s", grid->name, grid->value[v]);
    return AT_OK;
}

static double value_of(const at_entry *trial, at_measure measure)
{
    return trial->run_count > 0 ? trial->value[measure][0] : (double)NAN;
}

/* Whether a trial is better than another: it reaches the target earlier, or else ends with a better
 * accuracy, or else with a lower test or training loss. Unknown values, as after a loss that is not
 * finite, are worse than any other. */
static bool is_better(const at_entry *a, const at_entry *b)
{
    static const struct {
        at_measure measure;
        bool       less;
    } order[] = {{AT_MEASURE_TARGET, true},
                 {AT_MEASURE_ACCURACY, false},
                 {AT_MEASURE_TEST_LOSS, true},
                 {AT_MEASURE_TRAIN_LOSS, true}};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        double x = value_of(a, order[i].measure), y = value_of(b, order[i].measure);
        if (isnan(x) && isnan(y)) continue;
        if (isnan(x) || isnan(y)) return isnan(y);
        if (x != y) return order[i].less ? x < y : x > y;
    }
    return false;
}

static json_t *trial_json(const char *value, const at_entry *trial)
{
    static const at_measure shown[] = {AT_MEASURE_TARGET, AT_MEASURE_ACCURACY, AT_MEASURE_TEST_LOSS,
                                       AT_MEASURE_TRAIN_LOSS, AT_MEASURE_SECONDS};
    json_t                 *one = json_pack("{s:s, s:s}", "value", value, "label", trial->label);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        json_object_set_new(one, at_measure_name[shown[i]],
                            at_measure_json(shown[i], value_of(trial, shown[i])));
    return one;
}

/* Whether a value is the smallest (-1) or the largest (1) of the list; 0: neither, or they are no
 * numbers. */
static int edge_of(const tune_grid *grid, uint32_t index)
{
    double here, other;
    bool   smallest = true, largest = true;
    if (!at_text_real(grid->value[index], &here)) return 0;
    for (uint32_t i = 0; i < grid->count; i++) {
        if (!at_text_real(grid->value[i], &other)) return 0;
        smallest = smallest && here <= other;
        largest = largest && here >= other;
    }
    return largest - smallest;
}

/* Gives an entry the best of its trials, which are `grid->count` from `trial` on. */
static at_err choose(at_entry *entry, const tune_grid *grid, const at_entry *trial, at_fail *fail)
{
    uint32_t best = 0;
    json_t  *tried = json_array();
    for (uint32_t v = 0; v < grid->count; v++) {
        json_array_append_new(tried, trial_json(grid->value[v], &trial[v]));
        if (is_better(&trial[v], &trial[best])) best = v;
    }
    static const char *const edges[] = {"smallest", NULL, "largest"};
    entry->tuned =
        json_pack("{s:s, s:s, s:s?, s:o}", "option", grid->name, "value", grid->value[best], "edge",
                  edges[edge_of(grid, best) + 1], "tried", tried);
    if (!entry->tuned) return at_fail_memory(fail);
    return at_options_set(&entry->parsed, AT_FOR_TRAIN, grid->name, grid->value[best], fail);
}

static at_err choose_all(at_compare *compare, const tune_grid *grid, const at_compare *search,
                         at_fail *fail)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < compare->entries; i++) {
        if (sets_itself(&compare->entry[i], grid->name)) continue;
        assert(next + grid->count <= search->entries);
        AT_TRY(choose(&compare->entry[i], grid, &search->entry[next], fail));
        next += grid->count;
    }
    assert(next == search->entries);
    return AT_OK;
}

/* The first seed after those of the comparison. */
static int64_t tune_seed(const at_compare *compare)
{
    return compare->parsed->settings.seed + compare->repeats;
}

static at_err search(at_compare *compare, const tune_grid *grid, at_compare *trials, at_fail *fail)
{
    size_t  count = (size_t)count_tuned(compare, grid->name) * grid->count;
    at_text folder = at_text_in(trials->folder, sizeof trials->folder);
    at_text_add(&folder, "%s/tune", compare->folder);
    if (folder.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder name is too long");
    trials->entry = calloc(count, sizeof *trials->entry);
    if (!trials->entry) return at_fail_memory(fail);
    AT_TRY(open_trials(compare, grid, trials, fail));
    AT_TRY(at_file_make_folder(trials->folder, fail));
    AT_TRY(at_compare_run_all(trials, fail));
    return choose_all(compare, grid, trials, fail);
}

at_err at_tune(at_compare *compare, at_fail *fail)
{
    tune_grid grid;
    at_parsed parsed;
    if (!compare->parsed->settings.tune) return AT_OK;
    AT_TRY(read_grid(compare->parsed->settings.tune, &grid, fail));
    if (count_tuned(compare, grid.name) == 0) return AT_OK;
    AT_TRY(at_options_copy(&parsed, compare->parsed, fail));
    parsed.settings.seed = tune_seed(compare);
    parsed.settings.repeats = 1;
    at_compare trials = {.parsed = &parsed,
                         .command = compare->command,
                         .what = "tune",
                         .limits = compare->limits,
                         .repeats = 1,
                         .before = compare->before};
    at_err     err = search(compare, &grid, &trials, fail);
    for (uint32_t i = 0; i < trials.entries; i++) at_entry_close(&trials.entry[i]);
    free(trials.entry);
    at_options_deinit(&parsed);
    return err ? err : at_compare_write(compare, fail);
}

/* ---- what it found --------------------------------------------------------------------------- */

json_t *at_tune_json(const at_compare *compare)
{
    tune_grid grid;
    at_fail   fail;
    if (!compare->parsed->settings.tune || read_grid(compare->parsed->settings.tune, &grid, &fail))
        return json_null();
    json_t *values = json_array();
    for (uint32_t i = 0; i < grid.count; i++)
        json_array_append_new(values, json_string(grid.value[i]));
    return json_pack("{s:s, s:o, s:i, s:I, s:s}", "option", grid.name, "values", values,
                     "runs_per_entry", (int)grid.count, "seed", (json_int_t)tune_seed(compare),
                     "folder", "tune");
}

at_lr_source at_entry_lr_source(const at_entry *entry)
{
    const char *option = json_string_value(json_object_get(entry->tuned, "option"));
    if (option && strcmp(option, "lr") == 0) return AT_LR_TUNED;
    return sets_itself(entry, "lr") ? AT_LR_OWN : AT_LR_COMMON;
}

static const char *tuned_value(const at_entry *entry)
{
    return json_string_value(json_object_get(entry->tuned, "value"));
}

const char *at_entry_title(const at_entry *entry, char *buffer, size_t size)
{
    at_text text = at_text_in(buffer, size);
    at_text_add(&text, "%s", entry->label);
    if (entry->tuned)
        at_text_add(&text, ", tuned %s %s",
                    json_string_value(json_object_get(entry->tuned, "option")), tuned_value(entry));
    return buffer;
}

/* "tuned lr: fmb 0.3, async 0.03 (4 values each, one run per value with seed 4)" */
static void print_tuned(const at_compare *compare, const tune_grid *grid)
{
    const char *comma = "";
    printf("tuned %s:", grid->name);
    for (uint32_t i = 0; i < compare->entries; i++) {
        if (!compare->entry[i].tuned) continue;
        at_print("%s %s %s", comma, compare->entry[i].label, tuned_value(&compare->entry[i]));
        comma = ",";
    }
    printf(" (%u values each, one run per value with seed %lld)\n", grid->count,
           (long long)tune_seed(compare));
    for (uint32_t i = 0; i < compare->entries; i++) {
        const json_t *edge = json_object_get(compare->entry[i].tuned, "edge");
        if (json_is_string(edge))
            at_print("note: the best %s of %s is the %s one tried (%s); others beyond it may be "
                     "better\n",
                     grid->name, compare->entry[i].label, json_string_value(edge),
                     tuned_value(&compare->entry[i]));
    }
}

/* Whether an entry has stale gradients and the learning rate of a first entry that has none. */
static bool borrows_lr(const at_compare *compare, const at_entry *entry)
{
    const at_entry *first = compare->entry;
    if (entry->run_count == 0 || entry->lr != first->lr) return false;
    return at_entry_lr_source(entry) == AT_LR_COMMON &&
           at_compare_mean(entry, AT_MEASURE_STALENESS).value > 0 &&
           !(at_compare_mean(first, AT_MEASURE_STALENESS).value > 0);
}

static void print_borrowed(const at_compare *compare)
{
    const char *comma = "note: ";
    uint32_t    count = 0;
    double      lr = compare->entry->lr;
    for (uint32_t i = 1; i < compare->entries; i++) {
        if (!borrows_lr(compare, &compare->entry[i])) continue;
        at_print("%s%s", comma, compare->entry[i].label);
        comma = ", ";
        count++;
    }
    if (count > 0)
        at_print(
            " ran with the learning rate of %s (%.3g), not with one tuned for stale gradients; "
            "--tune lr=%.2g,%.2g,%.2g searches one for each entry\n",
            compare->entry->label, lr, lr / 10, lr / 3, lr);
}

void at_tune_print(const at_compare *compare)
{
    tune_grid grid;
    at_fail   fail;
    bool      tuned =
        compare->parsed->settings.tune && !read_grid(compare->parsed->settings.tune, &grid, &fail);
    if (tuned && count_tuned(compare, grid.name) > 0) print_tuned(compare, &grid);
    print_borrowed(compare);
}

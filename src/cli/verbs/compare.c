/* `anytime compare`: runs every entry with the first seed, then every entry with the second, and so
 * on, so that slow changes of the machine (heat, other load) affect all entries alike. Files are
 * updated after each run: an interrupted comparison keeps what it has, and can be resumed. */
#include "cli/verbs/compare.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/verbs/run.h"
#include "cli/verbs/verbs.h"
#include "learn/optim/optim.h"
#include "learn/optim/schedule.h"
#include "pace/pace.h"
#include "world/process/signals.h"

/* ---- entries ------------------------------------------------------------------------------- */

enum { ENTRY_SIZE_MAX = 1024 };

/* Options that must be the same for all entries. */
static const char *const common_only[] = {"strategy", "seed",  "target", "run",    "out",
                                          "repeats",  "plots", "json",   "quiet",  "help",
                                          "config",   "jobs",  "tune",   "dry-run"};

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
                           "'%s' is not a valid label (labels become folder names)", label);
    snprintf(entry->label, sizeof entry->label, "%s", label);
    entry->labelled = true;
    return AT_OK;
}

/* Splits off the next "name=value"; a comma ends it only if another "name=" follows. */
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
    if (strncmp(option, "--", 2) == 0) option += 2; /* --label=NAME is the option */
    for (size_t i = 0; i < sizeof common_only / sizeof *common_only; i++)
        if (strcmp(option, common_only[i]) == 0)
            return at_fail_set(fail, AT_ERR_USAGE, "set it for the whole comparison",
                               "an entry cannot set %s", option);
    AT_TRY(at_options_set(&entry->parsed, AT_FOR_TRAIN, option, value, fail));
    json_object_set_new(entry->own, option, json_string(value));
    return AT_OK;
}

/* Whether "name=value" comes first, and not arguments of the strategy. */
static bool takes_options(const char *text)
{
    return text[strcspn(text, ",=")] == '=';
}

static at_err read_entry(at_entry *entry, at_fail *fail)
{
    char copy[ENTRY_SIZE_MAX];
    if (strlen(entry->text) >= sizeof copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the entry is too long");
    snprintf(copy, sizeof copy, "%s", entry->text);
    char *rest = strchr(copy, ':'), *option;
    if (rest && !takes_options(rest + 1)) { /* backup:5,lr=0.1 */
        rest++;
        next_option(&rest);
    } else if (rest) {
        *rest++ = '\0';
    }
    if (!*copy || *copy == ':')
        return at_fail_set(fail, AT_ERR_USAGE, "write it as 'amb:lr=0.05'",
                           "an entry must begin with a strategy");
    AT_TRY(at_options_set(&entry->parsed, AT_FOR_TRAIN, "strategy", copy, fail));
    while ((option = next_option(&rest))) AT_TRY(set_own(entry, option, fail));
    return AT_OK;
}

at_err at_entry_open(at_entry *entry, const char *text, const at_parsed *parsed, uint32_t repeats,
                     at_fail *fail)
{
    assert(text);
    assert(repeats >= 1);
    *entry =
        (at_entry){.text = text, .own = json_object(), .runs = json_array(), .lr = (double)NAN};
    bool memory = entry->own && entry->runs;
    for (int i = 0; i < AT_MEASURE_COUNT && memory; i++) {
        entry->value[i] = calloc(repeats, sizeof(double));
        memory = entry->value[i] != NULL;
    }
    if (!memory) return at_fail_memory(fail);
    return at_options_copy(&entry->parsed, parsed, fail);
}

/* Parses 'amb:time-limit=50ms,label=fast' or 'backup:5,lr=0.1' (with arguments of the strategy) on
 * top of a copy of the common options. A part without '=' belongs to the value before it, so that
 * 'fmb:straggler=speed:1,2' works. `label` names the entry; with dashes, as any option may be
 * written, it is the option of that name. */
static at_err open_entry(at_entry *entry, const char *text, const at_parsed *common, at_fail *fail)
{
    AT_TRY(at_entry_open(entry, text, common, (uint32_t)common->settings.repeats, fail));
    return read_entry(entry, fail);
}

void at_entry_close(at_entry *entry)
{
    for (int i = 0; i < AT_MEASURE_COUNT; i++) free(entry->value[i]);
    json_decref(entry->own);
    json_decref(entry->runs);
    json_decref(entry->tuned);
    at_options_deinit(&entry->parsed);
    *entry = (at_entry){0};
}

static const char *strategy_of(const at_entry *entry)
{
    return entry->parsed.settings.strategy;
}

/* Whether another entry has this label. */
static bool is_taken(const at_entry *entries, uint32_t count, const at_entry *self,
                     const char *label)
{
    for (const at_entry *other = entries; other < entries + count; other++)
        if (other != self && strcmp(other->label, label) == 0) return true;
    return false;
}

static bool has_unique_strategy(const at_entry *entries, uint32_t count, const at_entry *self)
{
    for (const at_entry *other = entries; other < entries + count; other++)
        if (other != self && !other->labelled && strcmp(strategy_of(other), strategy_of(self)) == 0)
            return false;
    return true;
}

/* Makes a label of a text: amb:lr=0.05 becomes amb-lr-0.05. */
static void label_by_text(at_entry *entry, const char *text)
{
    size_t i = 0;
    for (const char *p = text; *p && i + 1 < sizeof entry->label; p++)
        entry->label[i++] = is_label_letter(*p) ? *p : '-';
    entry->label[i] = '\0';
}

static void label_by_number(at_entry *entries, uint32_t count, at_entry *entry)
{
    enum { NUMBER_SIZE = 5 };
    char stem[AT_LABEL_SIZE - NUMBER_SIZE];
    snprintf(stem, sizeof stem, "%.*s", (int)sizeof stem - 1, entry->label);
    for (uint32_t number = 2; is_taken(entries, count, entry, entry->label); number++) {
        assert(number <= AT_WORDS_MAX + 1); /* more names than entries */
        snprintf(entry->label, sizeof entry->label, "%s-%u", stem, number);
    }
}

void at_entry_label(at_compare *compare, at_entry *entry, const char *stem)
{
    label_by_text(entry, stem);
    label_by_number(compare->entry, compare->entries, entry);
    assert(*entry->label);
}

/* Gives every entry a unique label: the user's, else the strategy's name, else the entry's text,
 * numbered if necessary. */
static at_err label_entries(at_entry *entries, uint32_t count, at_fail *fail)
{
    for (at_entry *entry = entries; entry < entries + count; entry++)
        if (entry->labelled && is_taken(entries, count, entry, entry->label))
            return at_fail_set(fail, AT_ERR_USAGE, "give each entry a different label",
                               "two entries have the label %s", entry->label);
    for (at_entry *entry = entries; entry < entries + count; entry++) {
        if (entry->labelled) continue;
        if (has_unique_strategy(entries, count, entry))
            label_by_text(entry, strategy_of(entry));
        else
            label_by_text(entry, entry->text);
        label_by_number(entries, count, entry);
        assert(*entry->label);
    }
    return AT_OK;
}

/* ---- checks before the first run ----------------------------------------------------------- */

/* Checks what a run would refuse only when it starts, which may be an hour from now. */
static at_err check_run(const at_run_options *run, at_fail *fail)
{
    const at_limits *limits = &run->plan.limits;
    at_schedule      schedule;
    const at_optim  *optim;
    double           number[AT_OPTIM_NUMBERS_MAX];
    at_pace         *pace = NULL;
    bool             ends = run->epochs > 0 || limits->samples > 0 || limits->steps > 0;
    AT_TRY(at_optim_parse(at_run_optimizer(run), &optim, number, fail));
    AT_TRY(at_schedule_parse(run->lr_schedule, 1, 1, ends ? HUGE_VAL : 0, &schedule, fail));
    AT_TRY(at_schedule_set_steps(&schedule, (double)limits->steps, fail));
    at_pace_options options = {.model = run->straggler,
                               .scale = run->straggler_scale,
                               .seed = run->seed,
                               .workers = run->plan.workers,
                               .round_ns_mean = AT_MS(1),
                               .rounds_per_epoch = 1,
                               .trace_scale = run->trace_scale};
    AT_TRY(at_pace_new(&options, &pace, fail));
    at_pace_free(pace);
    return AT_OK;
}

static bool has_same_sample_time(const at_settings *a, const at_settings *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->data, b->data) == 0 &&
           strcmp(a->engine, b->engine) == 0;
}

/* Measures `--sample-time measure` once for all entries that compute the same, so that their runs
 * are padded to the same time. */
static at_err share_sample_time(at_compare *compare, at_entry *entry, at_ns measured, at_fail *fail)
{
    char text[32];
    snprintf(text, sizeof text, "%lldns", (long long)measured);
    for (at_entry *other = entry; other < compare->entry + compare->entries; other++) {
        at_settings *s = &other->parsed.settings;
        bool         asks = s->sample_time && strcmp(s->sample_time, "measure") == 0;
        if (!asks || !has_same_sample_time(s, &entry->parsed.settings)) continue;
        AT_TRY(at_options_set(&other->parsed, AT_FOR_TRAIN, "sample-time", text, fail));
        snprintf(other->sample_time, sizeof other->sample_time, "%s", text);
    }
    return AT_OK;
}

at_err at_entry_check(at_compare *compare, at_entry *entry, at_fail *fail)
{
    at_launch launch;
    if (entry->parsed.command) return at_launch_check_seats(&entry->parsed, fail);
    AT_TRY(at_launch_open(&launch, &entry->parsed, compare->command, fail));
    entry->simulated = launch.run.world->virtual_time;
    at_err err = check_run(&launch.run, fail);
    if (!err) err = share_sample_time(compare, entry, launch.run.sample_time, fail);
    at_launch_close(&launch);
    /* Notes about unused options have been printed; do not repeat them in each run. */
    bool chosen = at_options_given(&entry->parsed, "model");
    memset(entry->parsed.given, 0, sizeof entry->parsed.given);
    if (chosen) at_options_settle(&entry->parsed, "model");
    return err;
}

/* Names the entry in an error. The user of `sweep` did not type entries but --over. */
static at_err wrap_entry(const at_compare *compare, const char *text, at_fail *fail)
{
    if (compare->parsed->settings.over) return at_fail_wrap(fail, "--over");
    return at_fail_wrap(fail, "entry '%s'", text);
}

static at_err open_entries(at_compare *compare, at_fail *fail)
{
    const at_parsed *parsed = compare->parsed;
    for (uint32_t i = 0; i < parsed->words; i++) {
        compare->entries++;
        if (open_entry(&compare->entry[i], parsed->word[i], parsed, fail))
            return wrap_entry(compare, parsed->word[i], fail);
        AT_TRY(at_compare_restore_entry(compare, i, fail));
    }
    AT_TRY(label_entries(compare->entry, compare->entries, fail));
    for (uint32_t i = 0; i < compare->entries; i++)
        if (at_entry_check(compare, &compare->entry[i], fail))
            return wrap_entry(compare, compare->entry[i].text, fail);
    return AT_OK;
}

static bool are_simulated(const at_compare *compare)
{
    bool simulated = true;
    assert(compare->entry);
    for (uint32_t i = 0; i < compare->entries; i++)
        simulated = simulated && compare->entry[i].simulated;
    return simulated;
}

static at_err check_jobs(const at_compare *compare, at_fail *fail)
{
    int64_t jobs = compare->parsed->settings.jobs;
    if (jobs <= 1 || are_simulated(compare)) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or add --world sim",
                       "--jobs %lld: only simulated runs can run at the same time",
                       (long long)jobs);
}

static at_err open_folder(at_compare *compare, at_fail *fail)
{
    const char *out = compare->parsed->settings.out;
    if (!compare->before)
        AT_TRY(at_launch_folder(out, compare->what, compare->folder, sizeof compare->folder, fail));
    return at_run_lock_take_as(compare->folder, "compare.lock", &compare->lock, fail);
}

static at_err open_compare(at_compare *compare, at_fail *fail)
{
    const at_settings *s = &compare->parsed->settings;
    if (compare->parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime compare fmb amb",
                           "compare needs one or more strategies");
    assert(compare->repeats >= 1);
    AT_TRY(at_plots_check(s->plots, fail));
    AT_TRY(at_tune_check(compare, fail));
    AT_TRY(at_launch_targets(s->target, &compare->limits, fail));
    if (!s->dry_run) AT_TRY(open_folder(compare, fail));
    compare->entry = calloc(compare->parsed->words, sizeof *compare->entry);
    if (!compare->entry) return at_fail_memory(fail);
    AT_TRY(open_entries(compare, fail));
    AT_TRY(check_jobs(compare, fail));
    /* The runs of a comparison that is resumed are added one by one: keep its file until then. */
    return compare->before || s->dry_run ? AT_OK : at_compare_write(compare, fail);
}

static void close_compare(at_compare *compare)
{
    for (uint32_t i = 0; i < compare->entries; i++) at_entry_close(&compare->entry[i]);
    free(compare->entry);
    json_decref(compare->before);
    at_run_lock_release(&compare->lock);
    at_launch_drop_folder(compare->folder);
}

/* ---- running ------------------------------------------------------------------------------- */

static at_entry *entry_of(const at_compare *compare, uint32_t run)
{
    assert(compare->entries >= 1);
    return &compare->entry[run % compare->entries];
}

static int64_t seed_of(const at_compare *compare, uint32_t run)
{
    assert(run < compare->entries * compare->repeats);
    return compare->parsed->settings.seed + run / compare->entries;
}

/* "compare: run 3 of 6, amb, seed 2, about 40.1s left" */
void at_compare_progress(const at_compare *compare, uint32_t run, uint32_t finished,
                         uint32_t remaining, at_ns spent)
{
    char     left[32];
    uint32_t runs = compare->entries * compare->repeats;
    if (compare->parsed->settings.quiet) return;
    at_say("%s: run %u of %u, %s, seed %lld", compare->what, run + 1, runs,
           entry_of(compare, run)->label, (long long)seed_of(compare, run));
    if (finished > 0)
        fprintf(stderr, ", about %s left",
                at_text_show_duration(left, sizeof left, spent / finished * remaining));
    fprintf(stderr, "\n");
}

at_err at_compare_run_folder(const at_compare *compare, uint32_t run, char *path, size_t size,
                             at_fail *fail)
{
    at_text text = at_text_in(path, size);
    at_text_add(&text, "%s/%s-%lld", compare->folder, entry_of(compare, run)->label,
                (long long)seed_of(compare, run));
    if (text.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder name is too long");
    return AT_OK;
}

static bool has_data_of_the_first(const at_compare *compare, uint32_t run)
{
    return strcmp(entry_of(compare, run)->parsed.settings.data,
                  compare->entry->parsed.settings.data) == 0;
}

/* A run of our own workers; `resume` is NULL for one that starts at step 0. */
static at_err run_launch(const at_compare *compare, uint32_t run, const char *path, bool quiet,
                         const at_checkpoint *resume, json_t **result, at_fail *fail)
{
    at_launch launch;
    AT_TRY(at_launch_open(&launch, &entry_of(compare, run)->parsed, compare->command, fail));
    launch.run.folder = path;
    launch.run.resume = resume;
    if (run > 0 && has_data_of_the_first(compare, run)) launch.task.notes = NULL; /* said once */
    if (!launch.run.checkpoint_every) launch.run.checkpoint_every = "none";
    if (quiet || !launch.run.console.terminal) launch.run.console.quiet = true;
    if (run >= compare->entries) launch.run.skips_hints = true; /* the first repeat gives them */
    at_err err = at_run(&launch.run, result, fail);
    at_launch_close(&launch);
    return err;
}

/* A run of programs; what they print goes to files beside the others. */
static at_err run_programs(const at_compare *compare, at_entry *entry, const char *path,
                           const at_checkpoint *resume, json_t **result, at_fail *fail)
{
    at_program_run run = {.command = compare->command, .folder = path, .resume = resume};
    entry->parsed.settings.log_dir = path;
    return at_run_programs(&entry->parsed, &run, result, fail);
}

static at_err run_in(const at_compare *compare, uint32_t run, const char *path, bool quiet,
                     const at_checkpoint *resume, at_fail *fail)
{
    at_entry *entry = entry_of(compare, run);
    json_t   *result = NULL;
    at_err    err = entry->parsed.command
                        ? run_programs(compare, entry, path, resume, &result, fail)
                        : run_launch(compare, run, path, quiet, resume, &result, fail);
    json_decref(result);
    return err;
}

at_err at_compare_run(at_compare *compare, uint32_t run, bool quiet, at_fail *fail)
{
    char          path[AT_COMPARE_PATH_SIZE];
    at_entry     *entry = entry_of(compare, run);
    at_checkpoint checkpoint = {0};
    at_run_lock   lock = {0};
    bool          resumes = false;
    entry->parsed.settings.seed = seed_of(compare, run);
    AT_TRY(at_compare_run_folder(compare, run, path, sizeof path, fail));
    if (compare->before)
        AT_TRY(at_compare_take_up(path, entry->simulated, &checkpoint, &resumes, fail));
    at_err err = at_file_make_folder(path, fail);
    if (!err) err = at_run_lock_take(path, &lock, fail);
    if (!err) err = run_in(compare, run, path, quiet, resumes ? &checkpoint : NULL, fail);
    at_run_lock_release(&lock);
    at_checkpoint_close(&checkpoint);
    return err;
}

/* From the file, because a run may have been made by another process; so the numbers are the same
 * to the last digit. */
at_err at_compare_add_run(at_compare *compare, uint32_t run, at_fail *fail)
{
    char         folder[AT_COMPARE_PATH_SIZE], path[AT_COMPARE_PATH_SIZE + 16];
    json_error_t error;
    assert(entry_of(compare, run)->run_count == run / compare->entries);
    AT_TRY(at_compare_run_folder(compare, run, folder, sizeof folder, fail));
    snprintf(path, sizeof path, "%s/result.json", folder);
    json_t *result = json_load_file(path, 0, &error);
    if (!result)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: cannot be read: %s", path, error.text);
    at_err err = at_compare_add(compare, entry_of(compare, run), result,
                                folder + strlen(compare->folder) + 1, fail);
    json_decref(result);
    return err ? err : at_compare_equal_time(compare, entry_of(compare, run), fail);
}

at_err at_compare_wrap_run(const at_compare *compare, uint32_t run, at_fail *fail)
{
    return at_fail_wrap(fail, "%s, seed %lld", entry_of(compare, run)->label,
                        (long long)seed_of(compare, run));
}

at_err at_compare_stopped(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_STOPPED, NULL, "stopped by a signal");
}

/* One after another in this process: runs in real time would take each other's cores. */
static at_err run_in_turn(at_compare *compare, at_fail *fail)
{
    at_ns    began = at_clock_now();
    uint32_t runs = compare->entries * compare->repeats, made = 0;
    uint32_t remaining = runs - at_compare_count_made(compare);
    for (uint32_t run = 0; run < runs; run++) {
        at_err err = AT_OK;
        if (at_signals_stop()) return at_compare_stopped(fail);
        if (!at_compare_is_made(compare, run)) {
            at_compare_progress(compare, run, made++, remaining--, at_clock_now() - began);
            err = at_compare_run(compare, run, false, fail);
        }
        if (!err) err = at_compare_add_run(compare, run, fail);
        if (err) return at_compare_wrap_run(compare, run, fail);
        AT_TRY(at_compare_write(compare, fail));
    }
    return AT_OK;
}

/* Simulations do not measure this machine, so they may share it. */
at_err at_compare_run_all(at_compare *compare, at_fail *fail)
{
    int64_t jobs = compare->parsed->settings.jobs;
    if (jobs < 1) jobs = are_simulated(compare) ? at_machine_cores() : 1;
    assert(jobs == 1 || are_simulated(compare));
    if (jobs == 1) return run_in_turn(compare, fail);
    return at_compare_run_jobs(compare, (uint32_t)jobs, fail);
}

/* ---- the verb ------------------------------------------------------------------------------ */

/* A stopped comparison shows the runs it has. */
static at_err run_and_show(at_compare *compare, at_fail *fail)
{
    at_fail showing = {0};
    at_announce_stop(compare->parsed->settings.quiet);
    at_signals_hold();
    at_err err = at_tune(compare, fail);
    if (!err) err = at_compare_run_all(compare, fail);
    at_signals_release();
    if (err == AT_ERR_STOPPED || (err && !*fail->hint)) {
        at_text hint = at_text_in(fail->hint, sizeof fail->hint);
        at_text_add(&hint, "`anytime %s --resume %s%s` continues it", compare->what,
                    compare->folder, compare->parsed->command ? " -- COMMAND" : "");
    }
    if (err && err != AT_ERR_STOPPED) return err;
    at_err shown = at_compare_show(compare, &showing);
    if (err || !shown) return err;
    *fail = showing;
    return shown;
}

at_err at_verb_compare(at_parsed *parsed, const char *command, at_fail *fail)
{
    at_compare compare = {.parsed = parsed, .command = command};
    if (parsed->settings.resume) AT_TRY(at_compare_resume(&compare, parsed, fail));
    compare.what = parsed->settings.over ? "sweep" : "compare";
    compare.repeats = (uint32_t)parsed->settings.repeats;
    at_err err = open_compare(&compare, fail);
    if (!err && parsed->settings.dry_run)
        err = at_compare_dry_run(&compare, fail);
    else if (!err)
        err = run_and_show(&compare, fail);
    close_compare(&compare);
    return err;
}

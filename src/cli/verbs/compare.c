/* `anytime compare`: every entry is run with the first seed, then every entry with the second, and
 * so on, so that whatever drifts (heat, other people's work) meets all of them alike. Files are
 * brought up to date after each run: a comparison that is interrupted keeps what it has. */
#include "cli/verbs/compare.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/plots.h"
#include "cli/print.h"
#include "cli/verbs/verbs.h"
#include "learn/optim/optim.h"
#include "learn/optim/schedule.h"
#include "pace/pace.h"

/* ---- before anything runs ------------------------------------------------------------------ */

/* What a run would refuse only when it begins, perhaps an hour from now. */
static at_err check_run(const at_run_options *run, at_fail *fail)
{
    const at_limits *limits = &run->plan.limits;
    at_schedule      schedule;
    at_pace         *pace = NULL;
    bool             ends = run->epochs > 0 || limits->samples > 0 || limits->steps > 0;
    if (!at_optim_find(run->optimizer))
        return at_fail_set(fail, AT_ERR_USAGE, "`anytime compare --help` lists them",
                           "unknown optimiser '%s'", run->optimizer);
    AT_TRY(at_schedule_parse(run->lr_schedule, 1, 1, ends ? 1 : 0, &schedule, fail));
    at_pace_options options = {.model = run->straggler,
                               .scale = run->straggler_scale,
                               .seed = run->seed,
                               .workers = run->plan.workers,
                               .round_ns_mean = AT_MS(1),
                               .rounds_per_epoch = 1};
    AT_TRY(at_pace_new(&options, &pace, fail));
    at_pace_free(pace);
    return AT_OK;
}

static bool is_same_work(const at_settings *a, const at_settings *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->data, b->data) == 0 &&
           strcmp(a->engine, b->engine) == 0;
}

/* `--sample-time measure` is measured once for all entries that compute the same: if each run had
 * its own, they would not be paced alike. */
static at_err share_sample_time(at_compare *compare, at_entry *entry, at_ns measured, at_fail *fail)
{
    char text[32];
    snprintf(text, sizeof text, "%lldns", (long long)measured);
    for (at_entry *other = entry; other < compare->entry + compare->entries; other++) {
        at_settings *s = &other->parsed.settings;
        bool         asks = s->sample_time && strcmp(s->sample_time, "measure") == 0;
        if (asks && is_same_work(s, &entry->parsed.settings))
            AT_TRY(at_options_set(&other->parsed, AT_FOR_TRAIN, "sample-time", text, fail));
    }
    return AT_OK;
}

static at_err check_entry(at_compare *compare, at_entry *entry, at_fail *fail)
{
    at_launch launch;
    AT_TRY(at_launch_open(&launch, &entry->parsed, compare->command, fail));
    at_err err = check_run(&launch.run, fail);
    if (!err) err = share_sample_time(compare, entry, launch.run.sample_time, fail);
    at_launch_close(&launch);
    /* Notes about unused options hang on what was given; they have been told now. */
    memset(entry->parsed.given, 0, sizeof entry->parsed.given);
    return err;
}

static at_err open_entries(at_compare *compare, at_fail *fail)
{
    const at_parsed *parsed = compare->parsed;
    for (uint32_t i = 0; i < parsed->words; i++) {
        compare->entries++;
        if (at_entry_open(&compare->entry[i], parsed->word[i], parsed, fail))
            return at_fail_wrap(fail, "entry '%s'", parsed->word[i]);
    }
    AT_TRY(at_entry_label_all(compare->entry, compare->entries, fail));
    for (uint32_t i = 0; i < compare->entries; i++)
        if (check_entry(compare, &compare->entry[i], fail))
            return at_fail_wrap(fail, "entry '%s'", compare->entry[i].text);
    return AT_OK;
}

static at_err open_compare(at_compare *compare, at_fail *fail)
{
    const at_settings *s = &compare->parsed->settings;
    if (compare->parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime compare fmb amb",
                           "compare needs strategies");
    assert(compare->repeats >= 1);
    AT_TRY(at_plots_check(s->plots, fail));
    AT_TRY(at_launch_targets(s->target, &compare->limits, fail));
    AT_TRY(at_launch_folder(s->out, "compare", compare->folder, sizeof compare->folder, fail));
    compare->entry = calloc(compare->parsed->words, sizeof *compare->entry);
    if (!compare->entry) return at_fail_memory(fail);
    AT_TRY(open_entries(compare, fail));
    AT_TRY(at_file_make_folder(compare->folder, fail));
    return at_compare_write(compare, fail);
}

static void close_compare(at_compare *compare)
{
    for (uint32_t i = 0; i < compare->entries; i++) at_entry_close(&compare->entry[i]);
    free(compare->entry);
}

/* ---- running ------------------------------------------------------------------------------- */

/* "compare: run 3 of 6, amb, seed 2, about 40.1s left" */
static void tell_progress(const at_compare *compare, const at_entry *entry, uint32_t run,
                          at_ns spent)
{
    char     left[32];
    uint32_t runs = compare->entries * compare->repeats;
    if (compare->parsed->settings.quiet) return;
    fprintf(stderr, "compare: run %u of %u, %s, seed %lld", run + 1, runs, entry->label,
            (long long)entry->parsed.settings.seed);
    if (run > 0)
        fprintf(stderr, ", about %s left",
                at_text_show_duration(left, sizeof left, spent / run * (runs - run)));
    fprintf(stderr, "\n");
}

static at_err run_entry(at_compare *compare, at_entry *entry, at_fail *fail)
{
    char      path[AT_COMPARE_PATH_SIZE], *name = path + strlen(compare->folder) + 1;
    at_launch launch;
    json_t   *result = NULL;
    at_text   text = at_text_in(path, sizeof path);
    at_text_add(&text, "%s/%s-%lld", compare->folder, entry->label,
                (long long)entry->parsed.settings.seed);
    if (text.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder's name is too long");
    AT_TRY(at_launch_open(&launch, &entry->parsed, compare->command, fail));
    launch.run.folder = path;
    if (!launch.run.checkpoint_every) launch.run.checkpoint_every = "none";
    if (!launch.run.console.terminal) launch.run.console.quiet = true;
    at_err err = at_run(&launch.run, &result, fail);
    if (!err) err = at_compare_add(compare, entry, result, name, fail);
    json_decref(result);
    at_launch_close(&launch);
    return err;
}

static at_err run_all(at_compare *compare, at_fail *fail)
{
    at_ns began = at_clock_now();
    for (uint32_t run = 0; run < compare->entries * compare->repeats; run++) {
        at_entry *entry = &compare->entry[run % compare->entries];
        entry->parsed.settings.seed = compare->parsed->settings.seed + run / compare->entries;
        tell_progress(compare, entry, run, at_clock_now() - began);
        if (run_entry(compare, entry, fail))
            return at_fail_wrap(fail, "%s, seed %lld", entry->label,
                                (long long)entry->parsed.settings.seed);
        AT_TRY(at_compare_write(compare, fail));
    }
    return AT_OK;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Whatever becomes of the plots, the numbers have been told. */
static at_err show(const at_compare *compare, at_fail *fail)
{
    char plots[AT_PLOTS_NAMES_SIZE];
    bool json = compare->parsed->settings.json;
    if (json) AT_TRY(at_print_json_take(at_compare_json(compare), fail));
    if (!json && compare->entry->run_count > 0) AT_TRY(at_compare_print(compare, fail));
    AT_TRY(at_compare_plot(compare, plots, sizeof plots, fail));
    if (json) return AT_OK;
    if (*plots) printf("plots: %s, each also as .svg\n", plots);
    printf("written to %s\n", compare->folder);
    return AT_OK;
}

/* A comparison that was stopped shows what it has. */
static at_err run_and_show(at_compare *compare, at_fail *fail)
{
    at_fail showing = {0};
    at_err  err = run_all(compare, fail);
    if (err && err != AT_ERR_STOPPED) return err;
    at_err shown = show(compare, &showing);
    if (err || !shown) return err;
    *fail = showing;
    return shown;
}

at_err at_verb_compare(at_parsed *parsed, const char *command, at_fail *fail)
{
    at_compare compare = {
        .parsed = parsed, .command = command, .repeats = (uint32_t)parsed->settings.repeats};
    at_err err = open_compare(&compare, fail);
    if (!err) err = run_and_show(&compare, fail);
    close_compare(&compare);
    return err;
}

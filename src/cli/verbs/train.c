/* `anytime train` and `anytime simulate`. */
#include "cli/verbs/train.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/dry_run.h"
#include "cli/launch.h"
#include "cli/options/inherit.h"
#include "cli/output.h"
#include "cli/summary.h"
#include "cli/verbs/verbs.h"
#include "cli/verbs/watch.h"
#include "record/run_lock.h"
#include "report/summary/pace_from_run.h"
#include "report/trace/trace.h"

enum { FOLDER_SIZE = 4096, STRAGGLER_SIZE = 1 << 17 };

/* ---- trace.json of a small run --------------------------------------------------------------- */

/* Whether the run certainly has more events than a trace that is written without being asked for;
 * saves writing a hundred thousand of them to find out. */
static bool is_too_long_for_trace(const json_t *result)
{
    enum { EVENTS_PER_ROUND = 4 }; /* at least: wait, compute, send and the arrow to its step */
    const json_t *workers = json_object_get(result, "worker");
    json_int_t    rounds = 0;
    for (size_t i = 0; i < json_array_size(workers); i++)
        rounds += json_integer_value(json_object_get(json_array_get(workers, i), "rounds"));
    return rounds > AT_TRACE_EVENTS_SMALL / EVENTS_PER_ROUND;
}

/* Writes FOLDER/trace.json for a fully recorded run that is small enough for a browser. */
static at_err write_trace(const at_settings *settings, const char *folder, const json_t *result,
                          at_fail *fail)
{
    char             path[FOLDER_SIZE + 16];
    at_trace_options options = {.events_max = AT_TRACE_EVENTS_SMALL, .whole = true};
    assert(folder);
    if (strcmp(settings->record, "full") != 0 || is_too_long_for_trace(result)) return AT_OK;
    at_text text = at_text_in(path, sizeof path);
    at_text_add(&text, "%s/trace.json", folder);
    if (text.full)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: the folder name is too long", folder);
    return at_trace_write(folder, path, &options, NULL, fail);
}

/* ---- a run ----------------------------------------------------------------------------------- */

at_err at_show_result(const at_parsed *parsed, const char *folder, const json_t *result,
                      bool writes, at_err err, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    at_fail            ignored;
    if (writes) {
        at_fail missing = {0};
        at_err  traced = write_trace(s, folder, result, &missing);
        bool    is_log = traced == AT_ERR_FORMAT || traced == AT_ERR_MISSING;
        if (is_log) /* the run is not worse for it */
            fprintf(stderr, "anytime: note: no trace.json: %s\n", missing.text);
        if (traced && !is_log && !err) {
            *fail = missing;
            err = traced;
        }
    }
    at_fail *place = err ? &ignored : fail;
    at_err   printed =
        s->json ? at_print_json(result, place) : at_summary_print(result, folder, s->quiet, place);
    return err ? err : printed;
}

/* `resume` is NULL for a run that starts at step 0. */
static at_err run_into(const char *folder, at_parsed *parsed, const char *command,
                       const at_checkpoint *resume, at_fail *fail)
{
    at_launch launch;
    json_t   *result = NULL;
    bool      is_first = !parsed->launcher || parsed->launcher->rank == 0; /* prints and writes */
    AT_TRY(at_launch_open(&launch, parsed, command, fail));
    if (parsed->settings.dry_run) {
        at_err checked = is_first ? at_dry_run(&launch, &parsed->settings, fail) : AT_OK;
        at_launch_close(&launch);
        return checked;
    }
    if (is_first) launch.run.folder = folder;
    /* Ranks that share the update restore their own part of the checkpoint. */
    bool shared = at_plan_splits_update(&launch.run.plan);
    if (is_first || shared) launch.run.resume = resume;
    at_watch watch;
    at_err   err = at_watch_start(&watch, parsed, folder, fail);
    at_announce_stop(parsed->settings.quiet);
    if (!err) err = at_run(&launch.run, &result, fail);
    at_watch_end(&watch);
    if (result) err = at_show_result(parsed, folder, result, is_first, err, fail);
    if (result && is_first) at_warn_of_explosion(result);
    if (!err && result && parsed->settings.from && !parsed->settings.json)
        err = at_summary_beside(parsed->settings.from, result, fail);
    json_decref(result);
    at_launch_close(&launch);
    return err;
}

/* The folder of a run, locked for its life. */
typedef struct run_folder {
    char        path[FOLDER_SIZE];
    at_run_lock lock;
} run_folder;

static void close_folder(run_folder *folder)
{
    at_run_lock_release(&folder->lock);
    at_launch_drop_folder(folder->path);
}

static at_err new_folder(const at_parsed *parsed, run_folder *folder, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    *folder = (run_folder){0};
    AT_TRY(at_options_refuse_words(parsed, fail));
    if (parsed->launcher && parsed->launcher->rank > 0) return AT_OK; /* rank 0 chooses it */
    AT_TRY(at_launch_folder(s->run, s->strategy, folder->path, sizeof folder->path, fail));
    return at_run_lock_take(folder->path, &folder->lock, fail);
}

/* Locks the folder before its checkpoint is read: a run that still writes to it would make that
 * checkpoint an old one. A folder that does not exist is reported as one without checkpoints. */
static at_err lock_resumed(const char *run, const at_launcher *launcher, at_run_lock *lock,
                           at_fail *fail)
{
    at_fail missing;
    *lock = (at_run_lock){0};
    if (launcher && launcher->name && launcher->rank > 0) return AT_OK;
    at_err err = at_run_lock_take(run, lock, &missing);
    if (err == AT_ERR_MISSING) return AT_OK;
    if (err) *fail = missing;
    return err;
}

/* The ranks are assigned after the settings of the run are known: --mix decides how
 * many are workers. */
static at_err resume_run(at_parsed *parsed, const at_launcher *launcher, const char *command,
                         at_fail *fail)
{
    at_checkpoint checkpoint = {0};
    at_run_lock   lock;
    AT_TRY(lock_resumed(parsed->settings.resume, launcher, &lock, fail));
    at_err err = at_resume_open(parsed, &checkpoint, fail);
    if (!err && launcher) err = at_launch_ranks(parsed, launcher, fail);
    if (!err) err = run_into(parsed->settings.resume, parsed, command, &checkpoint, fail);
    at_checkpoint_close(&checkpoint);
    at_run_lock_release(&lock);
    return err;
}

at_err at_verb_train(at_parsed *parsed, const char *command, at_fail *fail)
{
    static at_launcher launcher;
    run_folder         folder;
    parsed->started = at_clock_process_start();
    launcher = at_launcher_detect();
    if (parsed->settings.resume) return resume_run(parsed, &launcher, command, fail);
    AT_TRY(at_launch_ranks(parsed, &launcher, fail));
    at_err err = new_folder(parsed, &folder, fail);
    if (!err) err = run_into(folder.path, parsed, command, NULL, fail);
    close_folder(&folder);
    return err;
}

/* ---- simulate --from RUN: the machines of a recorded run ------------------------------------- */

/* Delays are measured instead; the others belong to the recorded run only. */
static const char *const not_inherited[] = {
    "straggler", "straggler-scale", "sample-time", "latency",   "world",      "run",
    "json",      "quiet",           "record",      "bandwidth", "comm-delay", "faults"};

static at_err set(at_parsed *parsed, const char *name, const char *value, at_fail *fail)
{
    return at_options_set(parsed, AT_FOR_TRAIN, name, value, fail);
}

static double fastest_of(const at_run_pace *m)
{
    double fastest = m->sample_ns[0];
    for (uint32_t i = 1; i < m->workers; i++)
        if (m->sample_ns[i] < fastest) fastest = m->sample_ns[i];
    assert(fastest > 0);
    return fastest;
}

/* Sets the fastest worker's time per sample, the factor of each worker, and the recorded sleeps. */
static at_err set_delays(at_parsed *parsed, const at_run_pace *m, const char *trace, at_fail *fail)
{
    char   sample_time[32], latency[32];
    char  *straggler = malloc(STRAGGLER_SIZE);
    double fastest = fastest_of(m);
    if (!straggler) return at_fail_memory(fail);
    at_text text = at_text_in(straggler, STRAGGLER_SIZE);
    at_text_add(&text, "trace:%s+speed:", trace);
    for (uint32_t i = 0; i < m->workers; i++)
        at_text_add(&text, "%s%.6g", i ? "," : "", m->sample_ns[i] / fastest);
    snprintf(sample_time, sizeof sample_time, "%.0fns", fastest < 1 ? 1 : fastest);
    snprintf(latency, sizeof latency, "%lldns", (long long)(m->message / 2));
    at_err err = text.full ? at_fail_set(fail, AT_ERR_USAGE, NULL, "--from: too many workers")
                           : set(parsed, "straggler", straggler, fail);
    if (!err) err = set(parsed, "sample-time", sample_time, fail);
    if (!err && m->message >= 2) err = set(parsed, "latency", latency, fail);
    free(straggler);
    return err;
}

/* Takes options that were not given from the result.json of the run, and speeds, sleeps and message
 * times from its event log. Creates `folder` and writes the sleeps there. */
static at_err inherit_machines(at_parsed *parsed, const char *folder, at_fail *fail)
{
    const char *from = parsed->settings.from;
    char        trace[FOLDER_SIZE + 16], workers[16];
    at_run_pace measured;
    assert(from);
    AT_TRY(at_inherit_run_options(parsed, from, not_inherited,
                                  sizeof not_inherited / sizeof *not_inherited, fail));
    AT_TRY(at_run_pace_read(from, &measured, fail));
    if (at_options_given(parsed, "workers") && parsed->settings.workers != measured.workers) {
        uint32_t there = measured.workers;
        at_run_pace_deinit(&measured);
        return at_fail_set(
            fail, AT_ERR_USAGE,
            "leave --workers out; `anytime calibrate` fits a model of the machines, "
            "with which any number of them can be simulated",
            "--workers %lld: %s has recorded the speeds of %u workers, and only they "
            "can be simulated",
            (long long)parsed->settings.workers, from, there);
    }
    snprintf(trace, sizeof trace, "%s/pace.trace", folder);
    snprintf(workers, sizeof workers, "%u", measured.workers);
    at_err err = set(parsed, "workers", workers, fail);
    if (!err) err = at_file_make_folder(folder, fail);
    if (!err) err = at_run_pace_write_trace(&measured, trace, fail);
    if (!err) err = set_delays(parsed, &measured, trace, fail);
    at_run_pace_deinit(&measured);
    return err;
}

at_err at_verb_simulate(at_parsed *parsed, const char *command, at_fail *fail)
{
    run_folder folder;
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "world", "sim", fail));
    if (parsed->settings.resume) return resume_run(parsed, NULL, command, fail);
    at_err err = new_folder(parsed, &folder, fail);
    if (!err && parsed->settings.from) err = inherit_machines(parsed, folder.path, fail);
    if (!err) err = run_into(folder.path, parsed, command, NULL, fail);
    close_folder(&folder);
    return err;
}

/* `anytime hub`: a run whose workers are started by others, on any machines. */
#include "cli/verbs/hub.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/launch.h"
#include "cli/options/inherit.h"
#include "cli/output.h"
#include "cli/verbs/run.h"
#include "cli/verbs/train.h"
#include "cli/verbs/verbs.h"
#include "record/run_lock.h"
#include "world/core/run_checks.h"
#include "world/process/signals.h"

static const at_ns LOOK_EVERY = AT_MS(200);

/* ---- where it is ----------------------------------------------------------------------------- */

/* An address of all networks is none that others could use: the name of this machine is. */
static void reachable(const char *address, char text[AT_NET_TEXT_SIZE])
{
    static const char *const any[] = {"0.0.0.0:", "[::]:"};
    char                     host[AT_NET_HOST_SIZE] = "";
    snprintf(text, AT_NET_TEXT_SIZE, "%s", address);
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (strncmp(address, any[i], strlen(any[i])) == 0 &&
            gethostname(host, sizeof host - 1) == 0)
            snprintf(text, AT_NET_TEXT_SIZE, "%s:%s", host, address + strlen(any[i]));
}

at_err at_announce_hub(const at_parsed *parsed, const at_seat_hub *hub, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    char               address[AT_NET_TEXT_SIZE], line[AT_NET_TEXT_SIZE + 1];
    reachable(hub->address, address);
    at_warn_exposed_token(hub->token_path);
    if (!s->quiet)
        at_say("anytime: workers can join at %s with the token in %s\n", address, hub->token_path);
    if (!s->hub_file) return AT_OK;
    int used = snprintf(line, sizeof line, "%s\n", address);
    return at_file_write(s->hub_file, line, (size_t)used, fail);
}

/* ---- workers of our own ---------------------------------------------------------------------- */

static at_err train_own(at_parsed *parsed, const at_program_run *run, at_launch *launch,
                        at_seat_hub *hub, at_fail *fail)
{
    json_t *result = NULL;
    char   *job = json_dumps(launch->run.options, JSON_COMPACT);
    if (!job) return at_fail_memory(fail);
    hub->job = job;
    launch->run.folder = run->folder;
    launch->run.resume = run->resume;
    launch->run.seats = hub;
    launch->run.plan.open = true;
    at_announce_stop(parsed->settings.quiet);
    at_err err = at_run(&launch->run, &result, fail);
    if (result) err = at_show_result(parsed, run->folder, result, true, err, fail);
    if (err == AT_OK || err == AT_ERR_STOPPED) at_seat_hub_dismiss(hub);
    json_decref(result);
    hub->job = NULL;
    free(job);
    return err;
}

static at_err run_own(at_parsed *parsed, const at_program_run *run, at_fail *fail)
{
    at_launch   launch;
    at_seat_hub hub;
    if (at_options_given(parsed, "world"))
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use `anytime train`",
                           "--world does not work with hub: its workers come over the network");
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "world", "net", fail));
    AT_TRY(at_launch_open(&launch, parsed, run->command, fail));
    at_err err = at_run_open_hub(parsed, run, &hub, fail);
    if (!err) {
        err = train_own(parsed, run, &launch, &hub, fail);
        at_seat_hub_close(&hub);
    }
    at_launch_close(&launch);
    return err;
}

/* ---- the run --------------------------------------------------------------------------------- */

static at_err run_in(at_parsed *parsed, const char *command, const char *folder,
                     const at_checkpoint *resume, bool own, at_fail *fail)
{
    at_program_run run = {
        .command = command, .folder = folder, .resume = resume, .shows = true, .listens = true};
    json_t *result;
    if (own) return run_own(parsed, &run, fail);
    AT_TRY(at_launch_check_seats(parsed, fail));
    at_err err = at_run_programs(parsed, &run, &result, fail);
    json_decref(result);
    return err;
}

/* One worker is enough to begin, and many may join. */
static at_err set_defaults(at_parsed *parsed, at_fail *fail)
{
    enum { WORKERS_MAX = 64 };
    char most[24];
    if (!at_options_given(parsed, "workers"))
        AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "workers", "1", fail));
    int64_t workers = parsed->settings.workers;
    if (workers == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use --workers 1 or more",
                           "--workers 0 leaves no worker to train with");
    if (at_options_given(parsed, "workers-max")) return AT_OK;
    snprintf(most, sizeof most, "%lld", (long long)(workers > WORKERS_MAX ? workers : WORKERS_MAX));
    return at_options_set(parsed, AT_FOR_TRAIN, "workers-max", most, fail);
}

static at_err begin_run(at_parsed *parsed, const char *command, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    bool               own = at_options_given(parsed, "model") || at_options_given(parsed, "data");
    char               folder[4096];
    at_run_lock        lock = {0};
    AT_TRY(set_defaults(parsed, fail));
    AT_TRY(at_launch_folder(s->run, s->strategy, folder, sizeof folder, fail));
    at_err err = at_run_lock_take(folder, &lock, fail);
    if (!err) err = run_in(parsed, command, folder, NULL, own, fail);
    at_run_lock_release(&lock);
    at_launch_drop_folder(folder);
    return err;
}

/* ---- standing by ----------------------------------------------------------------------------- */

/* Waits until the hub that has the run ends, however it ends: its lock is free then. */
static at_err await_lock(const char *run, at_run_lock *lock, at_fail *fail)
{
    bool   told = false;
    at_err err;
    while ((err = at_run_lock_take(run, lock, fail)) == AT_ERR_USAGE && !at_signals_stop()) {
        if (!told) fprintf(stderr, "anytime: standing by; %s\n", fail->text);
        told = true;
        at_clock_sleep_until(at_clock_now() + LOOK_EVERY);
    }
    return err;
}

static at_err stand_by(const char *run, at_run_lock *lock, at_fail *fail)
{
    at_signals_hold();
    at_err err = await_lock(run, lock, fail);
    at_signals_release();
    if (at_signals_stop()) {
        if (!err) at_run_lock_release(lock);
        return at_fail_set(fail, AT_ERR_STOPPED, NULL, "stopped by a signal while standing by");
    }
    if (err || lock->exclusive) return err;
    at_run_lock_release(lock);
    return at_fail_set(fail, AT_ERR_FAILED, "use a shared folder with locks, such as NFS 4",
                       "%s is on a file system without locks: nobody can tell whether the hub "
                       "that writes to it is alive",
                       run);
}

/* A hub that has ended in order has written the result of its last checkpoint. */
static bool has_ended(const at_checkpoint *checkpoint)
{
    if (!at_run_has_result(checkpoint)) return false;
    fprintf(stderr, "anytime: the run has ended at step %llu; there is nothing to take over\n",
            (unsigned long long)checkpoint->snapshot->version);
    return true;
}

static at_err resume_run(at_parsed *parsed, const char *command, at_fail *fail)
{
    at_checkpoint checkpoint = {0};
    at_run_lock   lock = {0};
    const char   *run = parsed->settings.resume;
    bool          waits = parsed->settings.standby;
    AT_TRY(waits ? stand_by(run, &lock, fail) : at_run_lock_take(run, &lock, fail));
    at_err err = at_resume_open(parsed, &checkpoint, fail);
    bool   ended = !err && waits && has_ended(&checkpoint);
    if (!err && !ended) {
        const char *world = json_string_value(json_object_get(checkpoint.state, "world"));
        bool        programs = world && strcmp(world, "seat") == 0;
        err = run_in(parsed, command, run, &checkpoint, !programs, fail);
    }
    at_checkpoint_close(&checkpoint);
    at_run_lock_release(&lock);
    return err;
}

at_err at_verb_hub(at_parsed *parsed, const char *command, at_fail *fail)
{
    AT_TRY(at_options_refuse_words(parsed, fail));
    if (parsed->settings.standby && !parsed->settings.resume)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "add --resume RUN, with the folder of that hub's run",
                           "--standby needs the run of the hub that it stands by for");
    if (parsed->settings.resume) return resume_run(parsed, command, fail);
    return begin_run(parsed, command, fail);
}

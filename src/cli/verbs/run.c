/* `anytime run`: a hub, and copies of a program that take seats in the run. */
#include "cli/verbs/run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "cli/guard.h"
#include "cli/launch.h"
#include "cli/options/inherit.h"
#include "cli/output.h"
#include "cli/verbs/hub.h"
#include "cli/verbs/train.h"
#include "cli/verbs/verbs.h"
#include "cli/verbs/watch.h"
#include "record/run_lock.h"
#include "world/seat/seat_hub.h"

static const at_ns JOIN_TIMEOUT = AT_SEC(60);

at_err at_run_open_hub(const at_parsed *parsed, const at_program_run *run, at_seat_hub *hub,
                       at_fail *fail)
{
    const at_settings  *s = &parsed->settings;
    uint32_t            workers = s->workers > 0 ? (uint32_t)s->workers : at_machine_cores();
    uint32_t            most = s->workers_max > 0 ? (uint32_t)s->workers_max : workers;
    at_seat_hub_options options = {.folder = run->folder,
                                   .command = {.words = parsed->command,
                                               .ranks = workers,
                                               .ranks_max = most > workers ? most : workers,
                                               .restarts = (uint32_t)s->restarts,
                                               .log_dir = s->log_dir,
                                               .no_stdout = s->json},
                                   .join_timeout =
                                       s->join_timeout > 0 ? s->join_timeout : JOIN_TIMEOUT,
                                   .few_is_fine = at_options_given(parsed, "workers-min")};
    if (run->listens) {
        options.listen = s->listen;
        options.token_file = s->token;
    }
    AT_TRY(at_seat_hub_open(&options, hub, fail));
    at_err err = run->listens ? at_announce_hub(parsed, hub, fail) : AT_OK;
    if (err) at_seat_hub_close(hub);
    return err;
}

/* Trains with the seats that have come. Nobody else shows a run of a comparison. */
static at_err train(at_parsed *parsed, const at_program_run *run, at_seat_hub *hub, json_t **result,
                    at_fail *fail)
{
    at_launch launch;
    at_watch  watch = {0};
    AT_TRY(at_launch_seats(&launch, parsed, run->command, hub, fail));
    launch.run.folder = run->folder;
    launch.run.resume = run->resume;
    launch.run.plan.open = run->listens;
    if (!run->shows && !launch.run.checkpoint_every) launch.run.checkpoint_every = "none";
    if (!run->shows && !launch.run.console.terminal) launch.run.console.quiet = true;
    bool   watched = run->shows && !run->listens; /* --listen is where workers join */
    at_err err = watched ? at_watch_start(&watch, parsed, run->folder, fail) : AT_OK;
    at_announce_stop(parsed->settings.quiet);
    if (!err) err = at_run(&launch.run, result, fail);
    at_watch_end(&watch);
    if (*result && run->shows) err = at_show_result(parsed, run->folder, *result, true, err, fail);
    at_launch_close(&launch);
    return err;
}

static at_err nobody_joined(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FAILED,
                       "call at_seat_join (C) or anytime.Optimizer (PyTorch) in the program",
                       "all programs ended without an error, and none of them joined the run");
}

at_err at_run_programs(at_parsed *parsed, const at_program_run *run, json_t **result, at_fail *fail)
{
    at_seat_hub hub;
    *result = NULL;
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "world", "seat", fail));
    AT_TRY(at_run_open_hub(parsed, run, &hub, fail));
    at_err err = at_seat_hub_gather(&hub, fail);
    if (!err) err = hub.known ? train(parsed, run, &hub, result, fail) : nobody_joined(fail);
    if (err == AT_OK || err == AT_ERR_STOPPED) at_seat_hub_dismiss(&hub);
    if (!err) err = (at_err)at_seat_hub_wait(&hub, fail);
    at_seat_hub_close(&hub);
    return err;
}

static at_err run_in(at_parsed *parsed, const char *command, const char *folder,
                     const at_checkpoint *resume, at_fail *fail)
{
    at_program_run run = {.command = command, .folder = folder, .resume = resume, .shows = true};
    json_t        *result;
    at_err         err = at_run_programs(parsed, &run, &result, fail);
    json_decref(result);
    return err;
}

/* ---- the run, and its hub when that is killed ------------------------------------------------ */

typedef struct start {
    at_parsed  *parsed;
    const char *command, *folder;
} start;

static at_err begin_run(const start *s, at_fail *fail)
{
    at_run_lock lock = {0};
    AT_TRY(at_run_lock_take(s->folder, &lock, fail));
    at_err err = run_in(s->parsed, s->command, s->folder, NULL, fail);
    at_run_lock_release(&lock);
    return err;
}

static at_err resume_run(const start *s, at_fail *fail)
{
    at_checkpoint checkpoint = {0};
    at_run_lock   lock = {0};
    AT_TRY(at_run_lock_take(s->folder, &lock, fail));
    at_err err = at_resume_open(s->parsed, &checkpoint, fail);
    if (!err) err = run_in(s->parsed, s->command, s->folder, &checkpoint, fail);
    at_checkpoint_close(&checkpoint);
    at_run_lock_release(&lock);
    return err;
}

static at_err run_hub(void *self, bool again, at_fail *fail)
{
    const start *s = self;
    if (again) at_resume_again(s->parsed, s->folder);
    return s->parsed->settings.resume ? resume_run(s, fail) : begin_run(s, fail);
}

static at_err run_guarded(at_parsed *parsed, const char *command, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    char               folder[4096];
    bool               is_hub, is_new = !s->resume;
    if (is_new)
        AT_TRY(at_launch_folder(s->run, s->strategy, folder, sizeof folder, fail));
    else
        snprintf(folder, sizeof folder, "%s", s->resume);
    start      begin = {.parsed = parsed, .command = command, .folder = folder};
    at_guarded guarded = {
        .folder = folder, .restarts = (unsigned)s->restarts, .self = &begin, .run = run_hub};
    at_err err = at_guard(&guarded, &is_hub, fail);
    if (is_new && !is_hub) at_launch_drop_folder(folder);
    return err;
}

at_err at_verb_run(at_parsed *parsed, const char *command, at_fail *fail)
{
    AT_TRY(at_options_refuse_words(parsed, fail));
    if (!parsed->command)
        return at_fail_set(fail, AT_ERR_USAGE, "write `anytime run -n 4 -- COMMAND`",
                           "no command was given");
    if (parsed->settings.workers == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use -n 1 or more",
                           "-n 0 leaves nobody to run the command");
    AT_TRY(at_launch_check_seats(parsed, fail));
    return run_guarded(parsed, command, fail);
}

#include "cli/launch.h"
#include "cli/options/resume.h"
#include "cli/print.h"
#include "cli/summary.h"
#include "cli/traces.h"
#include "cli/verbs/verbs.h"
#include "cli/verbs/watch.h"
#include "cli/verbs/whatif.h"

/* `resume` may be NULL: the run begins at step 0. */
static at_err run_into(const char *folder, at_parsed *parsed, const char *command,
                       const at_checkpoint *resume, at_fail *fail)
{
    at_launch launch;
    json_t   *result = NULL;
    bool      as_json = parsed->settings.json;
    bool      other = parsed->launcher && parsed->launcher->rank > 0; /* rank 0 tells and writes */
    AT_TRY(at_launch_open(&launch, parsed, command, fail));
    if (!other) launch.run.folder = folder;
    /* Where ranks are equals, each of them goes on by itself. */
    bool equals = launch.run.plan.topology == AT_TOPOLOGY_ALLREDUCE || launch.run.hubs > 1;
    if (!other || equals) launch.run.resume = resume;
    at_watch watch;
    at_err   err = at_watch_start(&watch, parsed, folder, fail);
    if (!err) err = at_run(&launch.run, &result, fail);
    at_watch_end(&watch);
    at_fail ignored;
    if (result && !other) {
        at_err left = at_traces_leave(&parsed->settings, folder, result, err ? &ignored : fail);
        if (!err) err = left;
    }
    if (result && as_json) {
        at_err printed = at_print_json(result, err ? &ignored : fail);
        if (!err) err = printed;
    } else if (result) {
        at_err printed =
            at_summary_print(result, folder, parsed->settings.quiet, err ? &ignored : fail);
        if (!err) err = printed;
    }
    json_decref(result);
    at_launch_close(&launch);
    return err;
}

static at_err new_folder(const at_parsed *parsed, char *folder, size_t size, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    if (parsed->words > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "options look like --name value",
                           "'%s' is not an option", parsed->word[0]);
    if (parsed->launcher && parsed->launcher->rank > 0) return AT_OK; /* rank 0's affair */
    return at_launch_folder(s->run, s->strategy, folder, size, fail);
}

/* How many workers ranks make depends on settings that the run brings along. */
static at_err go_on(at_parsed *parsed, const at_launcher *launcher, const char *command,
                    at_fail *fail)
{
    at_checkpoint checkpoint;
    AT_TRY(at_resume_open(parsed, &checkpoint, fail));
    at_err err = launcher ? at_launch_ranks(parsed, launcher, fail) : AT_OK;
    if (!err) err = run_into(parsed->settings.resume, parsed, command, &checkpoint, fail);
    at_checkpoint_close(&checkpoint);
    return err;
}

at_err at_verb_train(at_parsed *parsed, const char *command, at_fail *fail)
{
    static at_launcher launcher;
    char               folder[4096];
    launcher = at_launcher_detect();
    if (parsed->settings.resume) return go_on(parsed, &launcher, command, fail);
    AT_TRY(at_launch_ranks(parsed, &launcher, fail));
    AT_TRY(new_folder(parsed, folder, sizeof folder, fail));
    return run_into(folder, parsed, command, NULL, fail);
}

at_err at_verb_simulate(at_parsed *parsed, const char *command, at_fail *fail)
{
    char folder[4096];
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "world", "sim", fail));
    if (parsed->settings.resume) return go_on(parsed, NULL, command, fail);
    AT_TRY(new_folder(parsed, folder, sizeof folder, fail));
    if (parsed->settings.from) AT_TRY(at_whatif_apply(parsed, folder, fail));
    return run_into(folder, parsed, command, NULL, fail);
}

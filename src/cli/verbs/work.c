/* `anytime work`: a worker of a hub that is elsewhere. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "cli/verbs/verbs.h"
#include "net/address.h"
#include "world/net/net_worker.h"

/* Of the hub's options: what belongs to its machine, or to how this worker prints. */
static const char *const not_taken[] = {"run",  "resume", "init",   "from",
                                        "json", "quiet",  "config", "checkpoint-every"};

static void say(const char *text)
{
    fprintf(stderr, "anytime: %s\n", text);
}

/* The addresses on the command line, those of the environment, or a file that the hub writes. */
static at_err find_hub(const at_parsed *parsed, char hub[AT_NET_LIST_SIZE], at_fail *fail)
{
    const char *file = parsed->settings.hub_file, *environment = getenv("ANYTIME_HUB");
    at_text     text = at_text_in(hub, AT_NET_LIST_SIZE);
    for (size_t i = 0; i < parsed->words; i++)
        at_text_add(&text, "%s%s", i > 0 ? "," : "", parsed->word[i]);
    if (parsed->words == 0 && environment) at_text_add(&text, "%s", environment);
    if (parsed->words == 0 && !environment && file) at_text_add(&text, "file:%s", file);
    if (text.full)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the addresses of the hub are too long");
    if (hub[0]) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "write `anytime work ADDRESS:PORT --token FILE`, or use --hub-file",
                       "no hub was given");
}

static at_err where(const at_parsed *parsed, char hub[AT_NET_LIST_SIZE], at_net_join *join,
                    at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    *join = (at_net_join){.hub = hub,
                          .token_file = s->token ? s->token : getenv("ANYTIME_TOKEN_FILE"),
                          .reconnect = s->reconnect,
                          .say = s->quiet ? NULL : say};
    AT_TRY(find_hub(parsed, hub, fail));
    at_warn_exposed_token(join->token_file);
    if (join->token_file) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --token FILE with a copy of RUN/token",
                       "no token was given");
}

/* Loads what the hub trains. The hub checks that it is the same. */
static at_err load(at_parsed *parsed, const json_t *job, const char *command, at_launch *launch,
                   at_fail *fail)
{
    AT_TRY(at_options_inherit(parsed, AT_FOR_TRAIN, job, not_taken,
                              sizeof not_taken / sizeof *not_taken, fail));
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "world", "net", fail));
    return at_launch_open(launch, parsed, command, fail);
}

static at_err work(const at_parsed *parsed, const json_t *job, const at_net_join *join,
                   const char *command, at_fail *fail)
{
    at_parsed own;
    at_launch launch;
    json_t   *result = NULL;
    AT_TRY(at_options_copy(&own, parsed, fail));
    at_err err = load(&own, job, command, &launch, fail);
    if (!err) {
        launch.run.joins = join;
        err = at_run(&launch.run, &result, fail);
        json_decref(result);
        at_launch_close(&launch);
    }
    at_options_deinit(&own);
    return err;
}

/* A hub that was resumed may expect another number of workers: takes the new job, if any. */
static bool has_changed(const at_net_join *join, json_t **job)
{
    at_fail ignored;
    json_t *now;
    if (at_net_ask_job(join, &now, &ignored) || !now) return false;
    bool changed = !json_equal(now, *job);
    json_decref(*job);
    *job = now;
    if (changed && join->say) join->say("the run has other settings now; joining it again");
    return changed;
}

at_err at_verb_work(at_parsed *parsed, const char *command, at_fail *fail)
{
    char        hub[AT_NET_LIST_SIZE] = "";
    at_net_join join;
    json_t     *job;
    bool        refused = false;
    AT_TRY(where(parsed, hub, &join, fail));
    join.refused = &refused;
    AT_TRY(at_net_ask_job(&join, &job, fail));
    if (!job) return AT_OK; /* the run is over */
    at_err err = work(parsed, job, &join, command, fail);
    while (refused && has_changed(&join, &job)) {
        refused = false;
        *fail = (at_fail){0};
        err = work(parsed, job, &join, command, fail);
    }
    json_decref(job);
    return err;
}

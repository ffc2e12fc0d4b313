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
static at_err load(at_parsed *parsed, const at_net_join *join, const char *command,
                   at_launch *launch, at_fail *fail)
{
    json_t *options;
    AT_TRY(at_net_ask_job(join, &options, fail));
    at_err err =
        at_options_inherit(parsed, options, not_taken, sizeof not_taken / sizeof *not_taken, fail);
    json_decref(options);
    if (!err) err = at_options_set(parsed, AT_FOR_TRAIN, "world", "net", fail);
    return err ? err : at_launch_open(launch, parsed, command, fail);
}

at_err at_verb_work(at_parsed *parsed, const char *command, at_fail *fail)
{
    char        hub[AT_NET_LIST_SIZE] = "";
    at_net_join join;
    at_launch   launch;
    json_t     *result = NULL;
    AT_TRY(where(parsed, hub, &join, fail));
    AT_TRY(load(parsed, &join, command, &launch, fail));
    launch.run.joins = &join;
    at_err err = at_run(&launch.run, &result, fail);
    json_decref(result);
    at_launch_close(&launch);
    return err;
}

#include <stdio.h>

#include "cli/launch.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "cli/watch.h"
#include "cli/whatif.h"

static double real_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_summary(const json_t *result, const char *folder)
{
    const json_t *test = json_object_get(result, "test");
    const json_t *samples = json_object_get(result, "samples");
    printf("%s: %lld steps in %.2f s, %.0f samples/s, %.0f %% of the workers' time useful\n",
           json_string_value(json_object_get(result, "strategy")),
           (long long)json_integer_value(json_object_get(result, "steps")),
           real_at(result, "seconds"), real_at(result, "samples_per_second"),
           100 * real_at(result, "useful_fraction"));
    printf("samples: %lld drawn = %lld used + %lld dropped\n",
           (long long)json_integer_value(json_object_get(samples, "drawn")),
           (long long)json_integer_value(json_object_get(samples, "used")),
           (long long)json_integer_value(json_object_get(samples, "dropped")));
    if (json_is_number(json_object_get(test, "loss"))) at_print_test(test);
    printf("written to %s\n", folder);
}

static at_err run_into(const char *folder, at_parsed *parsed, const char *command, at_fail *fail)
{
    at_launch launch;
    json_t   *result = NULL;
    bool      as_json = parsed->settings.json;
    AT_TRY(at_launch_open(&launch, parsed, command, fail));
    launch.run.folder = folder;
    at_watch watch;
    at_err   err = at_watch_start(&watch, parsed, folder, fail);
    if (!err) err = at_run(&launch.run, &result, fail);
    at_watch_end(&watch);
    at_fail ignored;
    if (result && as_json) {
        at_err printed = at_print_json(result, err ? &ignored : fail);
        if (!err) err = printed;
    } else if (result) {
        print_summary(result, folder);
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
    return at_launch_folder(s->run, s->strategy, folder, size, fail);
}

at_err at_verb_train(at_parsed *parsed, const char *command, at_fail *fail)
{
    char folder[4096];
    AT_TRY(new_folder(parsed, folder, sizeof folder, fail));
    return run_into(folder, parsed, command, fail);
}

at_err at_verb_simulate(at_parsed *parsed, const char *command, at_fail *fail)
{
    char folder[4096];
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "world", "sim", fail));
    AT_TRY(new_folder(parsed, folder, sizeof folder, fail));
    if (parsed->settings.from) AT_TRY(at_whatif_apply(parsed, folder, fail));
    return run_into(folder, parsed, command, fail);
}

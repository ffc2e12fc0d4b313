/* libanytime: the public functions of anytime.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anytime.h"
#include "cli/launch.h"
#include "record/run_lock.h"

static at_err train(const at_own_model *model, float *params, int count, const char *const *options,
                    json_t **result, at_fail *fail)
{
    at_parsed parsed;
    at_launch launch;
    AT_TRY(at_options_init(&parsed, fail));
    at_err err = at_options_parse(&parsed, AT_FOR_TRAIN, count, options, fail);
    if (!err) err = at_options_refuse_words(&parsed, fail);
    char        folder[4096] = "";
    at_run_lock lock = {0};
    if (!err && parsed.settings.run)
        err = at_launch_folder(parsed.settings.run, "own", folder, sizeof folder, fail);
    if (!err && *folder) err = at_run_lock_take(folder, &lock, fail);
    if (!err) err = at_launch_own(&launch, &parsed, model, params, fail);
    if (!err) {
        err = at_run(&launch.run, result, fail);
        at_launch_close(&launch);
    }
    at_run_lock_release(&lock);
    at_launch_drop_folder(folder);
    at_options_deinit(&parsed);
    return err;
}

int at_train(const at_own_model *model, float *params, int count, const char *const *options,
             at_answer *answer)
{
    at_fail fail = {0};
    json_t *result = NULL;
    *answer = (at_answer){.code = train(model, params, count, options, &result, &fail)};
    if (answer->code)
        snprintf(answer->message, sizeof answer->message, "%s%s%s", fail.text,
                 fail.hint[0] ? "; hint: " : "", fail.hint);
    if (result) answer->result = json_dumps(result, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(result);
    return answer->code;
}

void at_answer_free(at_answer *answer)
{
    free(answer->result);
    *answer = (at_answer){0};
}

const char *at_version(void)
{
    return ANYTIME_VERSION;
}

/* libanytime: the public functions of anytime.h. */
#include <assert.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anytime.h"
#include "cli/launch.h"
#include "cli/options/inherit.h"
#include "model_io/safetensors.h"
#include "record/run_lock.h"
#include "world/process/launcher.h"

/* A run handles signals and waits for children, which belong to the whole process. */
static atomic_flag is_training = ATOMIC_FLAG_INIT;

/* --init: reads the weights of a file or run into `params`, which is unchanged after an error. */
static at_err read_init(const at_task *task, const char *init, float *params, at_fail *fail)
{
    at_tensor tensor;
    float    *plain = calloc(task->plain, sizeof *plain);
    if (!plain) return at_fail_memory_for(fail, "to read %s", init);
    size_t count = at_safetensors_tensors(task, &tensor, 1);
    assert(count == 1);
    at_err err = at_safetensors_read(init, &tensor, count, plain, fail);
    if (!err) memcpy(params, plain, task->plain * sizeof *plain);
    free(plain);
    return err;
}

/* Trains from step 0, or from a checkpoint if `resume` is not NULL. */
static at_err run_own(at_parsed *parsed, const at_own_model *model, float *params,
                      const at_checkpoint *resume, json_t **result, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    at_launch          launch;
    AT_TRY(at_launch_own(&launch, parsed, model, params, fail));
    at_err err = AT_OK;
    if (resume) {
        launch.run.folder = s->resume;
        launch.run.resume = resume;
    } else if (s->init) {
        err = read_init(&launch.task, s->init, params, fail);
    }
    if (!err) err = at_run(&launch.run, result, fail);
    at_launch_close(&launch);
    return err;
}

/* A new run, in a folder of its own when --run names one. */
static at_err begin_run(at_parsed *parsed, const at_own_model *model, float *params,
                        json_t **result, at_fail *fail)
{
    const char *run = parsed->settings.run;
    char        folder[4096] = "";
    at_run_lock lock = {0};
    at_err      err = AT_OK;
    if (run) err = at_launch_folder(run, "own", folder, sizeof folder, fail);
    if (!err && *folder) err = at_run_lock_take(folder, &lock, fail);
    if (!err) err = run_own(parsed, model, params, NULL, result, fail);
    at_run_lock_release(&lock);
    at_launch_drop_folder(folder);
    return err;
}

static at_err resume_run(at_parsed *parsed, const at_own_model *model, float *params,
                         json_t **result, at_fail *fail)
{
    at_checkpoint checkpoint;
    at_run_lock   lock = {0};
    AT_TRY(at_run_lock_take(parsed->settings.resume, &lock, fail));
    at_err err = at_resume_open(parsed, &checkpoint, fail);
    if (!err) {
        err = run_own(parsed, model, params, &checkpoint, result, fail);
        at_checkpoint_close(&checkpoint);
    }
    at_run_lock_release(&lock);
    return err;
}

/* Every rank would train by itself, without a word. */
static at_err refuse_ranks(const at_parsed *parsed, at_fail *fail)
{
    at_launcher launcher = at_launcher_detect();
    if (!launcher.name || launcher.size < 2 || at_options_given(parsed, "world")) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "start the program once, with --workers N: workers are forked from it; "
                       "--world local trains in every copy",
                       "%s has started %u copies of this program, and each would train by itself",
                       launcher.name, launcher.size);
}

static at_err train(const at_own_model *model, float *params, int count, const char *const *options,
                    json_t **result, at_fail *fail)
{
    at_parsed parsed;
    AT_TRY(at_options_init(&parsed, fail));
    at_err err = at_options_parse(&parsed, AT_FOR_TRAIN, count, options, fail);
    if (!err) err = at_options_refuse_words(&parsed, fail);
    if (!err) err = refuse_ranks(&parsed, fail);
    if (!err)
        err = parsed.settings.resume ? resume_run(&parsed, model, params, result, fail)
                                     : begin_run(&parsed, model, params, result, fail);
    at_options_deinit(&parsed);
    return err;
}

/* The locale of this thread with decimal points, so that tables and messages have no commas; 0 when
 * memory is short. */
static locale_t with_points(void)
{
    locale_t own = duplocale(uselocale((locale_t)0));
    locale_t points = own ? newlocale(LC_NUMERIC_MASK, "C", own) : (locale_t)0;
    if (own && !points) freelocale(own);
    return points;
}

/* One run per process at a time: a second one is refused, from another thread as well as from the
 * user's own functions. Waiting for the first would be a deadlock in the second case. */
static at_err train_alone(const at_own_model *model, float *params, int count,
                          const char *const *options, json_t **result, at_fail *fail)
{
    if (atomic_flag_test_and_set(&is_training))
        return at_fail_set(fail, AT_ERR_USAGE,
                           "call it when the other call has returned, or in another process",
                           "at_train is already running in this process");
    locale_t points = with_points(), before = points ? uselocale(points) : (locale_t)0;
    at_err   err = train(model, params, count, options, result, fail);
    if (points) {
        uselocale(before);
        freelocale(points);
    }
    atomic_flag_clear(&is_training);
    return err;
}

int at_train(const at_own_model *model, float *params, int count, const char *const *options,
             at_answer *answer)
{
    at_fail fail = {0};
    json_t *result = NULL;
    *answer = (at_answer){.code = train_alone(model, params, count, options, &result, &fail)};
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

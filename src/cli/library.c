/* libanytime: the public functions of anytime.h. */
#include <assert.h>
#include <locale.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anytime.h"
#include "cli/launch.h"
#include "cli/options/inherit.h"
#include "model_io/safetensors.h"
#include "record/run_lock.h"
#include "world/mpi/mpi_world.h"

/* A run handles signals and waits for children, which belong to the whole process. */
static atomic_flag is_training = ATOMIC_FLAG_INIT;

/* Whether this process is the hub, which writes and has the parameters. */
static bool is_first_rank(const at_parsed *parsed)
{
    return !parsed->launcher || parsed->launcher->rank == 0;
}

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
    bool               is_first = is_first_rank(parsed);
    AT_TRY(at_launch_own(&launch, parsed, model, params, fail));
    at_err err = AT_OK;
    if (resume) {
        launch.run.folder = is_first ? s->resume : NULL;
        /* Ranks that share the update restore their own part of the checkpoint. */
        bool shared = at_plan_splits_update(&launch.run.plan);
        launch.run.resume = is_first || shared ? resume : NULL;
    } else if (s->init && is_first) {
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
    const char *run = is_first_rank(parsed) ? parsed->settings.run : NULL;
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

/* The ranks are assigned when the settings of the run are known: --mix decides how many work. */
static at_err resume_run(at_parsed *parsed, const at_launcher *launcher, const at_own_model *model,
                         float *params, json_t **result, at_fail *fail)
{
    at_checkpoint checkpoint;
    at_run_lock   lock = {0};
    if (!launcher || launcher->rank == 0)
        AT_TRY(at_run_lock_take(parsed->settings.resume, &lock, fail));
    at_err err = at_resume_open(parsed, &checkpoint, fail);
    if (!err) {
        if (launcher) err = at_launch_ranks(parsed, launcher, fail);
        if (!err) err = run_own(parsed, model, params, &checkpoint, result, fail);
        at_checkpoint_close(&checkpoint);
    }
    at_run_lock_release(&lock);
    return err;
}

/* ---- ranks of a launcher --------------------------------------------------------------------- */

/* What rank 0 tells the others after a run; the result and the parameters follow it. */
typedef struct shared_answer {
    int32_t  code, has_result;
    uint64_t result_size; /* with the zero byte */
    char     message[sizeof((at_answer *)0)->message];
} shared_answer;

/* All ranks get the answer of rank 0, and its parameters. */
static bool share_answer(const at_launcher *launcher, float *params, size_t floats,
                         at_answer *answer)
{
    shared_answer shared = {.code = answer->code, .has_result = answer->result != NULL};
    bool          takes = launcher->rank > 0;
    if (answer->result) shared.result_size = strlen(answer->result) + 1;
    memcpy(shared.message, answer->message, sizeof shared.message);
    if (!at_mpi_world_share(launcher, &shared, sizeof shared)) return false;
    if (takes) {
        answer->code = shared.code;
        memcpy(answer->message, shared.message, sizeof answer->message);
        answer->result = shared.has_result ? calloc(1, shared.result_size) : NULL;
    }
    if (shared.has_result && !answer->result) return false;
    bool good =
        !shared.has_result || at_mpi_world_share(launcher, answer->result, shared.result_size);
    return good && at_mpi_world_share(launcher, params, floats * sizeof *params);
}

/* Ends a run of several ranks, even one that failed before it began: the others wait for it. */
static void end_ranks(const at_launcher *launcher, const at_fail *fail, float *params,
                      size_t floats, at_answer *answer)
{
    int  code = answer->code;
    bool in_order = at_mpi_world_leave(launcher, fail, &code);
    bool shared = share_answer(launcher, params, floats, answer);
    at_mpi_world_shared();
    if (shared || launcher->rank == 0 || answer->code) return;
    answer->code = code ? code : AT_ERR_FAILED;
    snprintf(answer->message, sizeof answer->message,
             in_order ? "rank 0 has not sent the result"
                      : "a rank was lost, and rank 0 has not sent the result");
}

/* The launcher whose ranks train together; NULL: this process trains by itself. */
static const at_launcher *find_ranks(const at_parsed *parsed, at_launcher *launcher)
{
    bool chosen = at_options_given(parsed, "world");
    *launcher = at_launcher_detect();
    if (!launcher->name || launcher->size < 2) return NULL;
    return !chosen || strcmp(parsed->settings.world, "mpi") == 0 ? launcher : NULL;
}

/* A worker leaves signals to the hub, and gets its own handling of them back. */
enum { SIGNALS = 5 };
static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

static void swap_signals(struct sigaction before[SIGNALS], bool restores)
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], restores ? &before[i] : NULL, restores ? NULL : &before[i]);
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct job {
    const at_own_model *model;
    float              *params;
    int                 count;
    const char *const  *options;
} job;

static at_err train_parsed(const job *j, at_parsed *parsed, const at_launcher *launcher,
                           json_t **result, at_fail *fail)
{
    AT_TRY(at_options_refuse_words(parsed, fail));
    if (parsed->settings.resume)
        return resume_run(parsed, launcher, j->model, j->params, result, fail);
    if (launcher) AT_TRY(at_launch_ranks(parsed, launcher, fail));
    return begin_run(parsed, j->model, j->params, result, fail);
}

static void set_answer(at_answer *answer, at_err err, const at_fail *fail, json_t *result)
{
    *answer = (at_answer){.code = (int)err};
    if (err)
        snprintf(answer->message, sizeof answer->message, "%s%s%s", fail->text,
                 fail->hint[0] ? "; hint: " : "", fail->hint);
    if (result) answer->result = json_dumps(result, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(result);
}

static void train(const job *j, at_answer *answer)
{
    at_parsed        parsed;
    at_launcher      launcher;
    at_fail          fail = {0};
    json_t          *result = NULL;
    struct sigaction before[SIGNALS];
    at_err           err = at_options_init(&parsed, &fail);
    if (!err) err = at_options_parse(&parsed, AT_FOR_TRAIN, j->count, j->options, &fail);
    const at_launcher *ranks = find_ranks(&parsed, &launcher);
    if (ranks && at_mpi_world_check(&fail)) {
        err = fail.err;
        ranks = NULL; /* every rank knows it without the others */
    }
    swap_signals(before, false);
    if (!err) err = train_parsed(j, &parsed, ranks, &result, &fail);
    set_answer(answer, err, &fail, result);
    if (ranks) end_ranks(ranks, &fail, j->params, j->model->parameters, answer);
    if (ranks && ranks->rank > 0) swap_signals(before, true);
    at_options_deinit(&parsed);
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
int at_train(const at_own_model *model, float *params, int count, const char *const *options,
             at_answer *answer)
{
    at_fail fail = {0};
    if (atomic_flag_test_and_set(&is_training)) {
        at_err err = at_fail_set(&fail, AT_ERR_USAGE,
                                 "call it when the other call has returned, or in another process",
                                 "at_train is already running in this process");
        set_answer(answer, err, &fail, NULL);
        return answer->code;
    }
    locale_t points = with_points(), before = points ? uselocale(points) : (locale_t)0;
    train(&(job){model, params, count, options}, answer);
    if (points) {
        uselocale(before);
        freelocale(points);
    }
    atomic_flag_clear(&is_training);
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

/* `anytime predict`: what the trained model of a run says about samples, one line each. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/adopt.h"
#include "cli/launch.h"
#include "cli/print.h"
#include "cli/verbs.h"

enum { ROWS = 1024 }; /* predicted at a time */

/* What is about that run and not about its model. */
static const char *const not_taken[] = {"init",        "run",        "json",   "quiet",
                                        "record",      "world",      "faults", "latency",
                                        "sample-time", "bandwidth",  "target", "straggler",
                                        "eval-size",   "comm-delay", "shard",  "straggler-scale"};

typedef struct predictor {
    at_launch launch;
    float    *params, *probabilities;
    json_t   *rows; /* with --json */
} predictor;

static at_err open_predictor(predictor *p, const at_parsed *parsed, const char *command,
                             at_fail *fail)
{
    AT_TRY(at_launch_open(&p->launch, parsed, command, fail));
    const at_task *task = &p->launch.task;
    if (!task->predict || task->classes < 2)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s has no classes to predict", task->model);
    p->params = aligned_alloc(64, (task->params * sizeof(float) + 63) / 64 * 64);
    p->probabilities = calloc((size_t)ROWS * task->classes, sizeof(float));
    if (!p->params || !p->probabilities)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    AT_TRY(task->init(task->self, p->params, 0, fail));
    return task->open(task->self, 0, fail);
}

static uint32_t most_probable(const float *probabilities, uint32_t classes)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < classes; c++)
        if (probabilities[c] > probabilities[best]) best = c;
    return best;
}

static void tell_row(predictor *p, const float *probabilities)
{
    uint32_t classes = p->launch.task.classes, best = most_probable(probabilities, classes);
    double   probability = probabilities[classes == 2 ? 1 : best];
    assert(best < classes);
    if (p->rows)
        json_array_append_new(p->rows, json_pack("[i, f]", (int)best, probability));
    else
        printf("%" PRIu32 " %.6g\n", best, probability);
}

static at_err predict_all(predictor *p, at_fail *fail)
{
    const at_task *task = &p->launch.task;
    for (uint64_t first = 0; first < task->test_samples; first += ROWS) {
        uint64_t left = task->test_samples - first, count = left < ROWS ? left : ROWS;
        task->predict(task->self, p->probabilities, p->params, first, count);
        for (uint64_t i = 0; i < count; i++) tell_row(p, p->probabilities + i * task->classes);
        if (ferror(stdout)) return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write to stdout");
    }
    return AT_OK;
}

static at_err tell(predictor *p, const char *run, at_fail *fail)
{
    if (!p->rows) return AT_OK;
    json_t *rows = json_incref(p->rows);
    return at_print_json_take(json_pack("{s:s, s:s, s:I, s:o}", "run", run, "model",
                                        p->launch.task.model, "classes",
                                        (json_int_t)p->launch.task.classes, "rows", rows),
                              fail);
}

at_err at_verb_predict(at_parsed *parsed, const char *command, at_fail *fail)
{
    predictor p = {0};
    if (parsed->words != 1)
        return at_fail_set(fail, AT_ERR_USAGE, "anytime predict RUN",
                           "predict needs the folder of one run");
    const char *run = parsed->word[0];
    AT_TRY(at_adopt_run(parsed, run, not_taken, sizeof not_taken / sizeof *not_taken, fail));
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "init", run, fail));
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "workers", "1", fail));
    if (parsed->settings.json) p.rows = json_array();
    at_err err = open_predictor(&p, parsed, command, fail);
    if (!err) err = predict_all(&p, fail);
    if (!err) err = tell(&p, run, fail);
    json_decref(p.rows);
    free(p.params);
    free(p.probabilities);
    at_launch_close(&p.launch);
    return err;
}

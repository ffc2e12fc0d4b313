/* `anytime eval`: evaluates a trained model on test samples. */
#include <assert.h>
#include <stdio.h>

#include "cli/loading_progress.h"
#include "cli/output.h"
#include "cli/trained_model.h"
#include "cli/verbs/verbs.h"
#include "world/core/result.h"
#include "world/process/evaluator.h"

enum { ROWS = 1024 }; /* scored between two progress updates */

static void score_all(const at_trained_model *t, at_score *sum, const at_load_progress *loading)
{
    const at_task *task = &t->launch.task;
    assert(task->score);
    for (uint64_t first = 0; first < task->test_samples; first += ROWS) {
        uint64_t left = task->test_samples - first;
        at_load_progress_report(loading, first, task->test_samples);
        task->score(task->self, sum, t->params, first, left < ROWS ? left : ROWS);
    }
}

/* Uses the names of result.json; leaves out metrics that the task does not have. */
static json_t *test_json(const at_score *score)
{
    double value[AT_METRIC_COUNT];
    at_score_metrics(value, score);
    json_t *test = at_result_metrics(value);
    json_object_set_new(test, "count", json_integer((json_int_t)score->count));
    return test;
}

static at_err evaluate(const at_trained_model *t, const at_settings *settings, at_fail *fail)
{
    const at_task  *task = &t->launch.task;
    at_score        score = {0};
    at_loading_line line;
    if (task->test_samples == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "give a test set with --test-data",
                           "there are no test samples");
    const char *data = settings->test_data ? settings->test_data : task->data;
    at_loading_line_init(&line, data, settings->quiet);
    line.doing = "scoring";
    score_all(t, &score, &line.loading);
    at_loading_line_end(&line);
    json_t *test = test_json(&score);
    if (settings->json)
        return at_print_json_take(json_pack("{s:s, s:s, s:s, s:o}", "run", t->source, "model",
                                            task->model, "data", data, "test", test),
                                  fail);
    at_print_test(test);
    json_decref(test);
    return AT_OK;
}

at_err at_verb_eval(at_parsed *parsed, const char *command, at_fail *fail)
{
    at_trained_model trained;
    at_err err = at_trained_model_open(&trained, "eval", AT_SAMPLES_LABELED, parsed, command, fail);
    if (!err) err = evaluate(&trained, &parsed->settings, fail);
    at_trained_model_close(&trained);
    return err;
}

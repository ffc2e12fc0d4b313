/* `anytime predict`: prints the predictions of a trained model, one line per sample. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/output.h"
#include "cli/trained_model.h"
#include "cli/verbs/verbs.h"

enum { ROWS = 1024 }; /* predicted at a time */

typedef struct predictor {
    at_trained_model model;
    float           *probabilities;
    size_t           outputs; /* probabilities per sample, or 1 value */
    json_t          *rows;    /* with --json */
} predictor;

static at_err open_predictor(predictor *p, at_parsed *parsed, const char *command, at_fail *fail)
{
    AT_TRY(at_trained_model_open(&p->model, "predict", parsed, command, fail));
    const at_task *task = &p->model.launch.task;
    if (!task->predict || (task->classes < 2 && !task->regression))
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s has no classes to predict", task->model);
    p->outputs = task->regression ? 1 : task->classes;
    p->probabilities = calloc((size_t)ROWS * p->outputs, sizeof(float));
    if (!p->probabilities) return at_fail_memory(fail);
    if (parsed->settings.json) p->rows = json_array();
    return AT_OK;
}

static uint32_t most_probable(const float *probabilities, uint32_t classes)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < classes; c++)
        if (probabilities[c] > probabilities[best]) best = c;
    return best;
}

static void add_value(predictor *p, double value)
{
    if (p->rows)
        json_array_append_new(p->rows, json_real(value));
    else
        printf("%.9g\n", value);
}

static void add_row(predictor *p, const float *probabilities)
{
    if (p->model.launch.task.regression) {
        add_value(p, (double)*probabilities);
        return;
    }
    uint32_t classes = p->model.launch.task.classes, best = most_probable(probabilities, classes);
    double   probability = probabilities[classes == 2 ? 1 : best];
    assert(best < classes);
    if (p->rows)
        json_array_append_new(p->rows, json_pack("[i, f]", (int)best, probability));
    else
        printf("%" PRIu32 " %.6g\n", best, probability);
}

static at_err predict_all(predictor *p, at_fail *fail)
{
    const at_task *task = &p->model.launch.task;
    for (uint64_t first = 0; first < task->test_samples; first += ROWS) {
        uint64_t left = task->test_samples - first, count = left < ROWS ? left : ROWS;
        task->predict(task->self, p->probabilities, p->model.params, first, count);
        for (uint64_t i = 0; i < count; i++) add_row(p, p->probabilities + i * p->outputs);
        if (ferror(stdout)) return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write to stdout");
    }
    return AT_OK;
}

static at_err print_json(predictor *p, at_fail *fail)
{
    const at_task *task = &p->model.launch.task;
    if (!p->rows) return AT_OK;
    json_t *rows = json_incref(p->rows);
    return at_print_json_take(json_pack("{s:s, s:s, s:I, s:o}", "run", p->model.source, "model",
                                        task->model, "classes", (json_int_t)task->classes, "rows",
                                        rows),
                              fail);
}

at_err at_verb_predict(at_parsed *parsed, const char *command, at_fail *fail)
{
    predictor p = {0};
    at_err    err = open_predictor(&p, parsed, command, fail);
    if (!err) err = predict_all(&p, fail);
    if (!err) err = print_json(&p, fail);
    json_decref(p.rows);
    free(p.probabilities);
    at_trained_model_close(&p.model);
    return err;
}

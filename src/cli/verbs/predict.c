/* `anytime predict`: prints the predictions of a trained model, one line per sample. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/text.h"
#include "cli/loading_progress.h"
#include "cli/output.h"
#include "cli/predict_files.h"
#include "cli/trained_model.h"
#include "cli/verbs/verbs.h"
#include "data/formats/format.h"
#include "data/set/inputs.h"
#include "report/summary/json_value.h"

enum { ROWS = 1024, ALL_MAX = 100 }; /* predicted at a time; classes whose probabilities JSON has */

typedef struct predictor {
    at_trained_model model;
    float           *probabilities;
    size_t           outputs; /* probabilities per sample, or 1 value */
    json_t          *names;   /* of the classes, as in inputs.h */
    char           **name;    /* (classes) to print */
    at_file_list     files;   /* of the pictures, if samples are pictures */
    json_t          *rows;    /* with --json */
    uint64_t         printed;
} predictor;

/* The names of the classes; their numbers if they have none. */
static at_err name_classes(predictor *p, at_fail *fail)
{
    const at_task *task = &p->model.launch.task;
    p->names = at_inputs_class_names(task->inputs);
    p->name = calloc(task->classes, sizeof *p->name);
    if (!p->name) return at_fail_memory(fail);
    if (!p->names) p->names = json_array();
    for (uint32_t c = 0; c < task->classes; c++) {
        if (c >= json_array_size(p->names)) json_array_append_new(p->names, json_sprintf("%u", c));
        p->name[c] = at_text_of_json(json_array_get(p->names, c));
        if (!p->name[c]) return at_fail_memory(fail);
        at_text_flatten(p->name[c]);
    }
    return AT_OK;
}

/* As the reader of pictures lists them (data/formats/pictures.c), so that names meet their rows. */
static at_err list_pictures(predictor *p, const char *pictures, at_fail *fail)
{
    if (!*pictures) return AT_OK;
    AT_TRY(at_format_pictures.source_files(pictures, AT_SPLIT_TEST, &p->files, fail));
    for (size_t i = 0; i < p->files.count && !p->rows; i++) at_text_flatten(p->files.path[i]);
    return AT_OK;
}

static at_err open_predictor(predictor *p, at_parsed *parsed, const char *command, at_fail *fail)
{
    const char *pictures;
    AT_TRY(at_predict_files(parsed, &pictures, fail));
    AT_TRY(at_trained_model_open(&p->model, "predict", AT_SAMPLES_ANY, parsed, command, fail));
    const at_task *task = &p->model.launch.task;
    if (!task->predict || (task->classes < 2 && !task->regression))
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s has no classes to predict", task->model);
    p->outputs = task->regression ? 1 : task->classes;
    p->probabilities = calloc((size_t)ROWS * p->outputs, sizeof(float));
    if (!p->probabilities) return at_fail_memory(fail);
    if (parsed->settings.json) p->rows = json_array();
    AT_TRY(list_pictures(p, pictures, fail));
    return task->regression ? AT_OK : name_classes(p, fail);
}

static uint32_t most_probable(const float *probabilities, uint32_t classes)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < classes; c++)
        if (probabilities[c] > probabilities[best]) best = c;
    return best;
}

static const char memory[] = "/proc/self/fd/"; /* where predict_files.c keeps stdin */

/* Errors speak of stdin, not of the file that holds it. */
static void name_stdin(at_fail *fail)
{
    size_t size = sizeof memory - 1;
    if (strncmp(fail->text, memory, size) != 0) return;
    size += strspn(fail->text + size, "0123456789");
    memmove(fail->text + strlen("stdin"), fail->text + size, strlen(fail->text + size) + 1);
    memcpy(fail->text, "stdin", strlen("stdin"));
}

static const char *file_of(const predictor *p, uint64_t row)
{
    if (row >= p->files.count) return NULL;
    bool is_stdin = strncmp(p->files.path[row], memory, sizeof memory - 1) == 0;
    return is_stdin ? "-" : p->files.path[row];
}

/* Columns are separated by tabs: names of classes and files may have blanks. */
static void print_header(const predictor *p)
{
    const at_task *task = &p->model.launch.task;
    if (p->rows) return;
    if (p->files.count > 0) printf("file\t");
    if (task->regression)
        printf("value\n");
    else if (task->classes == 2)
        printf("class\tp(%s)\n", p->name[1]);
    else
        printf("class\tprobability\n");
}

static void print_row(const predictor *p, const float *outputs, uint64_t row)
{
    const at_task *task = &p->model.launch.task;
    if (file_of(p, row)) printf("%s\t", file_of(p, row));
    if (task->regression) {
        printf("%.9g\n", (double)*outputs);
        return;
    }
    uint32_t best = most_probable(outputs, task->classes);
    printf("%s\t%.6g\n", p->name[best], (double)outputs[task->classes == 2 ? 1 : best]);
}

static json_t *row_json(const predictor *p, const float *outputs, uint64_t row)
{
    const at_task *task = &p->model.launch.task;
    json_t        *object = json_object();
    if (file_of(p, row)) json_object_set_new(object, "file", at_text_to_json(file_of(p, row)));
    if (task->regression) {
        json_object_set_new(object, "value", at_json_number((double)*outputs));
        return object;
    }
    uint32_t best = most_probable(outputs, task->classes);
    json_object_set(object, "class", json_array_get(p->names, best));
    json_object_set_new(object, "probability", at_json_number((double)outputs[best]));
    if (task->classes > ALL_MAX) return object;
    json_t *all = json_array();
    for (uint32_t c = 0; c < task->classes; c++)
        json_array_append_new(all, at_json_number((double)outputs[c]));
    json_object_set_new(object, "probabilities", all);
    return object;
}

static void add_row(predictor *p, const float *outputs)
{
    uint64_t row = p->printed++;
    if (p->rows)
        json_array_append_new(p->rows, row_json(p, outputs, row));
    else
        print_row(p, outputs, row);
}

static void predict_all(predictor *p, const at_load_progress *progress)
{
    const at_task *task = &p->model.launch.task;
    print_header(p);
    for (uint64_t first = 0; first < task->test_samples; first += ROWS) {
        uint64_t left = task->test_samples - first, count = left < ROWS ? left : ROWS;
        at_load_progress_report(progress, first, task->test_samples);
        task->predict(task->self, p->probabilities, p->model.params, first, count);
        for (uint64_t i = 0; i < count; i++) add_row(p, p->probabilities + i * p->outputs);
        if (ferror(stdout)) return; /* nobody reads on, or the disk is full: main says which */
    }
}

static at_err print_json(predictor *p, at_fail *fail)
{
    const at_task *task = &p->model.launch.task;
    if (!p->rows) return AT_OK;
    json_t *names = p->names ? json_incref(p->names) : json_null();
    return at_print_json_take(json_pack("{s:s, s:s, s:o, s:O}", "run", p->model.source, "model",
                                        task->model, "classes", names, "rows", p->rows),
                              fail);
}

static void close_predictor(predictor *p)
{
    for (uint32_t c = 0; p->name && c < p->model.launch.task.classes; c++) free(p->name[c]);
    free(p->name);
    json_decref(p->names);
    json_decref(p->rows);
    free(p->probabilities);
    at_file_list_deinit(&p->files);
    at_trained_model_close(&p->model);
}

/* --data is what the model was trained on, not what to predict. */
static void hint_at_file(const at_parsed *parsed, at_fail *fail)
{
    at_text hint = at_text_in(fail->hint, sizeof fail->hint);
    at_text_add(&hint,
                "--data names the training data; to predict the rows of a file: anytime "
                "predict %s FILE",
                parsed->word[0]);
}

at_err at_verb_predict(at_parsed *parsed, const char *command, at_fail *fail)
{
    predictor       p = {0};
    at_loading_line line;
    bool            own_data = at_options_given(parsed, "data") && parsed->words == 1;
    at_err          err = open_predictor(&p, parsed, command, fail);
    if (err && own_data) hint_at_file(parsed, fail);
    if (!err) {
        at_loading_line_init(&line, p.model.source, parsed->settings.quiet || isatty(1));
        line.doing = "predicting with";
        predict_all(&p, &line.loading);
        at_loading_line_end(&line);
    }
    if (!err) err = print_json(&p, fail);
    if (err) name_stdin(fail);
    close_predictor(&p);
    return err;
}

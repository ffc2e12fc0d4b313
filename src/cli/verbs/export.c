/* `anytime export`: writes a trained model to a file for other programs. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/output.h"
#include "cli/trained_model.h"
#include "cli/verbs/verbs.h"
#include "model_io/onnx.h"
#include "model_io/safetensors.h"

/* A new format is one line. */
typedef struct format_kind {
    const char *name; /* and suffix */
    at_err (*write)(const char *path, const at_task *task, const float *plain, at_fail *fail);
} format_kind;

static const format_kind formats[] = {{"safetensors", at_safetensors_write},
                                      {"onnx", at_onnx_write}};

enum { FORMATS = sizeof formats / sizeof *formats };

static at_err find_format(const char *name, const format_kind **found, at_fail *fail)
{
    const char *names[FORMATS];
    for (size_t i = 0; i < FORMATS; i++) {
        names[i] = formats[i].name;
        *found = &formats[i];
        if (strcmp(names[i], name) == 0) return AT_OK;
    }
    return at_text_unknown("format", name, names, FORMATS, fail);
}

/* --format, or else the suffix of --out. */
static at_err choose_format(const at_settings *settings, const format_kind **found, at_fail *fail)
{
    if (!settings->out)
        return at_fail_set(fail, AT_ERR_USAGE, "for example --out model.onnx",
                           "export needs --out FILE");
    if (settings->format) return find_format(settings->format, found, fail);
    const char *name = strrchr(settings->out, '/'), *dot;
    dot = strrchr(name ? name + 1 : settings->out, '.');
    if (!dot)
        return at_fail_set(fail, AT_ERR_USAGE, "give --format, or a file name with a known suffix",
                           "--out %s: the format is unknown without a suffix", settings->out);
    return find_format(dot + 1, found, fail);
}

static at_err write_plain(const at_trained_model *t, const format_kind *format, const char *path,
                          at_fail *fail)
{
    const at_task *task = &t->launch.task;
    if (!task->to_plain) return format->write(path, task, t->params, fail);
    float *plain = calloc(task->plain, sizeof *plain);
    if (!plain) return at_fail_memory(fail);
    task->to_plain(task->self, plain, t->params);
    at_err err = format->write(path, task, plain, fail);
    free(plain);
    return err;
}

static at_err print_result(const at_trained_model *t, const format_kind *format,
                           const at_settings *settings, at_fail *fail)
{
    const at_task *task = &t->launch.task;
    struct stat    status;
    double         bytes = stat(settings->out, &status) == 0 ? (double)status.st_size : 0;
    assert(task->model);
    if (settings->json)
        return at_print_json_take(
            json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "run", t->source, "model", task->model,
                      "format", format->name, "file", settings->out, "parameters",
                      (json_int_t)task->parameters, "bytes", (json_int_t)bytes),
            fail);
    bool small = bytes < 1e5;
    at_print("%s with %zu parameters written to %s (%s, %.1f %s)\n", task->model, task->parameters,
             settings->out, format->name, bytes / (small ? 1e3 : 1e6), small ? "kB" : "MB");
    return AT_OK;
}

at_err at_verb_export(at_parsed *parsed, const char *command, at_fail *fail)
{
    at_trained_model   trained;
    const at_settings *settings = &parsed->settings;
    const format_kind *format;
    AT_TRY(choose_format(settings, &format, fail));
    if (access(settings->out, F_OK) == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "remove it, or choose another name",
                           "--out %s exists already", settings->out);
    at_err err = at_trained_model_open(&trained, "export", AT_SAMPLES_NONE, parsed, command, fail);
    if (!err) err = write_plain(&trained, format, settings->out, fail);
    if (!err) err = print_result(&trained, format, settings, fail);
    at_trained_model_close(&trained);
    return err;
}

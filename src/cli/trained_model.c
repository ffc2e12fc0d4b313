#include "cli/trained_model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "cli/options/inherit.h"
#include "cli/output.h"
#include "data/files/folder.h"
#include "model_io/safetensors.h"

/* Whether these verbs have the option, so that it describes the model and not only the run. */
static bool describes_model(const char *name)
{
    if (strcmp(name, "eval-size") == 0) return false; /* of this evaluation, not of the run's */
    for (const at_option *row = at_options; row->name; row++)
        if ((row->verbs & AT_FOR_TRAINED) && strcmp(row->name, name) == 0) return true;
    return false;
}

/* Lists the options that are not taken from the run. */
static size_t list_exceptions(const char *names[AT_OPTIONS_MAX])
{
    size_t count = 0;
    for (const at_option *row = at_options; row->name; row++)
        if (!describes_model(row->name)) names[count++] = row->name;
    assert(count < AT_OPTIONS_MAX);
    return count;
}

static at_err set_unless_given(at_parsed *parsed, const char *name, const char *value,
                               at_fail *fail)
{
    if (!*value || at_options_given(parsed, name)) return AT_OK;
    return at_options_set(parsed, AT_FOR_TRAIN, name, value, fail);
}

/* Takes the options from the metadata of the file, which files of other programs do not have. */
static at_err inherit_file(at_parsed *parsed, const char *path, const at_safetensors_about *about,
                           at_fail *fail)
{
    if (!*about->model && !at_options_given(parsed, "model"))
        return at_fail_set(fail, AT_ERR_USAGE, "give --model and --data",
                           "%s does not say which model its weights belong to", path);
    AT_TRY(set_unless_given(parsed, "model", about->model, fail));
    at_options_settle(parsed, "model");
    AT_TRY(set_unless_given(parsed, "data", about->data, fail));
    return set_unless_given(parsed, "prep", about->prep, fail);
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Takes the settings of the run or file and sets --init to its weights. */
static at_err inherit(at_parsed *parsed, const char *source, at_fail *fail)
{
    at_safetensors_about about;
    const char          *names[AT_OPTIONS_MAX];
    char                 path[AT_SAFETENSORS_PATH_SIZE], note[AT_SAFETENSORS_NOTE_SIZE];
    if (is_folder(source))
        AT_TRY(at_inherit_run_options(parsed, source, names, list_exceptions(names), fail));
    AT_TRY(at_safetensors_newest(source, path, note, fail));
    if (*note) at_say("anytime: note: %s\n", note);
    AT_TRY(at_safetensors_about_read(path, &about, fail));
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "init", path, fail));
    if (!at_options_given(parsed, "model")) AT_TRY(at_inherit_net_text(parsed, path, fail));
    if (strcmp(about.data, "own") == 0 && !at_options_given(parsed, "model"))
        return at_fail_set(fail, AT_ERR_USAGE, "use the program that trained it",
                           "%s has the weights of \"%s\", which is not a built-in model", source,
                           about.model);
    return is_folder(source) ? AT_OK : inherit_file(parsed, source, &about, fail);
}

static at_err read_params(at_trained_model *t, at_fail *fail)
{
    const at_task *task = &t->launch.task;
    size_t         size;
    if (at_size_product(task->params + 15, sizeof(float), &size))
        t->params = aligned_alloc(64, size / 64 * 64);
    if (!t->params) return at_fail_memory(fail);
    AT_TRY(task->init(task->self, t->params, 0, fail));
    return task->open(task->self, 0, fail);
}

/* A file of rows is read in the format of the training data, which it need not look like: it may be
 * a single line. */
static at_err read_as_trained(at_parsed *parsed, const char *inputs, at_fail *fail)
{
    char        name[AT_SAFETENSORS_PATH_SIZE];
    const char *file = parsed->words == 2 ? parsed->word[1] : NULL,
               *test = parsed->settings.test_data;
    if (!file || strcmp(file, test) != 0) return AT_OK;
    json_t     *json = json_loads(inputs, 0, NULL);
    const char *format = json_string_value(json_object_get(json, "format"));
    bool        pictures = format && strcmp(format, "images") == 0;
    bool        made = format && strncmp(format, "synthetic", strlen("synthetic")) == 0;
    snprintf(name, sizeof name, "%s:%s", format ? format : "", file);
    json_decref(json);
    if (pictures)
        return at_fail_set(fail, AT_ERR_USAGE, "give pictures, or a folder of them",
                           "%s is not a JPEG or PNG picture, and the model was trained on pictures",
                           file);
    if (made)
        return at_fail_set(fail, AT_ERR_USAGE, "give a file with labels: --test-data FILE",
                           "%s cannot be read as the training data were: they are synthetic", file);
    return at_options_set(parsed, AT_FOR_TRAIN, "test-data", name, fail);
}

/* Whether the model can be opened by what was kept with its weights, and without its data. */
static at_err read_inputs(at_trained_model *t, at_samples samples, at_parsed *parsed, bool own_prep,
                          at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    if (samples != AT_SAMPLES_NONE && !s->test_data) return AT_OK;
    AT_TRY(at_safetensors_text(s->init, "inputs", &t->inputs, fail));
    if (!t->inputs) return AT_OK;
    if (samples == AT_SAMPLES_NONE) parsed->settings.test_data = NULL;
    AT_TRY(at_safetensors_text(s->init, "prep_fitted", &t->prep, fail));
    if (!own_prep) parsed->settings.prep = t->prep ? t->prep : "none";
    AT_TRY(read_as_trained(parsed, t->inputs, fail));
    parsed->settings.crop = at_folder_ends(s->data, ",crop");
    return AT_OK;
}

at_err at_trained_model_open(at_trained_model *t, const char *verb, at_samples samples,
                             at_parsed *parsed, const char *command, at_fail *fail)
{
    *t = (at_trained_model){0};
    if (parsed->words != 1 && (parsed->words == 0 || samples != AT_SAMPLES_ANY))
        return at_fail_set(fail, AT_ERR_USAGE, "`anytime runs` lists the runs in runs/",
                           "anytime %s needs one run folder or one .safetensors file", verb);
    t->source = parsed->word[0];
    bool own_data = at_options_given(parsed, "data"), own_prep = at_options_given(parsed, "prep");
    AT_TRY(inherit(parsed, t->source, fail));
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "workers", "1", fail));
    parsed->settings.scores = samples == AT_SAMPLES_LABELED;
    if (!own_data) AT_TRY(read_inputs(t, samples, parsed, own_prep, fail));
    AT_TRY(at_launch_open_inputs(&t->launch, parsed, command, t->inputs, fail));
    return read_params(t, fail);
}

void at_trained_model_close(at_trained_model *t)
{
    free(t->params);
    free(t->inputs);
    free(t->prep);
    at_launch_close(&t->launch);
    *t = (at_trained_model){0};
}

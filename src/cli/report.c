/* `anytime report RUN...`: what recorded runs came to, side by side, as a table and as plots. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/compare.h"
#include "cli/plots.h"
#include "cli/print.h"
#include "cli/verbs.h"

enum { RESULT_SIZE_MAX = 64 << 20 };

typedef struct run {
    const char *folder;
    char       *label; /* the last part of the folder's name */
    json_t     *result;
    double      value[AT_MEASURE_COUNT];
} run;

typedef struct report {
    const at_parsed *parsed;
    const char      *command;
    run              runs[AT_WORDS_MAX];
    uint32_t         count;
    char             folder[AT_COMPARE_PATH_SIZE];
} report;

/* ---- reading ------------------------------------------------------------------------------- */

static at_err read_json(const char *path, json_t **document, at_fail *fail)
{
    unsigned char *bytes;
    size_t         size;
    json_error_t   error;
    AT_TRY(at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, fail));
    *document = json_loadb((const char *)bytes, size, 0, &error);
    free(bytes);
    if (json_is_object(*document)) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "was it written by anytime?", "%s:%d: %s", path,
                       *document ? 1 : error.line, *document ? "not an object" : error.text);
}

static char *label_of(const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/') begin--;
    return strndup(folder + begin, end - begin);
}

static at_err open_run(run *r, const char *folder, at_fail *fail)
{
    char    path[AT_COMPARE_PATH_SIZE];
    at_text text = at_text_in(path, sizeof path);
    *r = (run){.folder = folder, .label = label_of(folder)};
    if (!r->label) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    at_text_add(&text, "%s/result.json", folder);
    if (text.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder's name is too long");
    at_err err = read_json(path, &r->result, fail);
    if (err == AT_ERR_MISSING)
        return at_fail_set(fail, err, "it is written when a run ends; name folders of ended runs",
                           "%s: no result.json in it", folder);
    for (int m = 0; m < AT_MEASURE_COUNT && !err; m++)
        r->value[m] = at_measure_of(r->result, (at_measure)m);
    return err;
}

static at_err open_runs(report *r, at_fail *fail)
{
    const at_parsed *parsed = r->parsed;
    if (parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime report runs/my-run",
                           "report needs the folders of runs");
    AT_TRY(at_plots_check(parsed->settings.plots, fail));
    AT_TRY(at_launch_folder(parsed->settings.out, "report", r->folder, sizeof r->folder, fail));
    for (uint32_t i = 0; i < parsed->words; i++)
        AT_TRY(open_run(&r->runs[r->count++], parsed->word[i], fail));
    return AT_OK;
}

static void close_runs(report *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        free(r->runs[i].label);
        json_decref(r->runs[i].result);
    }
}

/* ---- plots --------------------------------------------------------------------------------- */

static const char *text_of(const run *r, const char *key)
{
    const char *text = json_string_value(json_object_get(r->result, key));
    return text ? text : "?";
}

/* "softmax on mnist", or how many runs there are when they are not of the same. */
static void make_title(const report *r, char *title, size_t size)
{
    const char *model = text_of(&r->runs[0], "model"), *data = text_of(&r->runs[0], "data");
    bool        same = true;
    for (uint32_t i = 1; i < r->count; i++)
        same = same && strcmp(model, text_of(&r->runs[i], "model")) == 0 &&
               strcmp(data, text_of(&r->runs[i], "data")) == 0;
    at_text text = at_text_in(title, size);
    if (same)
        at_text_add(&text, "%s on %s", model, data);
    else
        at_text_add(&text, "%u runs", r->count);
}

static at_err draw(const report *r, char *names, size_t size, at_fail *fail)
{
    char          title[200];
    at_panel_runs series[AT_WORDS_MAX];
    make_title(r, title, sizeof title);
    for (uint32_t i = 0; i < r->count; i++)
        series[i] =
            (at_panel_runs){.label = r->runs[i].label, .folders = &r->runs[i].folder, .count = 1};
    at_panel_options options = {
        .title = title, .folder = r->folder, .runs = series, .run_count = r->count};
    return at_plots_write(r->parsed->settings.plots, options, names, size, fail);
}

/* ---- telling ------------------------------------------------------------------------------- */

static json_t *report_json(const report *r)
{
    json_t *root = json_object(), *runs = json_array();
    bool    drawn = strcmp(r->parsed->settings.plots, "none") != 0;
    for (uint32_t i = 0; i < r->count; i++) {
        json_t *one = json_pack("{s:s, s:s, s:s}", "run", r->runs[i].folder, "label",
                                r->runs[i].label, "strategy", text_of(&r->runs[i], "strategy"));
        for (int m = 0; m < AT_MEASURE_COUNT; m++)
            json_object_set_new(one, at_measure_name[m],
                                at_measure_json((at_measure)m, r->runs[i].value[m]));
        json_array_append_new(runs, one);
    }
    json_object_set_new(root, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(root, "command", json_string(r->command));
    json_object_set_new(root, "folder", drawn ? json_string(r->folder) : json_null());
    if (json_object_set_new(root, "runs", runs)) return json_decref(root), NULL;
    return root;
}

static const struct {
    const char *head;
    at_measure  measure;
    int         digits; /* behind the point */
    double      factor;
} columns[] = {{"steps", AT_MEASURE_STEPS, 0, 1},
               {"seconds", AT_MEASURE_SECONDS, 3, 1},
               {"step ms", AT_MEASURE_STEP_SECONDS, 3, 1e3},
               {"samples/s", AT_MEASURE_RATE, 0, 1},
               {"batch", AT_MEASURE_BATCH, 1, 1},
               {"useful %", AT_MEASURE_USEFUL, 0, 100},
               {"staleness", AT_MEASURE_STALENESS, 2, 1},
               {"loss", AT_MEASURE_TRAIN_LOSS, 4, 1},
               {"accuracy", AT_MEASURE_ACCURACY, 4, 1}};
enum { NUMBERS = sizeof columns / sizeof *columns, WORDS = 2 };

static at_table *make_table(const report *r)
{
    at_column heads[WORDS + NUMBERS] = {{"run", AT_ALIGN_LEFT}, {"strategy", AT_ALIGN_LEFT}};
    for (int i = 0; i < NUMBERS; i++)
        heads[WORDS + i] = (at_column){columns[i].head, AT_ALIGN_RIGHT};
    at_table *table = at_table_new(heads, WORDS + NUMBERS);
    for (uint32_t i = 0; table && i < r->count; i++) {
        at_table_add(table, "%s", r->runs[i].label);
        at_table_add(table, "%s", text_of(&r->runs[i], "strategy"));
        for (int c = 0; c < NUMBERS; c++) {
            double value = r->runs[i].value[columns[c].measure] * columns[c].factor;
            if (isnan(value))
                at_table_add(table, "-");
            else
                at_table_add(table, "%.*f", columns[c].digits, value);
        }
    }
    return table;
}

static at_err tell(const report *r, at_fail *fail)
{
    if (r->parsed->settings.json) return at_print_json_take(report_json(r), fail);
    return at_print_table_take(make_table(r), fail);
}

/* Tells what is in the folder; one in which nothing was written goes again. */
static void tell_plots(const report *r, const char *plots)
{
    if (rmdir(r->folder) == 0 || r->parsed->settings.json) return;
    if (*plots) printf("\nplots: %s, each also as .svg\n", plots);
    printf("written to %s\n", r->folder);
}

at_err at_verb_report(at_parsed *parsed, const char *command, at_fail *fail)
{
    char    plots[AT_PLOTS_NAMES_SIZE] = "";
    bool    drawn = strcmp(parsed->settings.plots, "none") != 0;
    report *r = calloc(1, sizeof *r);
    if (!r) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    r->parsed = parsed;
    r->command = command;
    at_err err = open_runs(r, fail);
    if (!err) err = tell(r, fail);
    if (!err && drawn) err = at_file_make_folder(r->folder, fail);
    if (!err && drawn) {
        err = draw(r, plots, sizeof plots, fail);
        tell_plots(r, plots);
    }
    close_runs(r);
    free(r);
    return err;
}

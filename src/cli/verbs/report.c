/* `anytime report RUN...`: what recorded runs came to, side by side: a table, plots and a page. */
#include "cli/verbs/report.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/plots.h"
#include "cli/print.h"
#include "cli/verbs/verbs.h"

enum { RESULT_SIZE_MAX = 64 << 20 };

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

static at_err open_run(at_reported *run, const char *folder, at_fail *fail)
{
    char    path[AT_COMPARE_PATH_SIZE];
    at_text text = at_text_in(path, sizeof path);
    *run = (at_reported){.folder = folder, .label = label_of(folder)};
    if (!run->label) return at_fail_memory(fail);
    at_text_add(&text, "%s/result.json", folder);
    if (text.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder's name is too long");
    at_err err = read_json(path, &run->result, fail);
    if (err == AT_ERR_MISSING)
        return at_fail_set(fail, err, "it is written when a run ends; name folders of ended runs",
                           "%s: no result.json in it", folder);
    for (int m = 0; m < AT_MEASURE_COUNT && !err; m++)
        run->value[m] = at_measure_of(run->result, (at_measure)m);
    return err;
}

static at_err open_runs(at_report_set *set, at_fail *fail)
{
    const at_parsed *parsed = set->parsed;
    if (parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime report runs/my-run",
                           "report needs the folders of runs");
    AT_TRY(at_plots_check(parsed->settings.plots, fail));
    AT_TRY(at_launch_folder(parsed->settings.out, "report", set->folder, sizeof set->folder, fail));
    for (uint32_t i = 0; i < parsed->words; i++)
        AT_TRY(open_run(&set->runs[set->count++], parsed->word[i], fail));
    return AT_OK;
}

static void close_runs(at_report_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        free(set->runs[i].label);
        json_decref(set->runs[i].result);
    }
}

/* ---- plots --------------------------------------------------------------------------------- */

static const char *text_of(const at_reported *run, const char *key)
{
    const char *text = json_string_value(json_object_get(run->result, key));
    return text ? text : "?";
}

void at_report_title(const at_report_set *set, char *title, size_t size)
{
    const char *model = text_of(&set->runs[0], "model"), *data = text_of(&set->runs[0], "data");
    bool        same = true;
    for (uint32_t i = 1; i < set->count; i++)
        same = same && strcmp(model, text_of(&set->runs[i], "model")) == 0 &&
               strcmp(data, text_of(&set->runs[i], "data")) == 0;
    at_text text = at_text_in(title, size);
    if (same)
        at_text_add(&text, "%s on %s", model, data);
    else
        at_text_add(&text, "%u runs", set->count);
}

static at_err draw(const at_report_set *set, char *names, size_t size, at_fail *fail)
{
    char          title[AT_REPORT_TITLE_SIZE];
    at_panel_runs series[AT_WORDS_MAX];
    at_report_title(set, title, sizeof title);
    for (uint32_t i = 0; i < set->count; i++)
        series[i] = (at_panel_runs){
            .label = set->runs[i].label, .folders = &set->runs[i].folder, .count = 1};
    at_panel_options options = {
        .title = title, .folder = set->folder, .runs = series, .run_count = set->count};
    return at_plots_write(set->parsed->settings.plots, options, names, size, fail);
}

/* ---- telling ------------------------------------------------------------------------------- */

static json_t *report_json(const at_report_set *set)
{
    json_t *root = json_object(), *runs = json_array();
    bool    drawn = strcmp(set->parsed->settings.plots, "none") != 0;
    for (uint32_t i = 0; i < set->count; i++) {
        json_t *one = json_pack("{s:s, s:s, s:s}", "run", set->runs[i].folder, "label",
                                set->runs[i].label, "strategy", text_of(&set->runs[i], "strategy"));
        for (int m = 0; m < AT_MEASURE_COUNT; m++)
            json_object_set_new(one, at_measure_name[m],
                                at_measure_json((at_measure)m, set->runs[i].value[m]));
        json_array_append_new(runs, one);
    }
    json_object_set_new(root, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(root, "command", json_string(set->command));
    json_object_set_new(root, "folder", drawn ? json_string(set->folder) : json_null());
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

at_table *at_report_table(const at_report_set *set)
{
    at_column heads[WORDS + NUMBERS] = {{"run", AT_ALIGN_LEFT}, {"strategy", AT_ALIGN_LEFT}};
    for (int i = 0; i < NUMBERS; i++)
        heads[WORDS + i] = (at_column){columns[i].head, AT_ALIGN_RIGHT};
    at_table *table = at_table_new(heads, WORDS + NUMBERS);
    for (uint32_t i = 0; table && i < set->count; i++) {
        at_table_add(table, "%s", set->runs[i].label);
        at_table_add(table, "%s", text_of(&set->runs[i], "strategy"));
        for (int c = 0; c < NUMBERS; c++) {
            double value = set->runs[i].value[columns[c].measure] * columns[c].factor;
            if (isnan(value))
                at_table_add(table, "-");
            else
                at_table_add(table, "%.*f", columns[c].digits, value);
        }
    }
    return table;
}

static at_err tell(const at_report_set *set, at_fail *fail)
{
    if (set->parsed->settings.json) return at_print_json_take(report_json(set), fail);
    return at_print_table_take(at_report_table(set), fail);
}

/* Tells what is in the folder. */
static void tell_files(const at_report_set *set, const char *plots)
{
    if (set->parsed->settings.json) return;
    if (*plots) printf("\nplots: %s, each also as .svg\n", plots);
    printf("%spage: %s/report.html\n", *plots ? "" : "\n", set->folder);
    printf("written to %s\n", set->folder);
}

/* A report that failed leaves no folder if there is nothing in it. */
static at_err write_files(const at_report_set *set, at_fail *fail)
{
    char plots[AT_PLOTS_NAMES_SIZE] = "";
    AT_TRY(at_file_make_folder(set->folder, fail));
    at_err err = draw(set, plots, sizeof plots, fail);
    if (!err) err = at_report_write_page(set, fail);
    if (err)
        rmdir(set->folder);
    else
        tell_files(set, plots);
    return err;
}

at_err at_verb_report(at_parsed *parsed, const char *command, at_fail *fail)
{
    bool           wanted = strcmp(parsed->settings.plots, "none") != 0;
    at_report_set *set = calloc(1, sizeof *set);
    if (!set) return at_fail_memory(fail);
    set->parsed = parsed;
    set->command = command;
    at_err err = open_runs(set, fail);
    if (!err) err = tell(set, fail);
    if (!err && wanted) err = write_files(set, fail);
    close_runs(set);
    free(set);
    return err;
}

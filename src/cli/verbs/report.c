/* `anytime report RUN...`: recorded runs side by side, as a table, plots and a web page. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/loading_progress.h"
#include "cli/output.h"
#include "cli/resource_table.h"
#include "cli/run_names.h"
#include "cli/run_page.h"
#include "cli/verbs/compare.h"
#include "cli/verbs/verbs.h"
#include "report/summary/json_value.h"
#include "report/trace/trace.h"

enum { TITLE_SIZE = 200 };

typedef struct recorded_run {
    const char *folder;
    char       *label; /* last component of the folder */
    json_t     *result;
    double      value[AT_MEASURE_COUNT];
} recorded_run;

typedef struct run_set {
    const at_parsed *parsed;
    const char      *command;
    recorded_run     runs[AT_WORDS_MAX];
    uint32_t         count;
    char             folder[AT_COMPARE_PATH_SIZE]; /* to write to */
} run_set;

/* ---- reading ------------------------------------------------------------------------------- */

static char *label_of(const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/') begin--;
    return strndup(folder + begin, end - begin);
}

static at_err open_run(recorded_run *run, const char *folder, at_fail *fail)
{
    *run = (recorded_run){.folder = folder, .label = label_of(folder)};
    if (!run->label) return at_fail_memory(fail);
    at_err err = at_run_result_read(folder, &run->result, fail);
    for (int m = 0; m < AT_MEASURE_COUNT && !err; m++)
        run->value[m] = at_measure_of(run->result, (at_measure)m);
    return err;
}

static at_err open_runs(run_set *set, at_fail *fail)
{
    const at_parsed *parsed = set->parsed;
    if (parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime report runs/my-run",
                           "report needs at least one run folder");
    AT_TRY(at_plots_check(parsed->settings.plots, fail));
    AT_TRY(at_launch_folder(parsed->settings.out, "report", set->folder, sizeof set->folder, fail));
    for (uint32_t i = 0; i < parsed->words; i++)
        AT_TRY(open_run(&set->runs[set->count++], parsed->word[i], fail));
    return AT_OK;
}

static void close_runs(run_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        free(set->runs[i].label);
        json_decref(set->runs[i].result);
    }
}

/* ---- plots --------------------------------------------------------------------------------- */

static const char *text_of(const recorded_run *run, const char *key)
{
    const char *text = json_string_value(json_object_get(run->result, key));
    return text ? text : "?";
}

/* "softmax on mnist", or the number of runs if they differ in model or data. */
static void write_title(const run_set *set, char *title, size_t size)
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

static at_err draw(const run_set *set, char *names, size_t size, at_fail *fail)
{
    char          title[TITLE_SIZE];
    at_panel_runs series[AT_WORDS_MAX];
    write_title(set, title, sizeof title);
    for (uint32_t i = 0; i < set->count; i++)
        series[i] = (at_panel_runs){
            .label = set->runs[i].label, .folders = &set->runs[i].folder, .count = 1};
    at_panel_options options = {
        .title = title, .folder = set->folder, .runs = series, .run_count = set->count};
    return at_plots_write(set->parsed->settings.plots, options, names, size, fail);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static json_t *report_json(const run_set *set)
{
    json_t *root = json_object(), *runs = json_array();
    bool    drawn = strcmp(set->parsed->settings.plots, "none") != 0;
    for (uint32_t i = 0; i < set->count; i++) {
        json_t *one = json_pack("{s:s, s:s, s:s, s:s}", "run", set->runs[i].folder, "label",
                                set->runs[i].label, "world", text_of(&set->runs[i], "world"),
                                "strategy", text_of(&set->runs[i], "strategy"));
        for (int m = 0; m < AT_MEASURE_COUNT; m++)
            json_object_set_new(one, at_measure_name[m],
                                at_measure_json((at_measure)m, set->runs[i].value[m]));
        json_object_set_new(one, "resources", at_resources_of(set->runs[i].result));
        json_array_append_new(runs, one);
    }
    json_object_set_new(root, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(root, "command", at_json_text(set->command));
    json_object_set_new(root, "folder", drawn ? at_json_text(set->folder) : json_null());
    if (json_object_set_new(root, "runs", runs)) return json_decref(root), NULL;
    return root;
}

typedef struct report_column {
    const char *head;
    at_measure  measure;
    int         digits; /* after the decimal point */
    double      factor;
} report_column;

static const report_column columns[] = {{"steps", AT_MEASURE_STEPS, 0, 1},
                                        {"seconds", AT_MEASURE_SECONDS, 3, 1},
                                        {"step ms", AT_MEASURE_STEP_SECONDS, 3, 1e3},
                                        {"samples/s", AT_MEASURE_RATE, 0, 1},
                                        {"batch", AT_MEASURE_BATCH, 1, 1},
                                        {"useful %", AT_MEASURE_USEFUL, 0, 100},
                                        {"staleness", AT_MEASURE_STALENESS, 2, 1},
                                        {"train loss", AT_MEASURE_TRAIN_LOSS, 4, 1},
                                        {"accuracy", AT_MEASURE_ACCURACY, 4, 1},
                                        {"MB out", AT_MEASURE_DOWN, 1, 1e-6},
                                        {"MB in", AT_MEASURE_UP, 1, 1e-6}};
enum { NUMBERS = sizeof columns / sizeof *columns, TRAFFIC = 2, TEXTS = 3 };

/* The last two columns are for runs with --compress, and those they are compared with. */
static int count_numbers(const run_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const json_t *options = json_object_get(set->runs[i].result, "options");
        const char   *compress = json_string_value(json_object_get(options, "compress"));
        if (compress && strcmp(compress, "none") != 0) return NUMBERS;
    }
    return NUMBERS - TRAFFIC;
}

/* The test loss takes the place of an accuracy that no run has. */
static report_column column_of(const run_set *set, int index)
{
    static const report_column test_loss = {"test loss", AT_MEASURE_TEST_LOSS, 4, 1};
    bool                       accuracy = false, loss = false;
    if (columns[index].measure != AT_MEASURE_ACCURACY) return columns[index];
    for (uint32_t i = 0; i < set->count; i++) {
        accuracy = accuracy || !isnan(set->runs[i].value[AT_MEASURE_ACCURACY]);
        loss = loss || !isnan(set->runs[i].value[AT_MEASURE_TEST_LOSS]);
    }
    return !accuracy && loss ? test_loss : columns[index];
}

static at_table *runs_table(const run_set *set)
{
    at_column heads[TEXTS + NUMBERS] = {
        {"run", AT_ALIGN_LEFT}, {"strategy", AT_ALIGN_LEFT}, {"world", AT_ALIGN_LEFT}};
    int numbers = count_numbers(set);
    for (int i = 0; i < numbers; i++)
        heads[TEXTS + i] = (at_column){column_of(set, i).head, AT_ALIGN_RIGHT};
    at_table *table = at_table_new(heads, (size_t)(TEXTS + numbers));
    for (uint32_t i = 0; table && i < set->count; i++) {
        at_table_add(table, "%s", set->runs[i].label);
        at_table_add(table, "%s", text_of(&set->runs[i], "strategy"));
        at_table_add(table, "%s", text_of(&set->runs[i], "world"));
        for (int c = 0; c < numbers; c++) {
            report_column column = column_of(set, c);
            double        value = set->runs[i].value[column.measure] * column.factor;
            if (isnan(value))
                at_table_add(table, "-");
            else
                at_table_add(table, "%.*f", column.digits, value);
        }
    }
    return table;
}

/* What the processes of the runs used; *table is NULL if nothing is known of any. */
static at_err resources_table(const run_set *set, at_table **table, at_fail *fail)
{
    const char   *label[AT_WORDS_MAX];
    const json_t *runs[AT_WORDS_MAX];
    json_t       *all = json_array();
    bool          known = false;
    for (uint32_t i = 0; i < set->count; i++) {
        json_t *one = json_pack("[{s:o}]", "resources", at_resources_of(set->runs[i].result));
        label[i] = set->runs[i].label;
        runs[i] = one;
        known = known || at_resources_known(one);
        json_array_append_new(all, one);
    }
    *table = known ? at_resources_table("run", label, runs, set->count) : NULL;
    json_decref(all);
    return known && !*table ? at_fail_memory(fail) : AT_OK;
}

/* ---- page, table and traces ----------------------------------------------------------------- */

static at_err path_in(const run_set *set, const char *name, char *path, size_t size, at_fail *fail)
{
    at_text text = at_text_in(path, size);
    at_text_add(&text, "%s/%s", set->folder, name);
    if (!text.full) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: the folder's name is too long", set->folder);
}

static at_err write_html(const run_set *set, at_fail *fail)
{
    char        title[TITLE_SIZE];
    at_page_run runs[AT_WORDS_MAX];
    for (uint32_t i = 0; i < set->count; i++)
        runs[i] = (at_page_run){.folder = set->runs[i].folder,
                                .label = set->runs[i].label,
                                .result = set->runs[i].result};
    write_title(set, title, sizeof title);
    return at_run_page_write(set->folder, title, runs, set->count, set->parsed->settings.quiet,
                             fail);
}

static at_err write_markdown(const run_set *set, at_fail *fail)
{
    char path[AT_COMPARE_PATH_SIZE + 16], title[TITLE_SIZE];
    AT_TRY(path_in(set, "report.md", path, sizeof path, fail));
    at_table *table = runs_table(set);
    FILE     *file = table ? fopen(path, "we") : NULL;
    if (!file) {
        at_table_free(table);
        return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write %s", path);
    }
    write_title(set, title, sizeof title);
    fputs("**", file);
    at_markdown_text(file, title);
    fputs("**\n\n", file);
    at_err err = at_table_print_markdown(table, file, fail);
    at_table_free(table);
    if (!err) err = resources_table(set, &table, fail);
    if (!err && table) {
        fputs("\nResources:\n\n", file);
        err = at_table_print_markdown(table, file, fail);
        at_table_free(table);
    }
    at_err closed = at_file_close(file, path, err ? NULL : fail);
    return err ? err : closed;
}

/* Writes the timeline of a run within --trace-events and --trace-from and notes on stderr what was
 * left out. A run without an event log has no timeline. */
static at_err write_timeline(const run_set *set, const char *run, const char *path, at_fail *fail)
{
    const at_settings *s = &set->parsed->settings;
    at_fail            failed = {0};
    at_trace_counts    counts = {0};
    at_trace_options   options = {.events_max = (uint64_t)s->trace_events, .from = s->trace_from};
    char               until[32];
    at_loading_line    line;
    if (s->trace_events == 0) return AT_OK;
    at_loading_line_init(&line, run, s->quiet);
    line.doing = "writing the timeline of";
    at_loading_line_follow_logs(&line, 0, 1);
    at_err err = at_trace_write(run, path, &options, &counts, &failed);
    at_loading_line_end(&line);
    if (err == AT_ERR_MISSING || err == AT_ERR_FORMAT) return AT_OK; /* the page has said it */
    if (err) return *fail = failed, err;
    if (counts.omitted > 0)
        at_say("anytime: note: %s: the trace ends at %s and omits %llu events; see "
               "--trace-events and --trace-from\n",
               run, at_text_show_duration(until, sizeof until, counts.cut_at),
               (unsigned long long)counts.omitted);
    return AT_OK;
}

static at_err write_trace(const run_set *set, uint32_t index, at_fail *fail)
{
    char path[AT_COMPARE_PATH_SIZE + 32], name[32] = "trace.json";
    if (set->count > 1) snprintf(name, sizeof name, "trace-%u.json", index + 1);
    AT_TRY(path_in(set, name, path, sizeof path, fail));
    return write_timeline(set, set->runs[index].folder, path, fail);
}

/* Writes report.html, report.md and the traces. */
static at_err write_page(const run_set *set, at_fail *fail)
{
    assert(set->count >= 1);
    AT_TRY(write_html(set, fail));
    AT_TRY(write_markdown(set, fail));
    for (uint32_t i = 0; i < set->count; i++) AT_TRY(write_trace(set, i, fail));
    return AT_OK;
}
/* ---- the verb ------------------------------------------------------------------------------ */

static at_err print_runs(const run_set *set, at_fail *fail)
{
    if (set->parsed->settings.json) return at_print_json_take(report_json(set), fail);
    at_table *resources;
    AT_TRY(at_print_table_take(runs_table(set), fail));
    AT_TRY(resources_table(set, &resources, fail));
    if (!resources) return AT_OK;
    printf("\n");
    return at_print_table_take(resources, fail);
}

static void print_files(const run_set *set, const char *plots)
{
    if (set->parsed->settings.json) return;
    if (*plots) printf("\nplots: %s, each also as .svg\n", plots);
    at_print("%spage: %s/" AT_PAGE_NAME "\n", *plots ? "" : "\n", set->folder);
    at_print("written to %s\n", set->folder);
}

/* On failure, removes the folder if it is empty. */
static at_err write_files(const run_set *set, at_fail *fail)
{
    char plots[AT_PLOTS_NAMES_SIZE] = "";
    AT_TRY(at_file_make_folder(set->folder, fail));
    at_err err = draw(set, plots, sizeof plots, fail);
    if (!err) err = write_page(set, fail);
    if (err)
        rmdir(set->folder);
    else
        print_files(set, plots);
    return err;
}

at_err at_verb_report(at_parsed *parsed, const char *command, at_fail *fail)
{
    bool     wanted = strcmp(parsed->settings.plots, "none") != 0;
    run_set *set = calloc(1, sizeof *set);
    if (!set) return at_fail_memory(fail);
    set->parsed = parsed;
    set->command = command;
    at_err err = open_runs(set, fail);
    if (!err) err = print_runs(set, fail);
    if (!err && wanted) err = write_files(set, fail);
    at_launch_drop_folder(set->folder);
    close_runs(set);
    free(set);
    return err;
}

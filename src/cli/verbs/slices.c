/* `anytime slices`: lists the points, has them measured, and writes table, JSON and plots. */
#include "cli/verbs/slices.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "cli/verbs/verbs.h"
#include "report/plot/plot.h"
#include "report/summary/stats.h"

enum { BATCH_FIRST = 4, BATCH_LAST = 512, NUMBER_MAX = 1 << 20 };

/* ---- the points ------------------------------------------------------------------------------ */

typedef struct list {
    uint32_t number[AT_SLICES_LIST_MAX];
    uint32_t count;
} list;

/* Inserts a number into the sorted list unless it is there. False when the list is full. */
static bool insert(list *numbers, uint32_t number)
{
    uint32_t at = numbers->count;
    for (uint32_t i = 0; i < numbers->count; i++)
        if (numbers->number[i] == number) return true;
    if (numbers->count == AT_SLICES_LIST_MAX) return false;
    for (; at > 0 && numbers->number[at - 1] > number; at--)
        numbers->number[at] = numbers->number[at - 1];
    numbers->number[at] = number;
    numbers->count++;
    return true;
}

/* Parses "64,128,512". */
static at_err read_list(const char *option, const char *text, list *numbers, at_fail *fail)
{
    char copy[512], *rest = copy, *word;
    *numbers = (list){.count = 0};
    if (strlen(text) >= sizeof copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s is too long", option);
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, ","))) {
        int64_t number;
        if (!at_text_whole(word, &number) || number < 1 || number > NUMBER_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, "write it as 64,128,512",
                               "--%s: '%s' is not a whole number from 1 to %d", option, word,
                               NUMBER_MAX);
        if (!insert(numbers, (uint32_t)number))
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s: more than %d numbers", option,
                               AT_SLICES_LIST_MAX);
    }
    return AT_OK;
}

static void powers_of_two(list *numbers, uint32_t first, uint32_t last)
{
    assert(first >= 1);
    *numbers = (list){.count = 0};
    for (uint32_t n = first; n <= last; n *= 2) insert(numbers, n);
}

/* Adds a point for every wanted number of slices that divides the batch. */
static void add_points(at_slices *s, uint32_t batch, const list *wanted)
{
    for (uint32_t i = 0; i < wanted->count; i++) {
        uint32_t slices = wanted->number[i];
        if (slices <= batch && batch % slices == 0)
            s->point[s->points++] =
                (at_slices_point){.batch = batch, .slices = slices, .micro_batch = batch / slices};
    }
}

static at_err reserve_times(at_slices *s, at_fail *fail)
{
    size_t count;
    bool   fits = at_size_product(s->points, s->repeats, &count);
    s->times = fits ? calloc(count, sizeof *s->times) : NULL;
    if (!s->times) return at_fail_memory(fail);
    for (uint32_t i = 0; i < s->points; i++)
        s->point[i].seconds = s->times + (size_t)i * s->repeats;
    return AT_OK;
}

/* Lists the points that --batches and --slices ask for. */
static at_err plan_points(at_slices *s, at_fail *fail)
{
    const at_settings *set = &s->parsed->settings;
    list               batches, wanted;
    powers_of_two(&batches, BATCH_FIRST, BATCH_LAST);
    powers_of_two(&wanted, 1, NUMBER_MAX);
    if (set->batches) AT_TRY(read_list("batches", set->batches, &batches, fail));
    if (set->slices) AT_TRY(read_list("slices", set->slices, &wanted, fail));
    s->repeats = (uint32_t)set->repeats;
    s->point = calloc((size_t)batches.count * wanted.count, sizeof *s->point);
    if (!s->point) return at_fail_memory(fail);
    for (uint32_t i = 0; i < batches.count; i++) add_points(s, batches.number[i], &wanted);
    if (s->points == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "add a number that divides a batch, such as 1",
                           "--slices: none of these numbers divides a batch");
    return reserve_times(s, fail);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static at_stats stats_of(const at_slices *s, const at_slices_point *point)
{
    at_stats stats = {0};
    assert(s->done >= 1 && !point->left_out);
    for (uint32_t i = 0; i < s->done; i++) at_stats_add(&stats, point->seconds[i]);
    return stats;
}

static double best_time(const at_slices *s, const at_slices_point *point)
{
    return stats_of(s, point).min;
}

/* Range of the times relative to the slowest. */
static double spread_of(const at_slices *s, const at_slices_point *point)
{
    at_stats stats = stats_of(s, point);
    return (stats.max - stats.min) / stats.max;
}

/* Time relative to the unsplit batch; NAN if that was not measured. */
static double relative_time(const at_slices *s, const at_slices_point *point)
{
    for (uint32_t i = 0; i < s->points; i++) {
        const at_slices_point *whole = &s->point[i];
        if (whole->batch == point->batch && whole->slices == 1 && !whole->left_out)
            return best_time(s, point) / best_time(s, whole);
    }
    return NAN;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *point_json(const at_slices *s, const at_slices_point *p)
{
    double  best = best_time(s, p), relative = relative_time(s, p);
    json_t *times = json_array();
    for (uint32_t i = 0; i < s->done; i++) json_array_append_new(times, json_real(p->seconds[i]));
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o}", "batch", (json_int_t)p->batch,
                     "slices", (json_int_t)p->slices, "micro_batch", (json_int_t)p->micro_batch,
                     "step_seconds", best, "spread", spread_of(s, p), "sample_seconds",
                     best / p->batch, "relative",
                     isnan(relative) ? json_null() : json_real(relative), "repeats", times);
}

/* slices.json as a document; NULL when out of memory. */
static json_t *document_of(const at_slices *s)
{
    const at_settings *set = &s->parsed->settings;
    json_t            *root = json_object(), *points = json_array(), *left_out = json_array();
    for (uint32_t i = 0; i < s->points; i++) {
        const at_slices_point *p = &s->point[i];
        if (p->left_out)
            json_array_append_new(left_out,
                                  json_pack("{s:I, s:I, s:I}", "batch", (json_int_t)p->batch,
                                            "slices", (json_int_t)p->slices, "micro_batch",
                                            (json_int_t)p->micro_batch));
        else
            json_array_append_new(points, point_json(s, p));
    }
    json_object_set_new(root, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(root, "command", json_string(s->command));
    json_object_set_new(root, "options", at_options_echo(s->parsed, AT_FOR_SLICES));
    json_object_set_new(root, "machine", json_pack("{s:I}", "cores", at_machine_cores()));
    json_object_set_new(root, "model", json_string(set->model));
    json_object_set_new(root, "parameters", json_integer((json_int_t)s->parameters));
    json_object_set_new(root, "data", json_string(set->data));
    json_object_set_new(root, "engine", json_string(s->engine));
    json_object_set_new(root, "folder", json_string(s->folder));
    json_object_set_new(root, "repeats", json_integer(s->done));
    json_object_set_new(root, "left_out", left_out);
    if (json_object_set_new(root, "points", points)) return json_decref(root), NULL;
    return root;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void add_row(at_table *table, const at_slices *s, const at_slices_point *p)
{
    double relative = relative_time(s, p), best = best_time(s, p);
    at_table_add(table, "%u", p->batch);
    at_table_add(table, "%u", p->slices);
    at_table_add(table, "%u", p->micro_batch);
    at_table_add(table, "%.3f", 1e3 * best);
    at_table_add(table, "%.2f", 1e6 * best / p->batch);
    if (isnan(relative))
        at_table_add(table, "-");
    else
        at_table_add(table, "%.3f", relative);
    at_table_add(table, "%.1f", 100 * spread_of(s, p));
}

static at_err print_points(const at_slices *s, at_fail *fail)
{
    static const at_column columns[] = {
        {"batch", AT_ALIGN_RIGHT},         {"slices", AT_ALIGN_RIGHT},
        {"micro-batch", AT_ALIGN_RIGHT},   {"step ms", AT_ALIGN_RIGHT},
        {"us per sample", AT_ALIGN_RIGHT}, {"relative to 1 slice", AT_ALIGN_RIGHT},
        {"spread %", AT_ALIGN_RIGHT}};
    const at_settings *set = &s->parsed->settings;
    at_print("%s on %s: %zu parameters, engine %s, best of %u\n\n", set->model, set->data,
             s->parameters, s->engine, s->done);
    at_table *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; table && i < s->points; i++)
        if (!s->point[i].left_out) add_row(table, s, &s->point[i]);
    return at_print_table_take(table, fail);
}

/* ---- the plots ------------------------------------------------------------------------------- */

/* One curve per batch size, in both plots. */
typedef struct curves {
    at_series step[AT_SLICES_LIST_MAX], sample[AT_SLICES_LIST_MAX];
    char      name[AT_SLICES_LIST_MAX][24];
    size_t    count;
    double   *slices, *micro_batch, *step_seconds, *sample_seconds; /* of all points */
} curves;

static void add_curve(curves *c, uint32_t batch, size_t first, size_t count)
{
    assert(c->count < AT_SLICES_LIST_MAX);
    char *name = c->name[c->count];
    snprintf(name, sizeof c->name[0], "batch %u", batch);
    c->step[c->count] = (at_series){name, c->slices + first, c->step_seconds + first, count};
    c->sample[c->count] =
        (at_series){name, c->micro_batch + first, c->sample_seconds + first, count};
    c->count++;
}

static void fill_curves(curves *c, const at_slices *s)
{
    size_t first = 0;
    for (uint32_t i = 0; i < s->points; i++) {
        const at_slices_point *p = &s->point[i];
        double                 best = p->left_out ? NAN : best_time(s, p);
        c->slices[i] = p->slices;
        c->micro_batch[i] = p->micro_batch;
        c->step_seconds[i] = best;
        c->sample_seconds[i] = best / p->batch;
        if (i + 1 < s->points && s->point[i + 1].batch == p->batch) continue;
        add_curve(c, p->batch, first, i + 1 - first);
        first = i + 1;
    }
}

static at_err draw_curves(const curves *c, const char *title, const char *folder, at_fail *fail)
{
    at_plot       step = {.title = title,
                          .x_label = "micro-batches per batch",
                          .y_label = "time per step",
                          .x_log = true,
                          .y_log = true,
                          .y_time = true,
                          .series = c->step,
                          .series_count = c->count};
    at_plot       sample = step;
    at_named_plot plots[2] = {
        {.name = "step-time", .heading = "time per step", .plot = step, .alone = true},
        {.name = "sample-time", .heading = "time per sample", .plot = sample, .alone = true}};
    plots[1].plot.x_label = "samples per micro-batch";
    plots[1].plot.y_label = "time per sample";
    plots[1].plot.series = c->sample;
    at_sheet sheet = {.name = "slices", .title = title, .plots = plots, .count = 2, .columns = 2};
    return at_plot_write_all(plots, 2, &sheet, 1, folder, fail);
}

/* Draws both plots, and a page with the two of them, into the folder. */
static at_err plot(const at_slices *s, at_fail *fail)
{
    char    title[200];
    at_text text = at_text_in(title, sizeof title);
    curves  c = {.count = 0};
    double *numbers = calloc(4 * (size_t)s->points, sizeof *numbers);
    if (!numbers) return at_fail_memory_for(fail, "for the plots");
    c.slices = numbers;
    c.micro_batch = c.slices + s->points;
    c.step_seconds = c.micro_batch + s->points;
    c.sample_seconds = c.step_seconds + s->points;
    at_text_add(&text, "%s on %s", s->parsed->settings.model, s->parsed->settings.data);
    fill_curves(&c, s);
    at_err err = draw_curves(&c, title, s->folder, fail);
    free(numbers);
    return err;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static at_err open_slices(at_slices *s, at_fail *fail)
{
    const at_parsed *parsed = s->parsed;
    AT_TRY(at_options_refuse_words(parsed, fail));
    AT_TRY(at_plots_check(parsed->settings.plots, fail));
    AT_TRY(at_launch_folder(parsed->settings.out, "slices", s->folder, sizeof s->folder, fail));
    return plan_points(s, fail);
}

static at_err write_json(const at_slices *s, at_fail *fail)
{
    char    path[AT_SLICES_PATH_SIZE + 16];
    at_text name = at_text_in(path, sizeof path);
    json_t *document = document_of(s);
    char   *text = document ? json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(document);
    if (!text) return at_fail_set(fail, AT_ERR_FAILED, NULL, "the result cannot be written");
    at_text_add(&name, "%s/slices.json", s->folder);
    at_err err = at_file_write(path, text, strlen(text), fail);
    free(text);
    return err;
}

/* Missing plots are a warning, because the numbers are there; a full disk is an error. */
static at_err draw(const at_slices *s, at_fail *fail)
{
    at_fail failed = {0};
    if (strcmp(s->parsed->settings.plots, "none") == 0 || !plot(s, &failed)) return AT_OK;
    if (failed.err == AT_ERR_IO) return *fail = failed, failed.err;
    at_plots_warn(&failed);
    return AT_OK;
}

static at_err show(const at_slices *s, at_fail *fail)
{
    bool json = s->parsed->settings.json;
    AT_TRY(at_file_make_folder(s->folder, fail));
    AT_TRY(write_json(s, fail));
    if (json)
        AT_TRY(at_print_json_take(document_of(s), fail));
    else
        AT_TRY(print_points(s, fail));
    AT_TRY(draw(s, fail));
    if (!json) at_print("written to %s\n", s->folder);
    return AT_OK;
}

/* A stopped measurement shows its complete repeats; before the first one, nothing is shown or
 * written. */
at_err at_verb_slices(at_parsed *parsed, const char *command, at_fail *fail)
{
    at_fail   showing = {0};
    at_slices s = {.parsed = parsed, .command = command};
    at_err    err = open_slices(&s, fail);
    if (!err) err = at_slices_measure(&s, fail);
    if ((!err || err == AT_ERR_STOPPED) && s.done > 0 && show(&s, &showing) && !err) {
        *fail = showing;
        err = showing.err;
    }
    at_launch_drop_folder(s.folder);
    free(s.point);
    free(s.times);
    return err;
}

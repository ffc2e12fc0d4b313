/* What the measurements of `anytime slices` came to: JSON, a table, two plots. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/machine.h"
#include "base/text.h"
#include "cli/print.h"
#include "cli/verbs/slices.h"
#include "report/plot/plot.h"
#include "report/summary/stats.h"

/* ---- numbers --------------------------------------------------------------------------------- */

static at_stats stats_of(const at_slices *s, const at_slices_point *point)
{
    at_stats stats = {0};
    assert(s->done >= 1 && !point->left_out);
    for (uint32_t i = 0; i < s->done; i++) at_stats_add(&stats, point->seconds[i]);
    return stats;
}

double at_slices_best(const at_slices *s, const at_slices_point *point)
{
    return stats_of(s, point).min;
}

double at_slices_spread(const at_slices *s, const at_slices_point *point)
{
    at_stats stats = stats_of(s, point);
    return (stats.max - stats.min) / stats.max;
}

double at_slices_relative(const at_slices *s, const at_slices_point *point)
{
    for (uint32_t i = 0; i < s->points; i++) {
        const at_slices_point *whole = &s->point[i];
        if (whole->batch == point->batch && whole->slices == 1 && !whole->left_out)
            return at_slices_best(s, point) / at_slices_best(s, whole);
    }
    return NAN;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *point_json(const at_slices *s, const at_slices_point *p)
{
    double  best = at_slices_best(s, p), relative = at_slices_relative(s, p);
    json_t *times = json_array();
    for (uint32_t i = 0; i < s->done; i++) json_array_append_new(times, json_real(p->seconds[i]));
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o}", "batch", (json_int_t)p->batch,
                     "slices", (json_int_t)p->slices, "micro_batch", (json_int_t)p->micro_batch,
                     "step_seconds", best, "spread", at_slices_spread(s, p), "sample_seconds",
                     best / p->batch, "relative",
                     isnan(relative) ? json_null() : json_real(relative), "repeats", times);
}

json_t *at_slices_json(const at_slices *s)
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
    double relative = at_slices_relative(s, p), best = at_slices_best(s, p);
    at_table_add(table, "%u", p->batch);
    at_table_add(table, "%u", p->slices);
    at_table_add(table, "%u", p->micro_batch);
    at_table_add(table, "%.3f", 1e3 * best);
    at_table_add(table, "%.2f", 1e6 * best / p->batch);
    if (isnan(relative))
        at_table_add(table, "-");
    else
        at_table_add(table, "%.3f", relative);
    at_table_add(table, "%.1f", 100 * at_slices_spread(s, p));
}

at_err at_slices_print(const at_slices *s, at_fail *fail)
{
    static const at_column columns[] = {
        {"batch", AT_ALIGN_RIGHT},       {"slices", AT_ALIGN_RIGHT},
        {"micro-batch", AT_ALIGN_RIGHT}, {"step ms", AT_ALIGN_RIGHT},
        {"us a sample", AT_ALIGN_RIGHT}, {"against one slice", AT_ALIGN_RIGHT},
        {"spread %", AT_ALIGN_RIGHT}};
    const at_settings *set = &s->parsed->settings;
    printf("%s on %s: %zu parameters, computed by %s, best of %u\n\n", set->model, set->data,
           s->parameters, s->engine, s->done);
    at_table *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; table && i < s->points; i++)
        if (!s->point[i].left_out) add_row(table, s, &s->point[i]);
    return at_print_table_take(table, fail);
}

/* ---- the plots ------------------------------------------------------------------------------- */

/* One curve a batch, in two ways of looking at it. */
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
        double                 best = p->left_out ? NAN : at_slices_best(s, p);
        c->slices[i] = p->slices;
        c->micro_batch[i] = p->micro_batch;
        c->step_seconds[i] = best;
        c->sample_seconds[i] = best / p->batch;
        if (i + 1 < s->points && s->point[i + 1].batch == p->batch) continue;
        add_curve(c, p->batch, first, i + 1 - first);
        first = i + 1;
    }
}

static at_err draw(const curves *c, const char *title, const char *folder, at_fail *fail)
{
    at_plot       step = {.title = title,
                          .x_label = "number of slices",
                          .y_label = "time of a step",
                          .x_log = true,
                          .y_log = true,
                          .y_time = true,
                          .series = c->step,
                          .series_count = c->count};
    at_plot       sample = step;
    at_named_plot pictures[2] = {
        {.name = "step-time", .heading = "time of a step", .plot = step, .alone = true},
        {.name = "sample-time", .heading = "time of a sample", .plot = sample, .alone = true}};
    pictures[1].plot.x_label = "samples in a slice";
    pictures[1].plot.y_label = "time of a sample";
    pictures[1].plot.series = c->sample;
    at_sheet sheet = {
        .name = "slices", .title = title, .plots = pictures, .count = 2, .columns = 2};
    return at_plot_write_all(pictures, 2, &sheet, 1, folder, fail);
}

at_err at_slices_plot(const at_slices *s, at_fail *fail)
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
    at_err err = draw(&c, title, s->folder, fail);
    free(numbers);
    return err;
}

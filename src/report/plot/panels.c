#include "report/plot/panels.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/plot/bins.h"
#include "report/plot/csv_columns.h"
#include "report/plot/curve.h"
#include "report/plot/panel_list.h"
#include "report/plot/plot.h"

enum { PATH_SIZE = 4096 + 256, TITLE_SIZE = 256 };

/* ---- what was read ------------------------------------------------------------------------- */

typedef struct drawing {
    const at_panel_options *options;
    at_sample              *sample[AT_PANEL_QUANTITIES]; /* of each run_count */
    at_curve               *curve[AT_PANELS];
    at_outline             *outline[AT_PANELS];
    at_series              *series[AT_PANELS];
    double                 *mean[AT_PANELS];
    char                    title[2][TITLE_SIZE]; /* of all runs; of the first ones */
} drawing;

static bool reserve(drawing *d)
{
    size_t count = d->options->run_count;
    bool   full = true;
    assert(count > 0);
    for (int i = 0; i < AT_PANEL_QUANTITIES; i++)
        full = (d->sample[i] = calloc(count, sizeof *d->sample[i])) && full;
    for (int i = 0; i < AT_PANELS; i++) {
        full = (d->curve[i] = calloc(count, sizeof *d->curve[i])) && full;
        full = (d->outline[i] = calloc(count, sizeof *d->outline[i])) && full;
        full = (d->series[i] = calloc(count, sizeof *d->series[i])) && full;
        full = (d->mean[i] = calloc(count, sizeof *d->mean[i])) && full;
    }
    return full;
}

static void release(drawing *d)
{
    for (int i = 0; i < AT_PANEL_QUANTITIES; i++) free(d->sample[i]);
    for (int i = 0; i < AT_PANELS; i++) {
        free(d->curve[i]);
        free(d->outline[i]);
        free(d->series[i]);
        free(d->mean[i]);
    }
}

static at_err path_in(char *path, const char *folder, const char *name, at_fail *fail)
{
    at_text text = at_text_in(path, PATH_SIZE);
    at_text_add(&text, "%s/%s", folder, name);
    if (!text.full) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: the folder's name is too long", folder);
}

/* ---- samples ------------------------------------------------------------------------------- */

typedef void take(drawing *d, size_t run, const double *values);

enum { MASTER_STEP, WORKER_STEP, NUM_SAMPLES, SLEEP, COMPUTED, ROUND_FIELDS };
static const char *const round_names[ROUND_FIELDS] = {
    [MASTER_STEP] = "master_step", [WORKER_STEP] = "worker_master_step",
    [NUM_SAMPLES] = "num_samples", [SLEEP] = "sleep_time",
    [COMPUTED] = "compute_time",
};

static void take_round(drawing *d, size_t run, const double *values)
{
    at_sample_add(&d->sample[AT_PANEL_DELAY][run], values[SLEEP]);
    at_sample_add(&d->sample[AT_PANEL_COMPUTE][run], values[COMPUTED]);
    at_sample_add(&d->sample[AT_PANEL_SAMPLES][run], values[NUM_SAMPLES]);
    at_sample_add(&d->sample[AT_PANEL_STALENESS][run], values[MASTER_STEP] - values[WORKER_STEP]);
}

enum { WORKER_COUNT, WAIT_TIME, TOTAL_SAMPLES, STEP_FIELDS };
static const char *const step_names[STEP_FIELDS] = {
    [WORKER_COUNT] = "worker_count",
    [WAIT_TIME] = "wait_time",
    [TOTAL_SAMPLES] = "total_samples",
};

static void take_step(drawing *d, size_t run, const double *values)
{
    at_sample_add(&d->sample[AT_PANEL_MESSAGES][run], values[WORKER_COUNT]);
    at_sample_add(&d->sample[AT_PANEL_WAIT][run], values[WAIT_TIME]);
    at_sample_add(&d->sample[AT_PANEL_BATCH][run], values[TOTAL_SAMPLES]);
}

static const struct {
    const char        *name;
    const char *const *columns;
    size_t             count;
    take              *take;
} tables[] = {{"worker_stats.csv", round_names, ROUND_FIELDS, take_round},
              {"collect_stats.csv", step_names, STEP_FIELDS, take_step}};
enum { TABLES = sizeof tables / sizeof *tables };

static at_err read_lines(drawing *d, size_t run, at_csv_reader *table, take *take_values,
                         at_fail *fail)
{
    double values[AT_CSV_READER_MAX];
    for (bool more = true;;) {
        AT_TRY(at_csv_reader_next(table, values, &more, fail));
        if (!more) return AT_OK;
        take_values(d, run, values);
    }
}

static at_err read_samples(drawing *d, size_t run, const char *folder, at_fail *fail)
{
    for (int i = 0; i < TABLES; i++) {
        char          path[PATH_SIZE];
        at_csv_reader table;
        at_fail       here = {0};
        AT_TRY(path_in(path, folder, tables[i].name, fail));
        at_err err = at_csv_reader_open(&table, path, tables[i].columns, tables[i].count, &here);
        if (!err) err = read_lines(d, run, &table, tables[i].take, &here);
        at_csv_reader_close(&table);
        if (err && err != AT_ERR_MISSING) return *fail = here, err;
    }
    return AT_OK;
}

/* ---- curves -------------------------------------------------------------------------------- */

/* The curve of one folder; empty when there is no such table. */
static at_err read_curve(const at_panel *p, const char *folder, at_curve *curve, at_fail *fail)
{
    char    path[PATH_SIZE];
    at_fail here = {0};
    AT_TRY(path_in(path, folder, p->table, fail));
    at_err err = at_curve_read_from(path, &p->source, curve, &here);
    if (err == AT_ERR_MISSING) return AT_OK;
    if (err) *fail = here;
    return err;
}

/* The mean over the runs' folders, or the first one's. */
static at_err read_curves(const at_panel *p, const at_panel_runs *runs, at_curve *mean,
                          at_fail *fail)
{
    size_t    count = p->mean || runs->count == 0 ? runs->count : 1;
    at_curve *each = calloc(count + 1, sizeof *each);
    at_err    err = AT_OK;
    if (!each) return at_fail_memory_for(fail, "for the plots");
    for (size_t i = 0; i < count && !err; i++)
        err = read_curve(p, runs->folders[i], &each[i], fail);
    if (!err) at_curve_mean(each, count, mean);
    free(each);
    return err;
}

static at_err read_runs(drawing *d, size_t run, at_fail *fail)
{
    const at_panel_runs *runs = &d->options->runs[run];
    for (size_t i = 0; i < runs->count; i++) AT_TRY(read_samples(d, run, runs->folders[i], fail));
    for (int i = 0; i < AT_PANELS; i++)
        if (at_panels[i].table) AT_TRY(read_curves(&at_panels[i], runs, &d->curve[i][run], fail));
    return AT_OK;
}

/* ---- pictures ------------------------------------------------------------------------------ */

/* A delay that nobody had is said in words: a column at 0 would look like one. */
static bool is_all_zero(const at_sample *samples, size_t count)
{
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        if (samples[i].all.min != 0 || samples[i].all.max != 0) return false;
        some = some || samples[i].count > 0;
    }
    return some;
}

static void fill_histogram(drawing *d, int i, at_plot *plot)
{
    const at_panel *p = &at_panels[i];
    at_sample      *samples = d->sample[p->of];
    size_t          count = d->options->run_count;
    assert(!p->table);
    plot->kind = AT_PLOT_STEPS;
    plot->mean = d->mean[i];
    if (p->of == AT_PANEL_DELAY && is_all_zero(samples, count)) {
        plot->note = "no induced delay";
        return;
    }
    at_bins bins = at_bins_choose(samples, count);
    for (size_t run = 0; run < count; run++) {
        at_outline *o = &d->outline[i][run];
        at_bins_outline(&bins, &samples[run], p->density ? 1 : 100, p->density, o);
        d->mean[i][run] = samples[run].count > 0 ? samples[run].all.mean : NAN;
        d->series[i][run] = (at_series){.x = o->x, .y = o->y, .count = o->count};
    }
}

static void fill_curves(drawing *d, int i)
{
    assert(at_panels[i].table);
    for (size_t run = 0; run < d->options->run_count; run++) {
        const at_curve *c = &d->curve[i][run];
        d->series[i][run] = (at_series){.x = c->x, .y = c->y, .count = c->count};
    }
}

static at_named_plot make_picture(drawing *d, int i)
{
    const at_panel *p = &at_panels[i];
    bool            first = p->table && !p->mean;
    at_plot         plot = {.title = d->title[first],
                            .x_label = p->x_label,
                            .y_label = p->y_label,
                            .x_time = p->x_time,
                            .y_time = p->y_time,
                            .y_rate = p->density,
                            .x_whole = p->x_whole,

                            .legend = true,
                            .series = d->series[i],
                            .series_count = d->options->run_count,
                            .note = p->note};
    if (p->table)
        fill_curves(d, i);
    else
        fill_histogram(d, i, &plot);
    for (size_t run = 0; run < d->options->run_count; run++)
        d->series[i][run].name = d->options->runs[run].label;
    return (at_named_plot){
        .name = p->name, .heading = p->heading, .plot = plot, .alone = p->alone || d->options->all};
}

static void make_titles(drawing *d)
{
    size_t most = 0;
    for (size_t i = 0; i < d->options->run_count; i++)
        if (d->options->runs[i].count > most) most = d->options->runs[i].count;
    at_text mean = at_text_in(d->title[0], TITLE_SIZE), one = at_text_in(d->title[1], TITLE_SIZE);
    at_text_add(&mean, "%s", d->options->title);
    at_text_add(&one, "%s", d->options->title);
    if (most > 1) at_text_add(&mean, ", %zu runs each", most);
    if (most > 1) at_text_add(&one, ", the first of %zu runs", most);
}

static at_err draw(drawing *d, at_text *names, at_fail *fail)
{
    at_named_plot  pictures[AT_PANELS];
    const at_sheet sheets[] = {{.name = "panels",
                                .title = d->title[0],
                                .pictures = pictures,
                                .count = AT_PAGE_PANELS,
                                .columns = 3},
                               {.name = "histograms",
                                .title = d->title[0],
                                .pictures = pictures + AT_PAGE_PANELS,
                                .count = AT_PAGE_HISTOGRAMS,
                                .columns = 2}};
    size_t         sheet_count = sizeof sheets / sizeof *sheets;
    make_titles(d);
    for (int i = 0; i < AT_PANELS; i++) pictures[i] = make_picture(d, i);
    AT_TRY(at_plot_write_all(pictures, AT_PANELS, sheets, sheet_count, d->options->folder, fail));
    for (size_t i = 0; i < sheet_count; i++)
        if (at_sheet_has_points(&sheets[i])) at_text_add(names, "%s.png ", sheets[i].name);
    for (int i = 0; i < AT_PANELS; i++)
        if (pictures[i].alone && at_plot_has_points(&pictures[i].plot))
            at_text_add(names, "%s.png ", pictures[i].name);
    if (names->used > 0) names->bytes[--names->used] = '\0'; /* the last blank */
    return AT_OK;
}

at_err at_panels_write(const at_panel_options *options, char *names, size_t size, at_fail *fail)
{
    drawing d = {.options = options};
    at_text list = at_text_in(names, size);
    at_err  err = AT_OK;
    if (options->run_count == 0) return AT_OK;
    if (!reserve(&d)) err = at_fail_memory_for(fail, "for the plots");
    for (size_t i = 0; i < options->run_count && !err; i++) err = read_runs(&d, i, fail);
    if (!err) err = draw(&d, &list, fail);
    release(&d);
    return err;
}

#include "report/plot/panels.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/plot/bins.h"
#include "report/plot/csv_reader.h"
#include "report/plot/curve.h"
#include "report/plot/plot.h"

enum { TITLE_SIZE = 256 };

/* ---- list of panels ------------------------------------------------------------------------ */

/* Quantities with a histogram, from worker_stats.csv and collect_stats.csv. */
typedef enum quantity {
    DELAY,
    COMPUTE,
    SAMPLES,
    STALENESS,
    MESSAGES,
    WAIT,
    BATCH,
    QUANTITIES
} quantity;

typedef struct panel {
    const char *name, *heading, *x_label, *y_label;
    bool        x_time, y_time, x_whole; /* as in at_plot */

    /* A curve: */
    const char     *file; /* NULL: it is a histogram */
    at_curve_source source;
    bool            mean; /* over all runs; otherwise only the first run */

    /* A histogram: */
    quantity of;
    bool     density; /* normalized to area 1 */

    bool        alone; /* always also a plot of its own */
    const char *note;  /* shown instead when there is no data */
} panel;

/* The first nine are the sheet `panels`, row by row; the next four are `histograms`. */
enum { SHEET_PANELS = 9, SHEET_HISTOGRAMS = 4, PANELS = 14 };

#define HUB_CSV     "master_stats.csv"
#define COLLECT_CSV "collect_stats.csv"
#define NO_ROUNDS   "not recorded (needs --record full)"
#define NO_STEPS    "not recorded"

static const panel panels[PANELS] = {
    {.name = "delay-density",
     .heading = "Induced delay",
     .x_label = "induced delay per round",
     .y_label = "density",
     .x_time = true,
     .of = DELAY,
     .density = true,
     .note = NO_ROUNDS},
    {.name = "loss-vs-time",
     .heading = "Training loss vs. time",
     .x_label = "time",
     .y_label = "training loss",
     .x_time = true,
     .file = HUB_CSV,
     .source = {.x = "time", .y = "loss"},
     .mean = true,
     .alone = true,
     .note = NO_STEPS},
    {.name = "loss-vs-step",
     .heading = "Training loss vs. step",
     .x_label = "step",
     .y_label = "training loss",
     .file = HUB_CSV,
     .source = {.x = "step", .y = "loss"},
     .note = NO_STEPS},
    {.name = "compute-time",
     .heading = "Compute time per round",
     .x_label = "compute time per round, including delay",
     .y_label = "rounds (%)",
     .x_time = true,
     .of = COMPUTE,
     .note = NO_ROUNDS},
    {.name = "accuracy-vs-time",
     .heading = "Test accuracy vs. time",
     .x_label = "time",
     .y_label = "test accuracy",
     .x_time = true,
     .file = HUB_CSV,
     .source = {.x = "time", .y = "accuracy"},
     .mean = true,
     .alone = true,
     .note = "no accuracy measured"},
    {.name = "learning-rate-vs-step",
     .heading = "Learning rate vs. step",
     .x_label = "step",
     .y_label = "learning rate",
     .file = HUB_CSV,
     .source = {.x = "step", .y = "learning_rate"},
     .note = NO_STEPS},
    {.name = "worker-batch",
     .heading = "Batch size per round",
     .x_label = "samples per round",
     .y_label = "rounds (%)",
     .x_whole = true,
     .of = SAMPLES,
     .note = NO_ROUNDS},
    {.name = "samples-vs-step",
     .heading = "Samples used vs. step",
     .x_label = "step",
     .y_label = "samples used",
     .file = COLLECT_CSV,
     .source = {.x = "step", .y = "total_samples", .sum = true},
     .note = NO_STEPS},
    {.name = "time-vs-step",
     .heading = "Elapsed time vs. step",
     .x_label = "step",
     .y_label = "elapsed time",
     .y_time = true,
     .file = HUB_CSV,
     .source = {.x = "step", .y = "time", .where = "learning_rate"},
     .note = NO_STEPS},

    {.name = "staleness",
     .heading = "Gradient staleness",
     .x_label = "staleness (steps)",
     .y_label = "gradients (%)",
     .x_whole = true,
     .of = STALENESS,
     .note = NO_ROUNDS},
    {.name = "messages-per-step",
     .heading = "Gradients per step",
     .x_label = "gradients per step",
     .y_label = "steps (%)",
     .x_whole = true,
     .of = MESSAGES,
     .note = NO_STEPS},
    {.name = "wait-time",
     .heading = "Time between steps",
     .x_label = "time between steps",
     .y_label = "steps (%)",
     .x_time = true,
     .of = WAIT,
     .note = NO_STEPS},
    {.name = "master-batch",
     .heading = "Batch size per step",
     .x_label = "samples per step",
     .y_label = "steps (%)",
     .x_whole = true,
     .of = BATCH,
     .note = NO_STEPS},

    {.name = "test-loss-vs-time",
     .heading = "Test loss vs. time",
     .x_label = "time",
     .y_label = "test loss",
     .x_time = true,
     .file = HUB_CSV,
     .source = {.x = "time", .y = "test_loss"},
     .mean = true,
     .alone = true},
};

/* ---- memory -------------------------------------------------------------------------------- */

typedef struct drawing {
    const at_panel_options *options;
    at_reservoir           *reservoir[QUANTITIES]; /* each (run_count), as are the next four */
    at_curve               *curve[PANELS];
    at_outline             *outline[PANELS];
    at_series              *series[PANELS];
    double                 *mean[PANELS];
    char                    title[2][TITLE_SIZE]; /* of means over all runs; of first runs */
} drawing;

static bool reserve(drawing *d)
{
    size_t count = d->options->run_count;
    bool   allocated = true;
    assert(count > 0);
    for (int i = 0; i < QUANTITIES; i++)
        allocated = (d->reservoir[i] = calloc(count, sizeof *d->reservoir[i])) && allocated;
    for (int i = 0; i < PANELS; i++) {
        allocated = (d->curve[i] = calloc(count, sizeof *d->curve[i])) && allocated;
        allocated = (d->outline[i] = calloc(count, sizeof *d->outline[i])) && allocated;
        allocated = (d->series[i] = calloc(count, sizeof *d->series[i])) && allocated;
        allocated = (d->mean[i] = calloc(count, sizeof *d->mean[i])) && allocated;
    }
    return allocated;
}

static void release(drawing *d)
{
    for (int i = 0; i < QUANTITIES; i++) free(d->reservoir[i]);
    for (int i = 0; i < PANELS; i++) {
        free(d->curve[i]);
        free(d->outline[i]);
        free(d->series[i]);
        free(d->mean[i]);
    }
}

/* ---- histogram values ---------------------------------------------------------------------- */

typedef void add_values(drawing *d, size_t run, const double *values);

enum { HUB_STEP, WORKER_STEP, NUM_SAMPLES, SLEEP, COMPUTED, ROUND_FIELDS };
static const char *const round_columns[ROUND_FIELDS] = {
    [HUB_STEP] = "master_step", [WORKER_STEP] = "worker_master_step", [NUM_SAMPLES] = "num_samples",
    [SLEEP] = "sleep_time",     [COMPUTED] = "compute_time",
};

static void add_round(drawing *d, size_t run, const double *values)
{
    at_reservoir_add(&d->reservoir[DELAY][run], values[SLEEP]);
    at_reservoir_add(&d->reservoir[COMPUTE][run], values[COMPUTED]);
    at_reservoir_add(&d->reservoir[SAMPLES][run], values[NUM_SAMPLES]);
    at_reservoir_add(&d->reservoir[STALENESS][run], values[HUB_STEP] - values[WORKER_STEP]);
}

enum { WORKER_COUNT, WAIT_TIME, TOTAL_SAMPLES, STEP_FIELDS };
static const char *const step_columns[STEP_FIELDS] = {
    [WORKER_COUNT] = "worker_count",
    [WAIT_TIME] = "wait_time",
    [TOTAL_SAMPLES] = "total_samples",
};

static void add_step(drawing *d, size_t run, const double *values)
{
    at_reservoir_add(&d->reservoir[MESSAGES][run], values[WORKER_COUNT]);
    at_reservoir_add(&d->reservoir[WAIT][run], values[WAIT_TIME]);
    at_reservoir_add(&d->reservoir[BATCH][run], values[TOTAL_SAMPLES]);
}

static const struct {
    const char        *name;
    const char *const *columns;
    size_t             count;
    add_values        *add;
} files[] = {{"worker_stats.csv", round_columns, ROUND_FIELDS, add_round},
             {"collect_stats.csv", step_columns, STEP_FIELDS, add_step}};
enum { FILES = sizeof files / sizeof *files };

static at_err read_rows(drawing *d, size_t run, at_csv_reader *reader, add_values *add,
                        at_fail *fail)
{
    double values[AT_CSV_READER_MAX];
    for (bool more = true;;) {
        AT_TRY(at_csv_reader_next(reader, values, &more, fail));
        if (!more) return AT_OK;
        add(d, run, values);
    }
}

static at_err read_values(drawing *d, size_t run, const char *folder, at_fail *fail)
{
    for (int i = 0; i < FILES; i++) {
        at_csv_reader reader;
        at_fail       here = {0};
        at_err        err = at_csv_reader_open(&reader, folder, files[i].name, files[i].columns,
                                               files[i].count, &here);
        if (!err) err = read_rows(d, run, &reader, files[i].add, &here);
        at_csv_reader_close(&reader);
        if (err && err != AT_ERR_MISSING) return *fail = here, err;
    }
    return AT_OK;
}

/* ---- curves -------------------------------------------------------------------------------- */

/* The curve of one run; empty when the file was not recorded. */
static at_err read_curve(const panel *p, const char *folder, at_curve *curve, at_fail *fail)
{
    at_fail here = {0};
    at_err  err = at_curve_read(folder, p->file, &p->source, curve, &here);
    if (err == AT_ERR_MISSING) return AT_OK;
    if (err) *fail = here;
    return err;
}

/* The mean over the runs, or the curve of the first run. */
static at_err read_curves(const panel *p, const at_panel_runs *runs, at_curve *mean, at_fail *fail)
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
    for (size_t i = 0; i < runs->count; i++) AT_TRY(read_values(d, run, runs->folders[i], fail));
    for (int i = 0; i < PANELS; i++)
        if (panels[i].file) AT_TRY(read_curves(&panels[i], runs, &d->curve[i][run], fail));
    return AT_OK;
}

/* ---- plots --------------------------------------------------------------------------------- */

/* Without any delay, a note is clearer than a single bar at 0. */
static bool is_all_zero(const at_reservoir *reservoirs, size_t count)
{
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        if (reservoirs[i].all.min != 0 || reservoirs[i].all.max != 0) return false;
        some = some || reservoirs[i].count > 0;
    }
    return some;
}

static void fill_histogram(drawing *d, int i, at_plot *plot)
{
    const panel  *p = &panels[i];
    at_reservoir *reservoirs = d->reservoir[p->of];
    size_t        count = d->options->run_count;
    assert(!p->file);
    plot->kind = AT_PLOT_STEPS;
    plot->mean = d->mean[i];
    if (p->of == DELAY && is_all_zero(reservoirs, count)) {
        plot->note = "no induced delay";
        return;
    }
    at_bins bins = at_bins_choose(reservoirs, count);
    for (size_t run = 0; run < count; run++) {
        at_outline *o = &d->outline[i][run];
        at_bins_outline(&bins, &reservoirs[run], p->density ? 1 : 100, p->density, o);
        d->mean[i][run] = reservoirs[run].count > 0 ? reservoirs[run].all.mean : NAN;
        d->series[i][run] = (at_series){.x = o->x, .y = o->y, .count = o->count};
    }
}

static void fill_curves(drawing *d, int i)
{
    assert(panels[i].file);
    for (size_t run = 0; run < d->options->run_count; run++) {
        const at_curve *c = &d->curve[i][run];
        d->series[i][run] = (at_series){.x = c->x, .y = c->y, .count = c->count};
    }
}

static at_named_plot make_plot(drawing *d, int i)
{
    const panel *p = &panels[i];
    bool         first = p->file && !p->mean;
    at_plot      plot = {.title = d->title[first],
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
    if (p->file)
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
    if (most > 1) at_text_add(&one, ", first of %zu runs", most);
}

static at_err draw(drawing *d, at_text *names, at_fail *fail)
{
    at_named_plot  plots[PANELS];
    const at_sheet sheets[] = {{.name = "panels",
                                .title = d->title[0],
                                .plots = plots,
                                .count = SHEET_PANELS,
                                .columns = 3},
                               {.name = "histograms",
                                .title = d->title[0],
                                .plots = plots + SHEET_PANELS,
                                .count = SHEET_HISTOGRAMS,
                                .columns = 2}};
    size_t         sheet_count = sizeof sheets / sizeof *sheets;
    make_titles(d);
    for (int i = 0; i < PANELS; i++) plots[i] = make_plot(d, i);
    AT_TRY(at_plot_write_all(plots, PANELS, sheets, sheet_count, d->options->folder, fail));
    for (size_t i = 0; i < sheet_count; i++)
        if (at_sheet_has_points(&sheets[i])) at_text_add(names, "%s.png ", sheets[i].name);
    for (int i = 0; i < PANELS; i++)
        if (plots[i].alone && at_plot_has_points(&plots[i].plot))
            at_text_add(names, "%s.png ", plots[i].name);
    if (names->used > 0) names->bytes[--names->used] = '\0'; /* trailing blank */
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

/* `anytime link`: measures the cost of messages.
 *
 *     rounds with P floats and no computation (world/core/empty_round.h)
 *     ─► local: compared with the same loops in one process; then with more and more workers
 *     ─► MPI, under a launcher: compared with a plain ping-pong of the same size
 *
 * With an address it measures the path to a hub instead (link_path.c).
 */
#include "cli/verbs/link.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "base/text.h"
#include "cli/loading_progress.h"
#include "cli/output.h"
#include "cli/verbs/verbs.h"
#include "net/address.h"
#include "world/core/empty_round.h"
#include "world/core/run.h"

enum { SCALES_MAX = 17 };

/* Median seconds per round for one size. */
typedef struct link_size {
    size_t floats;
    double loops; /* plain loops in one process: the limit of memory and processor */
    double solo;  /* local: --workers 0, with hub, worker and recording */
    double trip;  /* MPI: round trip of one vector (ping-pong) */
    double bare;  /* MPI: the loops with plain MPI calls between them */
    double world; /* local: one worker process; MPI: all ranks */
} link_size;

/* The round with a given number of workers. */
typedef struct link_scale {
    uint32_t workers;
    double   round; /* seconds */
} link_scale;

typedef struct link_report {
    bool       mpi;
    uint32_t   workers; /* MPI: ranks other than the hub */
    uint32_t   cores;
    double     trip_polling, trip_sleeping; /* seconds of an empty round trip */
    link_size  size[AT_LINK_SIZES_MAX];
    uint32_t   sizes;
    size_t     scale_floats;
    link_scale scale[SCALES_MAX];
    uint32_t   scales;
} link_report;

static const char SIZES[] = "4k,31.4k,1M,10M,100M"; /* 31.4 kB is softmax on MNIST */

enum {
    SCALE_FLOATS = 7850,
    WORKERS_DEFAULT = 8,
    REPEATS = 3,            /* of each measurement of a size */
    BYTES_MAX = 2000000000, /* of one vector */
};

static const at_ns DURATION = AT_MS(600); /* of all repeats of one measurement */
static const at_ns SPIN = AT_US(50);

/* The measurement and its progress. */
typedef struct link {
    link_report     report;
    at_launcher     launcher;
    at_ns           duration;
    at_loading_line line;
    FILE           *null; /* where the runs print */
    uint32_t        done, total;
} link;

/* ---- what to measure ------------------------------------------------------------------------- */

static at_err add_size(const char *word, size_t *floats, uint32_t *count, at_fail *fail)
{
    int64_t bytes;
    if (!at_text_whole(word, &bytes) || bytes < (int64_t)sizeof(float) || bytes > BYTES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, "write bytes as 4k,1M,100M",
                           "--sizes: '%s' is not a size from 4 bytes to 2 GB", word);
    if (*count == AT_LINK_SIZES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--sizes: more than %d", AT_LINK_SIZES_MAX);
    floats[(*count)++] = (size_t)bytes / sizeof(float);
    return AT_OK;
}

at_err at_link_sizes(const char *text, size_t floats[AT_LINK_SIZES_MAX], uint32_t *count,
                     at_fail *fail)
{
    char copy[256], *rest = copy, *word;
    *count = 0;
    if (strlen(text) >= sizeof copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--sizes is too long");
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, ","))) AT_TRY(add_size(word, floats, count, fail));
    return AT_OK;
}

static at_err read_sizes(link_report *r, const char *text, at_fail *fail)
{
    size_t floats[AT_LINK_SIZES_MAX];
    AT_TRY(at_link_sizes(text, floats, &r->sizes, fail));
    for (uint32_t i = 0; i < r->sizes; i++) r->size[i].floats = floats[i];
    return AT_OK;
}

/* 1, 2, 4, .. and `last`. */
static void list_scales(link_report *r, uint32_t last)
{
    assert(last >= 1);
    r->scale_floats = SCALE_FLOATS;
    for (uint32_t n = 1; n < last && r->scales + 1 < SCALES_MAX; n *= 2)
        r->scale[r->scales++].workers = n;
    r->scale[r->scales++].workers = last;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Runs the task for a while and returns the median time of its steps. */
static at_err run_rounds(const link *l, const at_task *task, uint32_t workers, at_ns duration,
                         double *seconds, at_fail *fail)
{
    bool            solo = workers == 0;
    at_plan_options plan = {.strategy = "fmb",
                            .workers = solo ? 1 : workers,
                            .batch = 1,
                            .micro_batch = 1,
                            .limits = {.time = duration}};
    at_run_options  run = {.task = task,
                           .world = solo            ? &at_world_solo
                                    : l->report.mpi ? &at_world_mpi
                                                    : &at_world_local,
                           .recording = AT_RECORDING_NONE,
                           .seed = 1};
    json_t         *result = NULL;
    run.console = at_console_detect(l->null, true);
    run.launcher = l->report.mpi ? &l->launcher : NULL;
    AT_TRY(at_plan_resolve(&plan, &run.plan, fail));
    at_err        err = at_run(&run, &result, fail);
    const json_t *steps = json_object_get(result, "step_seconds");
    if (!err) *seconds = json_number_value(json_object_get(steps, "p50"));
    json_decref(result);
    return err;
}

/* Other load can only slow a round down, so the minimum is the best estimate. */
static void keep_best(double *best, double seconds)
{
    if (*best <= 0 || seconds < *best) *best = seconds;
}

static at_err measure_local(const link *l, const at_task *task, link_size *size, at_fail *fail)
{
    double seconds = 0;
    AT_TRY(run_rounds(l, task, 0, l->duration / REPEATS, &seconds, fail));
    keep_best(&size->solo, seconds);
    AT_TRY(run_rounds(l, task, 1, l->duration / REPEATS, &seconds, fail));
    keep_best(&size->world, seconds);
    return AT_OK;
}

static at_err measure_mpi(const link *l, const at_task *task, link_size *size, at_fail *fail)
{
    double                   seconds = 0;
    at_empty_round_mpi_times times = {0};
    AT_TRY(at_empty_round_mpi(task, &l->launcher, l->duration / REPEATS, &times, fail));
    keep_best(&size->trip, times.trip);
    keep_best(&size->bare, times.round);
    AT_TRY(run_rounds(l, task, l->report.workers, l->duration / REPEATS, &seconds, fail));
    keep_best(&size->world, seconds);
    return AT_OK;
}

static at_err measure_once(link *l, const at_task *task, link_size *size, at_fail *fail)
{
    double seconds = 0;
    at_load_progress_report(&l->line.loading, l->done++, l->total);
    if (l->launcher.rank == 0)
        AT_TRY(at_empty_round_loops(task, l->duration / REPEATS, &seconds, fail));
    keep_best(&size->loops, seconds);
    return l->report.mpi ? measure_mpi(l, task, size, fail) : measure_local(l, task, size, fail);
}

/* Alternates the measurements, so that a slow phase of the machine does not affect only one. */
static at_err measure_size(link *l, link_size *size, at_fail *fail)
{
    at_task task;
    at_err  err = AT_OK;
    AT_TRY(at_empty_round_task(size->floats, &task, fail));
    for (int i = 0; !err && i < REPEATS; i++) err = measure_once(l, &task, size, fail);
    task.free(task.self);
    return err;
}

static at_err measure_scale(link *l, link_scale *scale, at_fail *fail)
{
    at_task task;
    AT_TRY(at_empty_round_task(l->report.scale_floats, &task, fail));
    at_load_progress_report(&l->line.loading, l->done++, l->total);
    at_err err = run_rounds(l, &task, scale->workers, l->duration, &scale->round, fail);
    task.free(task.self);
    return err;
}

static at_err measure(link *l, at_fail *fail)
{
    link_report *r = &l->report;
    l->total = r->sizes * REPEATS + r->scales;
    for (uint32_t i = 0; i < r->sizes; i++) AT_TRY(measure_size(l, &r->size[i], fail));
    if (r->mpi) return AT_OK;
    AT_TRY(at_empty_round_bells(r->cores > 1 ? SPIN : 0, l->duration / 2, &r->trip_polling, fail));
    AT_TRY(at_empty_round_bells(0, l->duration / 2, &r->trip_sleeping, fail));
    for (uint32_t i = 0; i < r->scales; i++) AT_TRY(measure_scale(l, &r->scale[i], fail));
    return AT_OK;
}

static double bytes_of(size_t floats)
{
    return (double)floats * sizeof(float);
}

/* Which fraction of a limit was reached. */
static double fraction(double limit, double seconds)
{
    assert(limit >= 0);
    return seconds > 0 ? limit / seconds : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *place_json(double seconds, double limit, size_t floats)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "round_seconds", seconds, "rounds_per_second",
                     fraction(1, seconds), "bytes_per_second", fraction(bytes_of(floats), seconds),
                     "share", fraction(limit, seconds));
}

static json_t *size_json(const link_report *r, const link_size *s)
{
    double  limit = r->mpi ? s->bare : s->loops;
    json_t *row = json_pack("{s:I, s:I, s:o, s:o}", "parameters", (json_int_t)s->floats, "bytes",
                            (json_int_t)bytes_of(s->floats), "loops",
                            place_json(s->loops, limit, s->floats), r->mpi ? "pingpong" : "solo",
                            place_json(r->mpi ? s->trip : s->solo, limit, s->floats));
    if (r->mpi) json_object_set_new(row, "bare", place_json(s->bare, limit, s->floats));
    json_object_set_new(row, r->mpi ? "mpi" : "local", place_json(s->world, limit, s->floats));
    return row;
}

static json_t *scale_json(const link_scale *c)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "workers", (json_int_t)c->workers, "round_seconds",
                     c->round, "rounds_per_second", fraction(1, c->round), "worker_seconds",
                     c->round / c->workers);
}

static json_t *report_json(const link_report *r)
{
    json_t *sizes = json_array(), *scales = json_array();
    for (uint32_t i = 0; i < r->sizes; i++) json_array_append_new(sizes, size_json(r, &r->size[i]));
    for (uint32_t i = 0; i < r->scales; i++)
        json_array_append_new(scales, scale_json(&r->scale[i]));
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:o}", "world", r->mpi ? "mpi" : "local", "cores",
                  (json_int_t)r->cores, "workers", (json_int_t)r->workers, "sizes", sizes);
    if (!r->mpi)
        json_object_update_new(root, json_pack("{s:{s:f, s:f}, s:{s:I, s:O}}", "ring",
                                               "awake_seconds", r->trip_polling, "asleep_seconds",
                                               r->trip_sleeping, "crowd", "parameters",
                                               (json_int_t)r->scale_floats, "workers", scales));
    json_decref(scales);
    return root;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void at_link_add_bytes(at_table *table, double bytes)
{
    if (bytes >= 1e6)
        at_table_add(table, "%.3g MB", bytes / 1e6);
    else
        at_table_add(table, "%.3g kB", bytes / 1e3);
}

void at_link_add_time(at_table *table, double seconds)
{
    if (seconds >= 1)
        at_table_add(table, "%.3g s", seconds);
    else if (seconds >= 1e-3)
        at_table_add(table, "%.3g ms", seconds * 1e3);
    else
        at_table_add(table, "%.3g us", seconds * 1e6);
}

static void add_share(at_table *table, double limit, double seconds)
{
    at_table_add(table, "%.0f %%", 100 * fraction(limit, seconds));
}

static void add_size_row(at_table *table, const link_report *r, const link_size *s)
{
    at_link_add_bytes(table, bytes_of(s->floats));
    at_link_add_time(table, s->loops);
    at_link_add_time(table, r->mpi ? s->trip : s->solo);
    if (r->mpi)
        at_link_add_time(table, s->bare);
    else
        add_share(table, s->loops, s->solo);
    at_link_add_time(table, s->world);
    add_share(table, r->mpi ? s->bare : s->loops, s->world);
    at_table_add(table, "%.0f", fraction(1, s->world));
    at_table_add(table, "%.3g", fraction(bytes_of(s->floats), s->world) / 1e9);
}

/* The column after a time shows which fraction of its limit it reaches. */
static at_err print_sizes(const link_report *r, at_fail *fail)
{
    const at_column local[] = {{"size", AT_ALIGN_RIGHT},      {"loops", AT_ALIGN_RIGHT},
                               {"0 workers", AT_ALIGN_RIGHT}, {"of loops", AT_ALIGN_RIGHT},
                               {"1 worker", AT_ALIGN_RIGHT},  {"of loops", AT_ALIGN_RIGHT},
                               {"rounds/s", AT_ALIGN_RIGHT},  {"GB/s", AT_ALIGN_RIGHT}};
    const at_column mpi[] = {{"size", AT_ALIGN_RIGHT},      {"loops", AT_ALIGN_RIGHT},
                             {"ping-pong", AT_ALIGN_RIGHT}, {"plain MPI", AT_ALIGN_RIGHT},
                             {"anytime", AT_ALIGN_RIGHT},   {"of plain", AT_ALIGN_RIGHT},
                             {"rounds/s", AT_ALIGN_RIGHT},  {"GB/s", AT_ALIGN_RIGHT}};
    at_table       *table = at_table_new(r->mpi ? mpi : local, sizeof local / sizeof *local);
    _Static_assert(sizeof local == sizeof mpi, "both have the same number of columns");
    for (uint32_t i = 0; table && i < r->sizes; i++) add_size_row(table, r, &r->size[i]);
    return at_print_table_take(table, fail);
}

static at_err print_scales(const link_report *r, at_fail *fail)
{
    const at_column columns[] = {{"workers", AT_ALIGN_RIGHT},
                                 {"round", AT_ALIGN_RIGHT},
                                 {"rounds/s", AT_ALIGN_RIGHT},
                                 {"per worker", AT_ALIGN_RIGHT}};
    at_table       *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; table && i < r->scales; i++) {
        const link_scale *c = &r->scale[i];
        at_table_add(table, "%u", c->workers);
        at_link_add_time(table, c->round);
        at_table_add(table, "%.0f", fraction(1, c->round));
        at_link_add_time(table, c->round / c->workers);
    }
    return at_print_table_take(table, fail);
}

static at_err print_report(const link_report *r, at_fail *fail)
{
    if (r->mpi) {
        printf("MPI: one hub and %u worker%s\n\n", r->workers, r->workers == 1 ? "" : "s");
        return print_sizes(r, fail);
    }
    printf("Local, %u cores\n\n", r->cores);
    AT_TRY(print_sizes(r, fail));
    printf("\nEmpty round trip: %.3g us (receiver polling), %.3g us (sleeping)\n",
           r->trip_polling * 1e6, r->trip_sleeping * 1e6);
    printf("\nRounds of %.3g kB by number of workers:\n\n", bytes_of(r->scale_floats) / 1e3);
    return print_scales(r, fail);
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Under MPI the launcher sets the number of workers; otherwise it grows up to --workers. */
static at_err plan(link *l, const at_settings *s, at_fail *fail)
{
    link_report *r = &l->report;
    bool         given = s->workers >= 0;
    r->cores = at_machine_cores();
    r->mpi = l->launcher.size > 1;
    r->workers = r->mpi ? l->launcher.size - 1 : 1;
    if (r->mpi && given && s->workers != r->workers)
        return at_fail_set(fail, AT_ERR_USAGE, "leave --workers out",
                           "--workers %lld, but %s started %u ranks", (long long)s->workers,
                           l->launcher.name, l->launcher.size);
    if (!r->mpi) list_scales(r, s->workers > 0 ? (uint32_t)s->workers : WORKERS_DEFAULT);
    return read_sizes(r, s->sizes ? s->sizes : SIZES, fail);
}

at_err at_verb_link(at_parsed *parsed, const char *command, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    static link        l; /* runs point into it */
    (void)command;
    if (parsed->words > 0 && at_net_is_address(parsed->word[0])) return at_link_path(parsed, fail);
    AT_TRY(at_options_refuse_words(parsed, fail));
    l = (link){.launcher = at_launcher_detect(),
               .duration = s->seconds > 0 ? s->seconds : DURATION};
    AT_TRY(plan(&l, s, fail));
    at_loading_line_init(&l.line, "messages", s->quiet || l.launcher.rank > 0);
    l.line.doing = "measuring";
    l.null = fopen("/dev/null", "w"); /* their messages are about training */
    if (!l.null) return at_fail_set(fail, AT_ERR_IO, NULL, "cannot open /dev/null");
    at_err err = measure(&l, fail);
    at_loading_line_end(&l.line);
    fclose(l.null);
    if (err || l.launcher.rank > 0) return err; /* only rank 0 prints */
    return s->json ? at_print_json_take(report_json(&l.report), fail)
                   : print_report(&l.report, fail);
}

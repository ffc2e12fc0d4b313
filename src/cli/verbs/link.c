/* `anytime link`: measures rounds that carry parameters and gradients but learn nothing. */
#include "cli/verbs/link.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "base/text.h"
#include "cli/loading_progress.h"
#include "cli/print.h"
#include "cli/verbs/verbs.h"
#include "world/core/empty_round.h"
#include "world/core/run.h"

static const char SIZES[] = "4k,31.4k,1M,10M,100M"; /* 31.4 kB is softmax on MNIST */

enum {
    CROWD_FLOATS = 7850,
    CROWD_DEFAULT = 8,
    REPEATS = 3,            /* of everything about one size */
    BYTES_MAX = 2000000000, /* of one vector */
};

static const at_ns LASTS = AT_MS(600); /* all repeats of one measurement */
static const at_ns SPIN = AT_US(50);

/* What is measured, and how far it is. */
typedef struct link {
    at_link_report  report;
    at_launcher     launcher;
    at_ns           lasts;
    at_loading_line line;
    FILE           *silence; /* where runs speak */
    uint32_t        done, total;
} link;

/* ---- what to measure ------------------------------------------------------------------------- */

static at_err add_size(at_link_report *r, const char *word, at_fail *fail)
{
    int64_t bytes;
    if (!at_text_whole(word, &bytes) || bytes < (int64_t)sizeof(float) || bytes > BYTES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, "write bytes as 4k,1M,100M",
                           "--sizes: '%s' is not a size from 4 bytes to 2 GB", word);
    if (r->sizes == AT_LINK_SIZES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--sizes: more than %d", AT_LINK_SIZES_MAX);
    r->size[r->sizes++].floats = (size_t)bytes / sizeof(float);
    return AT_OK;
}

static at_err read_sizes(at_link_report *r, const char *text, at_fail *fail)
{
    char copy[256], *rest = copy, *word;
    if (strlen(text) >= sizeof copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--sizes is too long");
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, ","))) AT_TRY(add_size(r, word, fail));
    return AT_OK;
}

/* 1, 2, 4, .. and the last one. */
static void list_crowds(at_link_report *r, uint32_t last)
{
    assert(last >= 1);
    r->crowd_floats = CROWD_FLOATS;
    for (uint32_t n = 1; n < last && r->crowds + 1 < AT_LINK_CROWDS_MAX; n *= 2)
        r->crowd[r->crowds++].workers = n;
    r->crowd[r->crowds++].workers = last;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* A run of the task, which ends after a while; the median of its steps. */
static at_err run_rounds(const link *l, const at_task *task, uint32_t workers, at_ns lasts,
                         double *seconds, at_fail *fail)
{
    bool            solo = workers == 0;
    at_plan_options plan = {.strategy = "fmb",
                            .k = -1,
                            .staleness = -1,
                            .workers = solo ? 1 : workers,
                            .batch = 1,
                            .micro_batch = 1,
                            .limits = {.time = lasts}};
    at_run_options  run = {.task = task, .solo = solo, .recording = AT_RECORDING_NONE, .seed = 1};
    json_t         *result = NULL;
    run.console = at_console_detect(l->silence, true);
    run.launcher = l->report.mpi ? &l->launcher : NULL;
    AT_TRY(at_plan_resolve(&plan, &run.plan, fail));
    at_err        err = at_run(&run, &result, fail);
    const json_t *steps = json_object_get(result, "step_seconds");
    if (!err) *seconds = json_number_value(json_object_get(steps, "p50"));
    json_decref(result);
    return err;
}

/* Other work on the machine can only slow a round down. */
static void keep_best(double *best, double seconds)
{
    if (*best <= 0 || seconds < *best) *best = seconds;
}

static at_err measure_local(const link *l, const at_task *task, at_link_size *size, at_fail *fail)
{
    double seconds = 0;
    AT_TRY(run_rounds(l, task, 0, l->lasts / REPEATS, &seconds, fail));
    keep_best(&size->solo, seconds);
    AT_TRY(run_rounds(l, task, 1, l->lasts / REPEATS, &seconds, fail));
    keep_best(&size->world, seconds);
    return AT_OK;
}

static at_err measure_mpi(const link *l, const at_task *task, at_link_size *size, at_fail *fail)
{
    double                   seconds = 0;
    at_empty_round_mpi_times times = {0};
    AT_TRY(at_empty_round_mpi(task, &l->launcher, l->lasts / REPEATS, &times, fail));
    keep_best(&size->trip, times.trip);
    keep_best(&size->bare, times.round);
    AT_TRY(run_rounds(l, task, l->report.workers, l->lasts / REPEATS, &seconds, fail));
    keep_best(&size->world, seconds);
    return AT_OK;
}

static at_err measure_once(link *l, const at_task *task, at_link_size *size, at_fail *fail)
{
    double seconds = 0;
    at_load_progress_report(&l->line.loading, l->done++, l->total);
    if (l->launcher.rank == 0)
        AT_TRY(at_empty_round_loops(task, l->lasts / REPEATS, &seconds, fail));
    keep_best(&size->loops, seconds);
    return l->report.mpi ? measure_mpi(l, task, size, fail) : measure_local(l, task, size, fail);
}

/* In turns, so that a slow spell of the machine does not hit one of the three alone. */
static at_err measure_size(link *l, at_link_size *size, at_fail *fail)
{
    at_task task;
    at_err  err = AT_OK;
    AT_TRY(at_empty_round_task(size->floats, &task, fail));
    for (int i = 0; !err && i < REPEATS; i++) err = measure_once(l, &task, size, fail);
    task.free(task.self);
    return err;
}

static at_err measure_crowd(link *l, at_link_crowd *crowd, at_fail *fail)
{
    at_task task;
    AT_TRY(at_empty_round_task(l->report.crowd_floats, &task, fail));
    at_load_progress_report(&l->line.loading, l->done++, l->total);
    at_err err = run_rounds(l, &task, crowd->workers, l->lasts, &crowd->round, fail);
    task.free(task.self);
    return err;
}

static at_err measure(link *l, at_fail *fail)
{
    at_link_report *r = &l->report;
    l->total = r->sizes * REPEATS + r->crowds;
    for (uint32_t i = 0; i < r->sizes; i++) AT_TRY(measure_size(l, &r->size[i], fail));
    if (r->mpi) return AT_OK;
    AT_TRY(at_empty_round_bells(r->cores > 1 ? SPIN : 0, l->lasts / 2, &r->ring_awake, fail));
    AT_TRY(at_empty_round_bells(0, l->lasts / 2, &r->ring_asleep, fail));
    for (uint32_t i = 0; i < r->crowds; i++) AT_TRY(measure_crowd(l, &r->crowd[i], fail));
    return AT_OK;
}

/* Ranks are as many as the launcher has started; elsewhere the number of workers grows. */
static at_err plan(link *l, const at_settings *s, at_fail *fail)
{
    at_link_report *r = &l->report;
    bool            given = s->workers >= 0;
    r->cores = at_machine_cores();
    r->mpi = l->launcher.size > 1;
    r->workers = r->mpi ? l->launcher.size - 1 : 1;
    if (r->mpi && given && s->workers != r->workers)
        return at_fail_set(fail, AT_ERR_USAGE, "leave --workers out",
                           "--workers %lld, but %s has started %u ranks", (long long)s->workers,
                           l->launcher.name, l->launcher.size);
    if (!r->mpi) list_crowds(r, s->workers > 0 ? (uint32_t)s->workers : CROWD_DEFAULT);
    return read_sizes(r, s->sizes ? s->sizes : SIZES, fail);
}

at_err at_verb_link(at_parsed *parsed, const char *command, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    static link        l; /* runs point into it */
    (void)command;
    if (parsed->words > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "options look like --name value",
                           "'%s' is not an option", parsed->word[0]);
    l = (link){.launcher = at_launcher_detect(), .lasts = s->seconds > 0 ? s->seconds : LASTS};
    AT_TRY(plan(&l, s, fail));
    at_loading_line_init(&l.line, "messages", s->quiet || l.launcher.rank > 0);
    l.line.doing = "measuring";
    l.silence = fopen("/dev/null", "w"); /* what is to be said about training is not about this */
    if (!l.silence) return at_fail_set(fail, AT_ERR_IO, NULL, "/dev/null cannot be opened");
    at_err err = measure(&l, fail);
    at_loading_line_end(&l.line);
    fclose(l.silence);
    if (err || l.launcher.rank > 0) return err; /* rank 0 speaks for all */
    return s->json ? at_print_json_take(at_link_json(&l.report), fail)
                   : at_link_print(&l.report, fail);
}

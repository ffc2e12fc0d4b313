#include "advise/predict.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "report/summary/stats.h"
#include "world/core/run.h"
#include "world/tasks/tasks.h"

enum {
    RESAMPLED_MAX = 24,
    RESAMPLED_MIN = 8,
    ROUNDS_MAX = 500000, /* of all simulations of one strategy together */
    ROUNDS_ONE_MAX = 50000,
    SENDS_MAX = 5000000, /* of one simulation, about: every step may send to every worker */
    STEPS_MIN = 100,     /* a shorter log is repeated */
    SEED = 1
};
static const double INTERVAL_MIN = 0.02; /* half a width: no simulation is more exact */

/* Rounds to repeat, as a pace. */
typedef struct rounds {
    double  *sleep_s, *factor; /* (steps, workers) */
    uint32_t steps;
} rounds;

typedef struct forecast {
    const at_measured *m;
    const at_fit      *fit;
    FILE              *null;  /* where the runs print */
    uint32_t           steps; /* of one simulation */
    uint32_t           micro_batch;

    at_predict_progress progress;
} forecast;

/* ---- one simulation -------------------------------------------------------------------------- */

static double real_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Counts every strategy's work alike: the samples of that many steps of everybody. */
static at_plan_options plan_options(const forecast *f, const char *strategy)
{
    const at_measured *m = f->m;
    at_plan_options    options = {.strategy = strategy,
                                  .workers = m->log.workers,
                                  .batch = m->batch,
                                  .micro_batch = f->micro_batch};
    options.limits.samples = (uint64_t)f->steps * m->log.workers * m->batch;
    return options;
}

/* With many workers, a step per report takes very long: each step goes to all of them. */
static bool takes_too_long(const forecast *f, const at_plan *plan)
{
    double rounds_all = (double)f->steps * plan->workers;
    double reports = plan->gather->reports ? plan->gather->reports(plan) : plan->workers;
    assert(reports >= 1);
    return rounds_all / reports * plan->workers > SENDS_MAX;
}

/* What the user has to know or set besides the name of the strategy: the rule of its arguments. */
static void describe(const at_plan *plan, at_prediction *p)
{
    char           text[AT_RULE_TEXT_SIZE];
    enum at_family takes = plan->strategy->takes;
    if (plan->work->timed)
        snprintf(p->settings, sizeof p->settings, "time limit auto");
    else if (takes != AT_WORK)
        snprintf(p->settings, sizeof p->settings, "%s %.40s", at_family_name[takes],
                 at_plan_rule_text(plan, takes, text, sizeof text));
}

static void take_result(const at_plan *plan, const json_t *result, at_prediction *p)
{
    p->step_s = real_at(json_object_get(result, "step_seconds"), "mean");
    p->rate = real_at(result, "samples_per_second");
    p->batch = real_at(result, "mean_batch");
    p->useful = real_at(result, "useful_fraction");
    p->staleness = real_at(json_object_get(result, "staleness"), "mean");
    describe(plan, p);
}

/* Messages have the size of the model; without one, of a million parameters. */
static void set_link(const at_measured *m, double parameters, at_run_options *run)
{
    run->latency = AT_SEC(m->latency_s);
    if (m->transfer_s > 0) run->bandwidth = parameters * sizeof(float) / m->transfer_s;
}

/* Simulates with this pace; NULL: with the fitted one. */
static at_err simulate(const forecast *f, const at_plan *plan, const at_pace *pace,
                       at_prediction *p, at_fail *fail)
{
    enum { STRAGGLER_SIZE = 1 << 20 };
    const at_measured *m = f->m;
    double             parameters = m->parameters >= 1 ? m->parameters : 1e6;
    char               model[32];
    at_task            task;
    json_t            *result = NULL;
    char              *straggler = pace ? NULL : malloc(STRAGGLER_SIZE);
    if (!pace && !straggler) return at_fail_memory(fail);
    snprintf(model, sizeof model, "none:%.0f", parameters);
    at_err err = at_task_none(model, &task, fail);
    task.samples = m->samples_epoch > 0 ? m->samples_epoch : 1;
    at_run_options run = {.plan = *plan,
                          .task = &task,
                          .world = &at_world_sim,
                          .recording = AT_RECORDING_NONE,
                          .seed = SEED,
                          .pace = pace,
                          .respawn = true};
    double         sample_s = pace ? f->fit->sample_s : f->fit->sample_fitted_s;
    run.sample_time = AT_SEC(sample_s) > 0 ? AT_SEC(sample_s) : 1;
    run.console = at_console_detect(f->null, true);
    set_link(m, parameters, &run);
    if (straggler) {
        at_text text = at_text_in(straggler, STRAGGLER_SIZE);
        at_fit_straggler(f->fit, m->log.workers, &text);
        run.straggler = straggler;
        if (text.full) err = at_fail_set(fail, AT_ERR_FAILED, NULL, "too many workers to fit");
    }
    if (!err) err = at_run(&run, &result, fail);
    if (!err) take_result(plan, result, p);
    json_decref(result);
    free(straggler);
    return err;
}

static at_err simulate_rounds(const forecast *f, const at_plan *plan, const rounds *r,
                              at_prediction *p, at_fail *fail)
{
    at_pace       *pace = NULL;
    at_pace_rounds recorded = {.workers = f->m->log.workers,
                               .rounds = r->steps,
                               .sleep_s = r->sleep_s,
                               .factor = r->factor};
    AT_TRY(at_pace_replay(&recorded, &pace, fail));
    at_err err = simulate(f, plan, pace, p, fail);
    at_pace_free(pace);
    return err;
}

/* ---- resampled logs -------------------------------------------------------------------------- */

/* Long enough for several slow periods to be within a block, short enough for many blocks. */
static uint32_t block_steps(const forecast *f)
{
    double block = sqrt((double)f->m->log.steps), bursts = 2 * f->fit->burst_length;
    if (f->fit->burst_start > 0 && bursts > block) block = bursts;
    double most = fmax(1, f->m->log.steps / 5.0);
    return (uint32_t)fmax(1, fmin(block, most));
}

/* Fills *r with blocks of the log that begin at random steps; the log is a circle. */
static void resample(const forecast *f, uint32_t number, rounds *r)
{
    uint32_t block = block_steps(f), workers = f->m->log.workers, steps = f->m->log.steps, from = 0;
    at_rng   rng = at_rng_stream(SEED, number, AT_RNG_PURPOSE_TEST, 0);
    for (uint32_t i = 0; i < r->steps; i++, from++) {
        if (i % block == 0) from = (uint32_t)at_rng_below(&rng, steps);
        size_t source = (size_t)(from % steps) * workers, target = (size_t)i * workers;
        memcpy(r->sleep_s + target, f->fit->sleep_s + source, workers * sizeof(double));
        memcpy(r->factor + target, f->fit->factor + source, workers * sizeof(double));
    }
}

/* How many resampled logs the number of rounds allows. */
static uint32_t resampled_logs(const forecast *f)
{
    uint64_t each = (uint64_t)f->steps * f->m->log.workers, count = ROUNDS_MAX / each;
    return count > RESAMPLED_MAX   ? RESAMPLED_MAX
           : count < RESAMPLED_MIN ? RESAMPLED_MIN
                                   : (uint32_t)count;
}

/* ---- all strategies -------------------------------------------------------------------------- */

typedef struct row_plans {
    at_plan plan[AT_PREDICTIONS_MAX];
} row_plans;

/* A strategy that differs in more than time is left out: batches and steps that follow the loss or
 * epochs, and parameters that workers update in place or own. The last would need a network between
 * workers, which a log does not describe; a log of such a run is still compared with itself. */
static bool resolve(const forecast *f, const char *strategy, at_plan *plan)
{
    at_fail         why = {0};
    at_plan_options options = plan_options(f, strategy);
    if (at_plan_resolve(&options, plan, &why)) return false;
    const at_gather_rule *gather = plan->gather;
    const at_mix_rule    *mix = plan->mix;
    bool steady = plan->size->keeps_batch && !(gather->follows_loss && gather->follows_loss(plan));
    bool learns_otherwise = mix->owned_by_workers || plan->work->reports_change;
    bool foreign = learns_otherwise && strcmp(strategy, f->m->strategy) != 0;
    return steady && !foreign && !mix->updates_in_place;
}

/* Simulates with the log itself, or with its first steps when it is long. */
static at_err replay_log(const forecast *f, const at_plan *plan, at_prediction *p, bool *refused,
                         at_fail *fail)
{
    at_fail why = {0};
    rounds  log = {.sleep_s = f->fit->sleep_s, .factor = f->fit->factor};
    log.steps = f->m->log.steps;
    at_err err = simulate_rounds(f, plan, &log, p, &why);
    *refused = err == AT_ERR_USAGE;
    if (!err || *refused) return AT_OK;
    *fail = why;
    return err;
}

static at_err replay_all(const forecast *f, row_plans *plans, at_predictions *all, at_fail *fail)
{
    at_text left_out = at_text_in(all->left_out, sizeof all->left_out);
    all->own = UINT32_MAX;
    for (size_t i = 0; i < at_strategies_count && all->count < AT_PREDICTIONS_MAX; i++) {
        bool           refused;
        at_prediction *p = &all->row[all->count];
        const char    *name = at_strategies[i].name;
        *p = (at_prediction){.strategy = name};
        if (!resolve(f, name, &plans->plan[all->count])) continue;
        if (takes_too_long(f, &plans->plan[all->count])) {
            at_text_add(&left_out, "%s%s", *all->left_out ? ", " : "", name);
            continue;
        }
        AT_TRY(replay_log(f, &plans->plan[all->count], p, &refused, fail));
        if (refused) continue;
        if (strcmp(name, f->m->strategy) == 0) all->own = all->count;
        all->count++;
    }
    if (all->own == UINT32_MAX) all->own = 0; /* a strategy that has no row of its own: fmb */
    assert(all->count >= 1);
    return AT_OK;
}

static at_err fit_all(const forecast *f, const row_plans *plans, at_predictions *all, at_fail *fail)
{
    double rate[AT_PREDICTIONS_MAX];
    for (uint32_t i = 0; i < all->count; i++) {
        at_prediction p = {0};
        AT_TRY(simulate(f, &plans->plan[i], NULL, &p, fail));
        rate[i] = p.rate;
    }
    for (uint32_t i = 0; i < all->count; i++) all->row[i].fitted_gain = rate[i] / rate[all->own];
    return AT_OK;
}

/* Four times as large, if a round still has enough of them. */
static uint32_t larger_micro_batch(const forecast *f)
{
    enum { COARSE = 4, MICRO_BATCHES_MIN = 16 };
    bool enough = f->m->batch / f->micro_batch >= COARSE * MICRO_BATCHES_MIN;
    return enough ? COARSE * f->micro_batch : f->micro_batch;
}

/* Plans for the resampled logs. Only how much their gains differ is of interest, and that takes
 * fewer micro-batches. */
static at_err coarsen(forecast *f, row_plans *plans, const at_predictions *all, at_fail *fail)
{
    f->micro_batch = larger_micro_batch(f);
    for (uint32_t i = 0; i < all->count; i++) {
        at_plan_options options = plan_options(f, all->row[i].strategy);
        AT_TRY(at_plan_resolve(&options, &plans->plan[i], fail));
    }
    return AT_OK;
}

/* The resampled logs: the logarithm of each gain, and the rates. */
typedef struct sample_stats {
    at_stats gain[AT_PREDICTIONS_MAX], rate[AT_PREDICTIONS_MAX];
} sample_stats;

/* The log itself and the fitted pace come before the resampled logs. */
static void show_progress(const forecast *f, uint32_t done, const at_predictions *all)
{
    if (f->progress.report) f->progress.report(f->progress.self, done, 2 + all->resampled);
}

static at_err spread_all(const forecast *f, const row_plans *plans, at_predictions *all,
                         sample_stats *spread, rounds *r, at_fail *fail)
{
    double rate[AT_PREDICTIONS_MAX];
    for (uint32_t number = 0; number < all->resampled; number++) {
        show_progress(f, 2 + number, all);
        resample(f, number, r);
        for (uint32_t i = 0; i < all->count; i++) {
            at_prediction p = {0};
            AT_TRY(simulate_rounds(f, &plans->plan[i], r, &p, fail));
            rate[i] = p.rate;
        }
        for (uint32_t i = 0; i < all->count; i++) {
            at_stats_add(&spread->gain[i], log(rate[i] / rate[all->own]));
            at_stats_add(&spread->rate[i], rate[i]);
        }
    }
    return AT_OK;
}

/* Of a long log only the beginning was replayed; the resampled logs are from all of it. */
static void use_samples(at_predictions *all, const sample_stats *spread)
{
    for (uint32_t i = 0; i < all->count; i++) {
        at_prediction *p = &all->row[i];
        p->step_s *= p->rate / spread->rate[i].mean;
        p->rate = spread->rate[i].mean;
    }
}

/* Rates and step times are the measured ones times simulated ratios, so that whatever slows down
 * every strategy alike is in them. An interval covers the chance in the log, what simulations miss
 * in general, and what this one misses the log by. */
static void conclude(at_predictions *all, const sample_stats *spread, double limit, double measured)
{
    double own = all->row[all->own].rate, missed = fabs(log(own / measured));
    limit *= all->row[0].rate / own; /* it is relative to fmb, the first strategy */
    for (uint32_t i = 0; i < all->count; i++) {
        at_prediction *p = &all->row[i];
        double         half = hypot(1.96 * at_stats_sd(&spread->gain[i]), INTERVAL_MIN) + missed;
        if (i == all->own) half = 0;
        p->gain = fmin(p->rate / own, limit);
        p->low = p->gain * exp(-half);
        p->high = fmin(p->gain * exp(half), fmax(limit, p->gain));
        p->fitted_gain = fmin(p->fitted_gain, limit);
        p->rate *= measured / own;
        p->step_s *= own / measured;
    }
}

static at_err predict(forecast *f, double limit, row_plans *plans, at_predictions *all,
                      at_fail *fail)
{
    sample_stats spread = {0};
    size_t       cells = (size_t)f->steps * f->m->log.workers;
    rounds       r = {.steps = f->steps};
    AT_TRY(replay_all(f, plans, all, fail));
    AT_TRY(fit_all(f, plans, all, fail));
    AT_TRY(coarsen(f, plans, all, fail));
    r.sleep_s = malloc(cells * sizeof(double));
    r.factor = malloc(cells * sizeof(double));
    at_err err =
        r.sleep_s && r.factor ? spread_all(f, plans, all, &spread, &r, fail) : at_fail_memory(fail);
    free(r.sleep_s);
    free(r.factor);
    if (!err && f->steps < f->m->log.steps) use_samples(all, &spread);
    if (!err) conclude(all, &spread, limit, f->m->rate);
    return err;
}

static at_err open_forecast(const at_measured *m, const at_fit *fit, forecast *f, at_fail *fail)
{
    uint32_t most = ROUNDS_ONE_MAX / m->log.workers;
    *f = (forecast){.m = m, .fit = fit, .steps = m->log.steps, .micro_batch = m->micro_batch};
    if (f->steps < STEPS_MIN) f->steps = STEPS_MIN;
    if (f->steps > most) f->steps = most > 5 ? most : 5;
    if (most < STEPS_MIN) f->micro_batch = larger_micro_batch(f); /* many workers, few steps */
    f->null = fopen("/dev/null", "w");
    return f->null ? AT_OK : at_fail_set(fail, AT_ERR_IO, NULL, "cannot open /dev/null");
}

at_err at_predict(const at_measured *measured, const at_fit *fit, double limit,
                  at_predict_progress progress, at_predictions *predictions, at_fail *fail)
{
    forecast   f;
    row_plans *plans = calloc(1, sizeof *plans);
    *predictions = (at_predictions){0};
    if (!plans) return at_fail_memory(fail);
    at_err err = open_forecast(measured, fit, &f, fail);
    if (!err) {
        f.progress = progress;
        predictions->resampled = resampled_logs(&f);
        err = predict(&f, limit, plans, predictions, fail);
        fclose(f.null);
    }
    free(plans);
    return err;
}

at_err at_predict_one(const at_measured *measured, const at_fit *fit, const char *strategy,
                      bool replay, at_prediction *prediction, at_fail *fail)
{
    forecast f;
    at_plan  plan;
    AT_TRY(open_forecast(measured, fit, &f, fail));
    at_plan_options options = plan_options(&f, strategy);
    rounds          log = {fit->sleep_s, fit->factor, measured->log.steps};
    *prediction = (at_prediction){.strategy = strategy};
    at_err err = at_plan_resolve(&options, &plan, fail);
    if (!err)
        err = replay ? simulate_rounds(&f, &plan, &log, prediction, fail)
                     : simulate(&f, &plan, NULL, prediction, fail);
    fclose(f.null);
    return err;
}

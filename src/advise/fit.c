#include "advise/fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary/stats.h"

static const double DENSE = 0.2;      /* share of a worker's rounds that defines its usual time */
static const double STEADY = 0.02;    /* relative deviations below this are noise, not delays */
static const double PERSISTENT = 0.3; /* correlation from which delays last */
static const double BURST = 1.15;     /* a round this much longer than usual is slow */

void at_fit_deinit(at_fit *fit)
{
    free(fit->speed);
    free(fit->base_s);
    free(fit->sleep_s);
    free(fit->factor);
    *fit = (at_fit){0};
}

/* ---- the usual time of a worker -------------------------------------------------------------- */

/* The middle of the shortest interval with a fifth of the (sorted) values: their mode. */
static double usual(const double *sorted, size_t count)
{
    size_t span = (size_t)(DENSE * (double)count), best = 0;
    assert(count >= 1);
    if (span < 1) span = 1;
    if (span >= count) span = count - 1;
    if (span == 0) return sorted[0];
    for (size_t i = 1; i + span < count; i++)
        if (sorted[i + span] - sorted[i] < sorted[best + span] - sorted[best]) best = i;
    double sum = 0;
    for (size_t i = best; i <= best + span; i++) sum += sorted[i];
    return sum / (double)(span + 1);
}

static double pause_at(const at_measured *m, size_t cell)
{
    return m->log.pause ? m->log.pause[cell] : 0;
}

static at_err find_bases(const at_measured *m, at_fit *fit, at_fail *fail)
{
    uint32_t workers = m->log.workers, steps = m->log.steps;
    double  *times = calloc(steps, sizeof *times), sum = 0;
    if (!times) return at_fail_memory(fail);
    for (uint32_t w = 0; w < workers; w++) {
        for (uint32_t step = 0; step < steps; step++) {
            size_t cell = (size_t)step * workers + w;
            times[step] = m->round_s[cell] - pause_at(m, cell);
        }
        at_stats_sort(times, steps);
        fit->base_s[w] = usual(times, steps);
        sum += fit->base_s[w];
    }
    free(times);
    fit->sample_s = sum / workers / m->batch;
    for (uint32_t w = 0; w < workers; w++) fit->speed[w] = fit->base_s[w] * workers / sum;
    return AT_OK;
}

/* ---- delays ---------------------------------------------------------------------------------- */

/* How much longer than usual the computing of a round took, relative to the usual time. */
static double excess(const at_measured *m, const at_fit *fit, size_t cell)
{
    double base = fit->base_s[cell % m->log.workers];
    assert(base > 0);
    return (m->round_s[cell] - pause_at(m, cell)) / base - 1;
}

typedef struct spread {
    double mean, sd, persistence;
} spread;

/* Mean and deviation of the excess, and the correlation of a worker's next one with it. */
static spread measure_spread(const at_measured *m, const at_fit *fit)
{
    uint32_t workers = m->log.workers, steps = m->log.steps;
    double   sum = 0, square = 0, product = 0;
    spread   s = {0};
    for (uint32_t w = 0; w < workers; w++) {
        double mean = 0;
        for (uint32_t i = 0; i < steps; i++)
            mean += excess(m, fit, (size_t)i * workers + w) / steps;
        s.mean += mean / workers;
        for (uint32_t i = 0; i < steps; i++) {
            double now = excess(m, fit, (size_t)i * workers + w) - mean;
            square += now * now;
            if (i + 1 == steps) continue;
            sum += now * now;
            product += now * (excess(m, fit, (size_t)(i + 1) * workers + w) - mean);
        }
    }
    s.sd = sqrt(square / ((double)workers * steps));
    s.persistence = sum > 0 ? product / sum : 0;
    return s;
}

static bool are_pauses(const spread *s, at_delays delays)
{
    switch (delays) {
    case AT_DELAYS_PAUSE: return true;
    case AT_DELAYS_SLOW: return false;
    case AT_DELAYS_AUTO: break;
    }
    bool one_sided = s->mean > 0.3 * s->sd; /* noise makes rounds shorter as often as longer */
    return s->sd > STEADY && one_sided && s->persistence < PERSISTENT;
}

/* The log as a pace. */
static void fill_rounds(const at_measured *m, at_fit *fit)
{
    size_t cells = (size_t)m->log.steps * m->log.workers;
    double unit = fit->sample_s * m->batch;
    for (size_t i = 0; i < cells; i++) {
        double pause = pause_at(m, i), base = fit->base_s[i % m->log.workers];
        double computing = m->round_s[i] - pause;
        if (fit->pauses && !fit->recorded && computing > base) {
            pause += computing - base;
            computing = base;
        }
        fit->sleep_s[i] = pause;
        fit->factor[i] = computing / unit;
    }
}

/* ---- the fitted pace ------------------------------------------------------------------------- */

static at_err fit_pauses(const at_measured *m, at_fit *fit, at_fail *fail)
{
    size_t  cells = (size_t)m->log.steps * m->log.workers;
    double *pauses = malloc(cells * sizeof *pauses);
    if (!pauses) return at_fail_memory(fail);
    memcpy(pauses, fit->sleep_s, cells * sizeof *pauses);
    at_fit_mixture(fit, pauses, cells, fit->sample_s * m->batch);
    free(pauses);
    return AT_OK;
}

/* Slow periods are rounds in a row that take much longer than usual. */
static void fit_bursts(const at_measured *m, at_fit *fit)
{
    uint32_t workers = m->log.workers, steps = m->log.steps;
    double   starts = 0, slow = 0, normal = 0, slow_sum = 0, log_sum = 0, log_square = 0;
    double   unit = fit->sample_s * m->batch;
    for (uint32_t w = 0; w < workers; w++) {
        bool before = false;
        for (uint32_t i = 0; i < steps; i++) {
            double ratio = fit->factor[(size_t)i * workers + w] * unit / fit->base_s[w];
            bool   now = ratio > BURST;
            if (now) {
                slow_sum += ratio;
                slow++;
                starts += !before;
            } else {
                log_sum += log(ratio);
                log_square += log(ratio) * log(ratio);
                normal++;
            }
            before = now;
        }
    }
    if (normal > 1) {
        double mean = log_sum / normal;
        fit->vary = sqrt(fmax(0, log_square / normal - mean * mean));
        /* The mean of the other rounds, so that the fitted pace has the measured mean. */
        fit->sample_s *= exp(mean + fit->vary * fit->vary / 2);
    }
    if (slow < 3 || normal < 3) return;
    fit->burst_start = starts / normal;
    fit->burst_length = slow / starts;
    fit->burst_factor = slow_sum / slow;
}

static at_err allocate(const at_measured *m, at_fit *fit, at_fail *fail)
{
    size_t cells = (size_t)m->log.steps * m->log.workers;
    fit->speed = calloc(m->log.workers, sizeof(double));
    fit->base_s = calloc(m->log.workers, sizeof(double));
    fit->sleep_s = calloc(cells, sizeof(double));
    fit->factor = calloc(cells, sizeof(double));
    bool allocated = fit->speed && fit->base_s && fit->sleep_s && fit->factor;
    return allocated ? AT_OK : at_fail_memory_for(fail, "to fit the log");
}

at_err at_fit_new(const at_measured *measured, at_delays delays, at_fit *fit, at_fail *fail)
{
    *fit = (at_fit){.recorded = measured->log.pause != NULL};
    at_err err = allocate(measured, fit, fail);
    if (!err) err = find_bases(measured, fit, fail);
    if (!err) {
        spread s = measure_spread(measured, fit);
        fit->persistence = s.persistence;
        fit->pauses = fit->recorded || are_pauses(&s, delays);
        fill_rounds(measured, fit);
        double unit = fit->sample_s; /* of the replay; the bursts change it for the fitted pace */
        if (fit->pauses) err = fit_pauses(measured, fit, fail);
        fit_bursts(measured, fit);
        fit->sample_fitted_s = fit->sample_s;
        fit->sample_s = unit;
    }
    if (err) at_fit_deinit(fit);
    return err;
}

void at_fit_straggler(const at_fit *fit, uint32_t workers, at_text *text)
{
    assert(workers >= 1);
    for (uint32_t i = 0; i < workers; i++)
        at_text_add(text, "%s%.4g", i ? "," : "speed:", fit->speed[i]);
    if (fit->burst_start > 0)
        at_text_add(text, "+burst:%.4g,%.4g,%.4g", fit->burst_start, fit->burst_length,
                    fit->burst_factor);
    if (fit->vary > 1e-4) at_text_add(text, "+vary:%.4g", fit->vary);
    for (uint32_t i = 0; i < fit->components; i++)
        at_text_add(text, "%s%.4g,%.4g,%.4g", i ? ";" : "+mix:", fit->pause[i].mean,
                    fit->pause[i].sd, fit->pause[i].weight);
}

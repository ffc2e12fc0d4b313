#include "serve/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "record/roster.h"
#include "report/summary/utf8.h"

const char at_metrics_type[] = "text/plain; version=0.0.4; charset=utf-8";

typedef struct metrics {
    FILE                   *file;
    at_run_follower *const *followers;
    size_t                  count;
    at_ns                   now;
} metrics;

/* ---- lines ---------------------------------------------------------------------------------- */

void at_metrics_label(FILE *file, const char *value)
{
    assert(value);
    while (*value) {
        uint32_t code;
        size_t   size = at_utf8_next(value, &code);
        if (*value == '\n')
            fputs("\\n", file);
        else if (*value == '"' || *value == '\\')
            fprintf(file, "\\%c", *value);
        else if (code == '?')
            fputc('?', file);
        else
            fwrite(value, 1, size, file);
        value += size;
    }
}

static void head(const metrics *m, const char *name, const char *type, const char *help)
{
    assert(strncmp(name, "anytime_", 8) == 0);
    fprintf(m->file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_value(FILE *file, double value)
{
    assert(file);
    if (isnan(value))
        fputs(" NaN\n", file);
    else if (isinf(value))
        fputs(value > 0 ? " +Inf\n" : " -Inf\n", file);
    else
        fprintf(file, " %.15g\n", value);
}

/* One line; `key` is the name of a second label, or NULL. */
static void line(const metrics *m, const char *name, const at_run_follower *follower,
                 const char *key, const char *label, double value)
{
    assert(!key == !label);
    assert(strncmp(name, "anytime_", 8) == 0);
    fprintf(m->file, "%s{run=\"", name);
    at_metrics_label(m->file, at_run_follower_folder(follower));
    fputc('"', m->file);
    if (key) {
        fprintf(m->file, ",%s=\"", key);
        at_metrics_label(m->file, label);
        fputc('"', m->file);
    }
    fputc('}', m->file);
    put_value(m->file, value);
}

static const at_tally *tally_of(const at_run_follower *follower)
{
    assert(follower);
    const at_run_summary *summary = at_run_follower_summary(follower);
    return summary ? at_run_summary_tally(summary) : NULL;
}

/* ---- one value per run ---------------------------------------------------------------------- */

static double steps(const at_tally *t)
{
    return (double)t->step_count;
}

static double samples_used(const at_tally *t)
{
    return (double)t->samples_used;
}

static double train_loss(const at_tally *t)
{
    return t->loss_recent;
}

static double test_step(const at_tally *t)
{
    return (double)t->test_step;
}

static double staleness_max(const at_tally *t)
{
    return (double)t->staleness_max;
}

static double evaluations(const at_tally *t)
{
    return t->evaluations;
}

static double respawns(const at_tally *t)
{
    return t->respawns;
}

static double evictions(const at_tally *t)
{
    return t->evictions;
}

static const struct {
    const char *name, *type, *help;
    double (*value)(const at_tally *tally);
} numbers[] = {
    {"anytime_steps_total", "counter", "Parameter updates applied.", steps},
    {"anytime_samples_used_total", "counter", "Samples used in updates.", samples_used},
    {"anytime_seconds", "gauge", "Time from the first order to the last update.", at_tally_seconds},
    {"anytime_train_loss", "gauge", "Training loss, averaged over recent steps.", train_loss},
    {"anytime_test_step", "gauge", "Step of the newest evaluation.", test_step},
    {"anytime_useful_ratio", "gauge", "Fraction of worker time spent on samples that were used.",
     at_tally_useful},
    {"anytime_staleness_max", "gauge", "Maximum staleness of the gradients used.", staleness_max},
    {"anytime_evaluations_total", "counter", "Evaluations on the test set.", evaluations},
    {"anytime_respawns_total", "counter", "Workers replaced.", respawns},
    {"anytime_evictions_total", "counter", "Workers evicted for sending no message.", evictions},
};

static void put_numbers(const metrics *m)
{
    assert(m->count > 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        head(m, numbers[i].name, numbers[i].type, numbers[i].help);
        for (size_t r = 0; r < m->count; r++) {
            const at_tally *tally = tally_of(m->followers[r]);
            if (!tally) continue;
            line(m, numbers[i].name, m->followers[r], NULL, NULL, numbers[i].value(tally));
        }
    }
}

/* ---- state ---------------------------------------------------------------------------------- */

static void put_states(const metrics *m)
{
    assert(m->now > 0);
    head(m, "anytime_run_state", "gauge", "1 for the current state of the run.");
    for (size_t r = 0; r < m->count; r++)
        for (int s = 0; s < AT_RUN_FOLLOWER_STATES; s++)
            line(m, "anytime_run_state", m->followers[r], "state", at_run_follower_state_name[s],
                 at_run_follower_state_of(m->followers[r]) == (at_run_follower_state)s);
    head(m, "anytime_run_silence_seconds", "gauge", "Time since the newest data of the run.");
    for (size_t r = 0; r < m->count; r++) {
        at_ns changed_at = at_run_follower_changed_at(m->followers[r]);
        if (!changed_at) continue;
        line(m, "anytime_run_silence_seconds", m->followers[r], NULL, NULL,
             at_seconds(m->now - changed_at));
    }
}

static void put_info(const metrics *m)
{
    static const char name[] = "anytime_run_info";
    head(m, name, "gauge", "Configuration of the run as labels; always 1.");
    for (size_t r = 0; r < m->count; r++) {
        const at_tally *tally = tally_of(m->followers[r]);
        if (!tally) continue;
        const at_run_info *info = tally->info;
        const char        *labels[][2] = {{"run", at_run_follower_folder(m->followers[r])},
                                          {"strategy", info->plan->strategy->name},
                                          {"model", info->model},
                                          {"data", info->data},
                                          {"world", info->world}};
        fprintf(m->file, "%s{", name);
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
            fprintf(m->file, "%s%s=\"", i ? "," : "", labels[i][0]);
            at_metrics_label(m->file, labels[i][1] ? labels[i][1] : "");
            fputc('"', m->file);
        }
        fprintf(m->file, ",seed=\"%" PRIu64 "\"} 1\n", info->seed);
    }
}

/* ---- several values per run ----------------------------------------------------------------- */

static void put_dropped(const metrics *m)
{
    static const char name[] = "anytime_samples_dropped_total";
    head(m, name, "counter", "Samples drawn but not used, by reason.");
    for (size_t r = 0; r < m->count; r++) {
        const at_tally *tally = tally_of(m->followers[r]);
        for (int why = 0; tally && why < AT_DROP_COUNT; why++)
            line(m, name, m->followers[r], "reason", at_drop_name[why],
                 (double)tally->dropped_why[why]);
    }
}

static void put_tests(const metrics *m)
{
    static const char name[] = "anytime_test";
    head(m, name, "gauge", "Newest evaluation on the test set, by metric.");
    for (size_t r = 0; r < m->count; r++) {
        const at_tally *tally = tally_of(m->followers[r]);
        for (int i = 0; tally && i < AT_METRIC_COUNT; i++)
            if (!isnan(tally->test[i]))
                line(m, name, m->followers[r], "metric", at_metric_name[i], tally->test[i]);
    }
}

static void put_step_seconds(const metrics *m)
{
    static const char name[] = "anytime_step_seconds";
    head(m, name, "summary", "Duration of steps.");
    for (size_t r = 0; r < m->count; r++) {
        const at_tally *tally = tally_of(m->followers[r]);
        if (!tally) continue;
        at_duration_stats steps_spread = at_tally_steps(tally);
        double            count = (double)steps_spread.count;
        line(m, name, m->followers[r], "quantile", "0.5", steps_spread.p50);
        line(m, name, m->followers[r], "quantile", "0.95", steps_spread.p95);
        line(m, "anytime_step_seconds_sum", m->followers[r], NULL, NULL, steps_spread.mean * count);
        line(m, "anytime_step_seconds_count", m->followers[r], NULL, NULL, count);
    }
}

static void put_staleness(const metrics *m)
{
    head(m, "anytime_staleness", "summary", "Staleness of the gradients used.");
    for (size_t r = 0; r < m->count; r++) {
        const at_tally *tally = tally_of(m->followers[r]);
        if (!tally) continue;
        line(m, "anytime_staleness_sum", m->followers[r], NULL, NULL, tally->staleness_sum);
        line(m, "anytime_staleness_count", m->followers[r], NULL, NULL,
             (double)tally->staleness_count);
    }
}

static void put_workers(const metrics *m)
{
    static const char  name[] = "anytime_workers";
    static const char *states[] = {at_state_absent,   at_state_starting, at_state_working,
                                   at_state_finished, at_state_lost,     at_state_evicted};
    head(m, name, "gauge", "Workers by state.");
    for (size_t r = 0; r < m->count; r++) {
        const at_tally *tally = tally_of(m->followers[r]);
        for (size_t s = 0; tally && s < sizeof states / sizeof *states; s++) {
            double count = 0;
            for (uint32_t w = 0; w < tally->info->plan->workers_max; w++)
                count += strcmp(tally->worker[w].state, states[s]) == 0;
            line(m, name, m->followers[r], "state", states[s], count);
        }
    }
}

/* ---- one value per worker ------------------------------------------------------------------- */

static double worker_working(const at_worker_tally *w)
{
    return strcmp(w->state, at_state_working) == 0;
}

static double worker_rounds(const at_worker_tally *w)
{
    return (double)w->rounds;
}

static double worker_samples(const at_worker_tally *w)
{
    return (double)w->samples;
}

static double worker_compute(const at_worker_tally *w)
{
    return at_seconds(w->compute_ns);
}

static double worker_sleep(const at_worker_tally *w)
{
    return at_seconds(w->sleep_ns);
}

static double worker_idle(const at_worker_tally *w)
{
    return at_seconds(w->idle_ns);
}

static double worker_send(const at_worker_tally *w)
{
    return at_seconds(w->send_ns);
}

static const struct {
    const char *name, *type, *help;
    double (*value)(const at_worker_tally *worker);
} worker_numbers[] = {
    {"anytime_worker_working", "gauge", "1 while the worker is working.", worker_working},
    {"anytime_worker_rounds_total", "counter", "Rounds reported by the worker.", worker_rounds},
    {"anytime_worker_samples_total", "counter", "Samples reported by the worker.", worker_samples},
    {"anytime_worker_compute_seconds_total", "counter", "Compute time.", worker_compute},
    {"anytime_worker_sleep_seconds_total", "counter", "Induced sleep time.", worker_sleep},
    {"anytime_worker_idle_seconds_total", "counter", "Waiting time.", worker_idle},
    {"anytime_worker_send_seconds_total", "counter", "Time spent sending gradients.", worker_send},
};

static double link_round_trip(const at_link_tally *l)
{
    return l->last.round_trip_ns > 0 ? at_seconds(l->last.round_trip_ns) : NAN;
}

static double link_sent(const at_link_tally *l)
{
    return (double)l->sent_bytes;
}

static double link_received(const at_link_tally *l)
{
    return (double)l->received_bytes;
}

static const struct {
    const char *name, *type, *help;
    double (*value)(const at_link_tally *link);
} link_numbers[] = {
    {"anytime_link_round_trip_seconds", "gauge", "Round trip to the worker's machine.",
     link_round_trip},
    {"anytime_link_sent_bytes_total", "counter", "Bytes sent to the worker.", link_sent},
    {"anytime_link_received_bytes_total", "counter", "Bytes received from the worker.",
     link_received},
};

/* Only of workers that are, or were, on other machines. */
static void put_link_numbers(const metrics *m)
{
    for (size_t i = 0; i < sizeof link_numbers / sizeof *link_numbers; i++) {
        head(m, link_numbers[i].name, link_numbers[i].type, link_numbers[i].help);
        for (size_t r = 0; r < m->count; r++) {
            const at_tally *tally = tally_of(m->followers[r]);
            uint32_t        workers = tally && tally->link ? tally->info->plan->workers_max : 0;
            for (uint32_t w = 0; w < workers && w < AT_METRICS_WORKERS_MAX; w++) {
                char id[16];
                if (!tally->link[w].last.address[0]) continue;
                snprintf(id, sizeof id, "%u", w + 1);
                line(m, link_numbers[i].name, m->followers[r], "worker", id,
                     link_numbers[i].value(&tally->link[w]));
            }
        }
    }
}

static void put_worker_numbers(const metrics *m)
{
    for (size_t i = 0; i < sizeof worker_numbers / sizeof *worker_numbers; i++) {
        head(m, worker_numbers[i].name, worker_numbers[i].type, worker_numbers[i].help);
        for (size_t r = 0; r < m->count; r++) {
            const at_tally *tally = tally_of(m->followers[r]);
            uint32_t        workers = tally ? tally->info->plan->workers_max : 0;
            for (uint32_t w = 0; w < workers && w < AT_METRICS_WORKERS_MAX; w++) {
                char id[16];
                snprintf(id, sizeof id, "%u", w + 1);
                line(m, worker_numbers[i].name, m->followers[r], "worker", id,
                     worker_numbers[i].value(&tally->worker[w]));
            }
        }
    }
}

void at_metrics_write(FILE *file, at_run_follower *const *followers, size_t count, at_ns now)
{
    const metrics m = {.file = file, .followers = followers, .count = count, .now = now};
    assert(file);
    put_states(&m);
    put_info(&m);
    put_numbers(&m);
    put_dropped(&m);
    put_tests(&m);
    put_step_seconds(&m);
    put_staleness(&m);
    put_workers(&m);
    put_worker_numbers(&m);
    put_link_numbers(&m);
}

/* tally.h - the running totals behind result.json. */
#ifndef AT_RECORD_TALLY_H
#define AT_RECORD_TALLY_H

#include <jansson.h>

#include "record/record.h"
#include "record/usage_tally.h"

/* A log-scaled histogram of durations: fixed memory, 1 % resolution from 1 ns to 300 years. */
typedef struct at_histogram at_histogram;

/* Mean, percentiles and largest of what was seen; all 0 when nothing was. */
typedef struct at_duration_stats {
    uint64_t count;
    double   mean, p50, p95, max;
} at_duration_stats;

typedef struct at_worker_tally {
    int64_t        pid;
    uint32_t       incarnations;
    uint64_t       rounds;
    uint64_t       samples; /* reported */
    uint64_t       samples_used, samples_dropped;
    at_ns          compute_ns, sleep_ns, idle_ns, send_ns;
    at_ns          useful_ns; /* compute time of rounds that were used */
    const char    *state;     /* "starting", "working", "finished", "lost", "evicted"; static */
    at_usage_tally usage;
} at_worker_tally;

typedef struct at_tally {
    const at_run_info *info;
    at_worker_tally   *worker; /* plan->workers */
    at_histogram      *steps;  /* step durations */
    uint64_t           step_count, samples_used, samples_dropped;
    uint64_t           dropped_why[AT_DROP_COUNT];
    at_ns              began_at, applied_at;         /* since START: first order (AT_NEVER before),
                                                   last APPLY */
    double             overshoot_sum, overshoot_max; /* seconds, |end - T|, rounds not ended by cap
                                                        or oversleep */
    uint64_t           overshoot_count;
    double             staleness_sum;
    uint64_t           staleness_max, staleness_count; /* of used gradients */
    double             loss_recent; /* mean training loss of the last steps, a step's weight halves
                                        in 50 steps; NAN before the first */
    double             loss_fading, loss_weight; /* forgetting; their ratio is loss_recent */
    double             loss_total; /* sum of all training losses, each before its sample was used */
    double             test[AT_METRIC_COUNT]; /* newest evaluation, NAN before the first */
    uint64_t           test_count, test_step;
    uint32_t           evaluations, respawns, evictions;
    at_usage_tally     hub_usage, evaluator_usage;
    at_end             end;
    /* Of a run that was resumed: how long it had trained before, and when that ended (START). */
    at_ns before_ns, before_end;
} at_tally;

/* A tally that fills itself as a sink of the recorder; it lives until at_tally_free, which MUST
 * come after the recorder is closed. NULL when there is no memory. */
at_tally *at_tally_new(const at_run_info *info, at_sink *sink);
void      at_tally_free(at_tally *tally); /* accepts NULL */

/* What has been counted so far, for a checkpoint at the time `at`; NULL when there is no memory. */
json_t *at_tally_json(const at_tally *tally, at_ns at);

/* Goes on from there, with the same or another number of workers. AT_ERR_FORMAT. */
at_err at_tally_resume(at_tally *tally, const json_t *state, at_fail *fail);

/* Progressive validation: the mean of all training losses so far, each before its sample was used;
 * NAN before the first. */
double at_tally_progressive(const at_tally *tally);

/* Step durations so far. */
at_duration_stats at_tally_steps(const at_tally *tally);

/* Seconds from the first order to the last APPLY. */
double at_tally_seconds(const at_tally *tally);

/* Time spent on samples that were used / (workers x seconds), 0 .. 1. */
double at_tally_useful(const at_tally *tally);

#endif

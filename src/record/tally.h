/* tally.h - the running totals behind result.json.
 *
 * Resource usage is read as counters of one process, but a replaced worker has had several: the
 * increments are summed, so that a total does not fall when the next process begins at 0.
 */
#ifndef AT_RECORD_TALLY_H
#define AT_RECORD_TALLY_H

#include <jansson.h>

#include "record/record.h"

/* See record/histogram.h. */
typedef struct at_histogram at_histogram;

/* In seconds; all 0 when empty. */
typedef struct at_duration_stats {
    uint64_t count;
    double   mean, p50, p95, max;
} at_duration_stats;

/* Resource usage of a node over all its processes; all 0 when it was not sampled. */
typedef struct at_usage_tally {
    at_usage last; /* the newest reading */
    at_ns    cpu_ns;
    uint64_t peak_bytes; /* largest peak of one process */
    uint64_t read_bytes, write_bytes;
    uint64_t net_in_bytes, net_out_bytes, loopback_bytes; /* of its machine, since first sampled */
} at_usage_tally;

/* Connections of a worker on other machines, all together. */
typedef struct at_link_tally {
    at_link_stats last;   /* of the newest connection; no address: it never had one */
    uint32_t      losses; /* how often the worker was lost or evicted */
    at_ns         round_trip_ns_min;
    uint64_t      sent_bytes, received_bytes, resent_packets;
} at_link_tally;

typedef struct at_worker_tally {
    int64_t     pid;
    uint32_t    incarnations;
    uint64_t    rounds;
    uint64_t    samples; /* reported */
    uint64_t    samples_used, samples_dropped;
    at_ns       compute_ns, sleep_ns, idle_ns, send_ns;
    at_ns       useful_ns; /* compute time of the rounds that were used */
    const char *state;     /* one of record/roster.h */
} at_worker_tally;

typedef struct at_tally {
    const at_run_info *info;
    at_worker_tally   *worker; /* plan->workers_max */
    at_usage_tally    *usage;  /* the same number; apart because in a simulation it is not used */
    at_link_tally     *link;   /* the same number; NULL: no worker is on another machine */
    at_histogram      *steps;  /* step durations */
    uint64_t           step_count, samples_used, samples_dropped;
    uint64_t           dropped_why[AT_DROP_COUNT];
    at_ns              began_at, applied_at;         /* since START: first order (AT_NEVER before),
                                                   last APPLY */
    double             overshoot_sum, overshoot_max; /* seconds, |end - deadline|, of rounds that
                                                        were ended by their time limit */
    uint64_t           overshoot_count;
    double             staleness_sum;
    uint64_t           staleness_max, staleness_count; /* of used gradients */
    double             loss_recent; /* exponential moving average of the training loss with a
                                        half-life of 50 steps; NAN before the first step */
    double             loss_fading, loss_weight; /* loss_recent is their ratio */
    double             loss_total;               /* sum of all training losses */
    double             test[AT_METRIC_COUNT];    /* newest evaluation, NAN before the first */
    uint64_t           test_count, test_step;
    uint32_t           evaluations, respawns, evictions;
    at_usage_tally     hub_usage, evaluator_usage;
    at_end             end;
    /* Resumed runs: how long the run had trained before, and when that ended, since START. */
    at_ns before_ns, before_end;
} at_tally;

/* A tally that is filled as a sink of the recorder. It stays valid after the recorder is closed,
 * until at_tally_free. NULL when there is no memory. */
at_tally *at_tally_new(const at_run_info *info, at_sink *sink);
void      at_tally_free(at_tally *tally); /* accepts NULL */

/* The totals for a checkpoint at the time `at`; NULL when there is no memory. */
json_t *at_tally_json(const at_tally *tally, at_ns at);

/* Continues from such totals, with the same or another number of workers. AT_ERR_FORMAT when they
 * are malformed. */
at_err at_tally_resume(at_tally *tally, const json_t *state, at_fail *fail);

/* Totals in an event log (AT_REC_TOTALS) are the same as JSON text, with the number of records left
 * out before them (`skipped`), and whether some are left out after them (`skips`). Can a run of so
 * many workers have had these at the time `at`? */
bool at_tally_totals_valid(const char *text, uint32_t workers, at_ns at);

/* Whether records are missing right before these totals, or after them. */
bool at_tally_totals_gap(const char *text);

/* Replaces everything that was counted by totals that were checked, as of the time `at`. */
void at_tally_replace(at_tally *tally, const char *text, at_ns at);

/* Progressive validation loss: the mean of all training losses so far, each computed before the
 * model was updated with its sample; NAN before the first. */
double at_tally_progressive(const at_tally *tally);

/* Statistics of the step durations so far. */
at_duration_stats at_tally_steps(const at_tally *tally);

/* Seconds from the first order to the last APPLY. */
double at_tally_seconds(const at_tally *tally);

/* Compute time of samples that were used / (workers x seconds), 0 .. 1. */
double at_tally_useful(const at_tally *tally);

#endif

/* pace.h - straggler models: how much slower is a worker in a round, or a message on its way.
 *
 * Delays are drawn from the random stream (seed, worker, round), so every strategy meets the same
 * delays for the same seed, in every world. The world applies them: in real worlds the worker
 * sleeps within its round; in simulation virtual time advances.
 *
 * Values of --straggler (MEAN, SD, SHIFT and MIN are durations; a bare number means seconds):
 *   none | niagara | cedar
 *   mix:MEAN,SD,WEIGHT;MEAN,SD,WEIGHT;..   sleep = min(limit, |N(mean, sd)|) of a random component,
 *                                          limit = min(1024 s, largest mean + 5 sd)
 *   exp:SHIFT,MEAN                         shifted exponential (MEAN of the exponential part)
 *   pareto:MIN,ALPHA
 *   speed:F1,F2,..                         persistent: worker w takes F_w times as long to compute
 *                                          (cyclic); no sleep, so scaling has no effect
 *   disturb:P                              DBS: in each epoch, with probability P, a worker becomes
 *                                          slow: U{5..10} s per epoch, spread over its rounds, for
 *                                          U{4..20} epochs; a new disturbance replaces the old one
 *   burst:P,LENGTH,FACTOR                  in each round, with probability P, a worker gets slow:
 *                                          FACTOR times as long, for LENGTH rounds on average
 *   vary:SD                                each round takes exp(N(0, SD)) times as long, mean 1
 *   trace:FILE                             one line per round, one sleep in seconds per worker,
 *                                          separated by blanks or commas; lines starting with # are
 *                                          comments; extra columns are ignored. Or a CSV file of
 *                                          step times with a header (step_log.h): then compute
 *                                          times vary as recorded. A run longer than the trace
 *                                          repeats it.
 *   MODEL+MODEL+..                         sleeps add up, factors multiply, each model is scaled
 *                                          separately: niagara+speed:1,1,2,4
 */
#ifndef AT_PACE_PACE_H
#define AT_PACE_PACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

typedef struct at_pace at_pace;

/* Settings of a run. */
typedef struct at_pace_options {
    const char *model; /* as above */
    const char *scale; /* "1", "0.05", or "20%": mean sleep = 20 % of round_ns_mean; NULL: "1" */
    uint64_t    seed;
    uint32_t    workers;
    at_ns       round_ns_mean; /* mean compute time of a round for "20%" and traces; 0: not known */
    uint64_t    rounds_per_epoch; /* of one worker, >= 1; used by disturb only */
    double      trace_scale;      /* step times of a trace are multiplied by this; 0 means 1 */
} at_pace_options;

/* Parses and checks. AT_ERR_USAGE for an invalid model or number, AT_ERR_MISSING / AT_ERR_FORMAT
 * for a trace file. The object is read-only afterwards and may be shared by forked workers. */
at_err at_pace_new(const at_pace_options *options, at_pace **pace, at_fail *fail);
void   at_pace_free(at_pace *pace); /* accepts NULL */

/* Names of straggler models; NULL after the last one. */
const char *at_pace_model_name(size_t index);

/* A recorded pace: round r of worker w+1 sleeps for sleep_s[r * workers + w] and computes
 * factor[r * workers + w] times as long as --sample-time says. A longer run repeats it. */
typedef struct at_pace_rounds {
    uint32_t      workers, rounds; /* >= 1 */
    const double *sleep_s;         /* NULL: no sleeps */
    const double *factor;          /* NULL: 1 */
} at_pace_rounds;

/* A pace that repeats these rounds, which are copied. AT_ERR_FAILED when out of memory. */
at_err at_pace_replay(const at_pace_rounds *rounds, at_pace **pace, at_fail *fail);

/* Induced sleep of `worker` (1 .. workers) at the start of its round `round` (0, 1, ..). It depends
 * on nothing else, in particular not on earlier calls, and never exceeds a year. */
at_ns at_pace_sleep(const at_pace *pace, uint32_t worker, uint64_t round);

/* Factor >= 0 on the worker's compute time in this round; 1 for models that only sleep. */
double at_pace_factor(const at_pace *pace, uint32_t worker, uint64_t round);

/* Delay of message number `message` of `node` under --comm-delay, the published communication
 * straggler: |N(0,1)| * sigma seconds. The same arguments give the same delay in every world. */
at_ns at_comm_delay(double sigma, uint64_t seed, uint32_t node, uint64_t message);

#endif

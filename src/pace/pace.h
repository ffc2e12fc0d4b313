/* pace.h - how much slower is this worker in this round?
 *
 * The answer is drawn from the stream (seed, worker, round), so every strategy meets the same
 * slowness for the same seed, in every world. The world makes it happen: in real worlds the worker
 * sleeps inside its round clock; in virtual time the time just passes.
 *
 * Spellings of --straggler (MEAN, SD, SHIFT and MIN are durations; a bare number means seconds):
 *   none | niagara | cedar
 *   mix:MEAN,SD,WEIGHT;MEAN,SD,WEIGHT;..   sleep = min(limit, |N(mean, sd)|) of a drawn component,
 *                                          limit = min(1024 s, largest mean + 5 sd)
 *   exp:SHIFT,MEAN                         shifted exponential (MEAN of the exponential part)
 *   pareto:MIN,ALPHA
 *   speed:F1,F2,..                         persistent: worker w computes F_w times as slowly
 *                                          (cyclic); there is no sleep, and nothing to scale
 *   disturb:P                              DBS: each epoch with probability P a worker becomes
 *                                          slow: U{5..10} s an epoch more, spread over its rounds,
 *                                          for U{4..20} epochs; a new disturbance replaces the old
 *   trace:FILE                             one line a round, one sleep in seconds a worker, parted
 *                                          by blanks or commas; lines that begin with # are
 *                                          comments; more columns than workers are fine. A run
 *                                          longer than the trace starts it again from the top.
 *   LAW+LAW+..                             sleeps add up, factors multiply, and each law is scaled
 *                                          by itself: niagara+speed:1,1,2,4
 */
#ifndef AT_PACE_PACE_H
#define AT_PACE_PACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

typedef struct at_pace at_pace;

/* What a world and a run fill in. */
typedef struct at_pace_options {
    const char *law;   /* the spelling above */
    const char *scale; /* "1", "0.05", or "20%": mean sleep = 20 % of round_ns_mean; NULL: "1" */
    uint64_t    seed;
    uint32_t    workers;
    at_ns       round_ns_mean;    /* mean compute time of one round; needed by "20%" only, else 0 */
    uint64_t    rounds_per_epoch; /* of one worker; needed by disturb only, >= 1 */
} at_pace_options;

/* Parses and checks. AT_ERR_USAGE for a wrong law or number, AT_ERR_MISSING / AT_ERR_FORMAT for a
 * trace file. The object is read-only afterwards and may be shared by forked workers. */
at_err at_pace_new(const at_pace_options *options, at_pace **pace, at_fail *fail);
void   at_pace_free(at_pace *pace); /* accepts NULL */

/* Induced sleep of `worker` (1 .. workers) at the start of its round `round` (0, 1, ..). It depends
 * on nothing else, in particular not on earlier calls, and is never more than a year. */
at_ns at_pace_sleep(const at_pace *pace, uint32_t worker, uint64_t round);

/* Factor >= 0 on the worker's compute time; 1 unless the law is `speed`. */
double at_pace_factor(const at_pace *pace, uint32_t worker);

/* Mean sleep of one round under the law as scaled, in the long run; NAN when the law has none
 * (pareto with alpha <= 1). */
double at_pace_mean_seconds(const at_pace *pace);

/* The laws for --help and `nearest` suggestions: one row a law, in the order they are listed. */
typedef struct at_pace_law {
    const char                *name;
    const char                *usage;
    const char                *summary;
    const char                *preset; /* what the name stands for when it takes no arguments */
    const struct at_pace_kind *kind;   /* how it works: pace/pace_kind.h, for this layer only */
} at_pace_law;
extern const at_pace_law at_pace_laws[];
extern const size_t      at_pace_laws_count;

#endif

/* pace_kind.h - what one kind of law has to provide; inside the pace layer only.
 *
 * A new law is one file with an at_pace_kind, one declaration here and one row in pace.c.
 */
#ifndef AT_PACE_PACE_KIND_H
#define AT_PACE_PACE_KIND_H

#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "pace/pace.h"

/* Whose sleep, and when: everything a draw may depend on. */
typedef struct at_pace_moment {
    uint64_t seed;
    uint32_t worker; /* 1 .. workers */
    uint64_t round;  /* 0, 1, .. */
} at_pace_moment;

typedef struct at_pace_kind {
    /* Parses what follows the colon (it may be cut up on the way) into one block of memory that
     * free() releases. Failures name what is wrong; the caller adds the law and how it is used. */
    at_err (*create)(const at_pace_options *options, char *arguments, void **self, at_fail *fail);

    /* Sleep in seconds before scaling, >= 0. Optional: NULL means that this kind never sleeps. */
    double (*sleep)(const void *self, const at_pace_moment *moment);

    /* Its mean in the long run, NAN when there is none. Goes with sleep. */
    double (*mean)(const void *self);

    /* Factor on compute time. Optional: NULL means 1. */
    double (*factor)(const void *self, uint32_t worker);
} at_pace_kind;

extern const at_pace_kind at_pace_mix, at_pace_exp, at_pace_pareto, at_pace_speed, at_pace_disturb,
    at_pace_trace;

/* The random stream of a moment. */
static inline at_rng at_pace_stream(const at_pace_moment *moment)
{
    return at_rng_stream(moment->seed, moment->worker, AT_RNG_PURPOSE_PACE, moment->round);
}

/* Cuts the next field (up to a comma) off *arguments and reads it as a duration, in seconds.
 * `what` names it in the failure. *arguments is NULL when nothing is left. */
at_err at_pace_take_seconds(char **arguments, const char *what, double *seconds, at_fail *fail);

/* The same for a number >= 0. */
at_err at_pace_take_number(char **arguments, const char *what, double *number, at_fail *fail);

/* Nothing may be left. */
at_err at_pace_take_end(char *arguments, at_fail *fail);

#endif

/* pace_model.h - the interface of a straggler model. Internal to the pace layer.
 *
 * A new model is one file with an at_pace_model, one declaration here and one row in pace.c.
 */
#ifndef AT_PACE_PACE_MODEL_H
#define AT_PACE_PACE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "pace/pace.h"

/* Everything that a draw may depend on. */
typedef struct at_pace_draw {
    uint64_t seed;
    uint32_t worker; /* 1 .. workers */
    uint64_t round;  /* 0, 1, .. */
} at_pace_draw;

typedef struct at_pace_model {
    /* Parses the text after the colon, which it may modify, into one block of memory that free()
     * releases. Failures name the bad argument; the caller adds the model and its usage. */
    at_err (*create)(const at_pace_options *options, char *arguments, void **self, at_fail *fail);

    /* Sleep in seconds before scaling, >= 0. Optional: NULL means that this model never sleeps. */
    double (*sleep)(const void *self, const at_pace_draw *draw);

    /* Long-run mean of sleep; NAN when it has none. Required with sleep. */
    double (*mean)(const void *self);

    /* Factor on compute time. Optional: NULL means 1. */
    double (*factor)(const void *self, const at_pace_draw *draw);

    bool draws_factor; /* factor uses the random stream, so a model after it needs another one */
} at_pace_model;

extern const at_pace_model at_pace_mix, at_pace_exp, at_pace_pareto, at_pace_speed, at_pace_disturb,
    at_pace_trace, at_pace_burst, at_pace_vary;

/* The state of at_pace_trace with a copy of these rounds; NULL when out of memory. */
void *at_pace_trace_new(const at_pace_rounds *rounds);

/* The random stream of a draw. */
static inline at_rng at_pace_stream(const at_pace_draw *draw)
{
    return at_rng_stream(draw->seed, draw->worker, AT_RNG_PURPOSE_PACE, draw->round);
}

/* Cuts the next field (up to a comma) off *arguments and parses it as a duration, in seconds.
 * `what` names it in the failure. *arguments becomes NULL after the last field. */
at_err at_pace_parse_seconds(char **arguments, const char *what, double *seconds, at_fail *fail);

/* The same for a number >= 0. */
at_err at_pace_parse_number(char **arguments, const char *what, double *number, at_fail *fail);

/* Fails when fields are left. */
at_err at_pace_parse_end(char *arguments, at_fail *fail);

#endif

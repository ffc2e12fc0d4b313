/* The shifted exponential of coded-computation papers: sleep = SHIFT + Exp(MEAN). */
#include "pace/pace_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

typedef struct shifted_exp {
    double shift, mean;
} shifted_exp;

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    (void)options;
    assert(arguments);
    shifted_exp *e = *self = calloc(1, sizeof *e);
    if (!e) return at_fail_memory(fail);
    AT_TRY(at_pace_parse_seconds(&arguments, "SHIFT", &e->shift, fail));
    AT_TRY(at_pace_parse_seconds(&arguments, "MEAN", &e->mean, fail));
    return at_pace_parse_end(arguments, fail);
}

static double draw_sleep(const void *self, const at_pace_draw *draw)
{
    const shifted_exp *e = self;
    at_rng             rng = at_pace_stream(draw);
    double             tail = 1 - at_rng_uniform(&rng); /* in (0, 1], so the logarithm is finite */
    assert(tail > 0);
    return e->shift - e->mean * log(tail);
}

static double mean(const void *self)
{
    const shifted_exp *e = self;
    assert(e->shift >= 0 && e->mean >= 0);
    return e->shift + e->mean;
}

const at_pace_model at_pace_exp = {.create = create, .sleep = draw_sleep, .mean = mean};

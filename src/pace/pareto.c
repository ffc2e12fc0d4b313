/* A heavy tail: P(sleep > t) = (MIN / t)^ALPHA for t >= MIN. */
#include "pace/pace_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

typedef struct pareto {
    double min, alpha;
} pareto;

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    (void)options;
    assert(arguments);
    pareto *p = *self = calloc(1, sizeof *p);
    if (!p) return at_fail_memory(fail);
    AT_TRY(at_pace_parse_seconds(&arguments, "MIN", &p->min, fail));
    AT_TRY(at_pace_parse_number(&arguments, "ALPHA", &p->alpha, fail));
    if (p->min <= 0 || p->alpha <= 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "MIN and ALPHA must be above 0");
    return at_pace_parse_end(arguments, fail);
}

static double draw_sleep(const void *self, const at_pace_draw *draw)
{
    const pareto *p = self;
    at_rng        rng = at_pace_stream(draw);
    double        tail = 1 - at_rng_uniform(&rng); /* in (0, 1] */
    assert(tail > 0);
    return p->min * pow(tail, -1 / p->alpha); /* may be infinite: the caller bounds it */
}

static double mean(const void *self)
{
    const pareto *p = self;
    assert(p->min > 0 && p->alpha > 0);
    return p->alpha > 1 ? p->min * p->alpha / (p->alpha - 1) : NAN;
}

const at_pace_model at_pace_pareto = {.create = create, .sleep = draw_sleep, .mean = mean};

/* Independent variation: a round takes exp(N(0, SD)) times as long, scaled to a mean of 1. */
#include "pace/pace_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const double SD_MAX = 3;

typedef struct vary {
    double sd;
} vary;

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    (void)options;
    vary *v = *self = calloc(1, sizeof *v);
    if (!v) return at_fail_memory(fail);
    AT_TRY(at_pace_parse_number(&arguments, "SD", &v->sd, fail));
    if (v->sd > SD_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "SD is %g; it must be at most %g", v->sd,
                           SD_MAX);
    return at_pace_parse_end(arguments, fail);
}

static double factor_of(const void *self, const at_pace_draw *draw)
{
    const vary *v = self;
    assert(v->sd >= 0);
    at_rng rng = at_pace_stream(draw);
    return exp(v->sd * at_rng_normal(&rng) - v->sd * v->sd / 2);
}

const at_pace_model at_pace_vary = {.create = create, .factor = factor_of, .draws_factor = true};

/* Persistently slow machines: worker w takes F_w times as long; the factors repeat cyclically. */
#include "pace/pace_model.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"

static const double FACTOR_MAX = 1e6; /* beyond this a worker is as good as dead */

typedef struct speed {
    size_t count;
    double factors[];
} speed;

static at_err parse_factors(speed *s, char *arguments, at_fail *fail)
{
    while (arguments) {
        double *factor = &s->factors[s->count++];
        AT_TRY(at_pace_parse_number(&arguments, "a factor", factor, fail));
        if (*factor <= 0 || *factor > FACTOR_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, NULL,
                               "a factor is %g; it must be above 0 and at most %g", *factor,
                               FACTOR_MAX);
    }
    return AT_OK;
}

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    (void)options;
    size_t count = 1, size;
    for (const char *c = arguments; *c; c++) count += *c == ',';
    speed *s = NULL;
    if (at_size_product(count, sizeof *s->factors, &size)) s = calloc(1, sizeof *s + size);
    if (!s) return at_fail_memory(fail);
    *self = s;
    at_err err = parse_factors(s, arguments, fail);
    assert(s->count <= count);
    return err;
}

static double factor_of(const void *self, const at_pace_draw *draw)
{
    const speed *s = self;
    assert(draw->worker >= 1);
    return s->factors[(draw->worker - 1) % s->count];
}

const at_pace_model at_pace_speed = {.create = create, .factor = factor_of};

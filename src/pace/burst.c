/* Slow periods: a worker is normal or slow, and changes between the two at random. The periods of
 * each worker are drawn in advance for a long cycle of rounds, so that a round's state needs no
 * history. */
#include "pace/pace_model.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"

enum { CYCLE = 8192 }; /* rounds until the periods repeat */
static const double LENGTH_MAX = 1e6, FACTOR_MAX = 1e6;

typedef struct burst {
    double        factor;
    unsigned char slow[]; /* (workers, CYCLE / 8) one bit per round */
} burst;

typedef struct law {
    double start, length; /* probability of a start in a normal round, mean rounds */
} law;

static void draw_periods(unsigned char *bits, uint64_t seed, uint32_t worker, const law *rates)
{
    at_pace_draw draw = {.seed = seed, .worker = worker};
    at_rng       rng = at_pace_stream(&draw);
    double       share = rates->start * rates->length / (1 + rates->start * rates->length);
    bool         slow = at_rng_uniform(&rng) < share;
    for (uint32_t round = 0; round < CYCLE; round++) {
        if (slow) bits[round / 8] |= (unsigned char)(1u << round % 8);
        double u = at_rng_uniform(&rng);
        slow = slow ? u >= 1 / rates->length : u < rates->start;
    }
}

static at_err parse(char *arguments, law *rates, double *factor, at_fail *fail)
{
    AT_TRY(at_pace_parse_number(&arguments, "P", &rates->start, fail));
    AT_TRY(at_pace_parse_number(&arguments, "LENGTH", &rates->length, fail));
    AT_TRY(at_pace_parse_number(&arguments, "FACTOR", factor, fail));
    if (rates->start > 1)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "P is %g; a probability is at most 1",
                           rates->start);
    if (rates->length < 1 || rates->length > LENGTH_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "LENGTH is %g; it must be 1 to %g rounds",
                           rates->length, LENGTH_MAX);
    if (*factor <= 0 || *factor > FACTOR_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL,
                           "FACTOR is %g; it must be above 0 and at most %g", *factor, FACTOR_MAX);
    return at_pace_parse_end(arguments, fail);
}

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    law    rates = {0};
    double factor = 1;
    size_t size;
    AT_TRY(parse(arguments, &rates, &factor, fail));
    burst *b = NULL;
    if (at_size_product(options->workers, CYCLE / 8, &size)) b = calloc(1, sizeof *b + size);
    if (!b) return at_fail_memory(fail);
    *self = b;
    b->factor = factor;
    for (uint32_t w = 1; w <= options->workers; w++)
        draw_periods(b->slow + (size_t)(w - 1) * (CYCLE / 8), options->seed, w, &rates);
    return AT_OK;
}

static double factor_of(const void *self, const at_pace_draw *draw)
{
    const burst *b = self;
    assert(draw->worker >= 1);
    uint64_t round = draw->round % CYCLE;
    size_t   at = (size_t)(draw->worker - 1) * (CYCLE / 8) + round / 8;
    return b->slow[at] >> round % 8 & 1 ? b->factor : 1;
}

const at_pace_model at_pace_burst = {.create = create, .factor = factor_of, .draws_factor = true};

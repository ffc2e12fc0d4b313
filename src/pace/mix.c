/* A mixture of folded normal distributions, as in the published anytime experiments: component
 * k is drawn with probability w_k, then
 *     sleep = min(limit, |N(mean_k, sd_k)|),   limit = min(1024 s, max_k(mean_k + 5 sd_k)).
 */
#include "pace/pace_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static const double LIMIT_SECONDS_MAX = 1024;
static const double WEIGHT_SUM_SLACK = 0.01; /* accepts three weights of .333 */

typedef struct component {
    double mean, sd, weight;
} component;

typedef struct mix {
    double    limit;
    double    weight_sum; /* near 1; weights are relative to it */
    size_t    count;
    component parts[];
} mix;

static at_err parse_component(char *text, component *part, at_fail *fail)
{
    AT_TRY(at_pace_parse_seconds(&text, "MEAN", &part->mean, fail));
    AT_TRY(at_pace_parse_seconds(&text, "SD", &part->sd, fail));
    AT_TRY(at_pace_parse_number(&text, "WEIGHT", &part->weight, fail));
    return at_pace_parse_end(text, fail);
}

static at_err parse_components(mix *m, char *arguments, at_fail *fail)
{
    double limit = 0;
    for (char *text; (text = strsep(&arguments, ";"));) {
        component *part = &m->parts[m->count++];
        AT_TRY(parse_component(text, part, fail));
        limit = fmax(limit, part->mean + 5 * part->sd);
        m->weight_sum += part->weight;
    }
    m->limit = fmin(limit, LIMIT_SECONDS_MAX);
    if (fabs(m->weight_sum - 1) <= WEIGHT_SUM_SLACK) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "choose the weights so that they sum to 1",
                       "the weights sum to %g", m->weight_sum);
}

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    (void)options;
    size_t count = 1, size;
    for (const char *c = arguments; *c; c++) count += *c == ';';
    mix *m = NULL;
    if (at_size_product(count, sizeof *m->parts, &size)) m = calloc(1, sizeof *m + size);
    if (!m) return at_fail_memory(fail);
    *self = m;
    at_err err = parse_components(m, arguments, fail);
    assert(m->count <= count);
    return err;
}

static const component *draw_component(const mix *m, at_rng *rng)
{
    assert(m->count >= 1);
    double left = at_rng_uniform(rng) * m->weight_sum;
    for (size_t i = 0; i + 1 < m->count; i++) {
        if (left < m->parts[i].weight) return &m->parts[i];
        left -= m->parts[i].weight;
    }
    return &m->parts[m->count - 1];
}

static double draw_sleep(const void *self, const at_pace_draw *draw)
{
    const mix       *m = self;
    at_rng           rng = at_pace_stream(draw);
    const component *part = draw_component(m, &rng);
    double           seconds = fabs(part->mean + part->sd * at_rng_normal(&rng));
    return fmin(seconds, m->limit);
}

/* Integral from z to infinity of P(N(0,1) > t) dt. */
static double upper_tail_integral(double z)
{
    const double root_2pi = 2.5066282746310002;
    double       density = exp(-z * z / 2) / root_2pi;
    double       above = erfc(z / sqrt(2.0)) / 2;
    return density - z * above;
}

/* E min(L, |X|) is the integral of P(|X| > t) from 0 to L; |X| > t has two tails. */
static double mean_of_component(const component *part, double limit)
{
    assert(limit >= 0);
    double m = part->mean, s = part->sd;
    if (s == 0) return fmin(m, limit);
    double right = upper_tail_integral(-m / s) - upper_tail_integral((limit - m) / s);
    double left = upper_tail_integral(m / s) - upper_tail_integral((limit + m) / s);
    return s * (right + left);
}

static double mean(const void *self)
{
    const mix *m = self;
    double     sum = 0;
    for (size_t i = 0; i < m->count; i++)
        sum += m->parts[i].weight * mean_of_component(&m->parts[i], m->limit);
    assert(sum >= 0);
    return sum / m->weight_sum;
}

const at_pace_model at_pace_mix = {.create = create, .sleep = draw_sleep, .mean = mean};

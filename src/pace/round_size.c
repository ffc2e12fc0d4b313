#include "pace/round_size.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "base/text.h"

#define USAGE "write bernoulli:P,N, gauss:SD or rotate"

static const double REACH = 5;         /* in deviations */
static const double SAMPLES_MAX = 1e8; /* of N and SD: 5 SD more than any --batch fit in 32 bits */

static at_err invalid(const char *text, const char *why, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, USAGE, "--straggler-batch %.60s: %s", text, why);
}

static at_err parse_bernoulli(const char *args, const char *text, at_round_size *size,
                              at_fail *fail)
{
    char        word[32];
    const char *comma = strchr(args, ',');
    int64_t     other;
    size->law = AT_ROUND_BERNOULLI;
    if (!comma || (size_t)(comma - args) >= sizeof word)
        return invalid(text, "expected a probability and a number of samples", fail);
    snprintf(word, sizeof word, "%.*s", (int)(comma - args), args);
    if (!at_text_real(word, &size->probability) || size->probability < 0 || size->probability > 1)
        return invalid(text, "P must be a probability, from 0 to 1", fail);
    if (!at_text_whole(comma + 1, &other) || other < 1 || (double)other > SAMPLES_MAX)
        return invalid(text, "N must be a number of samples, at least 1", fail);
    size->other = (uint32_t)other;
    return AT_OK;
}

static at_err parse_gauss(const char *args, const char *text, at_round_size *size, at_fail *fail)
{
    size->law = AT_ROUND_GAUSS;
    if (at_text_real(args, &size->deviation) && size->deviation >= 0 &&
        size->deviation <= SAMPLES_MAX)
        return AT_OK;
    return invalid(text, "SD must be a number of samples, at least 0", fail);
}

at_err at_round_size_parse(const char *text, uint64_t seed, uint32_t workers, at_round_size *size,
                           at_fail *fail)
{
    static const char bernoulli[] = "bernoulli:", gauss[] = "gauss:";
    assert(workers >= 1);
    *size = (at_round_size){.seed = seed, .workers = workers};
    if (!text || strcmp(text, "none") == 0) return AT_OK;
    if (strncmp(text, bernoulli, strlen(bernoulli)) == 0)
        return parse_bernoulli(text + strlen(bernoulli), text, size, fail);
    if (strncmp(text, gauss, strlen(gauss)) == 0)
        return parse_gauss(text + strlen(gauss), text, size, fail);
    if (strcmp(text, "rotate") != 0) return invalid(text, "unknown law", fail);
    size->law = AT_ROUND_ROTATE;
    return AT_OK;
}

static uint32_t draw_gauss(const at_round_size *size, at_rng *rng, uint32_t ordered)
{
    double drawn = round(ordered + size->deviation * at_rng_normal(rng));
    double most = at_round_size_max(size, ordered);
    return (uint32_t)(drawn < 1 ? 1 : drawn > most ? most : drawn);
}

uint32_t at_round_size_draw(const at_round_size *size, uint32_t worker, uint64_t round,
                            uint32_t ordered)
{
    assert(ordered >= 1);
    assert(worker >= 1);
    at_rng   rng = at_rng_stream(size->seed, worker, AT_RNG_PURPOSE_SIZE, round);
    uint32_t other = size->other < ordered ? size->other : ordered;
    switch (size->law) {
    case AT_ROUND_AS_ORDERED: return ordered;
    case AT_ROUND_BERNOULLI: return at_rng_uniform(&rng) < size->probability ? ordered : other;
    case AT_ROUND_GAUSS: return draw_gauss(size, &rng, ordered);
    case AT_ROUND_ROTATE: return round % size->workers == worker - 1 ? ordered : 1;
    }
    assert(!"unreachable");
    return ordered;
}

uint32_t at_round_size_max(const at_round_size *size, uint32_t ordered)
{
    assert(ordered >= 1);
    if (size->law != AT_ROUND_GAUSS) return ordered;
    double most = ordered + ceil(REACH * size->deviation);
    return most < (double)UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

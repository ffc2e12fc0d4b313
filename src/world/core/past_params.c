#include "world/core/past_params.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

at_err at_past_params_init(at_past_params *past, const at_plan *plan, size_t params, size_t trained,
                           at_fail *fail)
{
    enum { LINE_FLOATS = 16 };
    size_t size;
    *past = (at_past_params){0};
    if (!plan || !plan->stale->correct || params == 0) return AT_OK; /* 0: only time is simulated */
    assert(trained <= params);
    past->plan = plan;
    past->params = params;
    past->trained = trained;
    past->versions = plan->stale->versions(plan);
    past->stride = (params + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    assert(past->versions >= 1);
    if (at_size_product(past->stride * sizeof(float), (size_t)past->versions + 1, &size))
        past->memory = aligned_alloc(LINE_FLOATS * sizeof(float), size);
    if (!past->memory)
        return at_fail_set(fail, AT_ERR_FAILED, "use fewer versions, or --stale use",
                           "--stale %s: not enough memory for %u versions of %zu parameters",
                           plan->stale->rule.name, past->versions, params);
    past->corrected = past->memory + past->versions * past->stride;
    return AT_OK;
}

void at_past_params_deinit(at_past_params *past)
{
    free(past->memory);
    *past = (at_past_params){0};
}

static float *version_at(const at_past_params *past, uint64_t version)
{
    return past->memory + version % past->versions * past->stride;
}

void at_past_params_keep(at_past_params *past, const float *w, uint64_t step)
{
    if (!past->plan) return;
    assert(step >= 1);
    memcpy(version_at(past, step - 1), w, past->params * sizeof *w);
    past->newest = step;
}

const float *at_past_params_correct(const at_past_params *past, const at_piece *piece,
                                    const float *gradient, const float *w)
{
    if (!past->plan || piece->version >= past->newest) return gradient;
    assert(past->newest - piece->version <= past->versions); /* older ones are dropped */
    at_stale_gradient stale = {.count = past->trained,
                               .samples = piece->samples,
                               .sum = gradient,
                               .then = version_at(past, piece->version),
                               .now = w,
                               .corrected = past->corrected};
    past->plan->stale->correct(past->plan, &stale);
    memcpy(past->corrected + past->trained, gradient + past->trained,
           (past->params - past->trained) * sizeof(float));
    return past->corrected;
}

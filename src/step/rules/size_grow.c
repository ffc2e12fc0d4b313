/* Size rules `grow` and `shrink`: the batch changes by a factor every so many epochs.
 *
 *     n = batch x FACTOR^k   or   batch / FACTOR^k,   k: how often EPOCHS epochs have passed
 *
 * rounded to the nearest whole number, within batch_min .. batch_max. Growing is what Smith et al.
 * (arXiv 1711.00489) do instead of lowering the learning rate. Default: 2,2.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "step/rules/sizes.h"

static const double FACTOR_DEFAULT = 2, FACTOR_MAX = 1000, EPOCHS_DEFAULT = 2, EPOCHS_MAX = 1e6;

/* Splits "FACTOR,EPOCHS" and reads both. */
static bool read_both(const char *number, double *factor, double *epochs)
{
    char        first[32];
    const char *comma = strchr(number, ',');
    if (!comma || (size_t)(comma - number) >= sizeof first) return false;
    at_text text = at_text_in(first, sizeof first);
    at_text_add(&text, "%.*s", (int)(comma - number), number);
    return at_text_real(first, factor) && at_text_real(comma + 1, epochs);
}

at_err at_size_grow_read(const char *number, at_plan *plan, at_fail *fail)
{
    plan->size_factor = FACTOR_DEFAULT;
    plan->size_epochs = EPOCHS_DEFAULT;
    if (!number) return AT_OK;
    bool both = read_both(number, &plan->size_factor, &plan->size_epochs);
    bool sane = both && plan->size_factor > 1 && plan->size_factor <= FACTOR_MAX &&
                plan->size_epochs > 0 && plan->size_epochs <= EPOCHS_MAX;
    if (sane) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "write FACTOR,EPOCHS with a factor above 1, for example 2,5",
                       "--size %s:%s cannot be", plan->size->name, number);
}

void at_size_grow_tell(const at_plan *plan, at_text *text)
{
    at_text_add(text, ":%.9g,%.9g", plan->size_factor, plan->size_epochs);
}

/* FACTOR^k for the samples used so far. */
static double growth(const at_plan *plan, uint64_t samples_used)
{
    if (plan->samples_epoch == 0) return 1;
    assert(plan->size_factor > 1);
    assert(plan->size_epochs > 0);
    double epochs = (double)samples_used / (double)plan->samples_epoch;
    return pow(plan->size_factor, floor(epochs / plan->size_epochs));
}

void at_size_grow_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress)
{
    (void)state;
    double factor = growth(plan, progress->samples_used);
    at_size_all(plan, shares, at_size_clamp(plan, plan->batch * factor));
}

void at_size_shrink_decide(void *state, const at_plan *plan, at_share *shares,
                           const at_progress *progress)
{
    (void)state;
    double factor = growth(plan, progress->samples_used);
    at_size_all(plan, shares, at_size_clamp(plan, plan->batch / factor));
}

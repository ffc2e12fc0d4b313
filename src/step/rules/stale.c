/* The stale rules: what happens to a gradient of an older version? */
#include <assert.h>

#include "step/plan.h"

static double weight_use(const at_plan *plan, uint64_t staleness)
{
    (void)plan;
    (void)staleness;
    return 1.0;
}

/* Ringmaster ASGD (Maranjyan et al., ICML 2025): a gradient that is more than R versions old is
 * dropped, and a worker whose round has become that old starts over. With R = 0 only gradients of
 * the current version count; what a worker does about newer ones is then for the newer rule. */
static double weight_drop(const at_plan *plan, uint64_t staleness)
{
    return staleness <= (uint64_t)plan->arg[AT_STALE][0].whole ? 1.0 : -1.0;
}

static bool interrupts_drop(const at_plan *plan)
{
    return plan->arg[AT_STALE][0].whole > 0;
}

static double weight_scale(const at_plan *plan, uint64_t staleness)
{
    (void)plan;
    return 1.0 / (1.0 + (double)staleness);
}

/* ---- compensate ------------------------------------------------------------------------------ */

enum { LAMBDA, VERSIONS }; /* its arguments */

static int64_t versions_default(const at_plan *plan)
{
    assert(plan->workers_max >= 1);
    return 4 * (int64_t)plan->workers_max;
}

static uint32_t versions_kept(const at_plan *plan)
{
    return (uint32_t)plan->arg[AT_STALE][VERSIONS].whole;
}

static double weight_compensate(const at_plan *plan, uint64_t staleness)
{
    return staleness <= versions_kept(plan) ? 1.0 : -1.0;
}

/* DC-ASGD (Zheng et al., ICML 2017): the gradient at the newest parameters by its first-order
 * expansion, g + L g * g * (now - then), where g * g estimates the diagonal of the Hessian. g is
 * the mean over the samples, so of the sum G only one product is divided by their number. */
static void correct_compensate(const at_plan *plan, const at_stale_gradient *s)
{
    const float factor = (float)(plan->arg[AT_STALE][LAMBDA].real / s->samples);
    assert(s->samples >= 1);
    for (size_t i = 0; i < s->count; i++)
        s->corrected[i] = s->sum[i] + factor * s->sum[i] * s->sum[i] * (s->now[i] - s->then[i]);
}

static at_err refuse_compensate(const char *hint, const char *option, const char *rule,
                                const char *why, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, hint,
                       "--stale compensate does not work with --%s %s: %s", option, rule, why);
}

static at_err check_compensate(const at_plan *plan, at_fail *fail)
{
    const char *async = "use --strategy async, async-fmb or ssp", *use = "use --stale use";
    bool        one_hub = plan->mix->hubs && plan->mix->hubs(plan) == 1;
    if (plan->work->reports_change)
        return refuse_compensate(async, "work", plan->work->rule.name,
                                 "workers report changes of parameters, not gradients", fail);
    if (plan->release->holds)
        return refuse_compensate(async, "release", plan->release->rule.name,
                                 "gradients must be added up when they arrive, one by one", fail);
    if (plan->newer->choice == AT_NEWER_REFRESH)
        return refuse_compensate(use, "newer", plan->newer->rule.name,
                                 "such a gradient belongs to several versions", fail);
    if (!one_hub || plan->mix->updates_by_workers || plan->mix->updates_in_place)
        return refuse_compensate("use --mix central", "mix", plan->mix->rule.name,
                                 "one hub must have the whole gradient", fail);
    return AT_OK;
}

const at_stale_rule at_stale_rules[] = {
    {.rule = {.name = "use", .summary = "use it with full weight"},
     .weight = weight_use,
     .uses_all = true},
    {.rule = {.name = "drop",
              .summary = "drop it if it is more than R versions old",
              .arg = {{.name = "r",
                       .type = AT_ARG_WHOLE,
                       .min = 0,
                       .max = 1e6,
                       .unit = "versions",
                       .fallback = "0",
                       .brief = true}}},
     .weight = weight_drop,
     .interrupts = interrupts_drop},
    {.rule = {.name = "scale", .summary = "weight it by 1/(1+staleness)"}, .weight = weight_scale},
    {.rule = {.name = "compensate",
              .summary = "correct it to first order for the steps made since",
              .arg = {{.name = "l", .type = AT_ARG_REAL, .min = 0, .max = 1e6, .fallback = "0.04"},
                      {.name = "versions",
                       .type = AT_ARG_WHOLE,
                       .min = 1,
                       .max = 1e6,
                       .unit = "versions",
                       .derive = versions_default,
                       .brief = true}},
              .check = check_compensate},
     .weight = weight_compensate,
     .correct = correct_compensate,
     .versions = versions_kept},
    {.rule = {0}},
};

/* The stale rules: what happens to a gradient of an older version? */
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
    {.rule = {0}},
};

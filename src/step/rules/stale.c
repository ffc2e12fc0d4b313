/* The stale rules: what happens to a gradient of an older version? */
#include "step/plan.h"

static double weight_use(const at_plan *plan, uint64_t staleness)
{
    (void)plan;
    (void)staleness;
    return 1.0;
}

static double weight_drop(const at_plan *plan, uint64_t staleness)
{
    (void)plan;
    return staleness == 0 ? 1.0 : -1.0;
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
    {.rule = {.name = "drop", .summary = "drop it and count its samples as dropped"},
     .weight = weight_drop},
    {.rule = {.name = "scale", .summary = "weight it by 1/(1+staleness)"}, .weight = weight_scale},
    {.rule = {0}},
};

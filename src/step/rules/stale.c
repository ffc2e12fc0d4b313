/* What becomes of a gradient of an older version? */
#include "step/rules/rules.h"

static double weight_use(uint64_t staleness)
{
    (void)staleness;
    return 1.0;
}

static double weight_drop(uint64_t staleness)
{
    return staleness == 0 ? 1.0 : -1.0;
}

static double weight_scale(uint64_t staleness)
{
    return 1.0 / (1.0 + (double)staleness);
}

const at_stale_rule at_stale_rules[] = {
    {"use", "counts in full", NULL, weight_use},
    {"drop", "is dropped, its samples are booked", NULL, weight_drop},
    {"scale", "weighs 1/(1+staleness)", NULL, weight_scale},
    {0},
};

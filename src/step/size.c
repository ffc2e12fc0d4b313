/* How do the amounts change over time? */
#include <assert.h>

#include "step/plan.h"
#include "step/rules.h"

static void decide_static(void *state, const at_plan *plan, at_share *shares, uint64_t steps)
{
    (void)state;
    if (steps > 0) return;
    for (uint32_t i = 0; i < plan->workers; i++)
        shares[i] = (at_share){.samples = plan->batch, .time_limit = plan->time_limit};
}

const at_size_rule at_size_rules[] = {
    {"static", "never", NULL, NULL, NULL, decide_static, false},
    {"auto", "the time limit sets itself to the mean batch asked for", NULL, at_size_auto_state,
     at_size_auto_observe, at_size_auto_decide, true},
    {0},
};

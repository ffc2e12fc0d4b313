/* How much does a worker compute before it reports? */
#include <assert.h>

#include "step/plan.h"
#include "step/rules/rules.h"

static void amount_fixed(const at_plan *plan, const at_share *share, at_order *order)
{
    (void)plan;
    order->samples_max = share->samples;
    order->time_limit = AT_NEVER;
}

/* Anytime Minibatch (Ferdinand et al., ICLR 2019): everybody computes for the same time T and
 * reports how many samples it finished. Until T is known (size rule `auto` has seen no round yet)
 * the round is limited by samples, which is also how T gets known. */
static void amount_timed(const at_plan *plan, const at_share *share, at_order *order)
{
    order->time_limit = share->time_limit;
    order->samples_max = share->time_limit == AT_NEVER ? plan->batch : plan->cap;
    assert(order->samples_max >= 1);
}

const at_work_rule at_work_rules[] = {
    {"fixed", "the same number of samples every round", "samples", amount_fixed, false},
    {"timed", "as many samples as fit into a time limit", "duration", amount_timed, true},
    {0},
};

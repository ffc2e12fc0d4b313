/* The work rules: how much does a worker compute before it reports? */
#include <assert.h>

#include "step/plan.h"

enum { CAP_FACTOR = 4, BATCH_MAX = 1000000000 };

static uint32_t batch_default(const at_plan *plan)
{
    enum { BATCH_DEFAULT = 64 };
    assert(plan->strategy);
    return plan->strategy->batch > 0 ? plan->strategy->batch : BATCH_DEFAULT;
}

/* ---- fixed:N -------------------------------------------------------------------------------- */

enum { FIXED_SAMPLES };

static int64_t fixed_default(const at_plan *plan)
{
    return plan->batch > 0 ? plan->batch : batch_default(plan);
}

static at_err settle_fixed(at_plan *plan, at_fail *fail)
{
    const at_value *samples = &plan->arg[AT_WORK][FIXED_SAMPLES];
    if (samples->given && plan->batch > 0 && plan->batch != samples->whole)
        return at_fail_set(fail, AT_ERR_USAGE, "give the number once",
                           "fixed:%lld and --batch %u contradict each other",
                           (long long)samples->whole, plan->batch);
    plan->batch = (uint32_t)samples->whole;
    plan->cap = plan->batch;
    plan->time_limit = AT_NEVER;
    return AT_OK;
}

static void amount_fixed(const at_plan *plan, const at_share *share, at_order *order)
{
    assert(share->samples >= 1);
    (void)plan;
    order->samples_max = share->samples;
    order->time_limit = AT_NEVER;
}

/* ---- timed:T -----------------------------------------------------------------------------------
 *
 * Anytime Minibatch (Ferdinand et al., ICLR 2019): every worker computes for the same time T and
 * reports how many samples it finished. Size rule `auto` determines T from the first rounds, which
 * are therefore limited by samples.
 */

enum { TIMED_LIMIT, TIMED_CAP, TIMED_CUT };

static const char *const cuts[] = {"nearest", "after", NULL};

static at_err settle_timed(at_plan *plan, at_fail *fail)
{
    const at_value *arg = plan->arg[AT_WORK];
    at_ns           limit = arg[TIMED_LIMIT].whole;
    char            inside[32], outside[32];
    if (limit != AT_NEVER && plan->time_limit != AT_NEVER && limit != plan->time_limit)
        return at_fail_set(fail, AT_ERR_USAGE, "give the duration once",
                           "timed:%s and --time-limit %s contradict each other",
                           at_text_show_duration(inside, sizeof inside, limit),
                           at_text_show_duration(outside, sizeof outside, plan->time_limit));
    if (limit != AT_NEVER) plan->time_limit = limit;
    plan->arg[AT_WORK][TIMED_LIMIT].whole = plan->time_limit;
    if (plan->batch == 0) plan->batch = batch_default(plan);
    uint64_t cap = plan->batch;
    if (plan->time_limit == AT_NEVER) cap *= CAP_FACTOR;
    if (arg[TIMED_CAP].given) cap = (uint64_t)arg[TIMED_CAP].whole;
    if (cap > UINT32_MAX) cap = UINT32_MAX;
    if (cap < plan->batch)
        return at_fail_set(fail, AT_ERR_USAGE, "raise the cap, or lower --batch",
                           "--work timed: CAP %llu is below --batch %u", (unsigned long long)cap,
                           plan->batch);
    plan->cap = (uint32_t)cap;
    plan->cut_after = arg[TIMED_CUT].whole == 1;
    return AT_OK;
}

static void amount_timed(const at_plan *plan, const at_share *share, at_order *order)
{
    order->time_limit = share->time_limit;
    order->samples_max = share->time_limit == AT_NEVER ? plan->batch : plan->cap;
    assert(order->samples_max >= 1);
}

/* ---- the table ------------------------------------------------------------------------------ */

const at_work_rule at_work_rules[] = {
    {.rule = {.name = "fixed",
              .summary = "a fixed number of samples per round",
              .arg = {{.name = "samples",
                       .type = AT_ARG_WHOLE,
                       .min = 1,
                       .max = BATCH_MAX,
                       .unit = "samples",
                       .derive = fixed_default}},
              .settle = settle_fixed},
     .amount = amount_fixed},
    {.rule = {.name = "timed",
              .summary = "as many samples as fit into a time limit",
              .arg = {{.name = "time", .type = AT_ARG_TIME},
                      {.name = "cap",
                       .type = AT_ARG_WHOLE,
                       .min = 1,
                       .max = BATCH_MAX,
                       .unit = "samples",
                       .brief = true},
                      {.name = "cut",
                       .type = AT_ARG_WORD,
                       .words = cuts,
                       .fallback = "nearest",
                       .brief = true}},
              .settle = settle_timed},
     .amount = amount_timed,
     .timed = true},
    {.rule = {0}},
};

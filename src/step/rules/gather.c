/* The gather rules: when does the hub close a step? */
#include <assert.h>

#include "step/hub.h"

/* ---- who is coming -------------------------------------------------------------------------- */

/* Will this member, which has no gradient in the open step, still contribute one? A working member
 * will: if a newer version overtakes it, it starts on that one after its report. An idle member
 * will if its release rule lets it start; only a barrier can keep it out of this step. */
static bool is_coming(const at_hub *hub, const at_member *member)
{
    if (member->pieces_held > 0) return false;
    if (member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_EVICTED) return true;
    const at_release_rule *release = hub->plan->release;
    return member->state == AT_MEMBER_IDLE && (!release->holds || release->may_start(hub, member));
}

static uint32_t workers_coming(const at_hub *hub)
{
    uint32_t coming = 0;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) coming += is_coming(hub, &hub->member[i]);
    assert(coming <= hub->present);
    return coming;
}

static uint32_t workers_in_step(const at_hub *hub)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++)
        distinct += hub->member[i].pieces_held > 0;
    assert(distinct <= hub->pieces);
    return distinct;
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Every worker that began this step reports or is lost. A step without any worker left waits for
 * the next one to join. */
static uint32_t missing_all(const at_hub *hub, at_ns now)
{
    (void)now;
    uint32_t coming = workers_coming(hub);
    return coming > 0 || hub->pieces > 0 ? coming : 1;
}

static at_err check_all(const at_plan *plan, at_fail *fail)
{
    if (plan->release->holds) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --release barrier, or --gather any:K",
                       "--gather all does not work with --release %s: workers that do not wait "
                       "for a step never all report to it",
                       plan->release->rule.name);
}

/* ---- first:K and any:K ---------------------------------------------------------------------- */

/* The hub reserves memory for K pieces. */
#define K_ARG                                                                    \
    {                                                                            \
        .name = "k", .type = AT_ARG_WHOLE, .min = 1, .max = 16 * AT_WORKERS_MAX, \
        .unit = "reports", .derive = k_default                                   \
    }

static int64_t k_default(const at_plan *plan)
{
    assert(plan->workers >= 1);
    return plan->workers > 1 ? plan->workers - 1 : 1;
}

static uint32_t k_of(const at_plan *plan)
{
    int64_t k = plan->arg[AT_GATHER][0].whole;
    assert(k >= 1);
    return (uint32_t)k;
}

/* Chen et al. 2016: the first K distinct workers make the step, the work of the rest is discarded.
 * With fewer than K workers alive, the step uses all of them. */
static uint32_t missing_first(const at_hub *hub, at_ns now)
{
    uint32_t k = k_of(hub->plan), have = workers_in_step(hub);
    if (have >= k) return 0;
    uint32_t wanted = k - have, coming = missing_all(hub, now);
    return wanted < coming ? wanted : coming;
}

/* Any K reports; a fast worker may count twice (K-batch in Dutta et al. 2018). Behind a barrier
 * each worker reports once, so the rule equals first:K. */
static uint32_t missing_any(const at_hub *hub, at_ns now)
{
    uint32_t k = k_of(hub->plan);
    if (hub->plan->release->holds) return missing_first(hub, now);
    return hub->pieces >= k ? 0 : k - hub->pieces;
}

static at_err check_first(const at_plan *plan, at_fail *fail)
{
    uint32_t k = k_of(plan);
    if (k <= plan->workers) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL,
                       "--gather first:%u needs at least %u workers (there are %u)", k, k,
                       plan->workers);
}

static at_err check_any(const at_plan *plan, at_fail *fail)
{
    uint32_t k = k_of(plan);
    if (!plan->release->holds || k <= plan->workers) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --release free, or a smaller K",
                       "--gather any:%u with --release %s needs at least %u workers (there are "
                       "%u): each worker reports once per step",
                       k, plan->release->rule.name, k, plan->workers);
}

/* ---- every:PERIOD --------------------------------------------------------------------------- */

/* Only under size rule `auto` is the period left open, and it sets one time limit for all. */
static at_ns period_every(const at_hub *hub)
{
    at_ns period = hub->plan->arg[AT_GATHER][0].whole;
    return period != AT_NEVER ? period : hub->share[0].time_limit;
}

static int64_t period_default(const at_plan *plan)
{
    return plan->time_limit;
}

/* The period has passed and at least one report has arrived. Until the period is known, every
 * worker reports once, which is what determines it. */
static uint32_t missing_every(const at_hub *hub, at_ns now)
{
    assert(now >= hub->opened_at);
    at_ns period = period_every(hub);
    if (period == AT_NEVER) return missing_all(hub, now);
    return hub->pieces > 0 && now - hub->opened_at >= period ? 0 : 1;
}

static at_err check_every(const at_plan *plan, at_fail *fail)
{
    if (plan->arg[AT_GATHER][0].whole != AT_NEVER || plan->work->timed) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "give one, for example --gather every:200ms",
                       "--gather every needs a period");
}

/* ---- the table ------------------------------------------------------------------------------ */

const at_gather_rule at_gather_rules[] = {
    {.rule = {.name = "all", .summary = "every worker that began the step", .check = check_all},
     .missing = missing_all,
     .waits_for_all = true},
    {.rule = {.name = "first",
              .summary = "the first K distinct workers",
              .arg = {K_ARG},
              .check = check_first},
     .missing = missing_first,
     .reports = k_of},
    {.rule = {.name = "any", .summary = "any K reports", .arg = {K_ARG}, .check = check_any},
     .missing = missing_any,
     .reports = k_of},
    {.rule = {.name = "every",
              .summary = "a period, and at least one report",
              .arg = {{.name = "period", .type = AT_ARG_TIME, .derive = period_default}},
              .check = check_every},
     .missing = missing_every,
     .period = period_every},
    {.rule = {0}},
};

#include "step/rules/rules.h"

#include <assert.h>

#include "step/hub.h"

/* ---- work: how much does a worker compute before it reports? -------------------------------- */

static void amount_fixed(const at_plan *plan, const at_share *share, at_order *order)
{
    assert(share->samples >= 1);
    (void)plan;
    order->samples_max = share->samples;
    order->time_limit = AT_NEVER;
}

/* Anytime Minibatch (Ferdinand et al., ICLR 2019): every worker computes for the same time T and
 * reports how many samples it finished. Size rule `auto` determines T from the first rounds, which
 * are therefore limited by samples. */
static void amount_timed(const at_plan *plan, const at_share *share, at_order *order)
{
    order->time_limit = share->time_limit;
    order->samples_max = share->time_limit == AT_NEVER ? plan->batch : plan->cap;
    assert(order->samples_max >= 1);
}

const at_work_rule at_work_rules[] = {
    {"fixed", "a fixed number of samples per round", "samples", amount_fixed, false},
    {"timed", "as many samples as fit into a time limit", "duration", amount_timed, true},
    {0},
};

/* ---- gather: when does the hub close a step? ------------------------------------------------ */

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

/* Every worker that began this step reports or is lost. A step without any worker left waits for
 * the next one to join. */
static uint32_t missing_all(const at_hub *hub, at_ns now)
{
    (void)now;
    uint32_t coming = workers_coming(hub);
    return coming > 0 || hub->pieces > 0 ? coming : 1;
}

/* Chen et al. 2016: the first K distinct workers make the step, the work of the rest is discarded.
 * With fewer than K workers alive, the step uses all of them. */
static uint32_t missing_first(const at_hub *hub, at_ns now)
{
    assert(hub->plan->k >= 1);
    uint32_t have = workers_in_step(hub);
    if (have >= hub->plan->k) return 0;
    uint32_t wanted = hub->plan->k - have, coming = missing_all(hub, now);
    return wanted < coming ? wanted : coming;
}

/* Any K reports; a fast worker may count twice (K-batch in Dutta et al. 2018). Behind a barrier
 * each worker reports once, so the rule equals first:K. */
static uint32_t missing_any(const at_hub *hub, at_ns now)
{
    assert(hub->plan->k >= 1);
    if (hub->plan->release->holds) return missing_first(hub, now);
    return hub->pieces >= hub->plan->k ? 0 : hub->plan->k - hub->pieces;
}

/* The period has passed and at least one report has arrived. Until the period is known, every
 * worker reports once, which is what determines it. */
static uint32_t missing_every(const at_hub *hub, at_ns now)
{
    assert(now >= hub->opened_at);
    at_ns period = at_hub_period(hub);
    if (period == AT_NEVER) return missing_all(hub, now);
    return hub->pieces > 0 && now - hub->opened_at >= period ? 0 : 1;
}

const at_gather_rule at_gather_rules[] = {
    {"all", "every worker that began the step", NULL, missing_all, false, false, true},
    {"first", "the first K distinct workers", "K", missing_first, true, false, false},
    {"any", "any K reports", "K", missing_any, true, false, false},
    {"every", "a period, and at least one report", "duration", missing_every, false, true, false},
    {0},
};

/* ---- release: when may a worker start again? ------------------------------------------------ */

/* Only on a version it has not worked on, and only while the open step holds no gradient from it
 * (of an older version): a step has at most one per worker. */
static bool may_start_barrier(const at_hub *hub, const at_member *member)
{
    assert(member->state == AT_MEMBER_IDLE);
    return member->begun_on != hub->version && member->pieces_held == 0;
}

static bool may_start_free(const at_hub *hub, const at_member *member)
{
    (void)hub;
    (void)member;
    return true;
}

/* Stale synchronous parallel: a worker may begin its round c only when every live worker has ended
 * its round c-S-1. A round has ended when its report reaches the hub. */
static bool may_start_bound(const at_hub *hub, const at_member *member)
{
    assert(member->state == AT_MEMBER_IDLE);
    uint64_t slowest = member->rounds_ended;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        const at_member *other = &hub->member[i];
        bool             live = other->state == AT_MEMBER_IDLE || other->state == AT_MEMBER_WORKING;
        if (live && other->rounds_ended < slowest) slowest = other->rounds_ended;
    }
    return member->rounds_ended - slowest <= hub->plan->staleness;
}

const at_release_rule at_release_rules[] = {
    {"barrier", "on the next version", NULL, may_start_barrier, true, false, false},
    {"free", "at once, on the newest version", NULL, may_start_free, false, true, false},
    {"bound", "while at most S rounds ahead of the slowest worker", "S", may_start_bound, false,
     false, true},
    {0},
};

/* ---- newer: what does a worker do when a newer version appears during its round? ------------ */

const at_newer_rule at_newer_rules[] = {
    {"finish", "finish the round on the version it started from", NULL, AT_NEWER_FINISH},
    {"abandon", "stop at the next micro-batch and start over", NULL, AT_NEWER_ABANDON},
    {"refresh", "install the new parameters at the next micro-batch", NULL, AT_NEWER_REFRESH},
    {0},
};

/* ---- stale: what happens to a gradient of an older version? --------------------------------- */

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
    {"use", "use it with full weight", NULL, weight_use},
    {"drop", "drop it and count its samples as dropped", NULL, weight_drop},
    {"scale", "weight it by 1/(1+staleness)", NULL, weight_scale},
    {0},
};

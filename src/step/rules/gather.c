/* When does the hub close a step? */
#include <assert.h>

#include "step/hub.h"
#include "step/rules/rules.h"

/* Will this member, which has no gradient in the open step, still come with one? Whoever is at work
 * will: one that is overtaken by a newer version starts on it when it has reported. Whoever is idle
 * will when its release rule lets it start; only a barrier may keep it out of this step. */
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
    for (uint32_t i = 0; i < hub->plan->workers; i++) coming += is_coming(hub, &hub->member[i]);
    return coming;
}

static uint32_t workers_in_step(const at_hub *hub)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < hub->plan->workers; i++) distinct += hub->member[i].pieces_held > 0;
    return distinct;
}

/* Everybody who began this step reports or is lost. A step in which nobody is left waits for the
 * next one to join. */
static uint32_t missing_all(const at_hub *hub, at_ns now)
{
    (void)now;
    uint32_t coming = workers_coming(hub);
    return coming > 0 || hub->pieces > 0 ? coming : 1;
}

/* Chen et al. 2016: the first K distinct workers make the step, the others' work is void. With
 * fewer than K left alive, those that are left must do. */
static uint32_t missing_first(const at_hub *hub, at_ns now)
{
    uint32_t have = workers_in_step(hub);
    if (have >= hub->plan->k) return 0;
    uint32_t wanted = hub->plan->k - have, coming = missing_all(hub, now);
    return wanted < coming ? wanted : coming;
}

/* Any K reports, a fast worker may count twice (K-batch in Dutta et al. 2018). Behind a barrier
 * nobody can, so there it is the same as the first K. */
static uint32_t missing_any(const at_hub *hub, at_ns now)
{
    if (hub->plan->release->holds) return missing_first(hub, now);
    return hub->pieces >= hub->plan->k ? 0 : hub->plan->k - hub->pieces;
}

/* A period has passed and at least one report has come. While the period is not known yet, every
 * worker reports once: that is how it gets known. */
static uint32_t missing_every(const at_hub *hub, at_ns now)
{
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

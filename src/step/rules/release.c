/* The release rules: when may a worker start again? */
#include <assert.h>

#include "step/hub.h"

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
    return member->rounds_ended - slowest <= (uint64_t)hub->plan->arg[AT_RELEASE][0].whole;
}

const at_release_rule at_release_rules[] = {
    {.rule = {.name = "barrier", .summary = "on the next version"},
     .may_start = may_start_barrier,
     .holds = true},
    {.rule = {.name = "free", .summary = "at once, on the newest version"},
     .may_start = may_start_free,
     .self_starting = true},
    {.rule = {.name = "bound",
              .summary = "while at most S rounds ahead of the slowest worker",
              .arg = {{.name = "staleness",
                       .type = AT_ARG_WHOLE,
                       .min = 0,
                       .max = 1e6,
                       .unit = "rounds",
                       .fallback = "3"}}},
     .may_start = may_start_bound,
     .looks_at_others = true},
    {.rule = {0}},
};

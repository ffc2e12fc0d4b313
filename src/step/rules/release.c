/* When may a worker start again? */
#include <assert.h>

#include "step/hub.h"
#include "step/rules/rules.h"

/* Only on a version it has not worked on, and not while a gradient of it, of an older version, is
 * in the open step: a step has one of each worker. */
static bool may_start_barrier(const at_hub *hub, const at_member *member)
{
    return member->begun_on != hub->version && member->pieces_held == 0;
}

static bool may_start_free(const at_hub *hub, const at_member *member)
{
    (void)hub;
    (void)member;
    return true;
}

/* Stale synchronous parallel: a worker may begin its round c only when every live worker has ended
 * its round c-S-1. Rounds are counted as the hub has seen them end. */
static bool may_start_bound(const at_hub *hub, const at_member *member)
{
    uint64_t slowest = member->rounds_ended;
    for (uint32_t i = 0; i < hub->plan->workers; i++) {
        const at_member *other = &hub->member[i];
        bool             live = other->state == AT_MEMBER_IDLE || other->state == AT_MEMBER_WORKING;
        if (live && other->rounds_ended < slowest) slowest = other->rounds_ended;
    }
    return member->rounds_ended - slowest <= hub->plan->staleness;
}

const at_release_rule at_release_rules[] = {
    {"barrier", "on the next version", NULL, may_start_barrier, true, false, false},
    {"free", "at once, on the newest version there is", NULL, may_start_free, false, true, false},
    {"bound", "while at most S rounds ahead of the slowest", "S", may_start_bound, false, false,
     true},
    {0},
};

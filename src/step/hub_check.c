#include "step/hub_check.h"

#include <assert.h>

void at_hub_check(const at_hub *hub)
{
    bool running = hub->end == AT_END_RUNNING;
    assert(hub->present <= hub->plan->workers_max);
    assert(hub->pieces <= hub->pieces_max);
    assert(hub->samples_open >= hub->pieces); /* no gradient is empty */
    assert(hub->pieces > 0 || !hub->applying);
    assert(hub->pieces == 0 || running);
    assert(hub->dealt >= hub->dealt_closed);
    assert(hub->assembled || hub->began_at == AT_NEVER);
    assert(!hub->applying || running);
    assert(!hub->finished || !running);
    assert(!hub->finished || hub->present == 0);
}

/* A resumed run may lack workers of earlier parts, so there the totals may be larger. */
void at_hub_check_ledger(const at_hub *hub)
{
    uint64_t used = 0, dropped = 0, held = 0;
    uint32_t present = 0, expected = 0;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        const at_member *member = &hub->member[i];
        present += member->state != AT_MEMBER_AWAY;
        expected += member->expected;
        used += member->used;
        dropped += member->dropped;
        held += member->pieces_held;
    }
    assert(!hub->applying);
    assert(present == hub->present);
    assert(expected == hub->expected);
    assert(held == hub->pieces);
    assert(used == hub->samples_used || hub->resumed);
    assert(dropped == hub->samples_dropped || hub->resumed);
}

/* The memory of a hub: for its plan, and for the plan that may follow. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "step/hub.h"
#include "step/snapshot.h"

/* Behind a barrier a step has at most one gradient per worker. Otherwise it may have many, and a
 * step that gets full closes early. */
static size_t pieces_max(const at_plan *plan)
{
    size_t many = 16 * (size_t)plan->workers_max;
    size_t reports = plan->gather->reports ? plan->gather->reports(plan) : 0;
    if (plan->release->holds) return plan->workers_max;
    if (many > AT_PIECES_MAX) many = AT_PIECES_MAX;
    return reports > many ? reports : many;
}

/* What a plan, or the one that follows it, needs. */
static size_t most(const at_plan *plan, size_t (*needed)(const at_plan *plan))
{
    size_t first = needed(plan), then = plan->then ? needed(plan->then) : 0;
    return first > then ? first : then;
}

size_t at_hub_size(const at_plan *plan)
{
    assert(plan->workers_max >= 1);
    size_t each = sizeof(at_member) + sizeof(at_share);
    return sizeof(at_hub) + plan->workers_max * each + most(plan, pieces_max) * sizeof(at_piece) +
           most(plan, at_size_state_bytes) + most(plan, at_gather_state_bytes) +
           sizeof(at_snapshot) + most(plan, at_snapshot_size) +
           9 * 64; /* eight parts, each rounded up to a cache line */
}

at_hub *at_hub_init(const at_plan *plan, void *memory, size_t size)
{
    assert(plan->workers >= 1);
    assert(plan->workers <= plan->workers_max);
    assert(plan->workers_min <= plan->workers);
    assert(plan->workers_max >= 1);
    assert(plan->workers_max <= AT_WORKERS_MAX);
    at_arena arena = {.base = memory, .size = size};
    at_hub  *hub = at_arena_get(&arena, 1, sizeof *hub);
    assert(hub);
    *hub = (at_hub){.plan = plan,
                    .pieces_max = (uint32_t)pieces_max(plan),
                    .expected = plan->workers,
                    .began_at = AT_NEVER,
                    .lease_at = AT_NEVER,
                    .quorum = {.reached_at = AT_NEVER, .closes_at = AT_NEVER}};
    hub->member = at_arena_get(&arena, plan->workers_max, sizeof *hub->member);
    hub->share = at_arena_get(&arena, plan->workers_max, sizeof *hub->share);
    hub->piece = at_arena_get(&arena, most(plan, pieces_max), sizeof *hub->piece);
    hub->size_state = at_arena_get(&arena, 1, most(plan, at_size_state_bytes));
    hub->gather_state = at_arena_get(&arena, 1, most(plan, at_gather_state_bytes));
    hub->snapshot = at_arena_get(&arena, 1, sizeof *hub->snapshot);
    hub->snapshot_size = most(plan, at_snapshot_size);
    hub->snapshot_memory = at_arena_get(&arena, 1, hub->snapshot_size);
    assert(hub->member && hub->share && hub->piece && hub->size_state && hub->gather_state);
    assert(hub->snapshot && hub->snapshot_memory);
    at_snapshot_init(hub->snapshot, plan, hub->snapshot_memory, hub->snapshot_size);
    for (uint32_t i = 0; i < plan->workers_max; i++)
        hub->member[i] = (at_member){.id = i + 1,
                                     .expected = i < plan->workers,
                                     .begun_on = AT_VERSION_NONE,
                                     .redo_on = AT_VERSION_NONE};
    return hub;
}

void at_hub_switch(at_hub *hub)
{
    assert(hub->plan->then);
    assert(hub->pieces == 0);
    memset(hub->size_state, 0, at_size_state_bytes(hub->plan->then));
    memset(hub->gather_state, 0, at_gather_state_bytes(hub->plan->then));
    hub->plan = hub->plan->then;
    hub->pieces_max = (uint32_t)pieces_max(hub->plan);
    hub->reports_needed = 0; /* the new gather rule is asked first */
    hub->switched = true;
    hub->switched_at = hub->version;
    at_snapshot_init(hub->snapshot, hub->plan, hub->snapshot_memory, hub->snapshot_size);
}

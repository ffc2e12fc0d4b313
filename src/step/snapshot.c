#include "step/snapshot.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"

size_t at_snapshot_size(const at_plan *plan)
{
    assert(plan->workers_max >= 1);
    return plan->workers_max * sizeof(at_member_snapshot) + at_size_state_bytes(plan) +
           at_gather_state_bytes(plan) + 4 * 64;
}

static at_rule_state state_of(const at_rule *rule, uint32_t version, size_t size, at_arena *arena)
{
    at_rule_state state = {.version = version, .size = size};
    size_t        length = strlen(rule->name);
    assert(length < sizeof state.rule);
    memcpy(state.rule, rule->name, length + 1);
    state.bytes = at_arena_get(arena, 1, size);
    assert(state.bytes);
    return state;
}

void at_snapshot_init(at_snapshot *snapshot, const at_plan *plan, void *memory, size_t size)
{
    at_arena arena = {.base = memory, .size = size};
    *snapshot = (at_snapshot){.workers = plan->workers_max};
    snapshot->member = at_arena_get(&arena, plan->workers_max, sizeof *snapshot->member);
    assert(snapshot->member);
    snapshot->size =
        state_of(&plan->size->rule, plan->size->state_version, at_size_state_bytes(plan), &arena);
    snapshot->gather = state_of(&plan->gather->rule, plan->gather->state_version,
                                at_gather_state_bytes(plan), &arena);
}

/* Rounds of this member that a snapshot leaves out: the current one and those in the open step. */
static uint64_t rounds_left_out(const at_member *member)
{
    bool busy = member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_EVICTED;
    return member->pieces_held + (busy ? 1 : 0);
}

static void take_member(at_member_snapshot *snapshot, const at_hub *hub, const at_member *member)
{
    assert(member->rounds_begun >= rounds_left_out(member));
    assert(member->sequence >= member->pieces_held);
    /* A replacement counts from the slowest worker's round, so `ended` may be less than `held`. */
    uint64_t ended = member->rounds_ended, held = member->pieces_held;
    *snapshot = (at_member_snapshot){.rounds = member->rounds_begun - rounds_left_out(member),
                                     .rounds_ended = ended > held ? ended - held : 0,
                                     .sequence = member->sequence - member->pieces_held,
                                     .used = member->used,
                                     .dropped = member->dropped,
                                     .redrawn = member->redrawn,
                                     .share = hub->share[member->id - 1]};
}

/* Who is away starts at the slowest worker's round when it joins, as in an uninterrupted run. */
static void take_away(at_snapshot *snapshot, const at_hub *hub)
{
    uint64_t slowest = UINT64_MAX;
    for (uint32_t i = 0; i < snapshot->workers; i++) {
        at_member_state state = hub->member[i].state;
        bool            live = state == AT_MEMBER_IDLE || state == AT_MEMBER_WORKING;
        if (live && snapshot->member[i].rounds_ended < slowest)
            slowest = snapshot->member[i].rounds_ended;
    }
    for (uint32_t i = 0; slowest < UINT64_MAX && i < snapshot->workers; i++)
        if (hub->member[i].state == AT_MEMBER_AWAY) snapshot->member[i].rounds_ended = slowest;
}

void at_snapshot_take(at_snapshot *snapshot, const at_hub *hub, at_ns now)
{
    assert(!hub->applying); /* the last closed step */
    assert(snapshot->workers == hub->plan->workers_max);
    bool began = hub->began_at != AT_NEVER;
    snapshot->version = hub->version;
    snapshot->samples_used = hub->samples_used;
    snapshot->samples_dropped = hub->samples_dropped;
    snapshot->trace = hub->trace;
    snapshot->dealt = hub->dealt_closed;
    snapshot->eval_samples_next = hub->eval_samples_next;
    snapshot->switched = hub->switched;
    snapshot->switched_at = hub->switched_at;
    snapshot->clock = now - hub->started_at;
    snapshot->elapsed = began ? now - hub->began_at : hub->elapsed_before;
    memcpy(snapshot->target, hub->target, sizeof snapshot->target);
    for (uint32_t i = 0; i < snapshot->workers; i++)
        take_member(&snapshot->member[i], hub, &hub->member[i]);
    take_away(snapshot, hub);
    memcpy(snapshot->size.bytes, hub->size_state, snapshot->size.size);
    memcpy(snapshot->gather.bytes, hub->gather_state, snapshot->gather.size);
    assert(snapshot->elapsed >= 0);
    assert(snapshot->clock >= snapshot->elapsed);
}

static void resume_member(at_hub *hub, at_member *member, const at_snapshot *snapshot)
{
    assert(member->state == AT_MEMBER_AWAY);
    uint64_t slowest = UINT64_MAX;
    for (uint32_t i = 0; i < snapshot->workers; i++)
        if (snapshot->member[i].rounds_ended < slowest) slowest = snapshot->member[i].rounds_ended;
    member->rounds_ended = slowest;
    if (member->id > snapshot->workers) return;
    const at_member_snapshot *from = &snapshot->member[member->id - 1];
    member->rounds_begun = from->rounds;
    member->rounds_ended = from->rounds_ended;
    member->sequence = from->sequence;
    member->used = from->used;
    member->dropped = from->dropped;
    member->redrawn = from->redrawn;
    hub->share[member->id - 1] = from->share;
}

static bool same_workers(const at_snapshot *snapshot, const at_plan *plan)
{
    return snapshot->workers == plan->workers_max &&
           snapshot->size.size == at_size_state_bytes(plan);
}

/* The state of a size rule is as this version of the rule wrote it. */
static bool size_valid(const at_snapshot *snapshot, const at_plan *plan)
{
    if (strcmp(snapshot->size.rule, plan->size->rule.name) != 0) return false;
    if (snapshot->size.version != plan->size->state_version) return false;
    at_progress so_far = {.steps = snapshot->version,
                          .samples_used = snapshot->samples_used,
                          .elapsed = snapshot->elapsed};
    return !same_workers(snapshot, plan) || !plan->size->valid ||
           plan->size->valid(snapshot->size.bytes, plan, &so_far);
}

/* A gather rule without state can continue any run, and one whose state the run did not have, since
 * it had another number of workers, begins with none. */
static bool gather_valid(const at_snapshot *snapshot, const at_plan *plan)
{
    const at_rule_state *state = &snapshot->gather;
    if (at_gather_state_bytes(plan) == 0 || state->size == 0) return true;
    return strcmp(state->rule, plan->gather->rule.name) == 0 &&
           state->version == plan->gather->state_version &&
           state->size == at_gather_state_bytes(plan) && plan->gather->valid(state->bytes, plan);
}

static bool member_valid(const at_member_snapshot *member)
{
    const uint64_t many = (uint64_t)1 << 62;
    return member->rounds < many && member->rounds_ended < many && member->sequence < many &&
           member->used < many && member->dropped < many && member->redrawn <= member->dropped &&
           member->share.samples >= 1 && member->share.time_limit > 0;
}

static bool target_valid(const at_target_hit *target, const at_snapshot *snapshot)
{
    const at_ns long_time = (at_ns)1 << 60;
    return !target->hit ||
           (target->step <= snapshot->version && target->at >= 0 && target->at <= long_time);
}

bool at_snapshot_valid(const at_snapshot *snapshot, const at_plan *plan)
{
    if (snapshot->switched && (!plan->then || snapshot->switched_at > snapshot->version))
        return false;
    if (snapshot->switched) plan = plan->then;
    const uint64_t many = (uint64_t)1 << 62;
    const at_ns    long_time = (at_ns)1 << 60;
    uint64_t       counted = 0;
    for (uint32_t i = 0; i < snapshot->workers; i++) {
        if (!member_valid(&snapshot->member[i])) return false;
        counted += snapshot->member[i].used + snapshot->member[i].dropped;
    }
    for (int i = 0; i < AT_TARGETS_MAX; i++)
        if (!target_valid(&snapshot->target[i], snapshot)) return false;
    /* Not equal: workers of earlier parts of the run may be missing here. */
    if (snapshot->samples_used + snapshot->samples_dropped < counted) return false;
    if (snapshot->version >= many || snapshot->samples_used >= many ||
        snapshot->samples_dropped >= many || snapshot->dealt >= many || snapshot->clock < 0 ||
        snapshot->clock > long_time || snapshot->elapsed < 0 || snapshot->elapsed > snapshot->clock)
        return false;
    return size_valid(snapshot, plan) && gather_valid(snapshot, plan);
}

void at_snapshot_restore(at_hub *hub, const at_snapshot *snapshot)
{
    assert(!hub->resumed);
    assert(hub->present == 0);
    assert(at_snapshot_valid(snapshot, hub->plan));
    assert(hub->version == 0);
    assert(snapshot->workers >= 1);
    if (snapshot->switched) at_hub_switch(hub);
    hub->switched_at = snapshot->switched_at;
    hub->version = snapshot->version;
    hub->samples_used = snapshot->samples_used;
    hub->samples_dropped = snapshot->samples_dropped;
    hub->trace = snapshot->trace;
    hub->dealt = hub->dealt_closed = snapshot->dealt;
    hub->eval_samples_next = snapshot->eval_samples_next;
    hub->elapsed_before = snapshot->elapsed;
    hub->clock_before = snapshot->clock;
    memcpy(hub->target, snapshot->target, sizeof hub->target);
    for (uint32_t i = 0; i < hub->plan->workers_max; i++)
        resume_member(hub, &hub->member[i], snapshot);
    hub->resumed = true;
    hub->size_restored = same_workers(snapshot, hub->plan);
    if (hub->size_restored) memcpy(hub->size_state, snapshot->size.bytes, snapshot->size.size);
    if (snapshot->gather.size > 0)
        memcpy(hub->gather_state, snapshot->gather.bytes, at_gather_state_bytes(hub->plan));
}

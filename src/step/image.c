#include "step/image.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"

static size_t state_bytes(const at_plan *plan)
{
    return plan->size->state_size ? plan->size->state_size(plan) : 0;
}

size_t at_image_size(const at_plan *plan)
{
    return plan->workers * sizeof(at_member_image) + state_bytes(plan) + 3 * 64;
}

void at_image_init(at_image *image, const at_plan *plan, void *memory, size_t size)
{
    at_arena arena = {.base = memory, .size = size};
    *image = (at_image){.workers = plan->workers, .size_bytes = state_bytes(plan)};
    image->member = at_arena_get(&arena, plan->workers, sizeof *image->member);
    image->size_state = at_arena_get(&arena, 1, image->size_bytes);
    assert(image->member && image->size_state);
}

/* Rounds of this member that are undone: the one under way, and those in the open step. */
static uint64_t rounds_undone(const at_member *member)
{
    bool busy = member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_EVICTED;
    return member->pieces_held + (busy ? 1 : 0);
}

static void take_member(at_member_image *image, const at_hub *hub, const at_member *member)
{
    assert(member->rounds_begun >= rounds_undone(member));
    assert(member->sequence >= member->pieces_held);
    /* One that came back begins to count at the slowest one's round, whatever is held of it. */
    uint64_t ended = member->rounds_ended, held = member->pieces_held;
    *image = (at_member_image){.rounds = member->rounds_begun - rounds_undone(member),
                               .rounds_ended = ended > held ? ended - held : 0,
                               .sequence = member->sequence - member->pieces_held,
                               .used = member->used,
                               .dropped = member->dropped,
                               .share = hub->share[member->id - 1]};
}

static void take_targets(at_image *image, const at_hub *hub)
{
    memcpy(image->target, hub->target, sizeof image->target);
    for (int i = 0; i < AT_TARGETS_MAX; i++)
        if (image->target[i].hit) image->target[i].at -= hub->began_at;
}

void at_image_take(at_image *image, const at_hub *hub, at_ns now)
{
    assert(image->workers == hub->plan->workers);
    bool began = hub->began_at != AT_NEVER;
    image->version = hub->version;
    image->samples_used = hub->samples_used;
    image->samples_dropped = hub->samples_dropped;
    image->trace = hub->trace;
    image->dealt = hub->dealt_closed;
    image->eval_samples_next = hub->eval_samples_next;
    image->clock = now - hub->started_at;
    image->elapsed = began ? now - hub->began_at : hub->elapsed_before;
    take_targets(image, hub);
    for (uint32_t i = 0; i < image->workers; i++)
        take_member(&image->member[i], hub, &hub->member[i]);
    memcpy(image->size_state, hub->size_state, image->size_bytes);
}

static void resume_member(at_hub *hub, at_member *member, const at_image *image)
{
    uint64_t slowest = UINT64_MAX;
    for (uint32_t i = 0; i < image->workers; i++)
        if (image->member[i].rounds_ended < slowest) slowest = image->member[i].rounds_ended;
    member->rounds_ended = slowest;
    if (member->id > image->workers) return;
    const at_member_image *from = &image->member[member->id - 1];
    member->rounds_begun = from->rounds;
    member->rounds_ended = from->rounds_ended;
    member->sequence = from->sequence;
    member->used = from->used;
    member->dropped = from->dropped;
    hub->share[member->id - 1] = from->share;
}

static bool same_crew(const at_image *image, const at_plan *plan)
{
    return image->workers == plan->workers && image->size_bytes == state_bytes(plan);
}

static bool sound_member(const at_member_image *member)
{
    const uint64_t many = (uint64_t)1 << 62;
    return member->rounds < many && member->rounds_ended < many && member->sequence < many &&
           member->used < many && member->dropped < many && member->share.samples >= 1 &&
           member->share.time_limit > 0;
}

bool at_image_sound(const at_image *image, const at_plan *plan)
{
    const uint64_t many = (uint64_t)1 << 62;
    const at_ns    long_time = (at_ns)1 << 60;
    uint64_t       booked = 0;
    for (uint32_t i = 0; i < image->workers; i++) {
        if (!sound_member(&image->member[i])) return false;
        booked += image->member[i].used + image->member[i].dropped;
    }
    /* Workers that earlier parts of the run had may have left some behind. */
    if (image->samples_used + image->samples_dropped < booked) return false;
    if (image->version >= many || image->samples_used >= many || image->samples_dropped >= many ||
        image->dealt >= many || image->clock < 0 || image->clock > long_time ||
        image->elapsed < 0 || image->elapsed > image->clock)
        return false;
    return !same_crew(image, plan) || !plan->size->sound ||
           plan->size->sound(image->size_state, plan, image->samples_used);
}

void at_hub_resume(at_hub *hub, const at_image *image)
{
    assert(hub->version == 0);
    assert(image->workers >= 1);
    hub->version = image->version;
    hub->samples_used = image->samples_used;
    hub->samples_dropped = image->samples_dropped;
    hub->trace = image->trace;
    hub->dealt = hub->dealt_closed = image->dealt;
    hub->eval_samples_next = image->eval_samples_next;
    hub->elapsed_before = image->elapsed;
    hub->clock_before = image->clock;
    memcpy(hub->target, image->target, sizeof hub->target);
    for (uint32_t i = 0; i < hub->plan->workers; i++) resume_member(hub, &hub->member[i], image);
    hub->resumed = true;
    hub->sized = same_crew(image, hub->plan);
    if (hub->sized) memcpy(hub->size_state, image->size_state, image->size_bytes);
}

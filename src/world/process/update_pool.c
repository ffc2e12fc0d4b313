#include "world/process/update_pool.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/clock.h"
#include "world/process/child.h"

enum {
    JOURNAL = 4 * AT_UPDATER_BLOCK,    /* floats changed at a time; they stay in the cache */
    SLICE_MIN = 64 * AT_UPDATER_BLOCK, /* floats that take about as long as waking a process */
    LOOKS_MAX = 20 /* without one block done, until a member is ended; a lease lasts longer */
};
static const at_ns LOOK_EVERY = AT_MS(100);

/* A member's place in shared memory. The hub writes while nothing is asked, the member after. */
typedef struct seat {
    _Alignas(64) _Atomic bool asked;
    at_slice       slice;
    _Atomic size_t begun; /* floats of the slice that may have been changed */
    _Atomic size_t done;  /* floats that are final; those between are in `old` as they were */
    _Alignas(64) float old[AT_UPDATER_CHANGES_MAX][JOURNAL];
} seat;

typedef struct shared {
    _Alignas(64) at_bell bell;
    seat seat[]; /* of member i+1 */
} shared;

struct at_update_pool {
    at_update_pool_options options;
    shared                *shared;
    size_t                 size;
    at_bell               *bell; /* of the members */
};

at_err at_update_pool_open(const at_update_pool_options *options, at_update_pool **crew,
                           at_fail *fail)
{
    size_t seats;
    assert(options->updater->room_size > 0);
    assert(options->members >= 1);
    *crew = NULL;
    at_update_pool *c = calloc(1, sizeof *c);
    if (!c || !at_size_product(options->members, sizeof(seat), &seats)) {
        free(c);
        return at_fail_memory(fail);
    }
    c->options = *options;
    c->size = sizeof(shared) + seats;
    c->shared = at_child_share(c->size, fail);
    if (!c->shared) {
        free(c);
        return fail->err;
    }
    c->bell = options->member_bell ? options->member_bell : &c->shared->bell;
    *crew = c;
    return AT_OK;
}

void at_update_pool_close(at_update_pool *crew)
{
    if (!crew) return;
    munmap(crew->shared, crew->size);
    free(crew);
}

at_bell *at_update_pool_bell(at_update_pool *crew)
{
    assert(crew->bell);
    return crew->bell;
}

static seat *seat_of(const at_update_pool *crew, uint32_t member)
{
    assert(member >= 1);
    assert(member <= crew->options.members);
    return &crew->shared->seat[member - 1];
}

static size_t journal_size(const seat *s, size_t at)
{
    assert(at < s->slice.count);
    return s->slice.count - at < JOURNAL ? s->slice.count - at : JOURNAL;
}

/* ---- members --------------------------------------------------------------------------------- */

static void save(seat *s, const at_updater *u, size_t at, size_t n)
{
    float   *vectors[AT_UPDATER_CHANGES_MAX];
    uint32_t count = at_updater_changes(u, vectors);
    for (uint32_t i = 0; i < count; i++)
        memcpy(s->old[i], vectors[i] + s->slice.first + at, n * sizeof(float));
}

/* The order of these four is what makes a death harmless at any moment. */
static void do_block(seat *s, const at_updater *u, size_t at)
{
    size_t n = journal_size(s, at);
    save(s, u, at, n);
    atomic_store(&s->begun, at + n);
    atomic_thread_fence(memory_order_seq_cst);
    at_updater_slice(u, (at_slice){s->slice.first + at, n});
    atomic_store(&s->done, at + n);
}

bool at_update_pool_work(at_update_pool *crew, uint32_t member)
{
    seat *s = seat_of(crew, member);
    if (!atomic_load(&s->asked)) return false;
    for (size_t at = 0; at < s->slice.count; at += JOURNAL) do_block(s, crew->options.updater, at);
    atomic_store(&s->asked, false);
    at_bell_ring(crew->options.hub_bell);
    return true;
}

/* ---- the hub --------------------------------------------------------------------------------- */

static size_t slice_size(size_t params, uint32_t parts)
{
    size_t least = (params + parts - 1) / parts;
    size_t whole = (least + AT_UPDATER_BLOCK - 1) / AT_UPDATER_BLOCK * AT_UPDATER_BLOCK;
    return whole > SLICE_MIN ? whole : SLICE_MIN;
}

static at_slice cut(size_t params, size_t first, size_t size)
{
    assert(first <= params);
    return (at_slice){first, params - first < size ? params - first : size};
}

static void ask(seat *s, at_slice slice)
{
    assert(!atomic_load(&s->asked));
    s->slice = slice;
    atomic_store(&s->begun, 0);
    atomic_store(&s->done, 0);
    atomic_store(&s->asked, true);
}

/* Ends the slice of a member that is gone. */
static void take_over(const at_update_pool *crew, seat *s)
{
    const at_updater *u = crew->options.updater;
    size_t            done = atomic_load(&s->done), left = s->slice.count - done;
    if (atomic_load(&s->begun) > done) {
        float   *vectors[AT_UPDATER_CHANGES_MAX];
        uint32_t count = at_updater_changes(u, vectors);
        for (uint32_t i = 0; i < count; i++)
            memcpy(vectors[i] + s->slice.first + done, s->old[i],
                   journal_size(s, done) * sizeof(float));
    }
    if (left > 0) at_updater_slice(u, (at_slice){s->slice.first + done, left});
    atomic_store(&s->asked, false);
}

/* How many members are not done yet; those that are gone are done for them. */
static uint32_t outstanding(at_update_pool *crew, const uint32_t *members, uint32_t count,
                            size_t *done)
{
    const at_update_pool_world *world = &crew->options.world;
    uint32_t                    left = 0;
    *done = 0;
    for (uint32_t i = 0; i < count; i++) {
        seat *s = seat_of(crew, members[i]);
        if (atomic_load(&s->asked) && world->is_gone(world->self, members[i])) take_over(crew, s);
        if (atomic_load(&s->asked)) left++;
        *done += atomic_load(&s->done);
    }
    return left;
}

static void end_unfinished(at_update_pool *crew, const uint32_t *members, uint32_t count)
{
    const at_update_pool_world *world = &crew->options.world;
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load(&seat_of(crew, members[i])->asked)) world->end(world->self, members[i]);
}

/* Looks are counted, not time: when the whole machine was asleep, everybody gets another chance. */
static void wait_for(at_update_pool *crew, const uint32_t *members, uint32_t count)
{
    at_bell *bell = crew->options.hub_bell;
    size_t   before = 0, done;
    uint32_t looks = 0;
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        uint32_t left = outstanding(crew, members, count, &done);
        if (left == 0) return;
        at_ns until = at_clock_now() + LOOK_EVERY;
        at_bell_wait(bell, heard, left, AT_BELL_ALL, until, crew->options.spin_ns);
        if (at_clock_now() >= until) looks++;
        if (done != before) looks = 0;
        before = done;
        if (looks < LOOKS_MAX) continue;
        end_unfinished(crew, members, count);
        looks = 0;
    }
}

void at_update_pool_run(at_update_pool *crew, const uint32_t *members, uint32_t count, bool joins)
{
    const at_updater *u = crew->options.updater;
    uint32_t          parts = count + (joins ? 1 : 0), asked = 0, mask = 0;
    size_t            size = slice_size(u->params, parts > 0 ? parts : 1);
    at_slice          own = cut(u->params, 0, joins || count == 0 ? size : 0);
    size_t            first = own.count;
    for (; asked < count && first < u->params; asked++) {
        at_slice slice = cut(u->params, first, size);
        ask(seat_of(crew, members[asked]), slice);
        mask |= at_bell_mask(members[asked]);
        first += slice.count;
    }
    assert(first == u->params);
    if (mask) at_bell_ring_loud(crew->bell, mask);
    if (own.count > 0) at_updater_slice(u, own);
    wait_for(crew, members, asked);
}

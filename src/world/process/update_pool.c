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
    CHECKS_MAX = 20 /* without a finished block, until members are killed; a lease lasts longer */
};
static const at_ns CHECK_EVERY = AT_MS(100);

/* FREE ─hub─► ASSIGNED ─member─► TAKEN ─member─► FREE, or the hub takes back what is ASSIGNED. */
enum { FREE, ASSIGNED, TAKEN };

/* A member's entry in shared memory: written by the hub until it is ASSIGNED, then by the member.
 */
typedef struct assignment {
    _Alignas(64) _Atomic uint32_t state;
    at_slice       slice;
    _Atomic size_t begun; /* floats of the slice that may have changed */
    _Atomic size_t done;  /* floats that are final; `old` has the previous values of begun - done */
    _Alignas(64) float old[AT_UPDATER_CHANGES_MAX][JOURNAL];
} assignment;

typedef struct shared {
    _Alignas(64) at_bell bell;
    assignment assignment[]; /* of member i+1 */
} shared;

struct at_update_pool {
    at_update_pool_options options;
    shared                *shared;
    size_t                 size;
    at_bell               *bell; /* of the members */
};

at_err at_update_pool_open(const at_update_pool_options *options, at_update_pool **pool,
                           at_fail *fail)
{
    size_t size;
    assert(options->updater->shared_size > 0);
    assert(options->members >= 1);
    *pool = NULL;
    at_update_pool *p = calloc(1, sizeof *p);
    if (!p || !at_size_product(options->members, sizeof(assignment), &size)) {
        free(p);
        return at_fail_memory(fail);
    }
    p->options = *options;
    p->size = sizeof(shared) + size;
    p->shared = at_child_share(p->size, fail);
    if (!p->shared) {
        free(p);
        return fail->err;
    }
    p->bell = options->member_bell ? options->member_bell : &p->shared->bell;
    *pool = p;
    return AT_OK;
}

void at_update_pool_close(at_update_pool *pool)
{
    if (!pool) return;
    munmap(pool->shared, pool->size);
    free(pool);
}

at_bell *at_update_pool_bell(at_update_pool *pool)
{
    assert(pool->bell);
    return pool->bell;
}

static assignment *assignment_of(const at_update_pool *pool, uint32_t member)
{
    assert(member >= 1);
    assert(member <= pool->options.members);
    return &pool->shared->assignment[member - 1];
}

static size_t journal_size(const assignment *a, size_t at)
{
    assert(at < a->slice.count);
    return a->slice.count - at < JOURNAL ? a->slice.count - at : JOURNAL;
}

/* True if the assignment was in the first state; it is in the second one then. */
static bool moves(assignment *a, uint32_t from, uint32_t to)
{
    assert(from != to);
    return atomic_compare_exchange_strong(&a->state, &from, to);
}

static bool is_busy(const assignment *a)
{
    return atomic_load(&a->state) != FREE;
}

/* ---- members --------------------------------------------------------------------------------- */

static void save(assignment *a, const at_updater *u, size_t at, size_t n)
{
    float   *vectors[AT_UPDATER_CHANGES_MAX];
    uint32_t count = at_updater_changes(u, vectors);
    assert(count <= AT_UPDATER_CHANGES_MAX && n <= JOURNAL);
    for (uint32_t i = 0; i < count; i++)
        memcpy(a->old[i], vectors[i] + a->slice.first + at, n * sizeof(float));
}

/* A death at any moment is harmless because of the order of these four. */
static void do_block(assignment *a, const at_updater *u, size_t at)
{
    size_t n = journal_size(a, at);
    assert(atomic_load_explicit(&a->done, memory_order_relaxed) == at); /* block by block */
    save(a, u, at, n);
    atomic_store(&a->begun, at + n);
    atomic_thread_fence(memory_order_seq_cst);
    at_updater_slice(u, (at_slice){a->slice.first + at, n});
    atomic_store(&a->done, at + n);
}

bool at_update_pool_work(at_update_pool *pool, uint32_t member)
{
    assignment *a = assignment_of(pool, member);
    if (!moves(a, ASSIGNED, TAKEN)) return false;
    for (size_t at = 0; at < a->slice.count; at += JOURNAL) do_block(a, pool->options.updater, at);
    atomic_store(&a->state, FREE);
    at_bell_ring(pool->options.hub_bell);
    return true;
}

/* ---- the hub --------------------------------------------------------------------------------- */

static size_t slice_size(size_t params, uint32_t parts)
{
    assert(parts >= 1);
    size_t least = (params + parts - 1) / parts;
    size_t whole = (least + AT_UPDATER_BLOCK - 1) / AT_UPDATER_BLOCK * AT_UPDATER_BLOCK;
    return whole > SLICE_MIN ? whole : SLICE_MIN;
}

static at_slice cut(size_t params, size_t first, size_t size)
{
    assert(first <= params);
    return (at_slice){first, params - first < size ? params - first : size};
}

static void assign(assignment *a, at_slice slice)
{
    assert(!is_busy(a));
    a->slice = slice;
    atomic_store(&a->begun, 0);
    atomic_store(&a->done, 0);
    atomic_store(&a->state, ASSIGNED);
}

/* Finishes the slice of a member that is gone. */
static void take_over(const at_update_pool *pool, assignment *a)
{
    const at_updater *u = pool->options.updater;
    size_t            done = atomic_load(&a->done), left = a->slice.count - done;
    assert(done <= a->slice.count);
    if (atomic_load(&a->begun) > done) {
        float   *vectors[AT_UPDATER_CHANGES_MAX];
        uint32_t count = at_updater_changes(u, vectors);
        for (uint32_t i = 0; i < count; i++)
            memcpy(vectors[i] + a->slice.first + done, a->old[i],
                   journal_size(a, done) * sizeof(float));
    }
    if (left > 0) at_updater_slice(u, (at_slice){a->slice.first + done, left});
    atomic_store(&a->state, FREE);
}

/* Does the slices that no member has begun: on a busy machine one may not wake up in time. */
static void take_back(const at_update_pool *pool, const uint32_t *members, uint32_t count)
{
    assert(count <= pool->options.members);
    for (uint32_t i = 0; i < count; i++) {
        assignment *a = assignment_of(pool, members[i]);
        if (moves(a, ASSIGNED, FREE)) at_updater_slice(pool->options.updater, a->slice);
    }
}

/* How many members are not done yet; finishes the slices of those that are gone. */
static uint32_t outstanding(at_update_pool *pool, const uint32_t *members, uint32_t count,
                            size_t *done)
{
    const at_update_pool_world *world = &pool->options.world;
    uint32_t                    left = 0;
    assert(count <= pool->options.members);
    *done = 0;
    for (uint32_t i = 0; i < count; i++) {
        assignment *a = assignment_of(pool, members[i]);
        if (is_busy(a) && world->is_gone(world->self, members[i])) take_over(pool, a);
        if (is_busy(a)) left++;
        *done += atomic_load(&a->done);
    }
    return left;
}

static void end_unfinished(at_update_pool *pool, const uint32_t *members, uint32_t count)
{
    const at_update_pool_world *world = &pool->options.world;
    assert(count <= pool->options.members);
    for (uint32_t i = 0; i < count; i++)
        if (is_busy(assignment_of(pool, members[i]))) world->end(world->self, members[i]);
}

/* Counts checks instead of time, so that no process is killed after the whole machine was
 * suspended. */
static void wait_for(at_update_pool *pool, const uint32_t *members, uint32_t count)
{
    at_bell *bell = pool->options.hub_bell;
    size_t   before = 0, done;
    uint32_t checks = 0;
    assert(count <= pool->options.members);
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        uint32_t left = outstanding(pool, members, count, &done);
        if (left == 0) return;
        at_ns until = at_clock_now() + CHECK_EVERY;
        at_bell_wait(bell, heard, left, AT_BELL_ALL, until, pool->options.spin_ns);
        if (at_clock_now() >= until) checks++;
        if (done != before) checks = 0;
        before = done;
        if (checks < CHECKS_MAX) continue;
        end_unfinished(pool, members, count);
        checks = 0;
    }
}

void at_update_pool_run(at_update_pool *pool, const uint32_t *members, uint32_t count, bool joins)
{
    const at_updater *u = pool->options.updater;
    uint32_t          parts = count + (joins ? 1 : 0), asked = 0, mask = 0;
    size_t            size = slice_size(u->params, parts > 0 ? parts : 1);
    at_slice          own = cut(u->params, 0, joins || count == 0 ? size : 0);
    size_t            first = own.count;
    assert(count <= pool->options.members);
    for (; asked < count && first < u->params; asked++) {
        at_slice slice = cut(u->params, first, size);
        assign(assignment_of(pool, members[asked]), slice);
        mask |= at_bell_mask(members[asked]);
        first += slice.count;
    }
    assert(first == u->params);
    if (mask) at_bell_ring_loud(pool->bell, mask);
    if (own.count > 0) at_updater_slice(u, own);
    if (joins) take_back(pool, members, asked);
    wait_for(pool, members, asked);
}

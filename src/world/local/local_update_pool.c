#include "world/local/local_update_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "world/process/supervisor.h"

/* A hub that only computes slices; its process borrows this from the memory before the fork. */
typedef struct other_hub {
    at_local_update_pool *pool;
    uint32_t              number; /* 1 .. hubs-1 */
} other_hub;

struct at_local_update_pool {
    at_local_update_pool_options options;
    at_update_pool              *pool;
    uint32_t                    *members; /* scratch: members that take part in an update */
    other_hub                   *hubs;
    at_supervisor               *supervisor; /* of the other hubs; NULL: there are none */
    uint32_t                     hubs_count;
};

enum { SHARED_MIN = 1 << 18 }; /* floats whose update takes longer than waking a worker */

/* The hub of --mix central lets waiting workers help. */
static bool hub_is_helped(const at_world_context *context)
{
    const at_plan *plan = context->plan;
    const at_task *task = context->task;
    assert(context->cores >= 1);
    return !at_plan_splits_update(plan) && !plan->mix->owned_by_workers && !task->sparse &&
           at_plan_reads_in_place(plan) && plan->workers_max > 1 && context->cores > 1 &&
           task->params >= SHARED_MIN;
}

static bool by_workers(const at_world_context *context)
{
    assert(context->plan);
    return context->plan->mix->updates_by_workers || hub_is_helped(context);
}

bool at_local_update_pool_wanted(const at_world_context *context)
{
    assert(context->plan->workers_max >= 1);
    return at_plan_splits_update(context->plan) || hub_is_helped(context);
}

/* Does not reap the child. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    assert(pid >= 0);
    if (pid == 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
    return info.si_pid == pid;
}

/* ---- workers --------------------------------------------------------------------------------- */

static bool worker_is_gone(void *self, uint32_t member)
{
    const at_local_update_pool *p = self;
    uint32_t                    incarnation;
    assert(member >= 1);
    return has_ended(p->options.pid_of(p->options.self, member, &incarnation));
}

static void end_worker(void *self, uint32_t member)
{
    const at_local_update_pool *p = self;
    assert(member >= 1);
    p->options.evict(p->options.self, member);
}

/* Workers that have handed in their gradient wait for the step anyway; a replacement may still be
 * starting up. */
static void run_by_workers(void *self, const at_piece *pieces, uint32_t count)
{
    const at_local_update_pool *p = self;
    bool                        helped = hub_is_helped(p->options.context);
    uint32_t                    members = 0, incarnation, most = count;
    if (helped && most > p->options.context->cores - 1) most = p->options.context->cores - 1;
    for (uint32_t i = 0; i < count && members < most; i++) {
        pid_t pid = p->options.pid_of(p->options.self, pieces[i].worker, &incarnation);
        if (pid > 0 && incarnation == pieces[i].incarnation)
            p->members[members++] = pieces[i].worker;
    }
    assert(members <= p->options.context->plan->workers_max);
    at_update_pool_run(p->pool, p->members, members, helped);
}

/* ---- other hubs ------------------------------------------------------------------------------ */

static bool hub_is_gone(void *self, uint32_t member)
{
    const at_local_update_pool *p = self;
    assert(member >= 1 && member <= p->hubs_count);
    return has_ended(at_supervisor_pid(p->supervisor, member - 1));
}

static void end_hub(void *self, uint32_t member)
{
    const at_local_update_pool *p = self;
    assert(member >= 1 && member <= p->hubs_count);
    at_supervisor_kill(p->supervisor, member - 1);
}

static void run_by_hubs(void *self, const at_piece *pieces, uint32_t count)
{
    const at_local_update_pool *p = self;
    uint32_t                    members = 0;
    assert(p->supervisor);
    (void)pieces;
    (void)count;
    for (uint32_t i = 0; i < p->hubs_count; i++)
        if (at_supervisor_pid(p->supervisor, i) > 0) p->members[members++] = p->hubs[i].number;
    at_update_pool_run(p->pool, p->members, members, true);
}

static int hub_main(void *self, at_fail *fail)
{
    const other_hub *hub = self;
    (void)fail;
    at_update_pool *pool = hub->pool->pool;
    at_bell        *bell = at_update_pool_bell(pool);
    assert(hub->number >= 1);
    assert(hub->pool->pool);
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        if (!at_update_pool_work(pool, hub->number))
            at_bell_wait(bell, heard, 1, at_bell_mask(hub->number), AT_NEVER,
                         hub->pool->options.spin_ns);
    }
    return AT_OK; /* not reached: the hub kills it at the end of the run */
}

static at_err start_hubs(at_local_update_pool *p, at_fail *fail)
{
    assert(p->pool);
    if (p->hubs_count == 0) return AT_OK;
    AT_TRY(at_supervisor_open(p->hubs_count, &p->supervisor, fail));
    for (uint32_t i = 0; i < p->hubs_count; i++) {
        p->hubs[i] = (other_hub){.pool = p, .number = i + 1};
        AT_TRY(at_supervisor_start(p->supervisor, i, hub_main, &p->hubs[i], fail));
    }
    return AT_OK;
}

uint32_t at_local_update_pool_reap(at_local_update_pool *p)
{
    at_death death;
    if (!p || !p->supervisor || !at_supervisor_reap(p->supervisor, &death)) return 0;
    assert(death.child < p->hubs_count);
    return p->hubs[death.child].number;
}

/* ---- start and end --------------------------------------------------------------------------- */

static at_err open_pool(at_local_update_pool *p, at_fail *fail)
{
    const at_local_update_pool_options *o = &p->options;
    assert(!p->pool);
    bool                   workers = by_workers(o->context);
    at_local_head         *head = o->map->head;
    at_update_pool_options pool = {
        .updater = o->updater, .hub_bell = &head->hub_bell, .spin_ns = o->spin_ns};
    pool.members = workers ? o->context->plan->workers_max : p->hubs_count;
    pool.member_bell = workers ? &head->cast_bell : NULL;
    pool.world = workers ? (at_update_pool_world){p, worker_is_gone, end_worker}
                         : (at_update_pool_world){p, hub_is_gone, end_hub};
    AT_TRY(at_update_pool_open(&pool, &p->pool, fail));
    AT_TRY(start_hubs(p, fail));
    o->updater->helpers = (at_update_helpers){p, workers ? run_by_workers : run_by_hubs};
    return AT_OK;
}

at_err at_local_update_pool_open(const at_local_update_pool_options *options,
                                 at_local_update_pool **pool, at_fail *fail)
{
    const at_world_context *context = options->context;
    assert(at_local_update_pool_wanted(context));
    at_local_update_pool *p = calloc(1, sizeof *p);
    *pool = p;
    if (!p) return at_fail_memory(fail);
    p->options = *options;
    p->hubs_count = by_workers(context) ? 0 : at_plan_hubs(context->plan) - 1;
    assert(!hub_is_helped(context) || at_plan_hubs(context->plan) <= 1);
    p->hubs = calloc(p->hubs_count + 1, sizeof *p->hubs);
    p->members =
        calloc(context->plan->workers_max + at_plan_hubs(context->plan), sizeof *p->members);
    if (!p->hubs || !p->members) return at_fail_memory(fail);
    return open_pool(p, fail);
}

void at_local_update_pool_close(at_local_update_pool *p)
{
    if (!p) return;
    at_supervisor_close(p->supervisor);
    at_update_pool_close(p->pool);
    free(p->hubs);
    free(p->members);
    free(p);
}

at_update_pool *at_local_update_pool_of_workers(const at_local_update_pool *p)
{
    return p && by_workers(p->options.context) ? p->pool : NULL;
}

#include "world/local/local_update_pool.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "world/process/child.h"

/* One of the hubs that only do slices; borrowed by its process from the memory before the fork. */
typedef struct other_hub {
    at_local_update_pool *crew;
    uint32_t              number; /* 1 .. hubs-1 */
    pid_t                 pid;    /* 0: it is gone */
} other_hub;

struct at_local_update_pool {
    at_local_update_pool_options options;
    at_update_pool              *crew;
    uint32_t                    *members; /* scratch: who takes part */
    other_hub                   *hubs;
    uint32_t                     hubs_count;
};

static bool by_workers(const at_world_context *context)
{
    return context->plan->topology == AT_TOPOLOGY_ALLREDUCE;
}

bool at_local_update_pool_wanted(const at_world_context *context)
{
    return by_workers(context) || context->hubs > 1;
}

/* A child that nobody has reaped yet is asked about and left as it is. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    if (pid == 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
    return info.si_pid == pid;
}

/* ---- workers --------------------------------------------------------------------------------- */

static bool worker_is_gone(void *self, uint32_t member)
{
    const at_local_update_pool *c = self;
    uint32_t                    incarnation;
    return has_ended(c->options.pid_of(c->options.self, member, &incarnation));
}

static void end_worker(void *self, uint32_t member)
{
    const at_local_update_pool *c = self;
    c->options.evict(c->options.self, member);
}

/* Those who handed in a gradient wait for the step, so they have time; a replacement may still be
 * busy with coming into being. */
static void run_by_workers(void *self, const at_piece *pieces, uint32_t count)
{
    const at_local_update_pool *c = self;
    uint32_t                    members = 0, incarnation;
    for (uint32_t i = 0; i < count; i++) {
        pid_t pid = c->options.pid_of(c->options.self, pieces[i].worker, &incarnation);
        if (pid > 0 && incarnation == pieces[i].incarnation)
            c->members[members++] = pieces[i].worker;
    }
    assert(members <= c->options.context->plan->workers);
    at_update_pool_run(c->crew, c->members, members, false);
}

/* ---- other hubs ------------------------------------------------------------------------------ */

static bool hub_is_gone(void *self, uint32_t member)
{
    const at_local_update_pool *c = self;
    assert(member >= 1 && member <= c->hubs_count);
    return has_ended(c->hubs[member - 1].pid);
}

static void end_hub(void *self, uint32_t member)
{
    const at_local_update_pool *c = self;
    if (c->hubs[member - 1].pid > 0) kill(c->hubs[member - 1].pid, SIGKILL);
}

static void run_by_hubs(void *self, const at_piece *pieces, uint32_t count)
{
    const at_local_update_pool *c = self;
    uint32_t                    members = 0;
    (void)pieces;
    (void)count;
    for (uint32_t i = 0; i < c->hubs_count; i++)
        if (c->hubs[i].pid > 0) c->members[members++] = c->hubs[i].number;
    at_update_pool_run(c->crew, c->members, members, true);
}

static int hub_main(void *self)
{
    const other_hub *hub = self;
    at_update_pool  *crew = hub->crew->crew;
    at_bell         *bell = at_update_pool_bell(crew);
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        if (!at_update_pool_work(crew, hub->number))
            at_bell_wait(bell, heard, 1, at_bell_mask(hub->number), AT_NEVER,
                         hub->crew->options.spin_ns);
    }
    return AT_OK; /* not reached: it is ended when the run is */
}

static at_err start_hubs(at_local_update_pool *c, at_fail *fail)
{
    for (uint32_t i = 0; i < c->hubs_count; i++) {
        c->hubs[i] = (other_hub){.crew = c, .number = i + 1};
        AT_TRY(at_child_fork(hub_main, &c->hubs[i], &c->hubs[i].pid, fail));
    }
    return AT_OK;
}

uint32_t at_local_update_pool_reap(at_local_update_pool *c)
{
    for (uint32_t i = 0; c && i < c->hubs_count; i++) {
        other_hub *hub = &c->hubs[i];
        if (hub->pid == 0 || waitpid(hub->pid, NULL, WNOHANG) != hub->pid) continue;
        hub->pid = 0;
        return hub->number;
    }
    return 0;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static at_err open_crew(at_local_update_pool *c, at_fail *fail)
{
    const at_local_update_pool_options *o = &c->options;

    bool                   workers = by_workers(o->context);
    at_local_head         *head = o->map->head;
    at_update_pool_options crew = {
        .updater = o->updater, .hub_bell = &head->hub_bell, .spin_ns = o->spin_ns};
    crew.members = workers ? o->context->plan->workers : c->hubs_count;
    crew.member_bell = workers ? &head->cast_bell : NULL;
    crew.world = workers ? (at_update_pool_world){c, worker_is_gone, end_worker}
                         : (at_update_pool_world){c, hub_is_gone, end_hub};
    AT_TRY(at_update_pool_open(&crew, &c->crew, fail));
    AT_TRY(start_hubs(c, fail));
    o->updater->helpers = (at_update_helpers){c, workers ? run_by_workers : run_by_hubs};
    return AT_OK;
}

at_err at_local_update_pool_open(const at_local_update_pool_options *options,
                                 at_local_update_pool **crew, at_fail *fail)
{
    const at_world_context *context = options->context;
    assert(at_local_update_pool_wanted(context));
    at_local_update_pool *c = calloc(1, sizeof *c);
    *crew = c;
    if (!c) return at_fail_memory(fail);
    c->options = *options;
    c->hubs_count = by_workers(context) ? 0 : context->hubs - 1;
    c->hubs = calloc(c->hubs_count + 1, sizeof *c->hubs);
    c->members = calloc(context->plan->workers + context->hubs, sizeof *c->members);
    if (!c->hubs || !c->members) return at_fail_memory(fail);
    return open_crew(c, fail);
}

void at_local_update_pool_close(at_local_update_pool *c)
{
    if (!c) return;
    for (uint32_t i = 0; c->hubs && i < c->hubs_count; i++)
        if (c->hubs[i].pid > 0) at_child_end(c->hubs[i].pid);
    at_update_pool_close(c->crew);
    free(c->hubs);
    free(c->members);
    free(c);
}

at_update_pool *at_local_update_pool_of_workers(const at_local_update_pool *c)
{
    return c && by_workers(c->options.context) ? c->crew : NULL;
}

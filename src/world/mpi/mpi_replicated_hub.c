#include "world/mpi/mpi_replicated_hub.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "world/core/job_parts.h"
#include "world/mpi/mpi_hub.h"
#include "world/mpi/mpi_worker.h"
#include "world/process/alive.h"
#include "world/process/child.h"
#include "world/process/signals.h"

static const at_ns SPIN = AT_US(20);

uint32_t at_mpi_replica_rank(const at_mpi_replica *r, at_node worker)
{
    assert(worker >= 1 && worker <= r->workers);
    return r->hubs + worker - 1;
}

const at_turn_message *at_mpi_replica_turn(const at_mpi_replica *r, at_node worker)
{
    return &r->ranks.turn[at_mpi_replica_rank(r, worker)];
}

uint64_t at_mpi_replica_drawn(const at_mpi_replica *r, at_node worker)
{
    const at_hub    *hub = r->host.hub;
    const at_member *member = &hub->member[worker - 1];
    uint64_t counted = member->used + member->dropped + at_hub_samples_held(hub, member), said;
    if (worker == r->id) return atomic_load(&r->drawn);
    said = at_mpi_replica_turn(r, worker)->report.drawn;
    return said > counted ? said : counted;
}

/* ---- start ----------------------------------------------------------------------------------- */

static at_err reserve(at_mpi_replica *r, at_fail *fail)
{
    const at_task *task = r->context->task;
    assert(!r->params && !r->gradient);
    r->params = aligned_alloc(64, (task->params * sizeof(float) + 127) / 64 * 64);
    r->gradient = aligned_alloc(64, (task->slot_floats * sizeof(float) + 127) / 64 * 64);
    if (!r->params || !r->gradient) return at_fail_memory(fail);
    r->bell = at_child_share(sizeof *r->bell, fail);
    if (!r->bell) return fail->err;
    return at_resume_params(r->context, r->params, fail);
}

/* Shared memory, because only the pages of a hub's slice are ever written. */
static at_err open_updater(at_mpi_replica *r, at_fail *fail)
{
    const at_learning *learning = r->context->learning;
    size_t             params = r->context->task->params;
    uint32_t           pieces_max = r->host.hub->pieces_max;
    assert(r->params && r->gradient);
    if (r->hubs > 0)
        return at_updater_init_shared(&r->updater, learning, r->params, params, pieces_max, fail);
    AT_TRY(at_updater_init(&r->updater, learning, r->params, params, pieces_max, fail));
    r->updater.summed = r->gradient;
    return AT_OK;
}

static at_err open_worker(at_mpi_replica *r, at_fail *fail)
{
    const at_task *task = r->context->task;
    assert(r->id >= 1 && r->id <= r->workers);
    atomic_store(&r->drawn, at_resume_drawn(&r->host, r->id));
    AT_TRY(at_local_steps_new(r->context, &r->local, fail));
    return task->open(task->self, r->id, fail);
}

at_err at_mpi_replica_open(at_mpi_replica *r, const at_world_ops *ops, at_fail *fail)
{
    const at_world_context *context = r->context;
    assert(ops->self == r);
    AT_TRY(reserve(r, fail));
    if (r->launcher->rank == 0)
        AT_TRY(at_evaluator_open(context->task, r->bell, &r->evaluator, fail));
    AT_TRY(at_host_init(&r->host, context->plan, context->recorder, &r->updater, r->evaluator, ops,
                        fail));
    AT_TRY(at_host_watch(&r->host, context->usage_every, fail));
    AT_TRY(open_updater(r, fail));
    AT_TRY(at_resume_host(context, &r->host, fail));
    return r->id > 0 ? open_worker(r, fail) : AT_OK;
}

at_err at_mpi_replica_meet(at_mpi_replica *r, at_fail *fail)
{
    const at_world_context *context = r->context;
    at_worker_note          hello = {.kind = AT_WORKER_NOTE_HELLO, .pid = getpid()};
    assert(!r->admitted);
    hello.born = at_alive_born(hello.pid);
    at_job_parts(context, hello.part);
    at_mpi_host(hello.host);
    AT_TRY(r->launcher->rank == 0 ? at_mpi_hub_admit(r->launcher, &hello, fail)
                                  : at_mpi_worker_ask(r->launcher, &hello, fail));
    r->admitted = true;
    /* Spinning pays off only while every process has its own core. */
    uint32_t here = r->launcher->local_size, size = r->launcher->size;
    bool     idle_cores = here > 0 && here <= context->cores && context->sample_time == 0;
    uint32_t calls = r->hubs > 0 ? at_mpi_slices_calls(r->hubs, size) : 0;
    AT_TRY(at_mpi_ranks_open(&r->ranks, r->launcher, &hello, calls, idle_cores ? SPIN : 0,
                             context->plan->lease, fail));
    for (at_node i = 1; i <= r->workers; i++)
        r->ranks.turn[at_mpi_replica_rank(r, i)].report.drawn = at_resume_drawn(&r->host, i);
    r->now = r->ranks.turn[0].now; /* the same on all ranks */
    if (r->hubs == 0) return AT_OK;
    return at_mpi_slices_open(&r->slices, &r->ranks, r->hubs, &r->updater, r->gradient, fail);
}

/* ---- end ------------------------------------------------------------------------------------- */

/* After a loss, the rounds that the other workers had started are lost with unknown samples. */
static at_err list_lost(const at_mpi_replica *r, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = r->host.hub;
    assert(!outcome->lost);
    if (!r->ranks.broken) return AT_OK;
    outcome->lost = calloc(r->workers, sizeof *outcome->lost);
    if (!outcome->lost) return at_fail_memory(fail);
    for (at_node i = 1; i <= r->workers; i++)
        if (i != r->id && hub->member[i - 1].rounds_begun > 0)
            outcome->lost[outcome->lost_count++] =
                (at_lost_round){.worker = i, .round = hub->member[i - 1].rounds_begun - 1};
    return AT_OK;
}

/* A loss during the broadcast leaves parameters of two versions, which are useless. */
static void hand_over_params(at_mpi_replica *r, at_outcome *outcome)
{
    assert(r->params);
    outcome->params = r->params;
    outcome->floats = r->slices.torn ? 0 : r->context->task->params;
    r->params = NULL;
}

at_err at_mpi_replica_hand_over(at_mpi_replica *r, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = r->host.hub;
    assert(r->admitted);
    at_host_outcome(&r->host, outcome);
    if (r->ranks.lost != UINT32_MAX || (r->ranks.broken && !at_signals_stop()))
        outcome->end = AT_END_LOST;
    hand_over_params(r, outcome);
    outcome->drawn = calloc(r->workers, sizeof(uint64_t));
    if (!outcome->drawn) return at_fail_memory(fail);
    for (at_node i = 1; i <= r->workers; i++) {
        outcome->drawn[i - 1] = at_mpi_replica_drawn(r, i);
        assert(outcome->drawn[i - 1] == hub->member[i - 1].used + hub->member[i - 1].dropped);
    }
    memcpy(outcome->engine, at_mpi_replica_turn(r, 1)->engine, sizeof outcome->engine);
    return list_lost(r, outcome, fail);
}

void at_mpi_replica_close(at_mpi_replica *r)
{
    assert(r->context);
    at_evaluator_close(r->evaluator);
    at_host_deinit(&r->host);
    if (r->hubs == 0) at_updater_deinit(&r->updater); /* else MPI may still read its states */
    at_local_steps_free(r->local);
    if (r->bell) munmap(r->bell, sizeof *r->bell);
}

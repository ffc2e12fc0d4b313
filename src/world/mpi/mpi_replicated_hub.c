#include "world/mpi/mpi_replicated_hub.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "world/mpi/mpi_roles.h"
#include "world/process/alive.h"
#include "world/process/child.h"
#include "world/process/signals.h"

static const at_ns SPIN = AT_US(20);

uint32_t at_mpi_replica_rank(const at_mpi_replica *e, at_node worker)
{
    assert(worker >= 1 && worker <= e->workers);
    return e->hubs + worker - 1;
}

const at_mpi_turn *at_mpi_replica_turn(const at_mpi_replica *e, at_node worker)
{
    return &e->ranks.turn[at_mpi_replica_rank(e, worker)];
}

uint64_t at_mpi_replica_drawn(const at_mpi_replica *e, at_node worker)
{
    return worker == e->id ? atomic_load(&e->drawn) : at_mpi_replica_turn(e, worker)->drawn;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static at_err reserve(at_mpi_replica *e, at_fail *fail)
{
    const at_task *task = e->context->task;
    e->params = aligned_alloc(64, (task->params * sizeof(float) + 127) / 64 * 64);
    e->gradient = aligned_alloc(64, (task->slot_floats * sizeof(float) + 127) / 64 * 64);
    if (!e->params || !e->gradient) return at_fail_memory(fail);
    e->bell = at_child_share(sizeof *e->bell, fail);
    if (!e->bell) return fail->err;
    return at_resume_params(e->context, e->params, fail);
}

/* A shared room costs memory only where a hub writes to it. */
static at_err open_updater(at_mpi_replica *e, at_fail *fail)
{
    const at_learning *learning = e->context->learning;
    size_t             params = e->context->task->params;
    uint32_t           pieces_max = e->host.hub->pieces_max;
    if (e->hubs > 0)
        return at_updater_init_shared(&e->updater, learning, e->params, params, pieces_max, fail);
    AT_TRY(at_updater_init(&e->updater, learning, e->params, params, pieces_max, fail));
    e->updater.summed = e->gradient;
    return AT_OK;
}

static at_err open_worker(at_mpi_replica *e, const at_ground *ground, at_fail *fail)
{
    const at_world_context *context = e->context;
    e->computer = (at_computer){.plan = context->plan,
                                .task = context->task,
                                .pace = context->pace,
                                .id = e->id,
                                .sample_time = context->sample_time,
                                .ground = *ground,
                                .drawn = &e->drawn};
    at_worker_init(&e->machine, context->plan, e->id, 1, 1,
                   e->host.hub->member[e->id - 1].sequence);
    atomic_store(&e->drawn, at_resume_drawn(&e->host, e->id));
    return context->task->open(context->task->self, e->id, fail);
}

at_err at_mpi_replica_open(at_mpi_replica *e, const at_world_ops *link, const at_ground *ground,
                           at_fail *fail)
{
    const at_world_context *context = e->context;
    AT_TRY(reserve(e, fail));
    if (e->launcher->rank == 0)
        AT_TRY(at_evaluator_open(context->task, e->bell, &e->evaluator, fail));
    AT_TRY(at_host_init(&e->host, context->plan, context->recorder, &e->updater, e->evaluator, link,
                        fail));
    AT_TRY(at_host_watch(&e->host, context->usage_every, fail));
    AT_TRY(open_updater(e, fail));
    AT_TRY(at_resume_host(context, &e->host, fail));
    return e->id > 0 ? open_worker(e, ground, fail) : AT_OK;
}

at_err at_mpi_replica_meet(at_mpi_replica *e, at_fail *fail)
{
    const at_world_context *context = e->context;
    at_worker_note          hello = {.kind = AT_WORKER_NOTE_HELLO, .pid = getpid(), .fail = *fail};
    hello.born = at_alive_born(hello.pid);
    hello.fingerprint = at_job_fingerprint(context);
    gethostname(hello.host, sizeof hello.host - 1);
    /* Spinning pays only while every process has a core of its own. */
    uint32_t here = e->launcher->local_size, size = e->launcher->size;
    bool     roomy = here > 0 && here <= context->cores && context->sample_time == 0;
    uint32_t calls = e->hubs > 0 ? at_mpi_slices_calls(e->hubs, size) : 0;
    AT_TRY(at_mpi_ranks_open(&e->ranks, e->launcher, &hello, calls, roomy ? SPIN : 0, fail));
    for (at_node i = 1; i <= e->workers; i++)
        e->ranks.turn[at_mpi_replica_rank(e, i)].drawn = at_resume_drawn(&e->host, i);
    e->now = e->ranks.turn[0].now; /* the same everywhere, as all that hubs hear */
    if (e->hubs == 0) return AT_OK;
    return at_mpi_slices_open(&e->slices, &e->ranks, e->hubs, &e->updater, e->gradient, fail);
}

/* ---- end ------------------------------------------------------------------------------------- */

/* Whoever did not take part in the last turn any more had a round under way, of unknown length. */
static at_err list_lost(const at_mpi_replica *e, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = e->host.hub;
    if (!e->ranks.broken) return AT_OK;
    outcome->lost = calloc(e->workers, sizeof *outcome->lost);
    if (!outcome->lost) return at_fail_memory(fail);
    for (at_node i = 1; i <= e->workers; i++)
        if (i != e->id && hub->member[i - 1].rounds_begun > 0)
            outcome->lost[outcome->lost_count++] =
                (at_lost_round){.worker = i, .round = hub->member[i - 1].rounds_begun - 1};
    return AT_OK;
}

/* Parameters that were under way when a rank was lost are of two versions, and of no use. */
static void hand_over_params(at_mpi_replica *e, at_outcome *outcome)
{
    outcome->params = e->params;
    outcome->floats = e->slices.torn ? 0 : e->context->task->params;
    e->params = NULL;
}

at_err at_mpi_replica_hand_over(at_mpi_replica *e, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = e->host.hub;
    at_host_outcome(&e->host, outcome);
    if (e->ranks.lost != UINT32_MAX || (e->ranks.broken && !at_signals_stop()))
        outcome->end = AT_END_LOST;
    hand_over_params(e, outcome);
    outcome->drawn = calloc(e->workers, sizeof(uint64_t));
    if (!outcome->drawn) return at_fail_memory(fail);
    for (at_node i = 1; i <= e->workers; i++) {
        outcome->drawn[i - 1] = at_mpi_replica_drawn(e, i);
        assert(outcome->drawn[i - 1] == hub->member[i - 1].used + hub->member[i - 1].dropped);
    }
    memcpy(outcome->engine, at_mpi_replica_turn(e, 1)->engine, sizeof outcome->engine);
    return list_lost(e, outcome, fail);
}

void at_mpi_replica_close(at_mpi_replica *e)
{
    at_evaluator_close(e->evaluator);
    at_host_deinit(&e->host);
    if (e->hubs == 0) at_updater_deinit(&e->updater); /* else MPI may still read its states */
    if (e->bell) munmap(e->bell, sizeof *e->bell);
}

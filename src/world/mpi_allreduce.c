/* The MPI world without a hub: every rank is a worker, and runs a hub of its own that decides what
 * all the others decide, because it hears the same.
 *
 *     rank:  compute a round ─► turns and gradients of all ranks together (mpi_ranks.h)
 *              ─► own hub hears all reports in rank order ─► APPLY: the same update everywhere
 *              ─► its order to this rank's worker ─► compute a round ..
 *
 * Time is agreed on, too: an event's `now` is when the last rank took its turn, on the clock of
 * rank 0. Parameters are never sent: ranks begin with the same ones and stay the same, bit for bit,
 * which is checked by hash from time to time. Rank 0 records, evaluates, saves and speaks.
 *
 * Gradients are all there before any hub decides anything, so a rank that is lost leaves the others
 * between two steps, with something to save. That costs what could be won by updating one part of
 * the vector while the next is still being added up: docs/topologies.md has how much that is.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "world/alive.h"
#include "world/child.h"
#include "world/compute.h"
#include "world/host.h"
#include "world/mpi_ranks.h"
#include "world/mpi_roles.h"
#include "world/resume.h"
#include "world/signals.h"

enum { HASH_EVERY = 100 }; /* steps */
static const at_ns SPIN = AT_US(20);

typedef struct equal {
    const at_scene    *scene;
    const at_launcher *launcher;
    at_host            host;
    at_updater         updater;
    at_evaluator      *evaluator; /* of rank 0 */
    at_bell           *bell;      /* shared with it */
    at_worker          machine;
    at_computer        computer;
    at_mpi_ranks       ranks;
    float             *params, *gradient;
    _Atomic uint64_t   drawn;
    at_order           order;
    at_ns              now;    /* agreed */
    at_ns              waited; /* for the others, in the last turn */
    at_verdict         verdict;
    bool               has_verdict;
    bool               stopping;
    at_fail            differ; /* ranks are not the same any more */
} equal;

/* There is one in a process, and it stays until the process ends: MPI may use its memory. */
static equal standing;

static at_node own_id(const equal *e)
{
    return e->launcher->rank + 1;
}

/* ---- link: what the host asks of us ---------------------------------------------------------- */

static void send_order(void *self, at_node worker, const at_order *order)
{
    equal *e = self;
    if (worker == own_id(e)) e->order = *order; /* the others get theirs from their own hubs */
}

static void evict(void *self, at_node worker)
{
    (void)self;
    (void)worker;
    assert(!"whoever is overdue holds up everybody, and nobody can be spared");
}

static bool heard_verdict(void *self, at_verdict *verdict)
{
    equal *e = self;
    bool   has = e->has_verdict;
    *verdict = e->verdict;
    e->has_verdict = false;
    return has;
}

/* ---- computing ------------------------------------------------------------------------------- */

static bool interrupted(void *self)
{
    (void)self;
    return at_signals_stop();
}

static void sleep_on_ground(void *self, at_ns until)
{
    equal   *e = self;
    uint32_t heard = at_bell_heard(e->bell);
    if (!at_signals_stop()) at_bell_wait(e->bell, heard, 1, AT_BELL_ALL, until, 0);
}

static const float *params(void *self, uint64_t *version)
{
    const equal *e = self;
    *version = e->host.hub->version;
    return e->params;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static uint64_t hash_params(const equal *e)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < e->updater.params; i++) {
        uint32_t bits;
        memcpy(&bits, &e->params[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    return hash == 0 ? 1 : hash;
}

static at_mpi_turn turn_of(equal *e, const at_report *report)
{
    uint64_t    version = e->host.hub->version;
    at_mpi_turn turn = {.report = *report,
                        .drawn = atomic_load(&e->drawn),
                        .now = at_mpi_ranks_now(&e->ranks),
                        .version = version,
                        .trace = e->host.hub->trace,
                        .stops = at_signals_stop()};
    if (version % HASH_EVERY == 0) turn.hash = hash_params(e);
    turn.has_verdict = at_evaluator_take(e->evaluator, &turn.verdict);
    return turn;
}

static void compare(equal *e)
{
    for (uint32_t i = 1; i < e->launcher->size; i++) {
        const at_mpi_turn *first = &e->ranks.turn[0], *turn = &e->ranks.turn[i];
        bool               hubs = turn->version == first->version && turn->trace == first->trace;
        if (hubs && turn->hash == first->hash) continue;
        at_fail_set(&e->differ, AT_ERR_FAILED, "use --topology hub, and look after these machines",
                    "the %s of rank %u is not that of rank 0 any more, at step %llu",
                    hubs ? "model" : "hub", i, (unsigned long long)first->version);
        return;
    }
}

/* The agreed time never goes back, whatever clocks do. */
static bool agree(equal *e)
{
    bool stops = false;
    for (uint32_t i = 0; i < e->launcher->size; i++) {
        const at_mpi_turn *turn = &e->ranks.turn[i];
        if (turn->now > e->now) e->now = turn->now;
        stops = stops || turn->stops;
    }
    e->verdict = e->ranks.turn[0].verdict;
    e->has_verdict = e->ranks.turn[0].has_verdict;
    return stops;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void tell_stop(equal *e)
{
    if (e->stopping || e->host.hub->end != AT_END_RUNNING) return;
    e->stopping = true;
    at_host_event(&e->host, &(at_event){.kind = AT_EV_STOP, .now = e->now}, NULL);
}

static void tell_reports(equal *e)
{
    for (uint32_t i = 0; i < e->launcher->size; i++) {
        at_event event = {.kind = AT_EV_MESSAGE, .worker = i + 1, .now = e->now};
        event.as.report = e->ranks.turn[i].report;
        at_host_event(&e->host, &event, NULL);
    }
}

/* Nobody here can be overdue without holding up everybody. */
static void tell_time(equal *e)
{
    e->host.timer[AT_TIMER_LEASE] = AT_NEVER;
    e->host.timer[AT_TIMER_NOTICE] = AT_NEVER;
    at_host_poll(&e->host, e->now);
    if (at_signals_child() && at_evaluator_reap(e->evaluator))
        at_host_say(&e->host, e->now, "the evaluator died and was started again");
}

/* One round; false: there will be no other. */
static bool take_turn(equal *e)
{
    at_report report;
    if (!at_compute_order(&e->machine, &e->computer, &e->order, e->gradient, &report)) return false;
    report.work.idle_ns = e->waited;
    at_mpi_turn turn = turn_of(e, &report);
    at_ns       since = at_clock_now();
    if (!at_mpi_ranks_take_turns(&e->ranks, &turn, e->gradient, e->updater.params)) return false;
    e->waited = at_clock_now() - since;
    compare(e);
    if (agree(e) || e->differ.err) tell_stop(e);
    tell_reports(e);
    if (!e->host.finished) tell_time(e);
    return true;
}

static void tell_end(equal *e, uint32_t rank, const char *how)
{
    at_event event = {.kind = AT_EV_LOST, .worker = rank + 1, .now = e->now};
    bool     own = rank == e->launcher->rank;
    event.as.lost.drawn = own ? atomic_load(&e->drawn) : e->ranks.turn[rank].drawn;
    at_host_event(&e->host, &event, &(at_about){.text = how});
}

/* Who was lost is told while the run still goes on, so that it is known as that. */
static void tell_loss(equal *e)
{
    at_ns now = at_mpi_ranks_now(&e->ranks);
    if (now > e->now) e->now = now;
    if (e->ranks.lost != UINT32_MAX) tell_end(e, e->ranks.lost, "its process is gone");
    tell_stop(e);
}

static void run(equal *e)
{
    at_host_event(&e->host, &(at_event){.kind = AT_EV_START, .now = e->now}, NULL);
    for (uint32_t i = 0; i < e->launcher->size; i++) {
        at_event event = {.kind = AT_EV_JOINED, .worker = i + 1, .now = e->now};
        event.as.joined.incarnation = e->host.hub->member[i].incarnation + 1;
        if (e->ranks.near[i]) at_host_process(&e->host, i + 1, e->ranks.hello[i].pid);
        at_host_event(&e->host, &event,
                      &(at_about){.pid = e->ranks.hello[i].pid, .text = e->ranks.hello[i].host});
    }
    while (take_turn(e)) continue;
    if (e->ranks.broken) tell_loss(e);
    for (uint32_t i = 0; i < e->launcher->size; i++)
        if (i != e->ranks.lost) tell_end(e, i, "left");
    assert(e->host.finished);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static at_err reserve(equal *e, at_fail *fail)
{
    const at_task *task = e->scene->task;
    e->params = aligned_alloc(64, (task->params * sizeof(float) + 127) / 64 * 64);
    e->gradient = aligned_alloc(64, (task->slot_floats * sizeof(float) + 127) / 64 * 64);
    if (!e->params || !e->gradient)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    e->bell = at_child_share(sizeof *e->bell, fail);
    if (!e->bell) return fail->err;
    return at_resume_params(e->scene, e->params, fail);
}

static at_err open_machines(equal *e, at_fail *fail)
{
    const at_scene *scene = e->scene;
    at_link link = {.self = e, .send = send_order, .evict = evict, .verdict = heard_verdict};
    AT_TRY(at_host_init(&e->host, scene->plan, scene->recorder, &e->updater, e->evaluator, &link,
                        fail));
    AT_TRY(at_host_watch(&e->host, scene->usage_every, fail));
    AT_TRY(at_updater_init(&e->updater, scene->learning, e->params, scene->task->params,
                           e->host.hub->pieces_max, fail));
    e->updater.summed = e->gradient;
    AT_TRY(at_resume_host(scene, &e->host, fail));
    e->computer = (at_computer){.plan = scene->plan,
                                .task = scene->task,
                                .pace = scene->pace,
                                .id = own_id(e),
                                .sample_time = scene->sample_time,
                                .ground = {e, interrupted, sleep_on_ground, params},
                                .drawn = &e->drawn};
    at_worker_init(&e->machine, scene->plan, own_id(e), 1, 1,
                   e->host.hub->member[own_id(e) - 1].sequence);
    atomic_store(&e->drawn, at_resume_drawn(&e->host, own_id(e)));
    return AT_OK;
}

/* Everything that forks comes before MPI and engines. */
static at_err prepare(equal *e, at_fail *fail)
{
    const at_task *task = e->scene->task;
    AT_TRY(reserve(e, fail));
    if (e->launcher->rank == 0) AT_TRY(at_evaluator_open(task, e->bell, &e->evaluator, fail));
    AT_TRY(open_machines(e, fail));
    return task->open(task->self, own_id(e), fail);
}

static at_err meet(equal *e, at_fail *fail)
{
    const at_scene *scene = e->scene;
    at_mpi_note     hello = {.kind = AT_MPI_NOTE_HELLO, .pid = getpid(), .fail = *fail};
    hello.born = at_alive_born(hello.pid);
    hello.likes = at_mpi_likes(scene);
    gethostname(hello.host, sizeof hello.host - 1);
    /* Spinning pays only while every process has a core of its own. */
    uint32_t here = e->launcher->local_size;
    bool     roomy = here > 0 && here <= scene->cores && scene->sample_time == 0;
    AT_TRY(at_mpi_ranks_open(&e->ranks, e->launcher, &hello, roomy ? SPIN : 0, fail));
    for (uint32_t i = 0; i < e->launcher->size; i++)
        e->ranks.turn[i].drawn = at_resume_drawn(&e->host, i + 1);
    e->now = e->ranks.turn[0].now; /* the same everywhere, as all that hubs hear */
    return AT_OK;
}

/* ---- end ------------------------------------------------------------------------------------- */

/* Whoever did not take part in the last turn any more had a round under way, of unknown length. */
static at_err list_lost(const equal *e, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = e->host.hub;
    if (!e->ranks.broken) return AT_OK;
    outcome->lost = calloc(e->launcher->size, sizeof *outcome->lost);
    if (!outcome->lost) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    for (uint32_t i = 0; i < e->launcher->size; i++)
        if (i != e->launcher->rank)
            outcome->lost[outcome->lost_count++] =
                (at_lost_round){.worker = i + 1, .round = hub->member[i].rounds_begun - 1};
    return AT_OK;
}

static at_err hand_over(equal *e, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = e->host.hub;
    uint32_t      workers = e->launcher->size;
    at_host_outcome(&e->host, outcome);
    if (e->ranks.lost != UINT32_MAX || (e->ranks.broken && !at_signals_stop()))
        outcome->end = AT_END_LOST;
    outcome->params = e->params;
    outcome->floats = e->scene->task->params;
    outcome->drawn = calloc(workers, sizeof(uint64_t));
    e->params = NULL;
    if (!outcome->drawn) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    for (uint32_t i = 0; i < workers; i++) {
        bool own = i == e->launcher->rank;
        outcome->drawn[i] = own ? atomic_load(&e->drawn) : e->ranks.turn[i].drawn;
        assert(outcome->drawn[i] == hub->member[i].used + hub->member[i].dropped);
    }
    snprintf(outcome->engine, sizeof outcome->engine, "%s",
             e->scene->task->engine(e->scene->task->self));
    return list_lost(e, outcome, fail);
}

static at_err train(equal *e, at_outcome *outcome, at_fail *fail)
{
    at_signals_open(e->bell);
    run(e);
    at_host_final_score(&e->host);
    at_err err = hand_over(e, outcome, fail);
    at_signals_close();
    if (err || !e->differ.err) return err;
    *fail = e->differ;
    return fail->err;
}

at_err at_mpi_allreduce_run(const at_scene *scene, const at_launcher *launcher, at_outcome *outcome,
                            at_fail *fail)
{
    equal *e = &standing;
    assert(!e->scene);
    *e = (equal){.scene = scene, .launcher = launcher};
    prepare(e, fail); /* what went wrong is told to all */
    at_err err = meet(e, fail);
    if (!err) err = train(e, outcome, fail);
    at_evaluator_close(e->evaluator);
    at_updater_deinit(&e->updater);
    at_host_deinit(&e->host);
    if (e->bell) munmap(e->bell, sizeof *e->bell);
    return err;
}

bool at_mpi_allreduce_ran(void)
{
    return standing.scene != NULL;
}

/* A lost process that may still exist would keep the launcher waiting, so the launcher is asked to
 * end everybody. */
bool at_mpi_allreduce_end(const at_fail *fail)
{
    equal *e = &standing;
    assert(at_mpi_allreduce_ran());
    if (!at_mpi_is_started() || at_mpi_ranks_part(&e->ranks)) return true;
    if (at_mpi_ranks_is_buried(&e->ranks) || e->launcher->rank > 0) return false;
    fflush(NULL);
    at_mpi_abort(fail->err);
    return false;
}

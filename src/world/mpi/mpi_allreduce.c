/* The MPI world without somebody who decides: every rank runs a hub of its own, which decides what
 * all the others decide, because it hears the same.
 *
 *     worker:  compute a round ─► turns and gradients of all ranks together (mpi_ranks.h)
 *                ─► own hub hears all reports in rank order ─► APPLY: the same update everywhere
 *                ─► its order to this rank's worker ─► compute a round ..
 *
 * Time is agreed on, too: an event's `now` is when the last rank took its turn, on the clock of
 * rank 0. Ranks begin with the same parameters and stay the same, bit for bit, which is checked by
 * hash from time to time. Rank 0 records, evaluates, saves and speaks.
 *
 * Under all-reduce gradients are all there before any hub decides anything, so a rank that is lost
 * leaves the others between two steps, with something to save. That costs what could be won by
 * updating one part of the vector while the next is still being added up:
 * docs/guide/topologies.md has how much that is.
 * With --hubs ranks do not add up: each hub gets its slice of every gradient
 * (mpi_slices.h), and only hubs make updates.
 */
#include "world/mpi/mpi_allreduce.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "world/core/driver.h"
#include "world/mpi/mpi_replicated_hub.h"
#include "world/process/signals.h"

enum { HASH_EVERY = 100 }; /* steps */

typedef at_mpi_replica equal;

/* There is one in a process, and it stays until the process ends: MPI may use its memory. */
static equal standing;

/* ---- link: what the host asks of us ---------------------------------------------------------- */

static void send_order(void *self, at_node worker, const at_order *order)
{
    equal *e = self;
    assert(worker >= 1 && worker <= e->workers);
    if (worker != e->id) return; /* the others get theirs from their own hubs */
    at_inplace_order(&e->place, order);
}

static void evict(void *self, at_node worker)
{
    (void)self;
    (void)worker;
    assert(!"whoever is overdue holds up everybody, and nobody can be spared");
}

static bool heard_verdict(void *self, at_evaluation *evaluation)
{
    equal *e = self;
    bool   has = e->has_verdict;
    assert(evaluation);
    *evaluation = e->evaluation;
    e->has_verdict = false;
    return has;
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    const equal *e = self;
    assert(slot == 0);
    return at_mpi_slices_gradient(&e->slices, worker);
}

/* What is saved must be whole; when a rank is gone, the checkpoint before must do. */
static void describe(void *self, at_snapshot *snapshot)
{
    equal *e = self;
    (void)snapshot;
    assert(e->host.hub);
    if (e->hubs > 0 && !at_mpi_slices_fetch(&e->slices)) e->host.saver = NULL;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static uint64_t hash_params(const equal *e)
{
    uint64_t hash = 1;
    assert(e->params);
    for (size_t i = 0; i < e->updater.params; i++) {
        uint32_t bits;
        memcpy(&bits, &e->params[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    return hash == 0 ? 1 : hash;
}

static at_evaluation evaluation_of(const at_turn_score *score)
{
    assert(score);
    return (at_evaluation){.step = score->step,
                           .at = score->at,
                           .score = {.loss_sum = score->loss_sum,
                                     .correct = score->correct,
                                     .correct_top5 = score->correct_top5,
                                     .count = score->count,
                                     .classes = score->classes,
                                     .auc = score->auc}};
}

/* Only rank 0 has an evaluator. */
static void add_score(const equal *e, at_turn_message *turn)
{
    at_evaluation evaluation;
    turn->has_score = at_evaluator_take(e->evaluator, &evaluation);
    assert(!turn->has_score || e->launcher->rank == 0);
    if (!turn->has_score) return;
    turn->score = (at_turn_score){.step = evaluation.step,
                                  .at = evaluation.at,
                                  .loss_sum = evaluation.score.loss_sum,
                                  .auc = evaluation.score.auc,
                                  .correct = evaluation.score.correct,
                                  .correct_top5 = evaluation.score.correct_top5,
                                  .count = evaluation.score.count,
                                  .classes = evaluation.score.classes};
}

static at_turn_message turn_of(equal *e)
{
    const at_hub   *hub = e->host.hub;
    const at_task  *task = e->context->task;
    at_turn_message turn = {.report.drawn = atomic_load(&e->drawn),
                            .now = at_mpi_ranks_now(&e->ranks),
                            .version = hub->version,
                            .trace = hub->trace,
                            .stops = at_signals_stop()};
    assert(!e->ranks.broken);
    if (hub->version % HASH_EVERY == 0) turn.hash = hash_params(e);
    if (e->id > 0) snprintf(turn.engine, sizeof turn.engine, "%s", task->engine(task->self));
    add_score(e, &turn);
    return turn;
}

/* Says `turn` and hears the others', together with this round's gradients. */
static bool take_turns(equal *e, const at_turn_message *turn)
{
    at_ns since = at_clock_now();
    bool  sums = e->hubs == 0;
    assert(!e->ranks.broken);
    if (!sums) at_mpi_slices_send(&e->slices);
    bool all = at_mpi_ranks_take_turns(&e->ranks, turn, sums ? e->gradient : NULL,
                                       sums ? e->updater.params : 0);
    e->waited = at_clock_now() - since;
    return all;
}

static void compare(equal *e)
{
    assert(!e->ranks.broken);
    for (uint32_t i = 1; i < e->launcher->size; i++) {
        const at_turn_message *first = &e->ranks.turn[0], *turn = &e->ranks.turn[i];
        bool hubs = turn->version == first->version && turn->trace == first->trace;
        if (hubs && turn->hash == first->hash) continue;
        at_fail_set(&e->differ, AT_ERR_FAILED,
                    "start without --topology and --hubs, and look after these machines",
                    "the %s of rank %u is not that of rank 0 any more, at step %llu",
                    hubs ? "model" : "hub", i, (unsigned long long)first->version);
        return;
    }
}

/* The agreed time never goes back, whatever clocks do. */
static bool agree(equal *e)
{
    bool stops = false;
    assert(!e->ranks.broken);
    for (uint32_t i = 0; i < e->launcher->size; i++) {
        const at_turn_message *turn = &e->ranks.turn[i];
        if (turn->now > e->now) e->now = turn->now;
        stops = stops || turn->stops;
    }
    e->evaluation = evaluation_of(&e->ranks.turn[0].score);
    e->has_verdict = e->ranks.turn[0].has_score;
    return stops;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void tell_stop(equal *e)
{
    assert(e->host.hub);
    if (e->stopping || e->host.hub->end != AT_END_RUNNING) return;
    e->stopping = true;
    at_host_event(&e->host, &(at_event){.kind = AT_EV_STOP, .now = e->now}, NULL);
}

/* Are these the reports of ranks that do what this one does? A hub must not be told others. */
static bool check_reports(equal *e)
{
    const at_hub *hub = e->host.hub;
    assert(e->workers >= 1);
    for (at_node i = 1; i <= e->workers; i++) {
        const at_turn_message *turn = at_mpi_replica_turn(e, i);
        const at_member       *member = &hub->member[i - 1];
        const at_report_bounds bounds = {.incarnation = member->incarnation,
                                         .sequence = member->sequence,
                                         .version = hub->version,
                                         .samples_max = at_plan_samples_max(e->context->plan),
                                         .drawn = member->used + member->dropped,
                                         .ends = e->stopping || hub->end != AT_END_RUNNING};
        at_fail                fail;
        if (!at_report_message_check(&turn->report, &bounds, &fail)) continue;
        at_mpi_ranks_blame(&e->ranks, at_mpi_replica_rank(e, i), &fail);
        return false;
    }
    return true;
}

static void tell_reports(equal *e)
{
    assert(!e->host.finished);
    for (at_node i = 1; i <= e->workers; i++) {
        at_event event = {.kind = AT_EV_MESSAGE, .worker = i, .now = e->now};
        event.as.report = at_mpi_replica_turn(e, i)->report.report;
        at_host_event(&e->host, &event, NULL);
    }
}

/* Nobody here can be overdue without holding up everybody. */
static void tell_time(equal *e)
{
    assert(!e->host.finished);
    e->host.timer[AT_TIMER_LEASE] = AT_NEVER;
    e->host.timer[AT_TIMER_NOTICE] = AT_NEVER;
    at_host_poll(&e->host, e->now);
    if (at_signals_child()) at_host_reap(&e->host, e->now);
}

/* One round with its report; false: there will be no other. */
static bool take_turn(equal *e, const at_report *report)
{
    assert(report);
    if (e->host.hub->end != AT_END_RUNNING || e->ranks.broken) return false;
    at_turn_message turn = turn_of(e);
    turn.report.report = *report;
    turn.report.report.work.idle_ns = e->waited;
    if (!take_turns(e, &turn)) return false;
    compare(e);
    if (agree(e) || e->differ.err) tell_stop(e);
    if (!check_reports(e)) return false;
    tell_reports(e);
    if (!e->host.finished && !e->ranks.broken) tell_time(e);
    return e->host.hub->end == AT_END_RUNNING && !e->ranks.broken;
}

/* ---- the worker's transport ------------------------------------------------------------------ */

static uint32_t heard(void *self)
{
    return at_bell_heard(((equal *)self)->bell);
}

static void wait(void *self, uint32_t heard_before, at_ns until)
{
    at_bell_wait(((equal *)self)->bell, heard_before, 1, AT_BELL_ALL, until, 0);
}

/* A signal ends the round under way, not the turn after it: the other ranks wait for that, and
 * learn from it that the run stops. */
static bool leaves(void *self)
{
    equal *e = self;
    assert(e->id >= 1);
    return e->over || (e->place.in_round && at_signals_stop());
}

static bool send_report(void *self, const at_report *report)
{
    equal *e = self;
    assert(e->id >= 1);
    e->place.in_round = false;
    e->over = !take_turn(e, report);
    return true;
}

/* Takes turns until there are no more; a rank that is only a hub has nothing to report. */
static void work(equal *e)
{
    at_driver driver;
    assert(e->workers >= 1);
    at_driver_options options = {
        .context = e->context, .id = e->id, .incarnation = 1, .slots = 1, .drawn = &e->drawn};
    if (e->id == 0) {
        while (take_turn(e, &(at_report){0})) continue;
        return;
    }
    options.sequence = e->host.hub->member[e->id - 1].sequence;
    e->place.hub = e->host.hub;
    e->place.params = e->params;
    e->place.gradient = e->gradient;
    options.transport = at_inplace_transport(&e->place);
    options.transport.heard = heard;
    options.transport.wait = wait;
    options.transport.leaves = leaves;
    options.transport.send = send_report;
    at_driver_init(&driver, &options);
    at_driver_run(&driver, NULL);
}

/* ---- beginning and end of the turns
 * ----------------------------------------------------------- */

static void tell_end(equal *e, at_node worker, const char *how)
{
    at_event event = {.kind = AT_EV_LOST, .worker = worker, .now = e->now};
    assert(worker >= 1 && worker <= e->workers);
    event.as.lost.drawn = at_mpi_replica_drawn(e, worker);
    at_host_event(&e->host, &event, &(at_about){.text = how});
}

/* Who was lost is told while the run still goes on, so that it is known as that. */
static void tell_loss(equal *e, at_node lost)
{
    at_ns now = at_mpi_ranks_now(&e->ranks);
    assert(e->ranks.broken);
    if (now > e->now) e->now = now;
    if (lost > 0) tell_end(e, lost, "its process is gone");
    tell_stop(e);
}

static void tell_joined(equal *e)
{
    assert(e->host.hub->present == 0);
    for (at_node i = 1; i <= e->workers; i++) {
        uint32_t              rank = at_mpi_replica_rank(e, i);
        const at_worker_note *hello = &e->ranks.hello[rank];
        at_event              event = {.kind = AT_EV_JOINED, .worker = i, .now = e->now};
        event.as.joined.incarnation = e->host.hub->member[i - 1].incarnation + 1;
        if (e->ranks.near[rank]) at_host_process(&e->host, i, hello->pid);
        at_host_event(&e->host, &event, &(at_about){.pid = hello->pid, .text = hello->host});
    }
}

/* With hubs the last turn is only for rank 0, which may still want something of the others. */
static void run(equal *e)
{
    at_node lost = 0;
    assert(e->admitted);
    at_host_event(&e->host, &(at_event){.kind = AT_EV_START, .now = e->now}, NULL);
    tell_joined(e);
    work(e);
    if (e->hubs > 0 && !e->ranks.broken)
        at_mpi_ranks_take_turns(&e->ranks, &e->ranks.turn[e->launcher->rank], NULL, 0);
    if (e->ranks.broken && e->ranks.lost != UINT32_MAX && e->ranks.lost >= e->hubs)
        lost = e->ranks.lost - e->hubs + 1;
    if (e->ranks.broken) tell_loss(e, lost);
    for (at_node i = 1; i <= e->workers; i++)
        if (i != lost) tell_end(e, i, "left");
    assert(e->host.finished);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static at_err train(equal *e, at_outcome *outcome, at_fail *fail)
{
    assert(e->admitted);
    assert(e->bell);
    at_signals_open(e->bell);
    run(e);
    at_host_final_score(&e->host);
    at_err err = at_mpi_replica_hand_over(e, outcome, fail);
    at_signals_close();
    if (!err && e->ranks.fail.err) *fail = e->ranks.fail;
    if (!err && e->differ.err) *fail = e->differ;
    return err ? err : fail->err;
}

at_err at_mpi_allreduce_run(const at_world_context *context, const at_launcher *launcher,
                            at_outcome *outcome, at_fail *fail)
{
    equal       *e = &standing;
    at_world_ops link = {.self = e,
                         .send = send_order,
                         .evict = evict,
                         .evaluation = heard_verdict,
                         .describe = describe,
                         .gradients = {e, gradient_at}};
    assert(!e->context);
    *e = (equal){.context = context, .launcher = launcher, .workers = context->plan->workers_max};
    e->hubs = launcher->size - e->workers;
    e->id = launcher->rank >= e->hubs ? launcher->rank - e->hubs + 1 : 0;
    at_err err = at_mpi_replica_open(e, &link, fail);
    if (!err) err = at_mpi_replica_meet(e, fail);
    if (!err) err = train(e, outcome, fail);
    at_mpi_replica_close(e);
    return err;
}

bool at_mpi_allreduce_admitted(void)
{
    return standing.admitted;
}

/* A lost process that may still exist would keep the launcher waiting, so the launcher is asked to
 * end everybody. */
bool at_mpi_allreduce_end(const at_fail *fail)
{
    equal *e = &standing;
    assert(at_mpi_allreduce_admitted());
    if (at_mpi_ranks_part(&e->ranks)) return true;
    if (at_mpi_ranks_is_buried(&e->ranks) || e->launcher->rank > 0) return false;
    fflush(NULL);
    at_mpi_abort(fail->err);
    return false;
}

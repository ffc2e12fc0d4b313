/* The MPI world without a central hub: every rank runs its own hub. All hubs get the same events
 * and therefore make the same decisions.
 *
 *     worker:  compute a round ─► exchange turns and gradients with all ranks (mpi_ranks.h)
 *                ─► own hub gets all reports in rank order ─► APPLY: the same update everywhere
 *                ─► its order to this rank's worker ─► compute a round ..
 *
 * Time is agreed on, too: an event's `now` is when the last rank took its turn, on the clock of
 * rank 0. Ranks begin with the same parameters and stay the same, bit for bit, which is checked by
 * hash from time to time. Rank 0 records, evaluates, saves and prints.
 *
 * Under all-reduce all gradients are there before any hub decides anything, so when a rank is lost
 * the others are between two steps and can save. The price is that no part of the vector is updated
 * while another one is still being added up: docs/guide/topologies.md says how much that is.
 * With --mix sliced ranks do not add up: each hub gets its slice of every gradient (mpi_slices.h),
 * and only hubs make updates. */
#include "world/mpi/mpi_allreduce.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "world/core/driver.h"
#include "world/mpi/gradient_parts.h"
#include "world/mpi/mpi_replicated_hub.h"
#include "world/process/signals.h"

enum { HASH_EVERY = 100 }; /* steps */

/* The only one of the process. It must exist until the process ends: MPI may use its memory. */
static at_mpi_replica the_replica;

/* ---- operations for the host ----------------------------------------------------------------- */

static void send_order(void *self, at_node worker, const at_order *order)
{
    at_mpi_replica *r = self;
    assert(worker >= 1 && worker <= r->workers);
    if (worker != r->id) return; /* the others get theirs from their own hubs */
    at_inplace_order(&r->place, order);
}

static void evict(void *self, at_node worker)
{
    (void)self;
    (void)worker;
    assert(!"without leases no worker is evicted");
}

static bool take_evaluation(void *self, at_evaluation *evaluation)
{
    at_mpi_replica *r = self;
    bool            has = r->has_evaluation;
    assert(evaluation);
    *evaluation = r->evaluation;
    r->has_evaluation = false;
    return has;
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    const at_mpi_replica *r = self;
    assert(slot == 0);
    return at_mpi_slices_gradient(&r->slices, worker);
}

/* A checkpoint must be complete; when a rank is gone, the previous one has to do. */
static void describe(void *self, at_snapshot *snapshot)
{
    at_mpi_replica *r = self;
    (void)snapshot;
    assert(r->host.hub);
    if (r->hubs > 0 && !at_mpi_slices_fetch(&r->slices)) r->host.saver = NULL;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static uint64_t hash_params(const at_mpi_replica *r)
{
    uint64_t hash = 1;
    assert(r->params);
    for (size_t i = 0; i < r->updater.params; i++) {
        uint32_t bits;
        memcpy(&bits, &r->params[i], sizeof bits);
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
static void add_score(const at_mpi_replica *r, at_turn_message *turn)
{
    at_evaluation evaluation;
    turn->has_score = at_evaluator_take(r->evaluator, &evaluation);
    assert(!turn->has_score || r->launcher->rank == 0);
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

static at_turn_message turn_of(at_mpi_replica *r)
{
    const at_hub   *hub = r->host.hub;
    const at_task  *task = r->context->task;
    at_turn_message turn = {.report.drawn = atomic_load(&r->drawn),
                            .now = at_mpi_ranks_now(&r->ranks),
                            .version = hub->version,
                            .trace = hub->trace,
                            .stops = at_signals_stop()};
    assert(!r->ranks.broken);
    if (hub->version % HASH_EVERY == 0) turn.hash = hash_params(r);
    if (r->id > 0) snprintf(turn.engine, sizeof turn.engine, "%s", task->engine(task->self));
    add_score(r, &turn);
    return turn;
}

static at_mpi_sum sum_of(const at_mpi_replica *r)
{
    const at_task *task = r->context->task;
    assert(r->hubs == 0);
    return (at_mpi_sum){r->gradient, r->updater.params, task->watch ? task->trained : 0};
}

/* Exchanges the turns and this round's gradients with all ranks. */
static bool take_turns(at_mpi_replica *r, const at_turn_message *turn)
{
    at_ns      since = at_clock_now();
    at_mpi_sum sum = r->hubs == 0 ? sum_of(r) : (at_mpi_sum){0};
    assert(!r->ranks.broken);
    if (r->hubs > 0) at_mpi_slices_send(&r->slices);
    bool all = at_mpi_ranks_take_turns(&r->ranks, turn, &sum);
    r->waited = at_clock_now() - since;
    return all;
}

static void compare(at_mpi_replica *r)
{
    assert(!r->ranks.broken);
    for (uint32_t i = 1; i < r->launcher->size; i++) {
        const at_turn_message *first = &r->ranks.turn[0], *turn = &r->ranks.turn[i];
        bool hubs = turn->version == first->version && turn->trace == first->trace;
        if (hubs && turn->hash == first->hash) continue;
        at_fail_set(&r->differ, AT_ERR_FAILED, "start without --mix, and check these machines",
                    "the %s of rank %u is not that of rank 0 any more, at step %llu",
                    hubs ? "model" : "hub", i, (unsigned long long)first->version);
        return;
    }
}

/* The agreed time never goes back, whatever clocks do. */
static bool agree(at_mpi_replica *r)
{
    bool stops = false;
    assert(!r->ranks.broken);
    for (uint32_t i = 0; i < r->launcher->size; i++) {
        const at_turn_message *turn = &r->ranks.turn[i];
        if (turn->now > r->now) r->now = turn->now;
        stops = stops || turn->stops;
    }
    r->evaluation = evaluation_of(&r->ranks.turn[0].score);
    r->has_evaluation = r->ranks.turn[0].has_score;
    return stops;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void feed_stop(at_mpi_replica *r)
{
    assert(r->host.hub);
    if (r->stopping || r->host.hub->end != AT_END_RUNNING) return;
    r->stopping = true;
    at_host_event(&r->host, &(at_event){.kind = AT_EV_STOP, .now = r->now}, NULL);
}

/* Only reports that fit the state of our hub may reach it. */
static bool check_reports(at_mpi_replica *r)
{
    const at_hub *hub = r->host.hub;
    assert(r->workers >= 1);
    for (at_node i = 1; i <= r->workers; i++) {
        const at_turn_message *turn = at_mpi_replica_turn(r, i);
        const at_member       *member = &hub->member[i - 1];
        const at_report_bounds bounds = {.incarnation = member->incarnation,
                                         .sequence = member->sequence,
                                         .version = hub->version,
                                         .samples_max = at_plan_samples_max(r->context->plan),
                                         .drawn = member->used + member->dropped,
                                         .ends = r->stopping || hub->end != AT_END_RUNNING,
                                         .again = at_plan_self_starts(r->context->plan)};
        at_fail                fail;
        if (!at_report_message_check(&turn->report, &bounds, &fail)) continue;
        at_mpi_ranks_blame(&r->ranks, at_mpi_replica_rank(r, i), &fail);
        return false;
    }
    return true;
}

static void feed_reports(at_mpi_replica *r)
{
    assert(!r->host.finished);
    for (at_node i = 1; i <= r->workers; i++) {
        at_event event = {.kind = AT_EV_MESSAGE, .worker = i, .now = r->now};
        event.as.report = at_mpi_replica_turn(r, i)->report.report;
        at_host_event(&r->host, &event, NULL);
    }
}

/* There are no leases: a rank that is late delays all the others anyway. */
static void feed_timers(at_mpi_replica *r)
{
    assert(!r->host.finished);
    r->host.timer[AT_TIMER_LEASE] = AT_NEVER;
    r->host.timer[AT_TIMER_NOTICE] = AT_NEVER;
    at_host_poll(&r->host, r->now);
    if (at_signals_child()) at_host_reap(&r->host, r->now);
}

/* One round with its report; false: there will be no other. */
static bool take_turn(at_mpi_replica *r, const at_report *report)
{
    assert(report);
    if (r->host.hub->end != AT_END_RUNNING || r->ranks.broken) return false;
    at_turn_message turn = turn_of(r);
    turn.report.report = *report;
    turn.report.report.work.idle_ns = r->waited;
    if (!take_turns(r, &turn)) return false;
    compare(r);
    if (agree(r) || r->differ.err) feed_stop(r);
    if (!check_reports(r)) return false;
    feed_reports(r);
    if (!r->host.finished && !r->ranks.broken) feed_timers(r);
    return r->host.hub->end == AT_END_RUNNING && !r->ranks.broken;
}

/* ---- the worker's transport ------------------------------------------------------------------ */

static uint32_t heard(void *self)
{
    return at_bell_heard(((at_mpi_replica *)self)->bell);
}

static void wait(void *self, uint32_t heard_before, at_ns until)
{
    at_bell_wait(((at_mpi_replica *)self)->bell, heard_before, 1, AT_BELL_ALL, until, 0);
}

/* A signal ends the current round, but not the turn after it: the other ranks wait for the turn,
 * and it says that the run stops. */
static bool leaves(void *self)
{
    at_mpi_replica *r = self;
    assert(r->id >= 1);
    return r->over || (r->place.in_round && at_signals_stop());
}

static bool send_report(void *self, const at_report *report)
{
    at_mpi_replica *r = self;
    assert(r->id >= 1);
    r->place.in_round = false;
    r->over = !take_turn(r, report);
    return true;
}

static void sum_final(void *self, size_t from)
{
    at_mpi_replica *r = self;
    at_mpi_sum      sum = sum_of(r);
    at_mpi_ranks_sum_early(&r->ranks, &sum, from);
}

/* A gradient that is to be left out of a sum must be seen as a whole before it is added. */
static bool sums_early(const at_mpi_replica *r)
{
    const at_plan *plan = r->context->plan;
    bool           skips = plan->nonfinite == AT_NONFINITE_SKIP;
    return r->hubs == 0 && !skips && at_gradient_parts_of(r->context).count > 0;
}

/* Takes turns until there are no more; a rank that is only a hub has nothing to report. */
static void work(at_mpi_replica *r)
{
    at_driver driver;
    assert(r->workers >= 1);
    at_driver_options options = {
        .context = r->context, .id = r->id, .incarnation = 1, .slots = 1, .drawn = &r->drawn};
    if (r->id == 0) {
        while (take_turn(r, &(at_report){0})) continue;
        return;
    }
    options.local = r->local;
    options.sequence = r->host.hub->member[r->id - 1].sequence;
    options.redrawn = r->host.hub->member[r->id - 1].redrawn;
    r->place.hub = r->host.hub;
    r->place.params = r->params;
    r->place.gradient = r->gradient;
    options.transport = at_inplace_transport(&r->place);
    options.transport.heard = heard;
    options.transport.wait = wait;
    options.transport.leaves = leaves;
    options.transport.send = send_report;
    options.transport.final = sums_early(r) ? sum_final : NULL;
    at_driver_init(&driver, &options);
    at_driver_run(&driver, NULL);
}

/* ---- first and last events ------------------------------------------------------------------- */

static void feed_lost(at_mpi_replica *r, at_node worker, const char *how)
{
    at_event event = {.kind = AT_EV_LOST, .worker = worker, .now = r->now};
    assert(worker >= 1 && worker <= r->workers);
    event.as.lost.drawn = at_mpi_replica_drawn(r, worker);
    at_host_event(&r->host, &event, &(at_about){.text = how});
}

/* LOST comes before STOP, so that the worker counts as lost and not as stopped. */
static void feed_loss(at_mpi_replica *r, at_node lost)
{
    at_ns now = at_mpi_ranks_now(&r->ranks);
    assert(r->ranks.broken);
    if (now > r->now) r->now = now;
    if (lost > 0) feed_lost(r, lost, "its process is gone");
    feed_stop(r);
}

static void feed_joined(at_mpi_replica *r)
{
    assert(r->host.hub->present == 0);
    for (at_node i = 1; i <= r->workers; i++) {
        uint32_t              rank = at_mpi_replica_rank(r, i);
        const at_worker_note *hello = &r->ranks.hello[rank];
        at_event              event = {.kind = AT_EV_JOINED, .worker = i, .now = r->now};
        event.as.joined.incarnation = r->host.hub->member[i - 1].incarnation + 1;
        if (r->ranks.near[rank]) at_host_process(&r->host, i, hello->pid);
        at_host_event(&r->host, &event, &(at_about){.pid = hello->pid, .text = hello->host});
    }
}

/* With hubs there is one more turn, in which rank 0 may still request state of the others. */
static void run(at_mpi_replica *r)
{
    at_node lost = 0;
    assert(r->admitted);
    at_host_event(&r->host, &(at_event){.kind = AT_EV_START, .now = r->now}, NULL);
    feed_joined(r);
    work(r);
    if (r->hubs > 0 && !r->ranks.broken)
        at_mpi_ranks_take_turns(&r->ranks, &r->ranks.turn[r->launcher->rank], &(at_mpi_sum){0});
    if (r->ranks.broken && r->ranks.lost != UINT32_MAX && r->ranks.lost >= r->hubs)
        lost = r->ranks.lost - r->hubs + 1;
    if (r->ranks.broken) feed_loss(r, lost);
    for (at_node i = 1; i <= r->workers; i++)
        if (i != lost) feed_lost(r, i, "left");
    assert(r->host.finished);
}

/* ---- start and end --------------------------------------------------------------------------- */

static at_err train(at_mpi_replica *r, at_outcome *outcome, at_fail *fail)
{
    assert(r->admitted);
    assert(r->bell);
    at_signals_open(r->bell);
    run(r);
    at_host_final_score(&r->host);
    at_err err = at_mpi_replica_hand_over(r, outcome, fail);
    at_signals_close();
    if (!err && r->ranks.fail.err) *fail = r->ranks.fail;
    if (!err && r->differ.err) *fail = r->differ;
    return err ? err : fail->err;
}

at_err at_mpi_allreduce_run(const at_world_context *context, const at_launcher *launcher,
                            at_outcome *outcome, at_fail *fail)
{
    at_mpi_replica *r = &the_replica;
    at_world_ops    ops = {.self = r,
                           .send = send_order,
                           .evict = evict,
                           .evaluation = take_evaluation,
                           .describe = describe,
                           .gradients = {r, gradient_at}};
    assert(!r->context);
    *r = (at_mpi_replica){
        .context = context, .launcher = launcher, .workers = context->plan->workers_max};
    r->hubs = launcher->size - r->workers;
    r->id = launcher->rank >= r->hubs ? launcher->rank - r->hubs + 1 : 0;
    at_err err = at_mpi_replica_open(r, &ops, fail);
    if (!err) err = at_mpi_replica_meet(r, fail);
    if (!err) err = train(r, outcome, fail);
    at_mpi_replica_close(r);
    return err;
}

bool at_mpi_allreduce_admitted(void)
{
    return the_replica.admitted;
}

/* A lost process that may still exist would keep the launcher waiting, so the launcher is asked to
 * end all ranks. */
bool at_mpi_allreduce_end(const at_fail *fail)
{
    at_mpi_replica *r = &the_replica;
    assert(at_mpi_allreduce_admitted());
    if (at_mpi_ranks_part(&r->ranks)) return true;
    if (r->launcher->rank > 0) {
        at_mpi_ranks_await_first(&r->ranks);
        return false;
    }
    if (at_mpi_ranks_is_buried(&r->ranks)) return false;
    fflush(NULL);
    at_mpi_abort((int)fail->err);
    return false;
}

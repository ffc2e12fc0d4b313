/* The MPI world, rank 0: like the hub of the local world, with messages instead of shared memory.
 *
 *     receive ─► process reports, joins, departures ─► signals, evaluations, timers
 *       ─► send ─► watch for silent workers ─► backoff
 */
#include "world/mpi/mpi_hub.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "world/core/job_parts.h"
#include "world/process/alive.h"
#include "world/process/child.h"
#include "world/process/signals.h"

static const at_ns SPIN = AT_US(200); /* outlasts a round with 1 MB of parameters */
static const at_ns SETTLE_MAX = AT_MS(200);
static const at_ns GAP_MIN = AT_SEC(1); /* between two turns of the loop, to be discounted */
static const at_ns FAREWELL_MAX = AT_SEC(10);
static const at_ns REFUSAL_MAX = AT_SEC(30); /* nothing is lost by waiting for ranks that start */

/* The only hub of the process. It must exist until the process ends, because messages to lost
 * workers never complete. */
static at_mpi_hub the_hub;

/* ---- operations for the host ----------------------------------------------------------------- */

static void send_order(void *self, at_node worker, const at_order *order)
{
    at_mpi_hub *h = self;
    assert(order);
    assert(worker >= 1 && worker <= h->workers);
    if (!order->leave) at_mpi_hub_expect_report(h, worker);
    /* Whoever joins late starts from the mean; and whoever leaves takes its parameters along. */
    bool joins = h->sender.receiver[worker - 1].version == AT_VERSION_NONE;
    if (h->gossip.calls && (joins || order->leave)) at_mpi_gossip_hub_collect(h);
    at_param_sender_order(&h->sender, worker, order);
}

static void flush(void *self)
{
    at_mpi_hub *h = self;
    assert(h->sender.calls);
    at_param_sender_flush(&h->sender);
}

static void evict(void *self, at_node worker)
{
    at_mpi_hub *h = self;
    assert(worker >= 1 && worker <= h->workers);
    h->peer[worker - 1].evicted = true;
}

/* When parameters are sent in place, all workers have reported on them by now; what is still open
 * are acknowledgements that MPI has not delivered yet. */
static void change(void *self)
{
    at_mpi_hub *h = self;
    at_ns       since = at_clock_now();
    assert(h->calls);
    while (at_param_sender_is_reading(&h->sender) && at_clock_now() - since < SETTLE_MAX)
        at_mpi_hub_receive(h);
}

/* Workers that may end their round for newer parameters get them at once. */
static void publish(void *self, uint64_t version)
{
    at_mpi_hub *h = self;
    assert(version >= h->sender.version);
    at_param_sender_publish(&h->sender, version);
    if (!at_plan_interrupts(h->host.hub->plan)) return;
    for (uint32_t i = 1; i <= h->workers; i++)
        if (h->peer[i - 1].state == AT_MPI_WORKING) at_param_sender_want(&h->sender, i);
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    at_mpi_hub *h = self;
    assert(worker >= 1 && worker <= h->workers);
    assert(slot == 0);
    const at_mpi_peer *peer = &h->peer[worker - 1];
    if (peer->gradient) return peer->gradient;
    return (const float *)(const void *)(peer->inbox + AT_REPORT_MESSAGE_HEAD);
}

static void count_sent(void *self, at_snapshot *snapshot)
{
    at_mpi_hub *h = self;
    (void)snapshot;
    for (at_node i = 1; i <= h->workers; i++)
        at_host_count_sent(&h->host, i, at_param_sender_count(&h->sender, i));
}

/* ---- loop ------------------------------------------------------------------------------------ */

static void process_signals(at_mpi_hub *h, at_ns now)
{
    assert(now > 0);
    if (at_signals_child()) at_host_reap(&h->host, now);
    if (!at_signals_stop() || h->stopping || h->host.finished) return;
    h->stopping = true;
    at_host_event(&h->host, &(at_event){.kind = AT_EV_STOP, .now = now}, NULL);
}

/* While this process was busy for long, or stopped without a signal, it could not hear reports that
 * came in time: what it waits for may take that much longer. */
static void discount_gap(at_mpi_hub *h, at_ns now)
{
    const at_timer timers[] = {AT_TIMER_LEASE, AT_TIMER_JOIN};
    at_ns          gap = h->looped_at > 0 ? now - h->looped_at : 0;
    assert(gap >= 0);
    h->looped_at = now;
    for (size_t i = 0; gap > GAP_MIN && i < sizeof timers / sizeof *timers; i++) {
        at_ns *due = &h->host.timer[timers[i]];
        if (*due != AT_NEVER) *due = (*due > now ? *due : now) + gap;
    }
}

static void loop_once(at_mpi_hub *h)
{
    bool received = at_mpi_hub_receive(h);
    assert(!h->host.finished);
    at_mpi_hub_process(h);
    at_ns now = at_host_now(&h->host);
    discount_gap(h, now);
    process_signals(h, now);
    if (!h->host.finished) at_host_poll(&h->host, now);
    at_param_sender_flush(&h->sender);
    at_mpi_gossip_hub_tell(h);
    at_mpi_hub_watch(h, at_clock_now());
    if (at_mpi_calls_check(h->calls, &h->refusal) ||
        (h->gossip.calls && at_mpi_calls_check(h->gossip.calls, &h->refusal))) {
        h->lossy = true; /* MPI cannot be relied upon to shut down */
        return;
    }
    if (received) {
        at_backoff_end(&h->backoff);
        return;
    }
    at_ns timer = at_host_due(&h->host), arrival = at_mpi_hub_next_arrival(h);
    at_ns due = timer < arrival ? timer : arrival;
    at_backoff_nap(&h->backoff, due == AT_NEVER ? AT_NEVER : due + h->host.stopped);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* What communication with workers needs, even without training. */
static at_err reserve_calls(at_mpi_hub *h, at_fail *fail)
{
    assert(h->workers >= 1);
    h->peer = calloc(h->workers, sizeof *h->peer);
    h->notes = calloc(AT_MPI_NOTES, AT_WORKER_NOTE);
    h->calls = at_mpi_calls_new(h->workers + AT_MPI_NOTES +
                                h->workers * (AT_MPI_CHANNELS + h->parts.count));
    if (h->peer && h->notes && h->calls) return AT_OK;
    return at_fail_memory(fail);
}

/* For what a worker sends, and for what that says if it is compressed. */
static bool reserve_inbox(at_mpi_hub *h, at_mpi_peer *peer)
{
    const at_packing *packing = &h->packings.gradient;
    size_t            likely = h->context->task->slot_likely * sizeof(float);
    likely += AT_REPORT_MESSAGE_HEAD;
    peer->inbox = at_mpi_alloc(h->inbox_size, likely < h->inbox_size ? likely : h->inbox_size);
    if (!peer->inbox || packing->kind == AT_COMPRESS_NONE) return peer->inbox != NULL;
    size_t size = (packing->floats * sizeof(float) + 63) / 64 * 64;
    peer->gradient = at_mpi_alloc(size, size);
    return peer->gradient != NULL;
}

static at_err reserve(at_mpi_hub *h, at_fail *fail)
{
    const at_packing *packing = &h->packings.gradient;
    assert(packing->floats >= 1);
    if (packing->size / AT_MESSAGE_UNIT > (size_t)INT32_MAX - AT_REPORT_MESSAGE_HEAD)
        return at_fail_set(fail, AT_ERR_USAGE, "use a smaller model or batch",
                           "a gradient of %zu numbers does not fit into one MPI message",
                           packing->floats);
    h->inbox_size = AT_REPORT_MESSAGE_HEAD;
    if (!h->gossip.calls) /* otherwise gradients stay with the workers */
        h->inbox_size += (packing->size + 63) / 64 * 64;
    AT_TRY(reserve_calls(h, fail));
    h->lost = calloc(h->workers, sizeof *h->lost);
    bool enough = h->lost != NULL;
    for (uint32_t i = 0; enough && i < h->workers; i++) enough = reserve_inbox(h, &h->peer[i]);
    return enough ? AT_OK : at_fail_memory(fail);
}

/* Starts everything that forks, which must happen before MPI starts. */
static at_err prepare(at_mpi_hub *h, at_fail *fail)
{
    const at_world_context *context = h->context;
    const at_plan          *plan = context->plan;
    size_t                  params = context->task->params;
    bool                    in_place = at_plan_reads_in_place(plan);
    at_world_ops            ops = {.self = h,
                                   .send = send_order,
                                   .flush = flush,
                                   .evict = evict,
                                   .change = change,
                                   .publish = publish,
                                   .describe = count_sent,
                                   .gradients = {h, gradient_at}};
    if (plan->mix->owned_by_workers) ops.mix = at_mpi_gossip_hub_mix;
    if (plan->mix->owned_by_workers) ops.collect = at_mpi_gossip_hub_collect;
    assert(h->workers >= 1);
    assert(h->workers == plan->workers_max);
    AT_TRY(at_packings_init(&h->packings, context, fail));
    h->parts = at_gradient_parts_of(context);
    AT_TRY(
        at_param_sender_open(&h->sender, &h->packings.params, plan->workers_max, in_place, fail));
    AT_TRY(at_resume_params(context, at_param_sender_params(&h->sender), fail));
    h->bell = at_child_share(sizeof *h->bell, fail);
    if (!h->bell) return fail->err;
    AT_TRY(at_evaluator_open(context->task, h->bell, &h->evaluator, fail));
    AT_TRY(at_host_init(&h->host, plan, context->recorder, &h->updater, h->evaluator, &ops, fail));
    AT_TRY(at_host_watch(&h->host, context->usage_every, fail));
    AT_TRY(at_updater_init(&h->updater, context->learning, at_param_sender_params(&h->sender),
                           params, h->host.hub->pieces_max, fail));
    AT_TRY(at_resume_host(context, &h->host, fail));
    AT_TRY(at_mpi_gossip_hub_open(h, fail));
    return reserve(h, fail);
}

static at_err connect(at_mpi_hub *h, const at_launcher *launcher, at_fail *fail)
{
    const at_world_context *context = h->context;
    assert(h->calls);
    AT_TRY(at_mpi_start(launcher, fail));
    at_param_sender_connect(&h->sender, h->calls, h->workers + AT_MPI_NOTES);
    if (context->task->sparse)
        AT_TRY(at_param_sender_track(&h->sender, h->host.hub->version, fail));
    at_param_sender_publish(&h->sender, h->host.hub->version);
    at_mpi_host(h->host_name);
    at_job_parts(context, h->part);
    for (uint32_t i = 0; i < h->workers; i++)
        h->peer[i].drawn = h->peer[i].counted = at_resume_drawn(&h->host, i + 1);
    /* Spinning pays off only while every process has its own core. */
    bool idle_cores = launcher->local_size > 0 && launcher->local_size <= context->cores;
    h->backoff.spin_ns = idle_cores && context->sample_time == 0 ? SPIN : 0;
    at_mpi_hub_listen(h);
    return AT_OK;
}

/* ---- end ----------------------------------------------------------------------------------- */

static at_err hand_over(at_mpi_hub *h, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = h->host.hub;
    uint32_t      workers = h->workers;
    size_t        size = h->context->task->params * sizeof(float);
    assert(h->host.finished);
    count_sent(h, NULL);
    at_host_outcome(&h->host, outcome);
    outcome->params = malloc(size);
    outcome->floats = h->context->task->params;
    outcome->drawn = calloc(workers, sizeof(uint64_t));
    outcome->lost = h->lost;
    outcome->lost_count = h->lost_count;
    h->lost = NULL;
    if (!outcome->params || !outcome->drawn) return at_fail_memory(fail);
    memcpy(outcome->params, at_param_sender_params(&h->sender), size);
    for (uint32_t i = 0; i < workers; i++) {
        outcome->drawn[i] = h->peer[i].drawn;
        /* Both counts must agree, although different processes made them. */
        assert(outcome->drawn[i] == hub->member[i].used + hub->member[i].dropped);
    }
    memcpy(outcome->engine, h->engine, sizeof outcome->engine);
    return AT_OK;
}

static void begin(at_mpi_hub *h, const at_launcher *launcher)
{
    char     text[320];
    at_event start = {.kind = AT_EV_START, .now = at_host_now(&h->host)};
    assert(launcher->rank == 0);
    at_host_event(&h->host, &start, NULL);
    snprintf(text, sizeof text, "%u ranks of %s: %s", launcher->size, launcher->name,
             at_launcher_survival(launcher));
    at_host_say(&h->host, start.now, text);
    at_packings_say(h->context, &h->host, start.now);
}

static at_err train(at_mpi_hub *h, at_outcome *outcome, at_fail *fail)
{
    assert(h->calls);
    assert(!h->refusal.err);
    while (!h->host.finished && !h->refusal.err) loop_once(h);
    if (h->refusal.err) {
        *fail = h->refusal;
        return fail->err;
    }
    /* Launchers kill a process that still runs a second after SIGTERM. */
    if (h->host.hub->end != AT_END_SIGNAL) at_host_final_score(&h->host);
    return hand_over(h, outcome, fail);
}

/* Releases the previous run of this process. */
static void release_previous(at_mpi_hub *h)
{
    assert(h->workers >= 1);
    if (h->lossy || !h->calls || !at_mpi_calls_end(h->calls)) return;
    for (uint32_t i = 0; i < h->workers; i++) {
        free(h->peer[i].inbox);
        free(h->peer[i].gradient);
    }
    free(h->peer);
    free(h->notes);
    at_mpi_gossip_hub_close(&h->gossip);
    at_param_sender_close(&h->sender);
    at_mpi_calls_free(h->calls);
}

at_err at_mpi_hub_run(const at_world_context *context, const at_launcher *launcher,
                      at_outcome *outcome, at_fail *fail)
{
    at_mpi_hub *h = &the_hub;
    assert(launcher->rank == 0);
    if (h->context) release_previous(h);
    *h = (at_mpi_hub){.context = context, .workers = context->plan->workers_max};
    at_err err = prepare(h, fail);
    if (!err) err = connect(h, launcher, fail);
    if (!err) {
        at_signals_open(h->bell);
        begin(h, launcher);
        err = train(h, outcome, fail);
        at_signals_close();
    }
    h->ended = true;
    at_evaluator_close(h->evaluator);
    at_updater_deinit(&h->updater);
    at_host_deinit(&h->host);
    free(h->lost);
    if (h->bell) munmap(h->bell, sizeof *h->bell);
    return err;
}

/* ---- admission ------------------------------------------------------------------------------- */

/* Connects to the other ranks without anything to train: only to admit or to dismiss them. */
static at_err connect_bare(at_mpi_hub *h, const at_launcher *launcher, at_fail *fail)
{
    assert(!h->context && !h->calls);
    h->workers = launcher->size - 1;
    AT_TRY(at_mpi_start(launcher, fail));
    const at_packing one = {.floats = 1, .packed = 1, .size = sizeof(float)};
    AT_TRY(at_param_sender_open(&h->sender, &one, h->workers, true, fail));
    AT_TRY(reserve_calls(h, fail));
    at_param_sender_connect(&h->sender, h->calls, h->workers + AT_MPI_NOTES);
    at_mpi_hub_listen(h);
    return AT_OK;
}

/* True when all ranks have said HELLO, or one of them cannot take part. */
static bool has_heard_all(at_mpi_hub *h)
{
    uint32_t awaited = 0;
    assert(!h->context);
    at_mpi_hub_check_start(h);
    at_mpi_calls_check(h->calls, &h->refusal);
    for (uint32_t i = 0; i < h->workers; i++) awaited += h->peer[i].state == AT_MPI_AWAITED;
    return awaited == 0 || h->refusal.err;
}

/* Sends WELCOME to all ranks; true when all have received it, or one of them is gone. */
static bool has_welcomed_all(at_mpi_hub *h)
{
    bool all = true;
    at_mpi_hub_check_start(h);
    at_mpi_calls_check(h->calls, &h->refusal);
    for (uint32_t i = 1; i <= h->workers && !h->refusal.err; i++) {
        at_mpi_peer *peer = &h->peer[i - 1];
        assert(peer->state == AT_MPI_LOADING);
        if (!peer->is_welcome) {
            at_failure_detector_init(&peer->detector, h->clock.listened, 0);
            peer->is_welcome = at_mpi_hub_welcome(h, i);
        }
        all = all && peer->is_welcome && at_param_sender_idle(&h->sender, i);
    }
    return all || h->refusal.err;
}

static void await(at_mpi_hub *h, bool (*is_done)(at_mpi_hub *h))
{
    assert(h->calls);
    while (!is_done(h)) {
        if (at_mpi_hub_receive(h)) at_backoff_end(&h->backoff);
        at_backoff_nap(&h->backoff, AT_NEVER);
    }
    at_backoff_end(&h->backoff);
}

at_err at_mpi_hub_admit(const at_launcher *launcher, const at_worker_note *hello, at_fail *fail)
{
    at_mpi_hub *h = &the_hub;
    assert(launcher->rank == 0 && hello->kind == AT_WORKER_NOTE_HELLO);
    if (launcher->size == 1) return at_mpi_start(launcher, fail);
    AT_TRY(connect_bare(h, launcher, fail));
    memcpy(h->part, hello->part, sizeof h->part);
    memcpy(h->host_name, hello->host, sizeof h->host_name);
    await(h, has_heard_all);
    if (!h->refusal.err) await(h, has_welcomed_all);
    if (h->refusal.err) {
        h->ended = true;
        *fail = h->refusal;
        return fail->err;
    }
    release_previous(h);
    *h = (at_mpi_hub){0};
    return AT_OK;
}

/* ---- shutdown -------------------------------------------------------------------------------- */

/* Sends BYE to one worker; true when the worker has received it. */
static bool dismiss(at_mpi_hub *h, at_node worker, at_err err, bool *sent)
{
    const at_hub_message bye = {.kind = AT_HUB_MESSAGE_BYE, .together = !h->lossy, .err = err};
    assert(worker >= 1 && worker <= h->workers);
    if (!*sent) *sent = at_param_sender_message(&h->sender, worker, &bye, NULL);
    return *sent && at_param_sender_idle(&h->sender, worker);
}

/* Tells all workers to end; true when all but the lost ones have received it. */
static bool dismiss_all(at_mpi_hub *h, at_err err)
{
    at_ns since = h->clock.listened, most = err ? REFUSAL_MAX : FAREWELL_MAX;
    bool  all = false;
    bool *sent = calloc(h->workers, sizeof *sent);
    assert(h->calls);
    while (sent && !all && h->clock.listened - since < most) {
        if (at_mpi_hub_receive(h)) at_backoff_end(&h->backoff);
        all = true;
        for (uint32_t i = 1; i <= h->workers; i++) {
            bool received = dismiss(h, i, err, &sent[i - 1]);
            all = all && (received || h->peer[i - 1].state == AT_MPI_LOST);
        }
        if (!all) at_backoff_nap(&h->backoff, AT_NEVER);
    }
    free(sent);
    return all;
}

/* The launcher would wait for a lost process that still runs. On this machine it is killed; on
 * another only the launcher can kill it, which ends all ranks. So it does when ranks of a failed
 * run do not answer, and after a loss on several machines: a daemon does not tell mpirun of a dead
 * rank, which mpirun would then wait for without end. */
static void kill_lost(at_mpi_hub *h, const at_launcher *launcher, bool answered, at_err err)
{
    bool elsewhere =
        (!answered && err) || (launcher->local_size > 0 && launcher->local_size < launcher->size);
    assert(h->peer);
    for (uint32_t i = 0; i < h->workers; i++) {
        at_mpi_peer *peer = &h->peer[i];
        if (peer->state != AT_MPI_LOST || peer->dead) continue;
        if (peer->near && at_alive(peer->hello.pid, peer->hello.born))
            kill((pid_t)peer->hello.pid, SIGKILL);
        elsewhere = elsewhere || !peer->near;
    }
    if (!elsewhere) return;
    fflush(NULL);
    at_mpi_abort((int)err);
}

bool at_mpi_hub_has(uint32_t rank)
{
    const at_mpi_hub *h = &the_hub;
    assert(rank >= 1);
    return !h->peer || rank > h->workers || h->peer[rank - 1].state != AT_MPI_LOST;
}

bool at_mpi_hub_end(const at_launcher *launcher, const at_fail *fail)
{
    at_mpi_hub *h = &the_hub;
    at_fail     ignored;
    assert(launcher->rank == 0);
    if (launcher->size == 1) return true;
    if (!at_mpi_is_started()) {
        if (h->sender.calls) release_previous(h);
        *h = (at_mpi_hub){0}; /* it failed before it was connected */
        if (connect_bare(h, launcher, &ignored)) return false;
    }
    if (!h->sender.calls) return true; /* launcher and library do not match: no other ranks */
    bool dismissed = dismiss_all(h, fail->err);
    if (dismissed && !h->lossy) return true;
    kill_lost(h, launcher, dismissed, fail->err);
    return false;
}

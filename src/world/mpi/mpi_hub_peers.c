/* The hub's side of its workers in the MPI world: receives from them and detects their loss. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "learn/sparse/sparse.h"
#include "pace/pace.h"
#include "world/core/job_parts.h"
#include "world/mpi/mpi_hub.h"
#include "world/process/alive.h"

static const at_ns HEARTBEAT_EVERY = AT_MS(200);
static const at_ns WATCH_EVERY = AT_MS(50);
static const at_ns QUIET = AT_SEC(1); /* some heartbeats of a worker that waits */

static at_ns lease_of(const at_mpi_hub *h)
{
    assert(h->context);
    return h->context->plan->lease;
}

static at_mpi_peer *peer_of(at_mpi_hub *h, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= h->workers);
    return &h->peer[worker - 1];
}

/* ---- faults ---------------------------------------------------------------------------------- */

void at_mpi_hub_blame(at_mpi_hub *h, at_node worker, const at_fail *fail)
{
    at_mpi_peer *peer = peer_of(h, worker);
    assert(fail->err);
    if (peer->state == AT_MPI_LEFT || peer->state == AT_MPI_LOST || peer->fault[0]) return;
    if (peer->state == AT_MPI_WORKING) {
        snprintf(peer->fault, sizeof peer->fault, "%.*s", AT_FAULT_TEXT - 1, fail->text);
    } else if (!h->refusal.err) {
        h->refusal = *fail;
        at_fail_wrap(&h->refusal, "rank %u%s%s", worker, peer->hello.host[0] ? " on " : "",
                     peer->hello.host);
    }
}

/* A message that contradicts earlier ones of the worker. */
static void blame_order(at_mpi_hub *h, at_node worker, const char *what)
{
    at_fail fail;
    assert(what);
    at_fail_set(&fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                "its messages make no sense: %s", what);
    at_mpi_hub_blame(h, worker, &fail);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void expect_note(at_mpi_hub *h, uint32_t i)
{
    assert(i < AT_MPI_NOTES);
    at_mpi_receive(h->calls, h->workers + i, h->notes + (size_t)i * AT_WORKER_NOTE,
                   AT_WORKER_NOTE / AT_MESSAGE_UNIT, AT_MPI_ANY_RANK, AT_MPI_TAG_NOTE);
}

void at_mpi_hub_listen(at_mpi_hub *h)
{
    at_ns listened = at_listening_clock_now(&h->clock, at_clock_now());
    assert(h->calls && h->peer);
    for (uint32_t i = 0; i < AT_MPI_NOTES; i++) expect_note(h, i);
    for (uint32_t i = 1; i <= h->workers; i++) {
        at_mpi_peer *peer = peer_of(h, i);
        at_failure_detector_init(&peer->detector, listened, h->context ? lease_of(h) : 0);
        peer->report_due = AT_NEVER;
    }
}

/* Parts of gradients have the last calls. */
static uint32_t call_part(const at_mpi_hub *h, at_node worker, uint32_t i)
{
    uint32_t first = h->workers + AT_MPI_NOTES + h->workers * AT_MPI_CHANNELS;
    assert(worker >= 1 && worker <= h->workers);
    return first + (worker - 1) * h->parts.count + i;
}

static void expect_parts(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    float       *into = (float *)(void *)(peer->inbox + AT_REPORT_MESSAGE_HEAD);
    assert(peer->parts_awaited == 0);
    peer->is_partial = false;
    peer->parts_awaited = h->parts.count;
    for (uint32_t i = 0; i < h->parts.count; i++) {
        at_slice part = at_gradient_part(&h->parts, i);
        at_mpi_receive(h->calls, call_part(h, worker, i), into + part.first, part.count, worker,
                       AT_MPI_TAG_PART);
    }
}

/* With --comm-delay a report may still wait in the inbox; taking it opens the inbox again. */
void at_mpi_hub_expect_report(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    size_t       size = h->inbox_size;
    assert(peer->inbox);
    if (at_mpi_is_open(h->calls, worker - 1) || peer->has_head || peer->has_report) return;
    if (h->parts.count > 0) size = AT_REPORT_MESSAGE_HEAD + h->parts.front * sizeof(float);
    expect_parts(h, worker);
    at_mpi_receive(h->calls, worker - 1, peer->inbox, size / AT_MESSAGE_UNIT, worker,
                   AT_MPI_TAG_REPORT);
}

/* The pairs of a sparse gradient of `floats` floats: do they exist, and lie in the vector? */
static bool are_pairs_valid(const at_mpi_hub *h, const unsigned char *gradient, uint64_t floats)
{
    const at_pairs *pairs = (const void *)gradient;
    uint64_t        size = floats * sizeof(float), weights = h->context->task->params;
    assert(weights > AT_SPARSE_EXTRA);
    weights -= AT_SPARSE_EXTRA - 1; /* the bias counts */
    if (size < sizeof *pairs || pairs->count > (size - sizeof *pairs) / sizeof *pairs->pair)
        return false;
    for (uint64_t i = 0; i < pairs->count; i++)
        if (pairs->pair[i].index >= weights) return false;
    return true;
}

static at_err read_report(const at_mpi_hub *h, at_node worker, size_t units,
                          at_report_message *report, at_fail *fail)
{
    const at_mpi_peer     *peer = &h->peer[worker - 1];
    const at_hub          *hub = h->host.hub;
    const at_task         *task = h->context->task;
    const at_packing      *packing = &h->packings.gradient;
    const at_report_bounds bounds = {.incarnation = hub->member[worker - 1].incarnation,
                                     .sequence = peer->sequence,
                                     .version = hub->version,
                                     .samples_max = at_plan_samples_max(h->context->plan),
                                     .drawn = peer->counted,
                                     .floats =
                                         h->gossip.calls ? 0 : packing->size / AT_MESSAGE_UNIT,
                                     .sparse = task->sparse,
                                     .ends = hub->end != AT_END_RUNNING,
                                     .again = at_plan_self_starts(h->context->plan)};
    assert(worker >= 1 && worker <= h->workers);
    assert(!peer->has_report);
    if (h->parts.count > 0 && units > AT_REPORT_MESSAGE_HEAD / AT_MESSAGE_UNIT)
        units += h->parts.floats - h->parts.front;
    AT_TRY(at_report_message_read(peer->inbox, units * AT_MESSAGE_UNIT, report, fail));
    AT_TRY(at_report_message_check(report, &bounds, fail));
    if (report->floats > 0 && peer->is_partial)
        return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                           "its message is malformed: a part of its gradient is missing");
    const unsigned char *gradient = peer->inbox + AT_REPORT_MESSAGE_HEAD;
    if (report->floats == 0) return AT_OK;
    if (peer->gradient)
        return at_unpack(packing, peer->gradient, gradient, report->floats * AT_MESSAGE_UNIT, fail);
    if (!task->sparse || are_pairs_valid(h, gradient, report->floats)) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, NULL,
                       "its message is malformed: a sparse gradient outside of the model");
}

/* The report and all parts of its gradient have arrived. */
static void receive_report(at_mpi_hub *h, at_node worker, const at_mpi_done *done)
{
    at_mpi_peer *peer = peer_of(h, worker);
    at_fail      fail;
    assert(done->call == worker - 1);
    peer->has_head = false;
    if (peer->state != AT_MPI_WORKING || peer->fault[0] || h->ended) return;
    if (at_mpi_check(done->error, "a receive from it", &fail) ||
        read_report(h, worker, done->units, &peer->report, &fail)) {
        at_mpi_hub_blame(h, worker, &fail);
        return;
    }
    peer->has_report = true;
    peer->averages = false;
    peer->sequence = peer->report.report.sequence;
    peer->counted += peer->report.report.work.samples;
    at_host_count_received(&h->host, worker, peer->report.floats * AT_MESSAGE_UNIT);
    if (peer->report.report.work.samples > 0)
        at_param_sender_used(&h->sender, worker, peer->report.report.work.version);
    if (peer->report.drawn > peer->drawn) peer->drawn = peer->report.drawn;
    at_failure_detector_beat(&peer->detector, h->clock.listened, true);
}

static void receive_head(at_mpi_hub *h, at_node worker, const at_mpi_done *done)
{
    at_mpi_peer *peer = peer_of(h, worker);
    assert(!peer->has_head);
    peer->head = *done;
    peer->has_head = true;
    if (peer->parts_awaited == 0) receive_report(h, worker, done);
}

/* The worker lives, but has not finished its round. */
static void receive_part(at_mpi_hub *h, const at_mpi_done *done)
{
    uint32_t     index = done->call - call_part(h, 1, 0);
    at_node      worker = 1 + index / h->parts.count;
    at_mpi_peer *peer = peer_of(h, worker);
    at_fail      fail;
    assert(peer->parts_awaited > 0);
    peer->parts_awaited--;
    at_failure_detector_beat(&peer->detector, h->clock.listened, false);
    if (done->units != at_gradient_part(&h->parts, index % h->parts.count).count)
        peer->is_partial = true;
    if (at_mpi_check(done->error, "a receive from it", &fail) && !h->ended)
        at_mpi_hub_blame(h, worker, &fail);
    if (peer->has_head && peer->parts_awaited == 0) receive_report(h, worker, &peer->head);
}

/* A worker that cannot take part ends the run before training starts; one that fails later is
 * lost. */
static void receive_hello(at_mpi_hub *h, at_node worker, const at_worker_note *note)
{
    at_mpi_peer *peer = peer_of(h, worker);
    assert(note->kind == AT_WORKER_NOTE_HELLO);
    if (peer->state != AT_MPI_AWAITED) {
        if (note->fail.err)
            at_mpi_hub_blame(h, worker, &note->fail);
        else
            blame_order(h, worker, "it says twice that it starts");
        return;
    }
    peer->hello = *note;
    peer->state = AT_MPI_LOADING;
    peer->near = strcmp(note->host, h->host_name) == 0 && at_alive(note->pid, note->born);
    if (!h->refusal.err) at_job_check(note, worker, h->part, h->host_name, &h->refusal);
}

static void receive_left(at_mpi_hub *h, at_node worker, const at_worker_note *note)
{
    at_mpi_peer *peer = peer_of(h, worker);
    assert(note->kind == AT_WORKER_NOTE_LEFT);
    if (peer->state != AT_MPI_WORKING || note->reports < peer->reports + peer->has_report) {
        blame_order(h, worker, "it leaves before it has sent what it sent");
        return;
    }
    peer->is_leaving = true;
    peer->reports_sent = note->reports;
}

static void receive_note(at_mpi_hub *h, at_node worker, const at_worker_note *note)
{
    at_mpi_peer *peer = peer_of(h, worker);
    if (peer->state == AT_MPI_LEFT || peer->state == AT_MPI_LOST) return;
    if (note->drawn > peer->drawn) peer->drawn = note->drawn;
    if (note->usage.pid > 0) peer->usage = note->usage;
    peer->averages = note->averages;
    at_failure_detector_beat(&peer->detector, h->clock.listened, false);
    switch (note->kind) {
    case AT_WORKER_NOTE_HELLO: receive_hello(h, worker, note); break;
    case AT_WORKER_NOTE_READY:
        if (peer->state != AT_MPI_LOADING) {
            blame_order(h, worker, "it is ready without having started");
            break;
        }
        peer->is_ready = true;
        memcpy(h->engine, note->engine, sizeof h->engine);
        break;
    case AT_WORKER_NOTE_PULSE: break;
    case AT_WORKER_NOTE_LEFT: receive_left(h, worker, note); break;
    }
}

/* The i-th place for notes has been filled, and is used again. */
static void take_note(at_mpi_hub *h, uint32_t i, const at_mpi_done *done)
{
    at_worker_note note;
    at_fail        fail;
    assert(i < AT_MPI_NOTES);
    bool failed = at_mpi_check(done->error, "a receive from it", &fail) ||
                  at_worker_note_read(h->notes + (size_t)i * AT_WORKER_NOTE,
                                      done->units * AT_MESSAGE_UNIT, &note, &fail);
    expect_note(h, i);
    if (h->ended) return;
    if (!failed)
        receive_note(h, done->rank, &note);
    else if (done->rank >= 1 && done->rank <= h->workers)
        at_mpi_hub_blame(h, done->rank, &fail);
    else if (!h->refusal.err)
        h->refusal = fail; /* MPI does not say from whom */
}

bool at_mpi_hub_receive(at_mpi_hub *h)
{
    const at_mpi_done *done;
    uint32_t           workers = h->workers;
    at_fail            fail;
    assert(h->calls);
    at_listening_clock_now(&h->clock, at_clock_now());
    uint32_t count = at_mpi_poll(h->calls, &done);
    assert(workers >= 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t call = done[i].call;
        if (call < workers) {
            receive_head(h, call + 1, &done[i]);
        } else if (call < workers + AT_MPI_NOTES) {
            take_note(h, call - workers, &done[i]);
        } else if (call >= call_part(h, 1, 0)) {
            receive_part(h, &done[i]);
        } else {
            at_node worker = at_param_sender_done(&h->sender, call);
            if (at_mpi_check(done[i].error, "a message to it", &fail))
                at_mpi_hub_blame(h, worker, &fail);
        }
    }
    return count > 0;
}

/* ---- processing ------------------------------------------------------------------------------ */

bool at_mpi_hub_welcome(at_mpi_hub *h, at_node worker)
{
    at_hub_message message = {.kind = AT_HUB_MESSAGE_WELCOME,
                              .incarnation = 1,
                              .drawn = peer_of(h, worker)->drawn,
                              .pid = getpid(),
                              .born = at_alive_born(getpid())};
    assert(h->sender.calls);
    if (h->context) {
        const at_member *member = &h->host.hub->member[worker - 1];
        message.incarnation = member->incarnation + 1;
        message.sequence = member->sequence;
        message.redrawn = member->redrawn;
        message.usage_every = h->context->usage_every;
    }
    return at_param_sender_message(&h->sender, worker, &message, h->host_name);
}

static void join(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    at_event     event = {.kind = AT_EV_JOINED, .worker = worker, .now = at_host_now(&h->host)};
    event.as.joined.incarnation = h->host.hub->member[worker - 1].incarnation + 1;
    assert(peer->state == AT_MPI_LOADING);
    peer->state = AT_MPI_WORKING;
    peer->sequence = h->host.hub->member[worker - 1].sequence; /* as sent with WELCOME */
    /* Its silence while it loaded does not count. */
    at_failure_detector_init(&peer->detector, h->clock.listened, lease_of(h));
    if (peer->near) at_host_process(&h->host, worker, peer->hello.pid);
    if (!at_plan_sums_in_order(h->host.hub->plan)) at_mpi_hub_expect_report(h, worker);
    at_host_event(&h->host, &event, &(at_about){.pid = peer->hello.pid, .text = peer->hello.host});
}

/* With --comm-delay: has this report arrived by now? As in the local world, it waits in the place
 * from which it will be read. */
static bool has_arrived(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    double       sigma = h->context->comm_delay;
    assert(peer->has_report);
    assert(sigma >= 0);
    if (sigma == 0 || h->host.hub->end != AT_END_RUNNING) return true;
    if (peer->report_due == AT_NEVER)
        peer->report_due = at_host_now(&h->host) +
                           at_comm_delay(sigma, h->context->seed, worker, 2 * peer->messages++);
    return at_host_now(&h->host) >= peer->report_due;
}

at_ns at_mpi_hub_next_arrival(const at_mpi_hub *h)
{
    at_ns next = AT_NEVER;
    assert(h->peer);
    for (uint32_t i = 0; h->context->comm_delay > 0 && i < h->workers; i++)
        if (h->peer[i].has_report && h->peer[i].report_due < next) next = h->peer[i].report_due;
    return next;
}

/* A gradient that is held stays in the inbox until the worker's next order, which also reopens the
 * inbox; one that is added on arrival has been read when the event is over. A self-starting worker
 * gets the newest parameters in return. */
static void take_report(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    at_event     event = {.kind = AT_EV_MESSAGE, .worker = worker, .now = at_host_now(&h->host)};
    assert(peer->has_report);
    event.as.report = peer->report.report;
    event.as.report.slot = 0;
    peer->has_report = false;
    peer->report_due = AT_NEVER;
    peer->reports++;
    if (!h->host.finished) at_host_event(&h->host, &event, NULL);
    const at_plan *plan = h->host.hub->plan; /* the event may have switched it */
    if (at_plan_sums_in_order(plan) || peer->state != AT_MPI_WORKING) return;
    at_mpi_hub_expect_report(h, worker);
    if (plan->release->self_starting) at_param_sender_want(&h->sender, worker);
}

static void add_lost_round(at_mpi_hub *h, at_node worker, uint64_t round, uint64_t samples)
{
    assert(h->lost_count < h->workers); /* lost workers do not return */
    h->lost[h->lost_count++] =
        (at_lost_round){.worker = worker, .round = round, .samples = samples};
}

static void depart(at_mpi_hub *h, at_node worker, at_mpi_state state, const char *how)
{
    at_mpi_peer     *peer = peer_of(h, worker);
    const at_member *member = &h->host.hub->member[worker - 1];
    at_event         event = {.kind = AT_EV_LOST, .worker = worker, .now = at_host_now(&h->host)};
    bool             owed = state == AT_MPI_LOST && member->rounds_begun > member->rounds_ended;
    uint64_t         round = member->rounds_begun, dropped = member->dropped;
    assert(state == AT_MPI_LEFT || state == AT_MPI_LOST);
    event.as.lost.drawn = peer->drawn;
    peer->state = state;
    at_host_process(&h->host, worker, 0);
    at_host_event(&h->host, &event, &(at_about){.text = how});
    if (owed) add_lost_round(h, worker, round - 1, member->dropped - dropped);
}

/* Reports sent before the loss still count. Nothing is received afterwards, so nothing is counted
 * twice should the worker still live; it will be ordered to leave. */
static void lose(at_mpi_hub *h, at_node worker, const char *how)
{
    at_mpi_peer *peer = peer_of(h, worker);
    assert(peer->state != AT_MPI_LOST);
    at_mpi_hub_receive(h);
    if (peer->has_report) take_report(h, worker);
    h->lossy = true;
    at_mpi_cancel(h->calls, worker - 1);
    for (uint32_t i = 0; i < h->parts.count; i++) at_mpi_cancel(h->calls, call_part(h, worker, i));
    at_param_sender_lose(&h->sender, worker);
    at_mpi_gossip_hub_lose(h, worker);
    depart(h, worker, AT_MPI_LOST, how);
}

/* Messages to a dead process fail, too. */
static void lose_faulty(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    assert(peer->fault[0]);
    peer->dead = peer->near && !at_alive(peer->hello.pid, peer->hello.born);
    lose(h, worker, peer->dead ? "its process is gone" : peer->fault);
}

static void process_peer(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    assert(h->context);
    if (peer->state == AT_MPI_LOADING && !peer->is_welcome)
        peer->is_welcome = at_mpi_hub_welcome(h, worker);
    if (peer->state == AT_MPI_LOADING && peer->is_ready) join(h, worker);
    if (peer->has_report && has_arrived(h, worker)) take_report(h, worker);
    if (peer->usage.pid > 0) at_host_usage(&h->host, worker, &peer->usage, at_host_now(&h->host));
    peer->usage.pid = 0;
    if (peer->state != AT_MPI_WORKING) return;
    if (peer->is_leaving && peer->reports == peer->reports_sent)
        depart(h, worker, AT_MPI_LEFT, "left");
    else if (peer->evicted)
        lose(h, worker, at_hub_evicted_text(h->host.hub, worker));
    else if (peer->fault[0])
        lose_faulty(h, worker);
}

void at_mpi_hub_process(at_mpi_hub *h)
{
    assert(h->context);
    if (h->refusal.err) return; /* none of them starts */
    for (uint32_t i = 1; i <= h->workers && !h->host.finished; i++) process_peer(h, i);
}

/* ---- watching ------------------------------------------------------------------------------ */

static at_ns silence_of(const at_mpi_hub *h, at_node worker)
{
    const at_mpi_peer *peer = &h->peer[worker - 1];
    assert(h->clock.listened >= peer->detector.heard);
    return h->clock.listened - peer->detector.heard;
}

static void lose_silent(at_mpi_hub *h, at_node worker)
{
    char how[80];
    snprintf(how, sizeof how, "no message for %.1f s", at_seconds(silence_of(h, worker)));
    lose(h, worker, how);
}

static void watch_peer(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    assert(h->context);
    if (peer->state == AT_MPI_LEFT || peer->state == AT_MPI_LOST) return;
    if (peer->near && !at_alive(peer->hello.pid, peer->hello.born)) {
        peer->dead = true;
        lose(h, worker, "its process is gone");
    } else if (at_failure_detector_is_gone(&peer->detector, h->clock.listened)) {
        lose_silent(h, worker);
    }
}

/* Under gossip a worker that is gone holds up its neighbors, these hold up theirs, and in the end
 * nobody reports: then all leases would expire together. So while some say that they average and
 * others say nothing, it is the silent ones whose lease runs, and the others get a whole one after
 * that. */
static void watch_neighbors(at_mpi_hub *h)
{
    at_ns lease = at_hub_lease(h->host.hub);
    at_ns quiet = lease / 2 < QUIET ? lease / 2 : QUIET;
    bool  averages = false, silent = false;
    for (at_node i = 1; i <= h->workers; i++) {
        if (h->peer[i - 1].state != AT_MPI_WORKING) continue;
        bool heard = silence_of(h, i) < quiet;
        averages = averages || (heard && h->peer[i - 1].averages);
        silent = silent || !heard;
    }
    if (!averages || !silent) return;
    h->host.leases_from = at_host_now(&h->host) + lease;
    for (at_node i = 1; i <= h->workers && !h->host.finished; i++)
        if (h->peer[i - 1].state == AT_MPI_WORKING && silence_of(h, i) >= lease) lose_silent(h, i);
}

void at_mpi_hub_check_start(at_mpi_hub *h)
{
    const char *hint = "check that all machines are up and reach each other";
    assert(!h->context);
    for (uint32_t i = 1; i <= h->workers && !h->refusal.err; i++) {
        at_mpi_peer *peer = peer_of(h, i);
        at_ns        silent = h->clock.listened - peer->detector.heard;
        bool         greeted = peer->is_welcome && !at_param_sender_idle(&h->sender, i);
        bool         awaited = peer->state == AT_MPI_AWAITED || greeted;
        if (peer->near && !at_alive(peer->hello.pid, peer->hello.born)) {
            at_fail_set(&h->refusal, AT_ERR_FAILED, hint, "rank %u ended before training began", i);
            peer->state = AT_MPI_LOST;
            peer->dead = h->lossy = true;
        } else if (awaited && at_failure_detector_is_gone(&peer->detector, h->clock.listened)) {
            at_fail_set(&h->refusal, AT_ERR_FAILED, hint, "rank %u has not answered for %.0f s", i,
                        at_seconds(silent));
        }
    }
}

/* Also to a lost worker that may live: it waits for the end of the run, because a launcher takes
 * its early exit for a failure of the job. */
void at_mpi_hub_heartbeat(at_mpi_hub *h, at_node worker, at_ns now)
{
    const at_hub_message heartbeat = {.kind = AT_HUB_MESSAGE_PULSE};
    const at_mpi_peer   *peer = peer_of(h, worker);
    bool                 waits = peer->state == AT_MPI_LOST && !peer->dead;
    assert(now > 0);
    if (peer->state != AT_MPI_WORKING && !waits) return;
    if (now - h->sender.receiver[worker - 1].sent_at < HEARTBEAT_EVERY) return;
    at_param_sender_message(&h->sender, worker, &heartbeat, NULL);
}

void at_mpi_hub_watch(at_mpi_hub *h, at_ns now)
{
    assert(now >= h->watched_at);
    if (now - h->watched_at < WATCH_EVERY) return;
    h->watched_at = now;
    for (uint32_t i = 1; i <= h->workers && !h->host.finished; i++) {
        watch_peer(h, i);
        at_mpi_hub_heartbeat(h, i, now);
    }
    if (h->gossip.calls && !h->host.finished) watch_neighbors(h);
}

/* The hub's side of its workers in the MPI world: receives from them and detects their loss. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "pace/pace.h"
#include "world/mpi/mpi_hub.h"
#include "world/mpi/mpi_world.h"
#include "world/process/alive.h"

static const at_ns HEARTBEAT_EVERY = AT_MS(200);
static const at_ns WATCH_EVERY = AT_MS(50);

static at_mpi_peer *peer_of(at_mpi_hub *h, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= h->workers);
    return &h->peer[worker - 1];
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void expect_note(at_mpi_hub *h, uint32_t i)
{
    at_mpi_receive(h->calls, h->workers + i, h->notes + (size_t)i * AT_WORKER_NOTE,
                   AT_WORKER_NOTE / AT_MESSAGE_UNIT, AT_MPI_ANY_RANK, AT_MPI_TAG_NOTE);
}

void at_mpi_hub_listen(at_mpi_hub *h)
{
    at_ns listened = at_listening_clock_now(&h->clock, at_clock_now());
    for (uint32_t i = 0; i < AT_MPI_NOTES; i++) expect_note(h, i);
    for (uint32_t i = 1; i <= h->workers; i++) {
        at_mpi_peer *peer = peer_of(h, i);
        at_failure_detector_init(&peer->detector, listened);
        peer->report_due = AT_NEVER;
    }
}

void at_mpi_hub_expect_report(at_mpi_hub *h, at_node worker)
{
    if (at_mpi_is_open(h->calls, worker - 1)) return;
    at_mpi_receive(h->calls, worker - 1, peer_of(h, worker)->inbox, h->inbox_size / AT_MESSAGE_UNIT,
                   worker, AT_MPI_TAG_REPORT);
}

static void receive_report(at_mpi_hub *h, at_node worker, size_t units)
{
    at_mpi_peer *peer = peer_of(h, worker);
    if (peer->state != AT_MPI_WORKING) return;
    bool valid = at_report_message_read(peer->inbox, &peer->report);
    assert(valid);
    assert(!peer->has_report);
    assert(units == AT_REPORT_MESSAGE_HEAD / AT_MESSAGE_UNIT + peer->report.floats);
    assert(peer->report.drawn >= peer->drawn);
    peer->has_report = true;
    peer->drawn = peer->report.drawn;
    at_failure_detector_beat(&peer->detector, h->clock.listened, true);
}

/* A worker that cannot take part ends the run before training starts. */
static void receive_hello(at_mpi_hub *h, at_node worker, const at_worker_note *note)
{
    at_mpi_peer *peer = peer_of(h, worker);
    peer->hello = *note;
    peer->state = AT_MPI_LOADING;
    peer->near = strcmp(note->host, h->host_name) == 0 && at_alive(note->pid, note->born);
    if (!h->refusal.err) at_job_check(note, worker, h->fingerprint, h->host_name, &h->refusal);
}

static void receive_note(at_mpi_hub *h, at_node worker, const at_worker_note *note)
{
    at_mpi_peer *peer = peer_of(h, worker);
    if (peer->state == AT_MPI_LEFT || peer->state == AT_MPI_LOST) return;
    if (note->drawn > peer->drawn) peer->drawn = note->drawn;
    if (note->usage.pid > 0) peer->usage = note->usage;
    at_failure_detector_beat(&peer->detector, h->clock.listened, false);
    switch (note->kind) {
    case AT_WORKER_NOTE_HELLO: receive_hello(h, worker, note); break;
    case AT_WORKER_NOTE_READY:
        peer->is_ready = true;
        memcpy(h->engine, note->engine, sizeof h->engine);
        break;
    case AT_WORKER_NOTE_PULSE: break;
    case AT_WORKER_NOTE_LEFT:
        peer->is_leaving = true;
        peer->reports_sent = note->reports;
        break;
    }
}

bool at_mpi_hub_receive(at_mpi_hub *h)
{
    const at_mpi_done *done;
    uint32_t           workers = h->workers;
    at_listening_clock_now(&h->clock, at_clock_now());
    uint32_t count = at_mpi_poll(h->calls, &done);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t call = done[i].call;
        if (call < workers) {
            receive_report(h, call + 1, done[i].units);
        } else if (call < workers + AT_MPI_NOTES) {
            at_worker_note note;
            bool           valid =
                at_worker_note_read(h->notes + (call - workers) * (size_t)AT_WORKER_NOTE, &note);
            expect_note(h, call - workers);
            assert(valid);
            receive_note(h, done[i].rank, &note);
        } else {
            at_param_sender_done(&h->sender, call);
        }
    }
    return count > 0;
}

/* ---- processing ------------------------------------------------------------------------------ */

static bool welcome(at_mpi_hub *h, at_node worker)
{
    const at_member     *member = &h->host.hub->member[worker - 1];
    const at_hub_message message = {.kind = AT_HUB_MESSAGE_WELCOME,
                                    .incarnation = member->incarnation + 1,
                                    .sequence = member->sequence,
                                    .drawn = peer_of(h, worker)->drawn,
                                    .pid = getpid(),
                                    .born = at_alive_born(getpid()),
                                    .usage_every = h->context->usage_every};
    return at_param_sender_message(&h->sender, worker, &message, h->host_name);
}

static void join(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    at_event     event = {.kind = AT_EV_JOINED, .worker = worker, .now = at_clock_now()};
    event.as.joined.incarnation = h->host.hub->member[worker - 1].incarnation + 1;
    peer->state = AT_MPI_WORKING;
    /* Its silence while it loaded does not count. */
    at_failure_detector_init(&peer->detector, h->clock.listened);
    if (peer->near) at_host_process(&h->host, worker, peer->hello.pid);
    if (!h->context->plan->release->holds) at_mpi_hub_expect_report(h, worker);
    at_host_event(&h->host, &event, &(at_about){.pid = peer->hello.pid, .text = peer->hello.host});
}

/* With --comm-delay: has this report arrived by now? As in the local world, it waits in the place
 * from which it will be read. */
static bool has_arrived(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    double       sigma = h->context->comm_delay;
    if (sigma == 0 || h->host.hub->end != AT_END_RUNNING) return true;
    if (peer->report_due == AT_NEVER)
        peer->report_due =
            at_clock_now() + at_comm_delay(sigma, h->context->seed, worker, 2 * peer->messages++);
    return at_clock_now() >= peer->report_due;
}

at_ns at_mpi_hub_next_arrival(const at_mpi_hub *h)
{
    at_ns next = AT_NEVER;
    for (uint32_t i = 0; h->context->comm_delay > 0 && i < h->workers; i++)
        if (h->peer[i].has_report && h->peer[i].report_due < next) next = h->peer[i].report_due;
    return next;
}

/* A gradient that is held stays in the inbox until the worker's next order, which also reopens the
 * inbox; one that is added on arrival has been read when the event is over. A self-starting worker
 * gets the newest parameters in return. */
static void take_report(at_mpi_hub *h, at_node worker)
{
    const at_plan *plan = h->context->plan;
    at_mpi_peer   *peer = peer_of(h, worker);
    at_event       event = {.kind = AT_EV_MESSAGE, .worker = worker, .now = at_clock_now()};
    event.as.report = peer->report.report;
    event.as.report.slot = 0;
    peer->has_report = false;
    peer->report_due = AT_NEVER;
    peer->reports++;
    if (!h->host.finished) at_host_event(&h->host, &event, NULL);
    if (plan->release->holds || peer->state != AT_MPI_WORKING) return;
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
    at_event         event = {.kind = AT_EV_LOST, .worker = worker, .now = at_clock_now()};
    bool             owed = state == AT_MPI_LOST && member->rounds_begun > member->rounds_ended;
    uint64_t         round = member->rounds_begun, dropped = member->dropped;
    event.as.lost.drawn = peer->drawn;
    peer->state = state;
    at_host_process(&h->host, worker, 0);
    at_host_event(&h->host, &event, &(at_about){.text = how});
    if (owed) add_lost_round(h, worker, round - 1, member->dropped - dropped);
}

/* Reports sent before the loss still count. Nothing is received afterwards, so nothing is counted
 * twice should the worker still live; it will be told to leave. */
static void lose(at_mpi_hub *h, at_node worker, const char *how)
{
    at_mpi_peer *peer = peer_of(h, worker);
    at_mpi_hub_receive(h);
    if (peer->has_report) take_report(h, worker);
    h->lossy = true;
    at_mpi_cancel(h->calls, worker - 1);
    at_param_sender_lose(&h->sender, worker);
    depart(h, worker, AT_MPI_LOST, how);
}

static void process_peer(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    if (peer->state == AT_MPI_LOADING && !peer->is_welcome) peer->is_welcome = welcome(h, worker);
    if (peer->state == AT_MPI_LOADING && peer->is_ready) join(h, worker);
    if (peer->has_report && has_arrived(h, worker)) take_report(h, worker);
    if (peer->usage.pid > 0) at_host_usage(&h->host, worker, &peer->usage, at_clock_now());
    peer->usage.pid = 0;
    if (peer->state != AT_MPI_WORKING) return;
    if (peer->is_leaving && peer->reports == peer->reports_sent)
        depart(h, worker, AT_MPI_LEFT, "left");
    else if (peer->evicted)
        lose(h, worker, "evicted, its lease expired");
}

void at_mpi_hub_process(at_mpi_hub *h)
{
    for (uint32_t i = 1; i <= h->workers && !h->host.finished; i++) process_peer(h, i);
}

/* ---- watching ------------------------------------------------------------------------------ */

static void watch_peer(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = peer_of(h, worker);
    char         how[80];
    if (peer->state == AT_MPI_LEFT || peer->state == AT_MPI_LOST) return;
    if (peer->near && !at_alive(peer->hello.pid, peer->hello.born)) {
        peer->dead = true;
        lose(h, worker, "its process is gone");
    } else if (at_failure_detector_is_gone(&peer->detector, h->clock.listened)) {
        snprintf(how, sizeof how, "no message for %.1f s",
                 at_seconds(h->clock.listened - peer->detector.heard));
        lose(h, worker, how);
    }
}

static void send_heartbeat(at_mpi_hub *h, at_node worker, at_ns now)
{
    const at_hub_message heartbeat = {.kind = AT_HUB_MESSAGE_PULSE};
    if (peer_of(h, worker)->state != AT_MPI_WORKING) return;
    if (now - h->sender.receiver[worker - 1].sent_at < HEARTBEAT_EVERY) return;
    at_param_sender_message(&h->sender, worker, &heartbeat, NULL);
}

void at_mpi_hub_watch(at_mpi_hub *h, at_ns now)
{
    if (now - h->watched_at < WATCH_EVERY) return;
    h->watched_at = now;
    for (uint32_t i = 1; i <= h->workers && !h->host.finished; i++) {
        watch_peer(h, i);
        send_heartbeat(h, i, now);
    }
}

/* swarm_world.h - the world of swarm.c: a hub, workers, a network and a disk in virtual time.
 *
 *     hub: at_host, at_saver, event log, tables      fake_disk.h
 *       │  ▲    bytes of message/, framed and with a checksum: late, in any order, twice, never
 *       ▼  │
 *     workers: at_driver over an at_transport
 *
 * The code of hub and workers is the real one. A process that dies loses its memory; connections
 * break, and whoever notices connects again. Nothing depends on the machine's clock or memory, so a
 * seed always gives the same run.
 */
#ifndef AT_TESTS_UNIT_WORLD_SWARM_WORLD_H
#define AT_TESTS_UNIT_WORLD_SWARM_WORLD_H

#include "fake_disk.h"
#include "swarm_ledger.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "message/message.h"
#include "model_io/checkpoint.h"
#include "net/frame.h"
#include "record/log/append_file.h"
#include "record/log/rewind.h"
#include "record/log/thinner.h"
#include "record/replay/replay.h"
#include "record/sinks/buffered_sink.h"
#include "record/sinks/sinks.h"
#include "step/lease.h"
#include "step/switch.h"
#include "world/core/driver.h"
#include "world/core/gossip.h"
#include "world/core/host.h"

enum {
    WORKERS = LEDGER_WORKERS,
    PARAMS = LEDGER_PARAMS,
    PACKETS = 256, /* more on their way mean that memory is not bounded */
    PACKET_SIZE = AT_FRAME_HEAD + AT_WORKER_NOTE,
    STRIDE = 16, /* of the workers' own parameters under gossip */
    ORDERS = 8   /* to one worker, of one event */
};

static const at_ns PATIENCE = AT_SEC(900); /* for the end, when the faults are over */

typedef enum packet_kind {
    PACKET_NOTE,   /* of a worker */
    PACKET_REPORT, /* of a worker, with its gradient */
    PACKET_HUB,    /* of the hub: a welcome, parameters, orders, or the end */
    PACKET_CLOSED, /* the other side learns that the connection is gone */
    PACKET_KINDS
} packet_kind;

typedef struct packet {
    at_ns         due;
    uint64_t      birth;
    at_node       worker;
    bool          to_hub;
    uint32_t      connection;
    size_t        size;
    uint32_t      crc;
    unsigned char bytes[PACKET_SIZE];
} packet;

/* A worker: its process, and its side of the connection. */
typedef struct process {
    struct world    *world;
    at_node          id;
    bool             up, welcomed, driving; /* runs, knows who it is, has not left */
    bool             gone;                  /* for good */
    uint32_t         connection;            /* 0: none */
    at_driver        driver;
    at_local_steps  *local;
    _Atomic uint64_t drawn;
    uint64_t         reports, hub_born; /* hub_born: the life of the hub that has welcomed it */
    float            newest[PARAMS], staged[PARAMS], installed[PARAMS], gradient[2][PARAMS];
    uint64_t         newest_version, staged_version;
    at_order         order;
    bool             ordered, leaves;
    uint64_t         order_number; /* of the newest packet with orders */
    bool             computing;
    at_micro         micro;
    double           loss;
    at_ns            runs_at, connects_at; /* AT_NEVER: not at all */
    at_ns            paused_until, cut_until, clock_ahead, sample_ns;
    bool             lies; /* some of its gradients are not finite */
    bool             lags; /* says that it used the first parameters, until it is welcomed again */
    uint32_t         welcomes;
} process;

/* The hub's side of a worker. */
typedef struct peer {
    uint32_t         connection; /* 0: none */
    bool             joined, evicted;
    uint32_t         incarnation;
    uint64_t         sequence, drawn, counted;
    at_order_message order[ORDERS];
    uint32_t         orders;
    bool             wants; /* newer parameters */
    float            gradient[2][PARAMS];
} peer;

typedef struct hub_process {
    bool          up;
    uint32_t      connections_before; /* those of later numbers are its own */
    at_host       host;
    at_updater    updater;
    at_recorder   recorder;
    at_run_info   info;
    at_tally     *tally;
    at_saver     *saver;
    at_checkpoint resume;
    float         w[STRIDE];
    at_gossip     gossip;
    float         own[WORKERS][STRIDE] __attribute__((aligned(64)));
    peer          peer[WORKERS + 1];
    at_ns         writes_at, starts_at, paused_until, clock_ahead;
    bool          cast;
    at_evaluation evaluation; /* in the evaluator's process, until `evaluates_at` */
    at_ns         evaluates_at;
} hub_process;

/* What happened in all runs: a fault that never happens tests nothing. */
typedef struct coverage {
    uint64_t late, lost, repeated, reordered, flipped, partitions, worker_deaths, hub_deaths,
        power_cuts;
    uint64_t saver_deaths, resumed, refused, retries, pauses, jumps, evictions, outdated, full,
        read_errors;
    uint64_t steps, formula, saves, replayed, torn, events, nonfinite, joins, flipped_files,
        packets;
    uint64_t write_errors, ends[AT_END_COUNT], drops[AT_DROP_COUNT];
    uint64_t gossip, in_place; /* steps */
    uint64_t asked, renumbered, own_batches, resized, thinned, clocks_back, evaluations,
        evaluator_deaths;
    at_ns time;
} coverage;

static coverage covered;

typedef struct world {
    at_rng           rng;
    at_plan_options  options;
    const char      *switch_to;
    at_plan          plan, then;
    at_task          task;
    at_learning      learning, inner;
    at_optim         outer;
    at_pace         *pace;
    at_world_context context;
    at_ns            now, calm_at;
    process          process[WORKERS + 1];
    hub_process      hub;
    packet           packet[PACKETS];
    size_t           packets;
    uint64_t         births;
    uint32_t         connections, hub_lives;
    uint32_t         numbered; /* life of the hub for which its number of workers was decided */
    uint32_t         broken[WORKERS + 1]; /* of each worker: this and older ones deliver no more */
    ledger          *ledger;
    const process   *running; /* whose clock at_clock_now reads; NULL: the hub's */
    /* Faults; they end at calm_at. */
    bool     streams; /* connections keep the order of messages and lose none; else anything goes */
    bool     shared;  /* the hub sees what a worker draws at once, as in shared memory */
    bool     in_place; /* .. where workers update the parameters, too, and die with the hub */
    at_ns    delay;    /* mean of a message */
    double   late, drops, repeats, flips, refusals, saver_dies;
    uint64_t record_limit; /* bytes of tables and logs */
    at_ns    slow_disk;    /* until a checkpoint is written */
    at_ns    slow_scores;  /* until an evaluation is done; 0: at once */
    bool     hub_dies;     /* disk.kill_at is for the hub, not for the saver */
    bool     cut_power;    /* .. with its machine */
    bool     rotten;       /* files were damaged: nothing is promised about the newest one */
    bool     finished, refused;
    at_end   end;
    uint64_t trace;        /* of the hub that has finished */
    uint64_t acknowledged; /* newest checkpoint that the saver has confirmed; UINT64_MAX: none */
    bool     stopped, lies;
    uint64_t faults; /* that have happened */
} world;

static world *the_world;

/* ---- time and chance ------------------------------------------------------------------------- */

static inline bool chance(world *s, double probability)
{
    return probability > 0 && at_rng_uniform(&s->rng) < probability;
}

/* For faults: none after the calm has begun. */
static inline bool fault(world *s, double probability)
{
    bool happens = s->now < s->calm_at && chance(s, probability);
    s->faults += happens;
    return happens;
}

static inline at_ns some(world *s, at_ns mean)
{
    return 1 + (at_ns)(-log(1 - at_rng_uniform(&s->rng)) * (double)mean);
}

static inline at_ns world_clock(void)
{
    const process *p = the_world->running;
    return AT_SEC(1) + the_world->now + (p ? p->clock_ahead : the_world->hub.clock_ahead);
}

/* ---- network --------------------------------------------------------------------------------- */

static inline void wire_up(world *s, packet *new)
{
    const process *p = &s->process[new->worker];
    at_ns          earliest = p->cut_until;
    new->due = s->now + some(s, s->delay);
    if (fault(s, s->late)) new->due += some(s, AT_MS(700));
    if (new->due < earliest) new->due = earliest + some(s, AT_MS(1));
    for (size_t i = 0; s->streams && i < s->packets; i++) {
        const packet *other = &s->packet[i];
        bool          same = other->to_hub == new->to_hub && other->connection == new->connection;
        if (same && other->due >= new->due) new->due = other->due + 1;
    }
    new->birth = s->births++;
    covered.packets++;
    assert_true(s->packets < PACKETS);
    s->packet[s->packets++] = *new;
}

static inline void break_connection(world *s, at_node worker, uint32_t connection);

/* Over a stream a lost packet is a lost connection. */
static inline void post(world *s, packet *new)
{
    if (new->connection <= s->broken[new->worker]) return;
    if (fault(s, s->drops)) {
        covered.lost++;
        if (s->streams) break_connection(s, new->worker, new->connection);
        return;
    }
    new->crc = at_crc32c(new->bytes, new->size);
    wire_up(s, new);
    if (s->streams || !fault(s, s->repeats)) return;
    covered.repeated++;
    wire_up(s, new);
}

static inline packet *begin_packet(packet *p, world *s, at_node worker, bool to_hub,
                                   packet_kind kind, size_t size)
{
    uint32_t connection = to_hub ? s->process[worker].connection : s->hub.peer[worker].connection;
    *p = (packet){
        .worker = worker, .to_hub = to_hub, .connection = connection, .size = AT_FRAME_HEAD + size};
    assert_true(p->size <= PACKET_SIZE);
    at_frame_write(p->bytes, kind, size);
    return p;
}

/* Both sides learn of it later. */
static inline void close_connection(world *s, at_node worker)
{
    for (int side = 0; side < 2; side++) {
        packet   closed;
        bool     to_hub = side == 0;
        uint32_t connection =
            to_hub ? s->hub.peer[worker].connection : s->process[worker].connection;
        if (connection == 0) continue;
        begin_packet(&closed, s, worker, to_hub, PACKET_CLOSED, 0);
        closed.connection = connection;
        closed.crc = at_crc32c(closed.bytes, closed.size);
        wire_up(s, &closed);
    }
}

/* The same, and what is on its way is lost. */
static inline void break_connection(world *s, at_node worker, uint32_t connection)
{
    if (connection > s->broken[worker]) s->broken[worker] = connection;
    close_connection(s, worker);
}

/* ---- worker: transport ----------------------------------------------------------------------- */

static uint32_t heard(void *self)
{
    (void)self;
    return 0;
}

static void wait_for_news(void *self, uint32_t before, at_ns until)
{
    (void)self;
    (void)before;
    (void)until;
}

static bool interrupted(void *self)
{
    (void)self;
    return true;
}

static bool leaves(void *self)
{
    return ((process *)self)->leaves;
}

static bool take_order(void *self, at_order *order)
{
    process *p = self;
    bool     ordered = p->ordered;
    *order = p->order;
    p->ordered = false;
    return ordered;
}

static uint64_t newest(void *self)
{
    return ((process *)self)->newest_version;
}

static uint64_t fetch(void *self)
{
    process *p = self;
    memcpy(p->staged, p->newest, sizeof p->staged);
    return p->staged_version = p->newest_version;
}

static const float *install(void *self)
{
    process *p = self;
    memcpy(p->installed, p->staged, sizeof p->installed);
    return p->installed;
}

static float *gradient(void *self, uint32_t slot)
{
    assert_true(slot < 2);
    return ((process *)self)->gradient[slot];
}

/* A worker has two slots for gradients. */
static inline int reports_on_their_way(const process *p)
{
    int count = 0;
    for (size_t i = 0; i < p->world->packets; i++) {
        const packet *m = &p->world->packet[i];
        count += m->to_hub && m->connection == p->connection && m->size > AT_FRAME_HEAD;
    }
    return count;
}

static bool send_report(void *self, const at_report *report)
{
    process *p = self;
    world   *s = p->world;
    packet new;
    bool              empty = report->work.abandoned || report->work.samples == 0;
    const float      *floats = p->gradient[report->slot];
    at_report_message message = {
        .report = *report, .drawn = atomic_load(&p->drawn), .floats = empty ? 0 : PARAMS};
    size_t size = AT_REPORT_MESSAGE_HEAD + (empty ? 0 : PARAMS * sizeof(float));
    if (chance(s, s->refusals) || reports_on_their_way(p) >= 2) return false;
    if (p->lags) message.report.work.version = 0;
    covered.resized += s->context.round_size.law != AT_ROUND_AS_ORDERED;
    begin_packet(&new, s, p->id, true, PACKET_REPORT, size);
    at_report_message_write(new.bytes + AT_FRAME_HEAD, &message);
    if (!empty)
        memcpy(new.bytes + AT_FRAME_HEAD + AT_REPORT_MESSAGE_HEAD, floats, PARAMS * sizeof(float));
    if (p->hub_born == s->hub_lives) ledger_sent(s->ledger, p->id, report, empty ? NULL : floats);
    p->reports++;
    post(s, &new);
    return true;
}

static inline void send_note(world *s, process *p, at_worker_note_kind kind)
{
    packet new;
    at_worker_note note = {.kind = kind,
                           .drawn = atomic_load(&p->drawn),
                           .reports = p->reports,
                           .pid = 1000 + p->id,
                           .host = "test",
                           .engine = "test"};
    begin_packet(&new, s, p->id, true, PACKET_NOTE, AT_WORKER_NOTE);
    size_t size = at_worker_note_write(new.bytes + AT_FRAME_HEAD, &note) * AT_MESSAGE_UNIT;
    at_frame_write(new.bytes, PACKET_NOTE, size);
    new.size = AT_FRAME_HEAD + size;
    post(s, &new);
}

/* ---- worker: process ------------------------------------------------------------------------- */

static inline void end_process(world *s, process *p)
{
    (void)s;
    at_local_steps_free(p->local);
    p->local = NULL;
    p->up = p->welcomed = p->driving = p->computing = p->ordered = p->leaves = false;
    p->connection = 0;
    p->runs_at = p->connects_at = AT_NEVER;
}

/* Dies; a replacement comes after `back` (AT_NEVER: none does). */
static inline void kill_process(world *s, process *p, at_ns back)
{
    close_connection(s, p->id);
    end_process(s, p);
    p->gone = back == AT_NEVER;
    p->connects_at = p->gone ? AT_NEVER : s->now + back;
}

static inline void begin_driver(world *s, process *p, const at_hub_message *welcome)
{
    at_fail           fail = {0};
    at_driver_options options = {.context = &s->context,
                                 .transport = {.self = p,
                                               .heard = heard,
                                               .wait = wait_for_news,
                                               .leaves = leaves,
                                               .take_order = take_order,
                                               .newest = newest,
                                               .fetch = fetch,
                                               .install = install,
                                               .gradient = gradient,
                                               .send = send_report,
                                               .interrupted = interrupted},
                                 .id = p->id,
                                 .incarnation = welcome->incarnation,
                                 .slots = 2,
                                 .sequence = welcome->sequence,
                                 .drawn = &p->drawn,
                                 .redrawn = welcome->redrawn};
    p->lags = p->lags && p->welcomes++ == 0;
    atomic_store(&p->drawn, welcome->drawn);
    if (at_local_steps_new(&s->context, &p->local, &fail)) fail_msg("%s", fail.text);
    options.local = p->local;
    s->running = p;
    at_driver_init(&p->driver, &options);
    s->running = NULL;
    p->driver.looks = !s->in_place;
    p->welcomed = p->driving = true;
    p->reports = 0;
    p->hub_born = welcome->born;
    p->newest_version = AT_VERSION_NONE;
    p->runs_at = s->now + some(s, AT_MS(1));
    send_note(s, p, AT_WORKER_NOTE_READY);
}

/* The sum of losses of a micro-batch whose gradient is computed. */
static inline double compute(world *s, process *p)
{
    const at_micro *m = &p->micro;
    if (s->in_place) return s->task.descend(NULL, s->hub.w, &m->draw);
    if (!p->local) return s->task.gradient(NULL, m->gradient, m->first, m->point, &m->draw);
    if (m->first)
        at_local_steps_begin(p->local, m->point.params, m->gradient, p->driver.machine.order.used);
    return at_local_steps_micro(p->local, &m->draw);
}

/* A program has its own micro-batches. */
static inline void resize_micro(world *s, process *p)
{
    if (!s->plan.own_batches) return;
    p->micro.draw.count = 1 + (uint32_t)at_rng_below(&s->rng, 2 * p->micro.draw.count);
    covered.own_batches++;
}

static inline void begin_micro(world *s, process *p)
{
    resize_micro(s, p);
    p->loss = compute(s, p);
    if (p->lies && !s->in_place && fault(s, 0.2)) {
        p->micro.gradient[1] = NAN;
        s->lies = true;
        covered.nonfinite++;
    }
    p->computing = true;
    p->runs_at = s->now + some(s, p->micro.draw.count * p->sample_ns);
}

/* As far as it comes without waiting. */
static inline void run_process(world *s, process *p)
{
    at_driver *d = &p->driver;
    s->running = p;
    p->runs_at = AT_NEVER;
    if (p->computing) at_driver_done(d, p->micro.draw.count, p->loss);
    p->computing = false;
    switch (at_driver_turn(d, &p->micro, world_clock())) {
    case AT_DRIVER_MICRO: begin_micro(s, p); break;
    case AT_DRIVER_FINISHED:
        send_note(s, p, AT_WORKER_NOTE_LEFT);
        p->driving = false;
        break;
    case AT_DRIVER_WAITING:
        if (d->sleeping || d->padding) p->runs_at = s->now + (d->until - world_clock());
        if (d->order_held && s->now + (d->order_due - world_clock()) < p->runs_at)
            p->runs_at = s->now + (d->order_due - world_clock());
        if (d->sending) p->runs_at = s->now + AT_MS(1);
        break;
    case AT_DRIVER_ROUND_OVER:
    case AT_DRIVER_ABANDONED: fail_msg("nobody asks this worker to report"); break;
    }
    s->running = NULL;
}

static inline void connect_process(world *s, process *p)
{
    p->connects_at = AT_NEVER;
    if (s->finished || p->gone) return;
    if (!s->hub.up || p->cut_until > s->now) { /* it tries again */
        p->connects_at = s->now + some(s, AT_MS(100));
        return;
    }
    p->up = true;
    p->connection = ++s->connections;
    p->order_number = 0;
    send_note(s, p, AT_WORKER_NOTE_HELLO);
}

/* ---- worker: messages ------------------------------------------------------------------------ */

static inline void take_orders(world *s, process *p, const packet *m, size_t at)
{
    at_fail fail = {0};
    bool    old = m->birth < p->order_number, ordered = at < m->size;
    covered.reordered += old;
    for (; at < m->size; at += AT_ORDER_MESSAGE) {
        at_order_message message;
        if (at_order_message_read(m->bytes + at, m->size - at, &message, &fail))
            fail_msg("%s", fail.text);
        assert_int_equal(message.worker, p->id);
        if (!message.order.leave && at_order_message_check(&message, at_plan_samples_max(&s->plan),
                                                           p->newest_version, &fail))
            fail_msg("%s", fail.text);
        p->leaves = p->leaves || message.order.leave;
        if (message.order.leave || old) continue;
        p->order = message.order;
        p->ordered = true;
    }
    if (!old && ordered) p->order_number = m->birth;
}

static inline void take_work(world *s, process *p, const packet *m, const at_hub_message *head)
{
    size_t at = AT_FRAME_HEAD + AT_HUB_MESSAGE_HEAD;
    if (!p->driving) return;
    if (head->version != AT_VERSION_NONE) {
        bool newer = p->newest_version == AT_VERSION_NONE || head->version > p->newest_version;
        if (newer) memcpy(p->newest, m->bytes + at, sizeof p->newest);
        if (newer) p->newest_version = head->version;
        at += sizeof p->newest;
    }
    take_orders(s, p, m, at);
    if (!p->computing) p->runs_at = s->now;
}

static inline void disconnect(world *s, process *p)
{
    end_process(s, p);
    p->connects_at = s->now + some(s, AT_MS(50));
}

static inline void deliver_to_worker(world *s, const packet *m, packet_kind kind)
{
    process       *p = &s->process[m->worker];
    at_hub_message head;
    at_fail        fail = {0};
    if (!p->up || m->connection != p->connection) return;
    if (kind == PACKET_CLOSED) {
        disconnect(s, p);
        return;
    }
    size_t size = m->size - AT_FRAME_HEAD;
    if (at_hub_message_read(m->bytes + AT_FRAME_HEAD, size, &head, &fail))
        fail_msg("%s", fail.text);
    if (head.kind == AT_HUB_MESSAGE_WELCOME && !p->welcomed) begin_driver(s, p, &head);
    if (head.kind == AT_HUB_MESSAGE_WORK) take_work(s, p, m, &head);
    if (head.kind == AT_HUB_MESSAGE_BYE) {
        end_process(s, p);
        p->gone = true;
    }
}

#endif

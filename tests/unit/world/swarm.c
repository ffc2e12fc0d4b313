/* Thousands of random runs of the whole system: the real hub, workers, messages, checkpoints and
 * logs over a network and a disk with every fault, in virtual time (swarm_world.h). Whatever
 * happens, each sample is used or dropped once, each step is its formula, a hub that died goes on
 * from what it has confirmed, and a run with enough workers comes to its end.
 *
 *     SWARM_SEED=123 build/tests/test_world_swarm       one run, as a failure prints it
 *     SWARM_SEEDS=100000 build/tests/test_world_swarm   so many */
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include "swarm_hub.h"

#include "learn/sparse/sparse.h"

enum {
    SEEDS = 4000,
    EVENTS_MAX =
        1 << 20, /* more mean that the run goes in circles: short rounds fill a long lease */
    MEMORY_MAX = 64 << 20,
    LEAK_MAX = 256 << 10 /* of all runs together: what malloc keeps for itself */
};

static char failing[128]; /* printed when an assertion ends the process */

static void print_seed(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, failing, strlen(failing)) < 0) return;
}

/* ---- the task -------------------------------------------------------------------------------- */

static at_err task_init(void *self, float *params, uint64_t seed, at_fail *fail)
{
    (void)self;
    (void)seed;
    (void)fail;
    for (int p = 0; p < PARAMS; p++) params[p] = (float)p;
    return AT_OK;
}

/* The sum over the samples of the distance to a point that depends on the sample. */
static double task_gradient(void *self, float *g, bool first, at_point point, const at_draw *draw)
{
    double loss = 0;
    (void)self;
    if (first) memset(g, 0, PARAMS * sizeof *g);
    for (uint64_t i = draw->position; i < draw->position + draw->count; i++)
        for (uint32_t p = 0; p < PARAMS; p++) {
            float away = point.params[p] - (float)((i * 5 + draw->worker + 3 * p) % 17) * 0.125f;
            g[p] += away;
            loss += 0.5 * (double)(away * away);
        }
    return loss;
}

/* As a sparse model does it: the last places are not parameters. */
static double task_descend(void *self, float *params, const at_draw *draw)
{
    float g[PARAMS];
    (void)self;
    double loss = task_gradient(NULL, g, true, (at_point){.params = params}, draw);
    for (uint32_t p = 0; p < PARAMS - AT_SPARSE_EXTRA; p++)
        params[p] -= *at_sparse_rate(params, PARAMS - AT_SPARSE_EXTRA) * g[p];
    return loss;
}

static void task_score(void *self, at_score *score, const float *params, uint64_t first,
                       uint64_t count)
{
    (void)self;
    (void)first;
    score->count = count;
    for (int p = 0; p < PARAMS; p++) score->loss_sum += fabs((double)params[p]);
}

static void set_task(at_task *task)
{
    *task = (at_task){.model = "test",
                      .data = "test",
                      .params = PARAMS,
                      .slot_floats = PARAMS,
                      .trained = PARAMS,
                      .parameters = PARAMS,
                      .plain = PARAMS,
                      .samples = 256,
                      .test_samples = 1,
                      .score = task_score,
                      .init = task_init,
                      .descend = task_descend,
                      .gradient = task_gradient};
}

/* ---- random settings ------------------------------------------------------------------------- */

#define PICK(rng, ...)      \
    ((const char *const[]){ \
        __VA_ARGS__})[at_rng_below(rng, sizeof(const char *[]){__VA_ARGS__} / sizeof(char *))]

/* Steps always: nothing else would end a run whose losses do not fall. */
static at_limits random_limits(at_rng *rng)
{
    at_limits limits = {.steps = 1 + at_rng_below(rng, 24), .epochs = at_rng_uniform(rng) < 0.5};
    if (at_rng_uniform(rng) < 0.1) limits.samples = 1 + at_rng_below(rng, 800);
    if (at_rng_uniform(rng) < 0.1) limits.time = AT_MS(10) + (at_ns)at_rng_below(rng, AT_SEC(2));
    if (at_rng_uniform(rng) < 0.1)
        limits.target[limits.targets++] = (at_target){AT_METRIC_LOSS, 5.5};
    return limits;
}

static at_plan_options random_options(at_rng *rng)
{
    bool            plain = at_rng_uniform(rng) < 0.5;
    at_plan_options o = {.strategy = at_strategies[at_rng_below(rng, at_strategies_count)].name,
                         .workers = 1 + (uint32_t)at_rng_below(rng, WORKERS),
                         .batch = 1 + (uint32_t)at_rng_below(rng, 24),
                         .time_limit = PICK(rng, NULL, "auto", "20ms", "70ms"),
                         .nonfinite = PICK(rng, NULL, "stop", "skip", "skip", "ignore"),
                         .lr_scale = PICK(rng, NULL, NULL, "linear", "inverse"),
                         .deal_global = at_rng_uniform(rng) < 0.2,
                         .lease = at_rng_uniform(rng) < 0.3 ? AT_MS(900) : 0,
                         .join_timeout = AT_MS(500) + (at_ns)at_rng_below(rng, AT_SEC(20)),
                         .eval_steps = at_rng_below(rng, 5),
                         .eval_samples = at_rng_below(rng, 200),
                         .limits = random_limits(rng)};
    o.micro_batch = 1 + (uint32_t)at_rng_below(rng, o.batch);
    o.workers_min = at_rng_uniform(rng) < 0.3 ? 1 + (uint32_t)at_rng_below(rng, o.workers) : 0;
    o.workers_max = o.workers + (uint32_t)at_rng_below(rng, WORKERS - o.workers + 1);
    bool own = strstr(o.strategy, "gossip"), in_place = strcmp(o.strategy, "hogwild") == 0;
    if (own)
        o.mix = PICK(rng, NULL, "gossip:ring,1", "gossip:complete,2", "gossip:star,3",
                     "gossip:exponential,1,form=pw");
    if (in_place) o.lr_scale = NULL; /* the rate is among the parameters: see at_updater_resume */
    if (plain || own || in_place) return o;
    o.gather = PICK(rng, NULL, "all", "first:1", "first:2", "first", "any:1", "any:2", "any:5",
                    "any", "every:30ms", "every:200ms", "quorum", "quorum:1,10ms", "quorum:2,80ms",
                    "first:1-", "first:1-2", "first:2-3");
    o.release = PICK(rng, NULL, "barrier", "free", "bound:0", "bound:1", "bound:3");
    o.newer = PICK(rng, NULL, "finish", "abandon", "refresh");
    o.stale = PICK(rng, NULL, "use", "drop", "scale", "drop:1", "drop:3", "compensate:0.1",
                   "compensate:0.1,versions=2");
    o.work = PICK(rng, NULL, NULL, ":cut=nearest", ":cut=after", "local", "local:3", "local:40ms");
    o.size = PICK(rng, NULL, NULL, NULL, NULL, "speed:step", "speed", "grow:2,0.2", "shrink:3,0.2",
                  "loss", "stall:10,2", "loss-target:2", "noise", "probe");
    if (o.work && strncmp(o.work, "local", 5) == 0)
        o.outer =
            PICK(rng, NULL, "average:steps", "average:equal", "nesterov", "nesterov:0.5,0.8,equal");
    return o;
}

static at_err set_rate(at_learning *l, const char *optimizer, at_fail *fail)
{
    AT_TRY(at_optim_parse(optimizer, &l->optim, l->number, fail));
    l->trained = PARAMS;
    l->slot_floats = PARAMS;
    return at_schedule_parse("const", 0.05, 256, 0, &l->rate[0].schedule, fail);
}

/* As world/core/run.c does it. */
static void set_learning(world *s, at_rng *rng)
{
    at_fail     fail = {0};
    const char *drawn = PICK(rng, "sgd", "sgd", "sgd", "momentum", "adam");
    const char *optimizer = s->in_place ? "sgd" : drawn;
    if (set_rate(&s->learning, optimizer, &fail)) fail_msg("%s", fail.text);
    s->learning.stale = s->plan.stale->correct ? &s->plan : NULL;
    s->ledger->formula = strcmp(optimizer, "sgd") == 0 && !s->plan.stale->correct &&
                         !s->plan.then && !s->plan.mix->owned_by_workers && !s->in_place;
    s->learning.sparse = s->learning.updates_in_place = s->in_place;
    if (!s->plan.work->reports_change) return;
    s->ledger->formula = false;
    s->inner = s->learning;
    s->outer = (at_optim){.name = s->plan.outer->rule.name,
                          .summary = s->plan.outer->rule.summary,
                          .states = s->plan.outer->keeps_momentum ? 1 : 0};
    s->learning.optim = &s->outer;
    s->learning.outer = &s->plan;
    s->learning.inner = &s->inner;
}

/* As programs do, or --straggler-batch. */
static void set_rounds(world *s, at_rng *rng)
{
    at_plan    *plan = &s->plan;
    bool        timed = plan->work->timed || (plan->then && plan->then->work->timed);
    bool        fixed = !timed && !plan->deal_global;
    const char *law = PICK(rng, NULL, NULL, NULL, "bernoulli:0.5,2", "gauss:3", "rotate");
    if (!plan->deal_global && !plan->work->reports_change && !plan->mix->owned_by_workers)
        plan->own_batches = at_rng_uniform(rng) < 0.15;
    if (!fixed || plan->own_batches) law = NULL;
    if (at_round_size_parse(law, 1, plan->workers, &s->context.round_size, NULL))
        fail_msg("%s", law);
    plan->drawn_extra = at_round_size_max(&s->context.round_size, plan->batch) - plan->batch;
}

static bool set_plan(world *s, at_rng *rng)
{
    s->options = random_options(rng);
    s->switch_to = PICK(rng, NULL, NULL, NULL, NULL, NULL, "async@step=5", "fmb@step=3",
                        "backup:1@time=70ms", "ssp:1@loss=0.9", "dbs@step=4", "amb@step=6",
                        "ringmaster:1@loss=4", "quorum@step=2", "batch-sync:2@time=200ms",
                        "noise@epoch=0.5", "probe@epoch=1", "local-sgd:2@step=3", "diloco@step=2");
    if (at_plan_resolve(&s->options, &s->plan, NULL)) return false;
    if (s->switch_to && at_switch_resolve(&s->options, s->switch_to, &s->plan, &s->then, NULL))
        s->plan.then = NULL;
    s->plan.saves = true;
    s->plan.samples_epoch = 256;
    s->plan.save_steps = at_rng_uniform(rng) < 0.7 ? 1 + at_rng_below(rng, 6) : 0;
    s->plan.save_time = at_rng_uniform(rng) < 0.3 ? AT_MS(250) : 0;
    s->plan.open = at_rng_uniform(rng) < 0.2;
    set_rounds(s, rng);
    if (s->plan.then) at_switch_share(&s->plan, &s->then);
    return true;
}

static void set_pace(world *s, at_rng *rng)
{
    at_fail         fail = {0};
    at_pace_options pace = {.model = PICK(rng, "none", "none", "exp:0.1,0.5", "niagara"),
                            .scale = "0.02",
                            .seed = 1,
                            .workers = WORKERS,
                            .round_ns_mean = AT_MS(20),
                            .rounds_per_epoch = 1};
    if (at_pace_new(&pace, &s->pace, &fail)) fail_msg("%s", fail.text);
    s->context.plan = &s->plan;
    s->context.task = &s->task;
    s->context.pace = s->pace;
    s->context.learning = &s->learning;
    s->context.seed = 1;
    s->context.comm_delay = at_rng_uniform(rng) < 0.1 ? 0.005 : 0;
}

static void set_faults(world *s, at_rng *rng)
{
    static const double often[] = {0, 0, 0.003, 0.02};
    s->streams = at_rng_uniform(rng) < 0.7 || s->in_place;
    s->shared = (s->streams && at_rng_uniform(rng) < 0.3) || s->in_place;
    s->calm_at = at_rng_uniform(rng) < 0.15 ? 0 : AT_MS(200) + (at_ns)at_rng_below(rng, AT_SEC(4));
    s->delay = (at_ns[]){AT_US(50), AT_MS(1), AT_MS(10), AT_MS(60)}[at_rng_below(rng, 4)];
    s->drops = often[at_rng_below(rng, 4)];
    s->late = s->streams ? 0 : 0.3 * at_rng_uniform(rng);
    s->repeats = s->streams ? 0 : 0.1 * at_rng_uniform(rng);
    s->flips = often[at_rng_below(rng, 4)];
    s->refusals = at_rng_uniform(rng) < 0.3 ? 0.3 : 0;
    s->saver_dies = at_rng_uniform(rng) < 0.3 ? 0.3 : 0;
    s->slow_disk = (at_ns[]){AT_US(100), AT_MS(20), AT_MS(800)}[at_rng_below(rng, 3)];
    s->slow_scores = (at_ns[]){0, AT_MS(5), AT_MS(300)}[at_rng_below(rng, 3)];
    s->record_limit = at_rng_uniform(rng) < 0.3 ? 1000 + at_rng_below(rng, 8000) : UINT64_MAX;
    disk.lies = at_rng_uniform(rng) < 0.1;
    if (s->calm_at == 0) return;
    disk.short_writes = at_rng_uniform(rng) < 0.3 ? 0.3 : 0;
    disk.read_errors = at_rng_uniform(rng) < 0.15 ? 0.1 : 0;
    disk.write_errors = at_rng_uniform(rng) < 0.15 ? 0.05 : 0;
}

static void set_processes(world *s, at_rng *rng)
{
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        process *p = &s->process[id];
        bool     first = id <= s->plan.workers;
        p->world = s;
        p->id = id;
        p->runs_at = AT_NEVER;
        p->connects_at = (at_ns)at_rng_below(rng, first ? AT_MS(100) : AT_SEC(2));
        p->sample_ns = AT_US(200) + (at_ns)(at_rng_uniform(rng) * AT_MS(2));
        p->clock_ahead = (at_ns)at_rng_below(rng, AT_SEC(1000));
        p->lies = at_rng_uniform(rng) < 0.02;
        p->lags = at_rng_uniform(rng) < 0.05;
        s->ledger->ready_at[id] = AT_NEVER;
    }
}

/* ---- random faults --------------------------------------------------------------------------- */

static process *some_process(world *s)
{
    return &s->process[1 + at_rng_below(&s->rng, s->plan.workers_max)];
}

static void fault_worker_dies(world *s)
{
    process *p = some_process(s);
    if (!p->up) return;
    covered.worker_deaths++;
    kill_process(s, p, chance(s, 0.1) ? AT_NEVER : some(s, AT_MS(200)));
}

static void fault_partition(world *s)
{
    process *p = some_process(s);
    covered.partitions++;
    p->cut_until = s->now + some(s, AT_MS(400));
    if (p->cut_until > s->calm_at) p->cut_until = s->calm_at;
    if (p->up && p->cut_until - s->now > AT_MS(500)) break_connection(s, p->id, p->connection);
}

static void fault_pause(world *s)
{
    at_ns until = s->now + some(s, AT_MS(600));
    covered.pauses++;
    if (chance(s, 0.3))
        s->hub.paused_until = until;
    else
        some_process(s)->paused_until = until;
}

static void fault_clock_jumps(world *s)
{
    at_ns by = some(s, AT_SEC(2));
    covered.jumps++;
    if (chance(s, 0.3))
        s->hub.clock_ahead += by;
    else
        some_process(s)->clock_ahead += by;
}

/* At once, or at one of its next operations on the disk. */
static void fault_hub_dies(world *s)
{
    if (!s->hub.up || disk.kill_at > 0) return;
    s->cut_power = chance(s, 0.5);
    s->hub_dies = true;
    if (chance(s, 0.5))
        disk_kill_at(1 + at_rng_below(&s->rng, 40));
    else
        kill_hub(s, s->births);
}

static void fault_disk_fills(world *s)
{
    disk.capacity = disk.capacity > 0 ? 0 : disk_used() + at_rng_below(&s->rng, 20000);
}

static void fault_file_rots(world *s)
{
    int which = disk.names > 0 ? (int)at_rng_below(&s->rng, (uint64_t)disk.names) : 0;
    if (disk.names == 0 || !disk_flip(disk.name[which].path)) return;
    covered.flipped_files++;
    s->rotten = true;
}

static void fault_leave_of_user(world *s)
{
    if (!s->hub.up || chance(s, 0.8)) return;
    s->stopped = true;
    feed(s, (at_event){.kind = AT_EV_STOP});
}

/* SIGUSR1, see at_host_poll. */
static void fault_save_asked(world *s)
{
    if (!s->hub.up) return;
    s->hub.host.timer[AT_TIMER_SAVE] = hub_now(s);
    covered.asked++;
}

static const struct {
    void (*happens)(world *s);
    double rate; /* per virtual second */
} faults[] = {
    {fault_worker_dies, 0.8}, {fault_partition, 0.5},     {fault_pause, 0.4},
    {fault_clock_jumps, 0.2}, {fault_hub_dies, 0.6},      {fault_disk_fills, 0.2},
    {fault_file_rots, 0.05},  {fault_leave_of_user, 0.1}, {fault_save_asked, 0.2},
};

static void random_fault(world *s)
{
    double total = 0, at;
    size_t i = 0;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) total += faults[k].rate;
    at = at_rng_uniform(&s->rng) * total;
    while (at >= faults[i].rate) at -= faults[i++].rate;
    s->faults++;
    faults[i].happens(s);
}

/* Everything that was broken works again. */
static void begin_calm(world *s)
{
    disk.capacity = 0;
    disk.read_errors = disk.write_errors = 0;
    if (s->hub_dies && !disk.dead) {
        disk.kill_at = 0;
        s->hub_dies = s->cut_power = false;
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* A flipped byte does not get through: over a stream the connection is lost, otherwise the packet.
 * Whoever read it without the checksum would not crash. */
static bool is_flipped(world *s, const packet *m)
{
    packet   bad = *m;
    uint32_t kind;
    uint64_t size;
    at_fail  fail = {0};
    if (!fault(s, s->flips)) return false;
    bad.bytes[at_rng_below(&s->rng, bad.size)] ^= (unsigned char)(1 + at_rng_below(&s->rng, 255));
    assert_int_not_equal(at_crc32c(bad.bytes, bad.size), bad.crc);
    covered.flipped++;
    if (!at_frame_read(bad.bytes, PACKET_KINDS, &kind, &size, &fail)) {
        at_report_message report;
        at_worker_note    note;
        at_hub_message    head;
        (void)at_report_message_read(bad.bytes + AT_FRAME_HEAD, m->size - AT_FRAME_HEAD, &report,
                                     &fail);
        (void)at_worker_note_read(bad.bytes + AT_FRAME_HEAD, m->size - AT_FRAME_HEAD, &note, &fail);
        (void)at_hub_message_read(bad.bytes + AT_FRAME_HEAD, m->size - AT_FRAME_HEAD, &head, &fail);
    }
    if (s->streams) break_connection(s, m->worker, m->connection);
    return true;
}

static void deliver(world *s, packet m)
{
    uint32_t kind;
    uint64_t size;
    at_fail  fail = {0};
    bool     closes = m.size == AT_FRAME_HEAD;
    if (!closes && (m.connection <= s->broken[m.worker] || is_flipped(s, &m))) return;
    assert_int_equal(at_crc32c(m.bytes, m.size), m.crc);
    if (at_frame_read(m.bytes, PACKET_KINDS, &kind, &size, &fail)) fail_msg("%s", fail.text);
    assert_int_equal(size, m.size - AT_FRAME_HEAD);
    if (m.to_hub)
        deliver_to_hub(s, &m, (packet_kind)kind);
    else
        deliver_to_worker(s, &m, (packet_kind)kind);
}

/* When something may happen at the earliest: not while its process is paused. */
static at_ns not_before(at_ns at, at_ns paused_until)
{
    return at > paused_until ? at : paused_until;
}

typedef enum turn_kind {
    TURN_NONE,
    TURN_PACKET,
    TURN_RUN,
    TURN_CONNECT,
    TURN_TIMER,
    TURN_WRITE,
    TURN_START
} turn_kind;

typedef struct turn {
    at_ns     at;
    turn_kind kind;
    size_t    index;
} turn;

static void consider(turn *first, at_ns at, turn_kind kind, size_t index)
{
    if (at < first->at) *first = (turn){at, kind, index};
}

static turn next_turn(const world *s)
{
    turn               first = {AT_NEVER, TURN_NONE, 0};
    const hub_process *h = &s->hub;
    for (size_t i = 0; i < s->packets; i++) {
        const packet *m = &s->packet[i];
        at_ns         paused = m->to_hub ? h->paused_until : s->process[m->worker].paused_until;
        at_ns         at = not_before(m->due, paused);
        bool tie = first.kind == TURN_PACKET && at == first.at; /* after a pause: in order */
        if (tie && m->due < s->packet[first.index].due) first.index = i;
        consider(&first, at, TURN_PACKET, i);
    }
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        const process *p = &s->process[id];
        if (p->driving && p->runs_at != AT_NEVER)
            consider(&first, not_before(p->runs_at, p->paused_until), TURN_RUN, id);
        if (!p->up && p->connects_at != AT_NEVER)
            consider(&first, p->connects_at, TURN_CONNECT, id);
    }
    at_ns timer = h->up ? at_host_due(&h->host) : AT_NEVER;
    if (timer != AT_NEVER)
        consider(&first, not_before(s->now + timer - hub_now(s), h->paused_until), TURN_TIMER, 0);
    if (h->up) consider(&first, not_before(h->evaluates_at, h->paused_until), TURN_TIMER, 0);
    if (h->up) consider(&first, h->writes_at, TURN_WRITE, 0);
    if (!h->up) consider(&first, h->starts_at, TURN_START, 0);
    return first;
}

static void take_turn(world *s, turn t)
{
    packet m;
    if (t.at > s->now) s->now = t.at;
    switch (t.kind) {
    case TURN_PACKET:
        m = s->packet[t.index];
        s->packet[t.index] = s->packet[--s->packets];
        deliver(s, m);
        break;
    case TURN_RUN: run_process(s, &s->process[t.index]); break;
    case TURN_CONNECT: connect_process(s, &s->process[t.index]); break;
    case TURN_TIMER:
        at_host_poll(&s->hub.host, hub_now(s));
        if (s->hub.cast) cast_params(s);
        handle_evictions(s);
        if (s->ledger->asked_to_save) s->hub.writes_at = s->now + some(s, s->slow_disk);
        s->ledger->asked_to_save = false;
        begin_evaluation(s);
        break;
    case TURN_WRITE: run_saver(s); break;
    case TURN_START: start_hub(s); break;
    case TURN_NONE: fail_msg("nothing happens any more"); break;
    }
}

/* A worker that waits while others make many steps was forgotten. A bound may hold it back, and
 * before a save or a switch all wait for the last report, up to the lease of its worker. */
static void check_nobody_is_forgotten(const world *s)
{
    const at_hub *hub = s->hub.host.hub;
    if (!s->hub.up || s->now < s->calm_at || hub->end != AT_END_RUNNING || hub->draining) return;
    bool bound = strcmp(hub->plan->release->rule.name, "bound") == 0;
    for (at_node id = 1; !bound && id <= s->plan.workers_max; id++) {
        const ledger *b = s->ledger;
        bool          waits = b->live[id] && b->ready_at[id] != AT_NEVER;
        if (waits && b->steps > b->ready_on[id] + 8 && hub_now(s) - b->ready_at[id] > AT_SEC(30))
            fail_msg("worker %u was forgotten", id);
    }
}

static void check_turn(world *s, uint64_t turns)
{
    check_nobody_is_forgotten(s);
    if (turns == EVENTS_MAX || s->now > s->calm_at + PATIENCE)
        fail_msg("the run hangs: step %llu, %.3f s after the faults",
                 (unsigned long long)s->ledger->steps, at_seconds(s->now - s->calm_at));
    if (turns % 1024 == 0) assert_true(mallinfo2().uordblks < MEMORY_MAX + disk_memory());
}

static bool is_over(world *s)
{
    if (s->hub.up && s->hub.host.finished && !disk.dead) {
        s->finished = true;
        s->end = s->hub.host.hub->end;
        s->trace = s->hub.host.hub->trace;
    }
    return s->finished || s->refused;
}

static void play(world *s)
{
    at_ns next_fault = s->calm_at > 0 ? some(s, AT_MS(350)) : AT_NEVER;
    bool  calm = false;
    s->hub.starts_at = 0;
    for (uint64_t turns = 1; !is_over(s); turns++) {
        turn     t = next_turn(s);
        uint64_t birth = s->births;
        if (next_fault < t.at && next_fault < s->calm_at) {
            if (next_fault > s->now) s->now = next_fault;
            next_fault = s->now + some(s, AT_MS(350));
            random_fault(s);
        } else if (!calm && t.at >= s->calm_at) {
            if (s->calm_at > s->now) s->now = s->calm_at;
            begin_calm(s);
            calm = true;
        } else {
            take_turn(s, t);
        }
        if (s->hub.up && disk.dead) kill_hub(s, birth);
        note_acknowledged(s);
        check_turn(s, turns);
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Each sample that was drawn is used or dropped, by the count of the workers, of the hub, of the
 * ledger and of the tally. */
static void check_ledger(const world *s)
{
    const at_hub *hub = s->hub.host.hub;
    uint64_t      used = 0, dropped = 0;
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        const at_member *member = &hub->member[id - 1];
        assert_false(s->hub.peer[id].joined); /* a hub finishes when all are gone */
        assert_int_equal(member->used, s->ledger->used[id]);
        assert_int_equal(member->dropped, s->ledger->dropped[id]);
        assert_int_equal(drawn_by(s, id), member->used + member->dropped);
        used += member->used;
        dropped += member->dropped;
    }
    assert_int_equal(s->hub.tally->samples_used, used);
    assert_int_equal(s->hub.tally->samples_dropped, dropped);
}

/* Why a run may have ended other than by its limits. */
static void check_end(const world *s)
{
    uint32_t gone = 0;
    for (at_node id = 1; id <= s->plan.workers_max; id++) gone += s->process[id].gone;
    switch (s->end) {
    case AT_END_STEPS:
        if (!s->plan.limits.samples) assert_int_equal(s->ledger->steps, s->plan.limits.steps);
        break;
    case AT_END_SIGNAL: assert_true(s->stopped); break;
    case AT_END_DIVERGED: assert_true(s->lies); break;
    case AT_END_FEW:
    case AT_END_WORKERS: assert_true(s->faults > 0 || gone > 0); break;
    case AT_END_SAMPLES:
    case AT_END_EPOCHS:
    case AT_END_SECONDS:
    case AT_END_TARGET: break;
    case AT_END_RUNNING:
    case AT_END_LOST:
    case AT_END_LEFT:
    case AT_END_COUNT: fail_msg("ended by %s", at_end_name[s->end]); break;
    }
    covered.ends[s->end]++;
}

/* A log that the disk has not damaged, and that was synced or not cut off, tells the same story. */
static void check_logs(const world *s, at_err written)
{
    at_replay replay;
    at_fail   fail = {0};
    at_err    err = at_replay_run(RUN, &replay, &fail);
    bool      whole = !written && !s->rotten && disk.cuts == 0;
    covered.torn += err != AT_OK;
    covered.replayed += err == AT_OK;
    if (err && whole) fail_msg("%s", fail.text);
    if (err) assert_true(fail.text[0]);
    if (whole) ledger_check_logs(s->ledger, RUN);
    if (whole && !replay.thinned) {
        assert_true(replay.complete);
        assert_int_equal(replay.steps, s->ledger->steps);
        assert_int_equal(replay.samples_used, s->ledger->samples_used);
        assert_int_equal(replay.trace, s->trace);
    }
    if (!err && replay.difference.found && !s->rotten)
        fail_msg("%s, event %llu: %s; recorded %s, replayed %s", replay.difference.log,
                 (unsigned long long)replay.difference.event, replay.difference.line,
                 replay.difference.recorded, replay.difference.replayed);
}

static void end_run(world *s)
{
    at_fail fail = {0};
    if (s->finished) {
        check_ledger(s);
        check_end(s);
    }
    disk_revive();
    disk.read_errors = disk.write_errors = 0;
    at_err written = close_hub(s, &fail);
    if (written) assert_true(fail.text[0]);
    if (s->finished) check_logs(s, written);
    for (at_node id = 1; id <= s->plan.workers_max; id++) end_process(s, &s->process[id]);
    at_pace_free(s->pace);
}

static void add_coverage(const world *s)
{
    covered.steps += s->ledger->steps;
    covered.formula += s->ledger->checked;
    covered.full += disk.full;
    covered.read_errors += disk.failed_reads;
    covered.write_errors += disk.failed_writes;
    covered.time += s->now;
    for (int i = 0; i < AT_DROP_COUNT; i++) covered.drops[i] += s->ledger->drops[i];
}

/* False when the drawn rules do not work together. */
static bool run_seed(uint64_t seed, uint64_t *trace)
{
    static world  s;
    static ledger b;
    at_rng        rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_TEST, 2);
    memset(&s, 0, sizeof s);
    memset(&b, 0, sizeof b);
    s.rng = at_rng_stream(seed, 1, AT_RNG_PURPOSE_TEST, 2);
    s.ledger = &b;
    s.acknowledged = UINT64_MAX;
    the_world = &s;
    if (!set_plan(&s, &rng)) return false;
    b.plan = &s.plan;
    disk_open(&s.rng);
    at_clock_use(world_clock);
    set_task(&s.task);
    s.in_place = s.plan.mix->updates_in_place;
    set_learning(&s, &rng);
    set_pace(&s, &rng);
    set_faults(&s, &rng);
    set_processes(&s, &rng);
    play(&s);
    end_run(&s);
    add_coverage(&s);
    *trace = at_rng_mix(b.steps + at_rng_mix((uint64_t)s.now + disk.ops));
    disk_close();
    at_clock_use(NULL);
    return true;
}

static void print_coverage(uint64_t runs)
{
    const coverage *c = &covered;
#define N(value) ((unsigned long long)(value))
    print_message("%llu runs, %.0f virtual seconds, %llu events, %llu packets, %llu steps (%llu by "
                  "the formula)\n",
                  N(runs), at_seconds(c->time), N(c->events), N(c->packets), N(c->steps),
                  N(c->formula));
    print_message("deaths: %llu workers, %llu hubs (%llu with their machine), %llu savers; %llu "
                  "resumed, %llu refused, %llu starts tried again\n",
                  N(c->worker_deaths), N(c->hub_deaths), N(c->power_cuts), N(c->saver_deaths),
                  N(c->resumed), N(c->refused), N(c->retries));
    print_message(
        "network: %llu lost, %llu repeated, %llu overtaken, %llu after their sender, %llu "
        "flipped, %llu partitions, %llu evictions (%llu with old parameters), %llu joins\n",
        N(c->lost), N(c->repeated), N(c->reordered), N(c->late), N(c->flipped), N(c->partitions),
        N(c->evictions), N(c->outdated), N(c->joins));
    print_message("disk: %llu full, %llu read and %llu write errors, %llu files damaged; %llu "
                  "pauses, %llu clock jumps; %llu logs replayed, %llu torn\n",
                  N(c->full), N(c->read_errors), N(c->write_errors), N(c->flipped_files),
                  N(c->pauses), N(c->jumps), N(c->replayed), N(c->torn));
#undef N
}

/* Every kind of fault and of end has happened. */
static void assert_all_covered(void)
{
    const coverage *c = &covered;
    const uint64_t  counts[] = {
         c->lost,          c->repeated,      c->reordered,       c->flipped,    c->partitions,
         c->hub_deaths,    c->worker_deaths, c->saver_deaths,    c->power_cuts, c->resumed,
         c->refused,       c->pauses,        c->jumps,           c->evictions,  c->full,
         c->read_errors,   c->write_errors,  c->formula,         c->replayed,   c->nonfinite,
         c->flipped_files, c->retries,       c->outdated,        c->gossip,     c->in_place,
         c->asked,         c->renumbered,    c->own_batches,     c->resized,    c->thinned,
         c->clocks_back,   c->evaluations,   c->evaluator_deaths};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i] < 10) fail_msg("count %zu is only %llu", i, (unsigned long long)counts[i]);
    if (c->late == 0) fail_msg("no report came after its sender had died");
    for (int why = 0; why < AT_DROP_COUNT; why++)
        if (c->drops[why] == 0) fail_msg("no samples were %s", at_drop_name[why]);
}

static uint64_t number_from(const char *variable, uint64_t fallback)
{
    return getenv(variable) ? strtoull(getenv(variable), NULL, 10) : fallback;
}

static void nothing_is_lost_in_random_runs(void **state)
{
    (void)state;
    signal(SIGABRT, print_seed);
    uint64_t first = number_from("SWARM_SEED", 0), accepted = 0, trace, again;
    size_t   memory = MEMORY_MAX;
    uint64_t count = number_from("SWARM_SEEDS", getenv("SWARM_SEED") ? 1 : SEEDS);
    for (uint64_t seed = first; seed < first + count; seed++) {
        snprintf(failing, sizeof failing, "SWARM_SEED=%llu build/tests/test_world_swarm\n",
                 (unsigned long long)seed);
        if (!run_seed(seed, &trace)) continue;
        accepted++;
        if (accepted == 100) memory = mallinfo2().uordblks;
        if (mallinfo2().uordblks > memory + LEAK_MAX) fail_msg("memory grows from run to run");
        if (seed % 16 > 0 && count > 1) continue;
        run_seed(seed, &again);
        assert_int_equal(trace, again); /* the same seed gives the same run */
    }
    failing[0] = '\0';
    print_coverage(accepted);
    if (count < SEEDS) return;
    assert_true(accepted > count / 4);
    assert_all_covered();
}

/* cmocka leaves a failed test by longjmp, so the seed is printed in the teardown. */
static int print_failing_seed(void **state)
{
    (void)state;
    if (failing[0]) print_error("%s", failing);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_is_lost_in_random_runs, print_failing_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

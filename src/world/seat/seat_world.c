/* The world of seats, hub side: programs with their own loop, shared memory, one bell to wait at.
 *
 *     hub: connections ─► reports ─► deaths ─► signals ─► evaluations, timers ─► sleep
 *
 * It differs from world/local in who the workers are: any process that has proven the token. Their
 * memory may hold anything, so nothing of it is used before it was checked, and a seat that sends
 * nonsense is given up while the run goes on.
 */
#include "world/seat/seat_world.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine.h"
#include "world/local/local.h"
#include "world/process/signals.h"

static const at_ns SPIN = AT_US(50);
static const at_ns SEAT_SPIN = AT_US(100); /* seats that spin let others run */
static const at_ns GRACE = AT_SEC(60); /* no lease after something else was done beside training */
static const at_ns LOOK_EVERY = AT_SEC(1);
static const at_ns SAY_EVERY = AT_SEC(10);  /* of connections that are refused, one line */
static const at_ns SILENT_MAX = AT_SEC(10); /* a first round that takes longer is pointed out */

/* ---- operations for the host ----------------------------------------------------------------- */

static void send_order(void *self, at_node worker, const at_order *order)
{
    at_seat_world       *w = self;
    const at_seat_chair *c = &w->chair[worker - 1];
    at_seat_slot        *slot = at_seat_chair_slot(c);
    if (!c->guest) return; /* it has just gone; its LOST event follows */
    if (order->leave) {
        if (w->seats->spec.at_workers) atomic_fetch_add(&slot->publish, 1);
        atomic_store(&slot->leave, true);
    } else { /* the seat could have changed the lock, so its value is ours */
        uint64_t lock = atomic_load_explicit(&slot->order_lock, memory_order_relaxed) & ~1ull;
        atomic_store_explicit(&slot->order_lock, lock + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        slot->order = *order;
        atomic_store_explicit(&slot->order_lock, lock + 2, memory_order_release);
    }
    w->cast_mask |= at_bell_mask(worker);
}

/* What is sent as parameters: the vector itself, or its packed form, which is made once for each
 * version. Before parameters change, `change` has detached what was not sent yet. */
static const void *params_to_send(void *self)
{
    at_seat_world    *w = self;
    const at_packing *packing = at_packing_used(&w->packings.params);
    uint64_t          version = atomic_load(&at_seat_world_board(w)->version);
    if (!packing) return at_seat_floats(&w->params);
    if (w->packed_version != version) at_pack(packing, w->packed, at_seat_floats(&w->params));
    w->packed_version = version;
    return w->packed;
}

/* Nothing can be sent any more, but what has arrived may say that it leaves. Reading it finds the
 * end of the connection, too. */
static void hear_last_words(at_seat_world *w, at_guest *g)
{
    g->ready = w->seats->unread = true;
    at_bell_ring_loud(at_seat_world_bell(w), AT_BELL_ALL);
}

/* Seats on other machines get what was written to their memory. One that cannot be told is lost. */
static void tell_remote(at_seat_world *w)
{
    const at_plan *plan = w->host.hub->plan;
    at_remote_view view = {.board = at_seat_world_board(w),
                           .params = params_to_send,
                           .self = w,
                           .params_size = w->packings.params.size,
                           .on_wish = plan->release->self_starting,
                           .streams = at_plan_interrupts(plan)};
    at_fail        fail;
    for (uint32_t i = 0; i < at_seat_workers_max(w); i++) {
        at_guest *g = w->chair[i].guest;
        if (!g || !g->remote.link || g->hung_up) continue;
        uint64_t before = g->remote.sent;
        at_err   err = at_remote_tell(&g->remote, &view, &fail);
        if (err == AT_ERR_MISSING)
            hear_last_words(w, g);
        else if (err)
            g->hung_up = true;
        at_host_count_sent(&w->host, i + 1, g->remote.sent - before);
    }
}

void at_seat_flush(void *self)
{
    at_seat_world *w = self;
    if (w->cast_mask)
        at_bell_ring_loud(&((at_seat_bells *)w->seats->bells.memory)->cast, w->cast_mask);
    w->cast_mask = 0;
    if (w->seats->net_fd >= 0) tell_remote(w);
}

/* A process of ours is killed, and its end follows; others are told, and lose their seat at once in
 * the next turn of the loop. */
void at_seat_evict(void *self, at_node worker)
{
    at_seat_world *w = self;
    at_seat_chair *c = &w->chair[worker - 1];
    if (!c->guest) return;
    c->evicted = true;
    atomic_store(&at_seat_chair_slot(c)->evicted, true);
    w->cast_mask |= at_bell_mask(worker);
    if (c->child >= 0)
        at_seat_children_signal(w->seats->children, (uint32_t)c->child, SIGKILL);
    else
        at_bell_ring_loud(at_seat_world_bell(w), AT_BELL_ALL);
}

/* Parameters that are still being sent are copied before they change. */
static void change(void *self)
{
    at_seat_world *w = self;
    at_fail        fail;
    for (uint32_t i = 0; w->seats->net_fd >= 0 && i < at_seat_workers_max(w); i++) {
        at_guest *g = w->chair[i].guest;
        if (g && g->remote.link && at_link_detach(g->remote.link, &fail)) g->hung_up = true;
    }
    at_local_write_begin(&at_seat_world_board(self)->params_lock);
}

/* Programs that end their round for newer parameters may be asleep, in an induced delay. They are
 * woken by the next flush. */
static void publish(void *self, uint64_t version)
{
    at_seat_world *w = self;
    const at_hub  *hub = w->host.hub;
    w->seats->newest = version;
    atomic_store(&at_seat_world_board(w)->version, version);
    atomic_store(&at_seat_world_board(w)->samples_used, hub->samples_used);
    at_local_write_end(&at_seat_world_board(w)->params_lock);
    for (uint32_t i = 0; at_plan_interrupts(hub->plan) && i < hub->plan->workers_max; i++)
        if (hub->member[i].state == AT_MEMBER_WORKING) w->cast_mask |= at_bell_mask(i + 1);
}

/* A gradient that the hub holds outlives the process that computed it, and its successor has memory
 * of its own. */
static bool is_of_predecessor(const at_seat_world *w, at_node worker)
{
    const at_hub        *hub = w->host.hub;
    const at_seat_chair *c = &w->chair[worker - 1];
    if (!hub->plan->release->holds || !c->before.memory) return false;
    assert(hub->applying);
    for (uint32_t i = 0; i < hub->pieces; i++)
        if (hub->piece[i].worker == worker) return hub->piece[i].incarnation != c->incarnation;
    return false;
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    const at_seat_world *w = self;
    const at_seat_chair *c = &w->chair[worker - 1];
    bool                 old = is_of_predecessor(w, worker);
    return at_seat_slot_gradient(old ? &c->before : &c->file, w->floats, slot);
}

/* ---- patience -------------------------------------------------------------------------------- */

/* The run ends, or its time is over and only silent seats keep it from ending. */
static bool is_late(const at_hub *hub, at_ns now)
{
    at_ns time = hub->plan->limits.time;
    bool  over = time > 0 && hub->began_at != AT_NEVER && now - hub->began_at >= time;
    return over || hub->end != AT_END_RUNNING;
}

/* How long one of our own workers, which have loaded their data, may take for its first report; as
 * others have shown, once one of them has. */
static at_ns first_patience(const at_seat_world *w)
{
    at_ns shown = AT_SEC(10) + 10 * w->first_ns;
    return w->first_ns > 0 && shown < GRACE ? shown : GRACE;
}

/* The lease waits for seats that have not reported yet (programs load and compile) until the run
 * should end, and for those that do something else, and for a while after that. */
static bool lease_waits(at_seat_world *w, at_ns now)
{
    bool waits = false, late = is_late(w->host.hub, now);
    for (uint32_t i = 0; i < at_seat_workers_max(w); i++) {
        at_seat_chair *c = &w->chair[i];
        if (!c->guest) continue;
        if (atomic_load(&at_seat_chair_slot(c)->aside)) c->grace = now + GRACE;
        bool loads = !w->seats->job || now - c->joined < first_patience(w);
        bool begins = !c->reported && loads && !late;
        waits = waits || begins || now < c->grace;
    }
    return waits;
}

/* A process that runs and never joins is a mistake that the user should see, unless fewer workers
 * are fine. */
static void check_joined(at_seat_world *w, at_ns now)
{
    const at_hub *hub = w->host.hub;
    if (w->seats->few_is_fine || hub->assembled || w->host.timer[AT_TIMER_JOIN] > now) return;
    for (uint32_t i = 0; i < w->seats->ranks; i++) {
        if (!hub->member[i].expected || at_seat_children_pid(w->seats->children, i) == 0) continue;
        const char *line = at_seat_children_last_line(w->seats->children, i);
        at_fail_set(&w->failure, AT_ERR_FAILED,
                    "use --join-timeout to wait longer, or --workers-min to continue without it",
                    "rank %u has not joined within %g s%s%s", i,
                    at_seconds(hub->plan->join_timeout), *line ? "; its last line of errors: " : "",
                    line);
        at_host_event(&w->host, &(at_event){.kind = AT_EV_STOP, .now = now}, NULL);
        return;
    }
}

/* Programs may load and compile for as long as they like before their first report, or have
 * forgotten to train. Where a step waits for everybody the hub names those who are late; elsewhere
 * nobody would notice them. */
static void name_silent(at_seat_world *w, at_ns now)
{
    at_ns patience = w->seats->join_timeout < SILENT_MAX ? w->seats->join_timeout : SILENT_MAX;
    char  text[80];
    if (w->in_place || w->host.hub->end != AT_END_RUNNING) return;
    for (uint32_t i = 0; i < at_seat_workers_max(w); i++) {
        at_seat_chair *c = &w->chair[i];
        if (!c->guest || c->reported || c->named || now - c->joined < patience) continue;
        c->named = true;
        snprintf(text, sizeof text, "joined %g s ago and has not finished a round yet",
                 at_seconds(patience));
        at_seat_say(w, i + 1, text);
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

void at_seat_measure(at_seat_world *w, at_node id)
{
    const at_guest *g = w->chair[id - 1].guest;
    at_link_stats   stats = {0};
    if (!g || !g->remote.link) return;
    memcpy(stats.host, g->host, sizeof stats.host);
    at_link_name_set(stats.address, g->peer);
    at_link_measure(g->remote.link, &stats);
    at_host_link(&w->host, id, &stats, at_clock_now() - w->host.stopped);
}

/* As often as resource usage; others are recorded when they join and when they go. */
static void measure_all(at_seat_world *w)
{
    at_ns now = at_clock_now(), every = w->context->usage_every;
    if (w->seats->net_fd < 0 || every == 0 || now < w->measure_at) return;
    w->measure_at = now + every;
    for (at_node id = 1; id <= at_seat_workers_max(w); id++) at_seat_measure(w, id);
}

/* ---- loop ------------------------------------------------------------------------------------ */

static void stop(at_seat_world *w)
{
    w->stopping = true;
    if (!w->host.finished)
        at_host_event(&w->host, &(at_event){.kind = AT_EV_STOP, .now = at_host_now(&w->host)},
                      NULL);
}

static void poll_time(at_seat_world *w)
{
    at_ns now = at_host_now(&w->host);
    check_joined(w, now);
    name_silent(w, now);
    if (lease_waits(w, now) && w->host.timer[AT_TIMER_LEASE] <= now)
        w->host.timer[AT_TIMER_LEASE] = now + LOOK_EVERY;
    if (!w->host.finished) at_host_poll(&w->host, now);
}

static at_ns next_due(const at_seat_world *w, at_ns now)
{
    at_ns due = at_host_due(&w->host);
    for (uint32_t i = 0; i < w->seats->ranks_max; i++) {
        at_ns at = w->seats->restart_at[i];
        if (at != AT_NEVER && at - w->host.stopped < due) due = at - w->host.stopped;
    }
    return due < now + LOOK_EVERY ? due : now + LOOK_EVERY;
}

/* Reading sockets costs a system call each, so they are read only after SIGIO, and once in a while
 * in case one was lost. */
static void hear_guests(at_seat_world *w)
{
    at_ns now = at_clock_now();
    if (!at_signals_io() && !w->seats->unread && now < w->look_at) return;
    w->look_at = now + LOOK_EVERY;
    at_seat_hub_poll(w->seats);
    if (!w->seats->refused[0] || now < w->said_at) return;
    at_host_say(&w->host, at_host_now(&w->host), w->seats->refused);
    w->seats->refused[0] = '\0';
    w->said_at = now + SAY_EVERY;
}

static void turn(at_seat_world *w)
{
    if (w->asked_id > 0) { /* what is published came before the report that follows it */
        at_seat_hub_poll(w->seats);
        at_seat_place_guests(w);
        if (w->seats->base >= w->asked_version) w->asked_id = 0; /* it has come */
    }
    at_seat_save_if_due(w);
    if (w->seats->net_fd >= 0) hear_guests(w); /* before reports are read, which come with it */
    for (at_node id = 1; id <= at_seat_workers_max(w); id++) {
        if (w->chair[id - 1].guest) at_seat_read_reports(w, id);
        if (w->chair[id - 1].guest) at_seat_read_scores(w, id);
    }
    if (at_signals_stop() && !w->stopping) stop(w);
    if (at_signals_child()) at_seat_reap(w);
    at_seat_part_ways(w);
    hear_guests(w);
    at_seat_place_guests(w);
    at_seat_start_again(w);
    at_seat_start_more(w);
    if (!w->host.finished) poll_time(w);
    measure_all(w);
    at_seat_flush(w);
}

/* The only seat of a run and its hub never compute at the same time where a step waits for all. On
 * one core the vectors they exchange stay in its cache, and waking the other is a switch instead of
 * an interrupt of a sleeping core. Rounds that are shorter than a spin, with small vectors, are
 * faster on two cores: there nobody sleeps. */
static bool takes_turns(const at_seat_world *w)
{
    enum { FLOATS_MIN = 32 << 10 };
    const at_seat_board *board = at_seat_world_board(w);
    bool                 only = atomic_load_explicit(&board->present, memory_order_relaxed) == 1;
    bool                 sleeps = w->spin_ns == 0 || w->round_ns > w->spin_ns;
    return only && w->in_place && (sleeps || w->seats->spec.floats >= FLOATS_MIN);
}

/* Goes to the core on which the only seat has rung, and stays there until others come. */
static bool follow(at_seat_world *w)
{
    bool turns = w->seats->net_fd < 0 && takes_turns(w);
    atomic_store_explicit(&at_seat_world_board(w)->turns, turns, memory_order_relaxed);
    int core = turns ? (int)atomic_load(&at_seat_world_bell(w)->ringer) - 1 : -1;
    if (core != w->core) at_machine_pin(core);
    w->core = core;
    return turns;
}

static void loop(at_seat_world *w)
{
    at_bell *bell = at_seat_world_bell(w);
    while (!w->host.finished) {
        uint32_t heard = at_bell_heard(bell);
        turn(w);
        if (w->host.finished) break;
        at_ns    now = at_host_now(&w->host);
        uint32_t rings = at_hub_wake_after(w->host.hub, now);
        bool     turns = follow(w);
        at_host_wait(&w->host, bell, heard, rings, next_due(w, now), turns ? 0 : w->spin_ns);
    }
    if (w->core >= 0) at_machine_pin(-1);
}

/* ---- start and end --------------------------------------------------------------------------- */

static at_err open_params(at_seat_world *w, at_fail *fail)
{
    size_t size;
    if (!at_seat_params_size(w->floats, &size))
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller model",
                           "%zu parameters do not fit into memory", w->floats);
    AT_TRY(at_seat_file_new("anytime-params", size, true, &w->params, fail));
    return at_resume_params(w->context, at_seat_floats(&w->params), fail);
}

/* The numbers of a program's optimizer, which follow its first seat. */
static void set_torch(at_seat_world *w)
{
    w->torch = *w->learning.torch;
    w->learning.torch = &w->torch;
    w->learning.rate[w->learning.groups].schedule.lr = w->torch.group[0].lr;
}

static at_err prepare(at_seat_world *w, at_fail *fail)
{
    const at_world_context *context = w->context;
    const at_plan          *plan = context->plan;
    w->chair = calloc(plan->workers_max, sizeof *w->chair);
    w->left = calloc(w->seats->ranks_max, sizeof *w->left);
    if (!w->chair || !w->left) return at_fail_memory(fail);
    for (uint32_t i = 0; i < plan->workers_max; i++)
        w->chair[i] = (at_seat_chair){.file = {.fd = -1}, .before = {.fd = -1}, .child = -1};
    w->in_place = at_plan_reads_in_place(plan);
    w->slots = plan->release->holds ? 1 : AT_SEAT_GRADIENTS;
    bool idle_cores = plan->workers_max + 1 <= context->cores && context->sample_time == 0;
    bool few = plan->workers_max <= 2 * context->cores && context->sample_time == 0;
    bool own_cores = plan->workers_max <= context->cores;
    w->spin_ns = idle_cores ? SPIN : 0;
    w->seat_spin_ns = few ? SEAT_SPIN / (own_cores ? 1 : 2) : 0;
    AT_TRY(open_params(w, fail));
    if (w->seats->job)
        AT_TRY(at_packings_init(&w->packings, context, fail));
    else
        AT_TRY(at_spec_packings(&w->seats->spec, context->compress, &w->packings, fail));
    w->packed_version = AT_VERSION_NONE;
    bool packs = at_packing_used(&w->packings.params) != NULL;
    w->packed = packs ? malloc(w->packings.params.size) : NULL;
    if (packs && !w->packed) return at_fail_memory(fail);
    if (context->task->score)
        AT_TRY(at_evaluator_open(context->task, at_seat_world_bell(w), &w->evaluator, fail));
    at_world_ops ops = {.self = w,
                        .send = send_order,
                        .flush = at_seat_flush,
                        .evict = at_seat_evict,
                        .change = change,
                        .publish = publish,
                        .vectors = at_seat_vectors,
                        .gradients = {w, gradient_at}};
    AT_TRY(at_host_init(&w->host, plan, context->recorder, &w->updater, w->evaluator, &ops, fail));
    AT_TRY(at_host_watch(&w->host, context->usage_every, fail));
    w->learning = *context->learning;
    if (w->learning.torch) set_torch(w);
    AT_TRY(at_updater_init(&w->updater, &w->learning, at_seat_floats(&w->params), w->floats,
                           w->host.hub->pieces_max, fail));
    AT_TRY(at_resume_host(context, &w->host, fail));
    AT_TRY(at_seat_resume(w, fail));
    w->seats->newest = w->host.hub->version;
    atomic_store(&at_seat_world_board(w)->version, w->host.hub->version);
    atomic_store(&at_seat_world_board(w)->samples_used, w->host.hub->samples_used);
    for (uint32_t i = 0; i < plan->workers_max; i++)
        w->chair[i].drawn = at_resume_drawn(&w->host, i + 1);
    return AT_OK;
}

static at_err hand_over(const at_seat_world *w, at_outcome *outcome, at_fail *fail)
{
    size_t size = w->floats * sizeof(float);
    at_host_outcome(&w->host, outcome);
    outcome->params = malloc(size);
    outcome->floats = w->floats;
    outcome->drawn = calloc(at_seat_workers_max(w), sizeof(uint64_t));
    if (!outcome->params || !outcome->drawn) return at_fail_memory(fail);
    memcpy(outcome->params,
           w->seats->spec.at_workers ? at_seat_hub_params(w->seats) : at_seat_floats(&w->params),
           size);
    for (uint32_t i = 0; i < at_seat_workers_max(w); i++) {
        const at_member *member = &w->host.hub->member[i];
        outcome->drawn[i] = w->chair[i].drawn;
        assert(outcome->drawn[i] == member->used + member->dropped);
    }
    snprintf(outcome->engine, sizeof outcome->engine, "%s",
             w->seats->job ? w->seats->engine : "seat");
    return AT_OK;
}

static at_err train(at_seat_world *w, at_outcome *outcome, at_fail *fail)
{
    at_event start = {.kind = AT_EV_START, .now = at_host_now(&w->host)};
    at_host_event(&w->host, &start, NULL);
    at_packings_say(w->context, &w->host, start.now);
    at_seat_reap(w); /* who has ended before we had handlers for signals */
    loop(w);
    for (at_node id = 1; id <= at_seat_workers_max(w); id++) at_seat_measure(w, id);
    if (w->failure.err) {
        *fail = w->failure;
        return fail->err;
    }
    if (w->seats->spec.at_workers && w->seats->base != w->host.hub->version)
        at_host_say(&w->host, at_clock_now() - w->host.stopped,
                    "the final parameters were not handed over; the model is that of an earlier "
                    "step");
    at_seat_save_if_due(w);
    at_host_final_score(&w->host);
    return hand_over(w, outcome, fail);
}

at_err at_seat_world_run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    at_seat_world w = {.context = context,
                       .seats = context->seats,
                       .params = {.fd = -1},
                       .core = -1,
                       .floats = context->task->params};
    assert(w.seats);
    at_err err = prepare(&w, fail);
    if (!err) {
        at_signals_open(at_seat_world_bell(&w));
        err = train(&w, outcome, fail);
        at_signals_close();
    }
    for (uint32_t i = 0; w.chair && i < at_seat_workers_max(&w); i++) {
        if (w.chair[i].guest) at_seat_hub_forget(w.chair[i].guest);
        at_seat_file_close(&w.chair[i].file);
        at_seat_file_close(&w.chair[i].before);
    }
    at_evaluator_close(w.evaluator);
    at_updater_deinit(&w.updater);
    at_host_deinit(&w.host);
    at_seat_file_close(&w.params);
    free(w.chair);
    free(w.left);
    free(w.packed);
    return err;
}

uint32_t at_seat_world_workers_here(const at_world_context *context)
{
    bool starts = context->seats && at_seat_children_command(context->seats->children);
    return starts ? context->plan->workers : 0;
}

static at_err check(const at_world_context *context, at_fail *fail)
{
    uint32_t workers = context->plan->workers_max;
    if (!context->seats)
        return at_fail_set(fail, AT_ERR_USAGE, "use `anytime run -n 4 -- COMMAND`",
                           "--world seat works only with `anytime run`");
    const at_mix_rule *mix = context->plan->mix;
    if (at_plan_splits_update(context->plan) || mix->updates_in_place)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "--mix %s does not work with programs that have their own loop: they "
                           "need one hub that has the parameters",
                           mix->rule.name);
    if (context->plan->work->reports_change)
        return at_fail_set(fail, AT_ERR_USAGE, "use a strategy whose rounds are gradients",
                           "--work %s does not work with programs that have their own loop: they "
                           "report gradients",
                           context->plan->work->rule.name);
    if (context->compress.kind != AT_COMPRESS_NONE && context->seats->net_fd < 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use `anytime hub --listen`",
                           "--compress is for messages between machines, and shared memory has "
                           "none");
    if (workers <= AT_BELL_RINGS_MAX) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use `anytime simulate`",
                       "%u workers are too many for one machine (at most %d)", workers,
                       AT_BELL_RINGS_MAX);
}

const at_world at_world_seat = {.name = "seat",
                                .called = "`anytime run`",
                                .runs_programs = true,
                                .admits_workers = true,
                                .sends_vectors = true,
                                .has_hub = true,
                                .check = check,
                                .workers_here = at_seat_world_workers_here,
                                .run = at_seat_world_run};

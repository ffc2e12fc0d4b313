/* The world of seats, hub side: programs with their own loop, shared memory, one bell to wait at.
 *
 *     hub: connections ─► reports ─► deaths ─► signals ─► evaluations, timers ─► sleep
 *
 * It differs from world/local in who the workers are: any process that has proven the token. Their
 * memory may hold anything, so nothing of it is used before it was checked, and a seat that sends
 * nonsense is given up while the run goes on.
 */
#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "message/message.h"
#include "world/core/host.h"
#include "world/local/local.h"
#include "world/process/signals.h"
#include "world/seat/seat_hub.h"

static const at_ns SPIN = AT_US(50);
static const at_ns GRACE = AT_SEC(60); /* no lease after something else was done beside training */
static const at_ns LOOK_EVERY = AT_SEC(1);

/* One seat: the place of a worker. */
typedef struct chair {
    at_guest    *guest;        /* NULL: free */
    at_seat_file file, before; /* of its holder and of the one before */
    int64_t      child;        /* rank of our process that holds it; -1: another process */
    uint32_t     incarnation;
    uint64_t     taken;                       /* reports that were read */
    uint64_t     scores;                      /* evaluations that were read */
    uint64_t     drawn;                       /* as of the last loss */
    bool         reported, evicted, nonsense; /* nonsense: the reason of its eviction */
    at_ns        grace;                       /* no lease before this time */
} chair;

typedef struct world {
    const at_world_context *context;
    at_seat_hub            *seats;
    at_host                 host;
    at_updater              updater;
    at_learning             learning;
    at_torch_learning       torch; /* the numbers follow the first seat */
    at_seat_file            params;
    chair                  *chair; /* workers_max */
    bool                   *left;  /* ranks that have left: they are not started again */
    uint32_t                cast_mask;
    at_ns                   spin_ns;
    bool                    stopping, in_place;
    at_node                 asked_id; /* seat that was asked for its parameters; 0: none */
    uint64_t                asked_version;
    uint32_t                slots;
    at_fail                 failure; /* why the run cannot go on; AT_OK: it can */
} world;

static uint32_t workers_max(const world *w)
{
    return w->context->plan->workers_max;
}

static at_seat_board *board_of(const world *w)
{
    return w->params.memory;
}

static at_seat_slot *slot_of(const chair *c)
{
    return c->file.memory;
}

static at_bell *hub_bell(const world *w)
{
    return at_seat_hub_bell(w->seats);
}

/* ---- operations for the host ----------------------------------------------------------------- */

static void send_order(void *self, at_node worker, const at_order *order)
{
    world        *w = self;
    const chair  *c = &w->chair[worker - 1];
    at_seat_slot *slot = slot_of(c);
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

static void flush(void *self)
{
    world *w = self;
    if (w->cast_mask)
        at_bell_ring_loud(&((at_seat_bells *)w->seats->bells.memory)->cast, w->cast_mask);
    w->cast_mask = 0;
}

/* A process of ours is killed, and its end follows; others are told, and lose their seat at once in
 * the next turn of the loop. */
static void evict(void *self, at_node worker)
{
    world *w = self;
    chair *c = &w->chair[worker - 1];
    if (!c->guest) return;
    c->evicted = true;
    atomic_store(&slot_of(c)->evicted, true);
    w->cast_mask |= at_bell_mask(worker);
    if (c->child >= 0)
        at_seat_children_signal(w->seats->children, (uint32_t)c->child, SIGKILL);
    else
        at_bell_ring_loud(hub_bell(w), AT_BELL_ALL);
}

static void change(void *self)
{
    at_local_write_begin(&board_of(self)->params_lock);
}

static void publish(void *self, uint64_t version)
{
    world *w = self;
    atomic_store(&board_of(w)->version, version);
    atomic_store(&board_of(w)->samples_used, w->host.hub->samples_used);
    at_local_write_end(&board_of(w)->params_lock);
}

/* A gradient that the hub holds outlives the process that computed it, and its successor has memory
 * of its own. */
static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    const world     *w = self;
    const chair     *c = &w->chair[worker - 1];
    const at_member *member = &w->host.hub->member[worker - 1];
    bool old = w->context->plan->release->holds && c->before.memory && member->pieces_held > 0 &&
               member->piece.incarnation != c->incarnation;
    return at_seat_slot_gradient(old ? &c->before : &c->file, w->seats->spec.floats, slot);
}

/* ---- who is there ---------------------------------------------------------------------------- */

static void update_board(world *w)
{
    uint32_t present = 0;
    w->seats->first_id = 0;
    for (uint32_t i = 0; i < workers_max(w); i++) {
        if (!w->chair[i].guest) continue;
        present++;
        if (w->seats->first_id == 0) w->seats->first_id = i + 1;
    }
    atomic_store(&board_of(w)->present, present);
    if (present > 0) atomic_store(&board_of(w)->first_rank, w->seats->first_id - 1);
}

/* What it drew, by its own count; but never less than was reported, whatever its memory says. */
static uint64_t drawn_by(const world *w, at_node id)
{
    const chair     *c = &w->chair[id - 1];
    const at_member *member = &w->host.hub->member[id - 1];
    uint64_t         counted = member->used + member->dropped;
    if (w->context->plan->release->holds && member->pieces_held > 0)
        counted += member->piece.samples;
    for (uint32_t i = 0; !w->context->plan->release->holds && i < w->host.hub->pieces; i++)
        if (w->host.hub->piece[i].worker == id) counted += w->host.hub->piece[i].samples;
    uint64_t said = c->file.memory ? atomic_load(&slot_of(c)->drawn) : c->drawn;
    bool     believable = said >= counted && said < AT_MESSAGE_COUNT_MAX;
    return believable ? said : counted;
}

static void tell_lost(world *w, at_node id, bool returns, bool left, const char *text)
{
    chair   *c = &w->chair[id - 1];
    at_event event = {.kind = AT_EV_LOST, .worker = id, .now = at_host_now(&w->host)};
    c->drawn = drawn_by(w, id);
    event.as.lost.drawn = c->drawn;
    event.as.lost.returns = returns;
    event.as.lost.left = left;
    if (c->guest) at_seat_hub_forget(c->guest);
    c->guest = NULL;
    at_host_process(&w->host, id, 0);
    update_board(w);
    if (!w->host.finished) at_host_event(&w->host, &event, &(at_about){.text = text});
}

/* ---- reports --------------------------------------------------------------------------------- */

static void say(world *w, at_node id, const char *text)
{
    char line[700];
    snprintf(line, sizeof line, "worker %u %s", id, text);
    at_host_say(&w->host, at_host_now(&w->host), line);
}

/* The numbers of the first seat's optimizer bind everybody. */
static void take_rates(world *w, const at_seat_mail *mail)
{
    for (uint32_t i = 0; i < w->seats->spec.groups; i++) {
        at_seat_group group = mail->group[i];
        if (!at_seat_group_valid(w->torch.kind, &group)) continue;
        at_torch_group numbers = at_spec_group(&group);
        bool           fits = at_torch_states(w->torch.kind, &numbers, 1) <= w->torch.optim.states;
        if (fits) w->torch.group[i] = numbers; /* momentum cannot begin in the middle of a run */
    }
    w->learning.rate[w->learning.groups].schedule.lr = w->torch.group[0].lr; /* for the record */
}

/* Durations and rounds that can be added up; the rest is checked as for reports that come over a
 * network. */
static bool is_sane(const at_work *work)
{
    const at_ns most = AT_SEC((at_ns)1000000000);
    const at_ns times[] = {work->compute_ns, work->sleep_ns, work->idle_ns, work->install_ns,
                           work->send_ns};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < 0 || times[i] > most) return false;
    return work->overshoot_ns > -most && work->overshoot_ns < most &&
           work->round < AT_MESSAGE_COUNT_MAX;
}

static bool check_report(world *w, at_node id, const at_report *report, at_fail *fail)
{
    const at_hub     *hub = w->host.hub;
    const at_member  *member = &hub->member[id - 1];
    bool              empty = report->work.abandoned || report->work.samples == 0;
    at_report_message message = {.report = *report,
                                 .drawn = atomic_load(&slot_of(&w->chair[id - 1])->drawn),
                                 .floats = empty ? 0 : w->seats->spec.floats};
    at_report_bounds  bounds = {.incarnation = member->incarnation,
                                .sequence = member->sequence,
                                .version = hub->version,
                                .samples_max = INT32_MAX,
                                .drawn = member->used + member->dropped,
                                .floats = w->seats->spec.floats,
                                .ends = hub->end != AT_END_RUNNING};
    if (report->slot >= w->slots || !is_sane(&report->work)) {
        at_fail_set(fail, AT_ERR_FORMAT, NULL, "its numbers are out of range");
        return false;
    }
    return at_report_message_check(&message, &bounds, fail) == AT_OK;
}

static void deliver(world *w, at_node id, const at_report *report)
{
    chair   *c = &w->chair[id - 1];
    at_event event = {.kind = AT_EV_MESSAGE, .worker = id, .now = at_host_now(&w->host)};
    at_fail  fail = {0};
    char     text[sizeof fail.text + 40];
    if (w->host.finished || c->evicted) return;
    if (!check_report(w, id, report, &fail)) {
        snprintf(text, sizeof text, "sent a bad report: %s", fail.text);
        say(w, id, text);
        c->nonsense = true;
        evict(w, id);
        return;
    }
    event.as.report = *report;
    c->reported = true;
    c->grace = 0;
    if (c->child >= 0) at_seat_children_well(w->seats->children, (uint32_t)c->child);
    at_host_event(&w->host, &event, NULL);
}

/* As in world/local: `taken` allows the seat to overwrite the gradient. The counters of the seat
 * are its own to spoil, so at most as many reports are read as it may have outstanding. */
static void read_reports(world *w, at_node id)
{
    chair        *c = &w->chair[id - 1];
    at_seat_slot *slot = slot_of(c);
    bool          holds = w->context->plan->release->holds;
    for (int n = 0; n < AT_SEAT_GRADIENTS && c->taken < atomic_load(&slot->sent); n++) {
        const at_seat_mail *mail = &slot->mail[c->taken % AT_SEAT_GRADIENTS];
        at_report           report = mail->report;
        if (id == w->seats->first_id) take_rates(w, mail);
        c->taken++;
        if (holds) atomic_store(&slot->taken, c->taken);
        deliver(w, id, &report);
        if (holds) continue;
        atomic_store(&slot->taken, c->taken);
        w->cast_mask |= at_bell_mask(id);
        flush(w);
    }
}

static void tell_score(world *w, const at_seat_score *score)
{
    at_event event = {.kind = AT_EV_EVALUATED, .now = at_host_now(&w->host)};
    event.as.evaluated.step =
        score->version <= w->host.hub->version ? score->version : w->host.hub->version;
    event.as.evaluated.at = event.now;
    for (int i = 0; i < AT_METRIC_COUNT; i++) event.as.evaluated.value[i] = NAN;
    event.as.evaluated.value[AT_METRIC_ACCURACY] = score->accuracy;
    event.as.evaluated.value[AT_METRIC_LOSS] = score->loss;
    at_host_event(&w->host, &event, &(at_about){.count = 1});
}

static void read_scores(world *w, at_node id)
{
    chair        *c = &w->chair[id - 1];
    at_seat_slot *slot = slot_of(c);
    for (int n = 0; n < AT_SEAT_SCORES && c->scores < atomic_load(&slot->scores_sent); n++) {
        at_seat_score score = slot->score[c->scores % AT_SEAT_SCORES];
        c->scores++;
        atomic_store(&slot->scores_taken, c->scores);
        bool known = isfinite(score.accuracy) || isfinite(score.loss);
        if (!isfinite(score.accuracy)) score.accuracy = NAN;
        if (!isfinite(score.loss)) score.loss = NAN;
        if (known && id == w->seats->first_id && !w->host.finished) tell_score(w, &score);
    }
}

/* ---- taking seats ---------------------------------------------------------------------------- */

static json_t *welcome_for(const world *w, at_node id)
{
    const at_world_context *context = w->context;
    const at_plan          *plan = context->plan;
    const at_pace_options  *pace = context->pace_options;
    const chair            *c = &w->chair[id - 1];
    return json_pack(
        "{s:i, s:i, s:i, s:I, s:i, s:I, s:i, s:i, s:b, s:b, s:b, s:b, s:i, s:I, s:I, s:I, s:I, "
        "s:I, s:I, s:s, s:s, s:f}",
        "rank", (int)id - 1, "workers", (int)plan->workers, "workers_max", (int)plan->workers_max,
        "seed", (json_int_t)context->seed, "incarnation", (int)c->incarnation, "sequence",
        (json_int_t)w->host.hub->member[id - 1].sequence, "slots", (int)w->slots, "newer",
        (int)plan->newer->choice, "self_starting", (int)plan->release->self_starting, "holds",
        (int)plan->release->holds, "in_place", (int)w->in_place, "cut_after", (int)plan->cut_after,
        "micro_batch", (int)plan->micro_batch, "sample_time", (json_int_t)context->sample_time,
        "round_ns", (json_int_t)pace->round_ns_mean, "rounds", (json_int_t)pace->rounds_per_epoch,
        "spin", (json_int_t)w->spin_ns, "floats", (json_int_t)w->seats->spec.floats, "base",
        (json_int_t)w->seats->base, "straggler", pace->model, "scale", pace->scale, "trace_scale",
        pace->trace_scale);
}

static at_err send_welcome(const world *w, at_node id, const at_guest *g, at_fail *fail)
{
    json_t *json = welcome_for(w, id);
    char   *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    int     fds[AT_SEAT_FDS] = {w->params.fd, w->seats->bells.fd, w->chair[id - 1].file.fd};
    json_decref(json);
    if (!text) return at_fail_memory(fail);
    at_err err = at_seat_send(g->fd, AT_SEAT_WELCOME, (at_seat_part){text, strlen(text)},
                              (at_seat_part){0}, fds, at_clock_now() + AT_SEC(5), fail);
    free(text);
    return err;
}

/* New memory for a new holder: the one before may still write to its own. */
static at_err prepare_chair(world *w, at_node id, at_fail *fail)
{
    chair       *c = &w->chair[id - 1];
    at_seat_file file;
    size_t       size;
    if (!at_seat_slot_size(w->seats->spec.floats, w->slots, &size)) return at_fail_memory(fail);
    AT_TRY(at_seat_file_new("anytime-seat", size, false, &file, fail));
    at_seat_file_close(&c->before);
    c->before = c->file;
    c->file = file;
    c->taken = c->scores = 0;
    c->reported = c->evicted = c->nonsense = false;
    c->grace = 0;
    c->incarnation++;
    atomic_store(&slot_of(c)->drawn, c->drawn);
    return AT_OK;
}

static void seat_guest(world *w, at_node id, at_guest *g)
{
    chair  *c = &w->chair[id - 1];
    at_fail fail = {0};
    at_err  err = prepare_chair(w, id, &fail);
    if (!err) err = send_welcome(w, id, g, &fail);
    if (err) {
        say(w, id, fail.text);
        at_seat_hub_forget(g);
        return;
    }
    size_t vector = w->seats->spec.floats * sizeof(float);
    at_spec_deinit(&g->spec);
    g->stage = AT_GUEST_SEATED;
    g->id = id;
    g->inbox.size_max += 2 * vector;
    c->guest = g;
    c->child = g->child;
    if (g->child >= 0) w->seats->sat[g->child] = true;
    update_board(w);
    at_host_process(&w->host, id, g->pid);
    at_event event = {.kind = AT_EV_JOINED, .worker = id, .now = at_host_now(&w->host)};
    event.as.joined.incarnation = c->incarnation;
    at_host_event(&w->host, &event, &(at_about){.pid = g->pid});
}

/* Once for each version; a seat that becomes the first is asked again. */
static void ask_to_publish(world *w)
{
    at_node first = w->seats->first_id;
    if (first == 0 || (w->asked_id == first && w->asked_version == w->host.hub->version)) return;
    w->asked_id = first;
    w->asked_version = w->host.hub->version;
    atomic_fetch_add(&slot_of(&w->chair[first - 1])->publish, 1);
}

static bool is_free(const world *w, at_node id)
{
    return id >= 1 && id <= workers_max(w) && !w->chair[id - 1].guest &&
           w->host.hub->member[id - 1].state == AT_MEMBER_AWAY;
}

/* The rank that it asks for, otherwise one that nobody is expected to take, otherwise any. */
static at_node find_seat(const world *w, const at_guest *g)
{
    at_node any = 0, wanted = g->rank >= 0 ? (at_node)g->rank + 1 : 0;
    if (is_free(w, wanted)) return wanted;
    for (at_node id = workers_max(w); id >= 1; id--) {
        bool expected = w->host.hub->member[id - 1].expected;
        if (is_free(w, id) && (!any || !expected)) any = id;
    }
    return any;
}

/* Where seats update, a joiner needs the parameters of the current version, which the first seat is
 * asked for. When nobody is left who has them, the run goes on from the last that are known. */
static bool has_params(world *w)
{
    at_seat_hub  *seats = w->seats;
    const at_hub *hub = w->host.hub;
    char          text[120];
    if (!seats->spec.at_workers || seats->base == hub->version) return true;
    if (seats->first_id > 0) {
        ask_to_publish(w);
        return false;
    }
    snprintf(text, sizeof text,
             "the parameters of step %llu are lost; continuing with those of %llu",
             (unsigned long long)hub->version, (unsigned long long)seats->base);
    at_host_say(&w->host, at_host_now(&w->host), text);
    seats->base = hub->version;
    return true;
}

static void seat_guests(world *w)
{
    for (uint32_t i = 0; i < w->seats->guests_max; i++) {
        at_guest *g = &w->seats->guest[i];
        if (g->stage != AT_GUEST_READY || w->host.finished) continue;
        at_node id = find_seat(w, g);
        if (w->host.hub->end != AT_END_RUNNING)
            at_seat_hub_refuse(w->seats, g, "the run is over");
        else if (id == 0)
            at_seat_hub_refuse(w->seats, g, "all seats are taken; see --workers-max");
        else if (has_params(w))
            seat_guest(w, id, g);
    }
}

static const char *why_evicted(const chair *c)
{
    return c->nonsense ? "evicted after a bad report" : "evicted, its lease expired";
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Those who have said that they leave, were evicted, or have hung up without being ours. */
static void part(world *w)
{
    for (at_node id = 1; id <= workers_max(w) && !w->host.finished; id++) {
        const chair *c = &w->chair[id - 1];
        if (!c->guest) continue;
        bool left = atomic_load(&slot_of(c)->left) && !c->evicted;
        bool ours = c->child >= 0 && at_seat_children_pid(w->seats->children, (uint32_t)c->child);
        bool gone = !ours && (c->evicted || c->guest->hung_up);
        if (!left && !gone) continue;
        read_reports(w, id);
        if (w->seats->spec.at_workers) at_seat_hub_poll(w->seats); /* its last parameters */
        if (left && c->child >= 0) w->left[c->child] = true;
        if (left && w->host.finished == false) read_scores(w, id);
        if (c->guest)
            tell_lost(w, id, false, left,
                      left         ? "left"
                      : c->evicted ? why_evicted(c)
                                   : "lost its connection");
    }
}

static void say_given_up(world *w, const at_seat_end *end)
{
    char        text[500];
    const char *line = at_seat_children_last_line(w->seats->children, end->rank);
    snprintf(text, sizeof text, "rank %u %s and is not started again%s%s", end->rank, end->text,
             *line ? ": " : "", line);
    at_host_say(&w->host, at_host_now(&w->host), text);
}

static void record_usage(world *w, const at_seat_end *end)
{
    at_usage usage;
    at_usage_ended(end->pid, &end->rusage, &usage);
    at_host_usage(&w->host, end->rank + 1, &usage, at_host_now(&w->host));
}

static void bury(world *w, const at_seat_end *end)
{
    bool running = w->host.hub->end == AT_END_RUNNING, sat = false;
    bool returns = running && end->returns && !w->left[end->rank];
    w->seats->restart_at[end->rank] =
        returns ? at_seat_children_ready_at(w->seats->children, end->rank) : AT_NEVER;
    record_usage(w, end);
    if (!running) at_seat_hub_ended(w->seats, end->rank);
    for (at_node id = 1; id <= workers_max(w) && !w->host.finished; id++) {
        const chair *c = &w->chair[id - 1];
        if (!c->guest || c->child != (int64_t)end->rank) continue;
        if (w->seats->spec.at_workers) at_seat_hub_poll(w->seats);
        bool mine = id == end->rank + 1; /* further seats of a process are not taken again */
        sat = true;
        read_reports(w, id);
        read_scores(w, id);
        tell_lost(w, id, returns && mine, end->well, c->evicted ? why_evicted(c) : end->text);
    }
    if (!sat && !returns && !w->host.finished && is_free(w, end->rank + 1))
        tell_lost(w, end->rank + 1, false, end->well, end->text);
    if (running && !returns && !end->well && !w->left[end->rank]) say_given_up(w, end);
}

static void reap(world *w)
{
    at_seat_end end;
    while (!w->host.finished && at_seat_children_reap(w->seats->children, &end)) bury(w, &end);
    at_host_reap(&w->host, at_host_now(&w->host));
}

static void start_again(world *w)
{
    for (uint32_t i = 0; i < w->seats->ranks_max; i++) {
        at_fail fail = {0};
        if (w->seats->restart_at[i] > at_clock_now()) continue;
        w->seats->restart_at[i] = AT_NEVER;
        if (w->host.hub->end != AT_END_RUNNING) continue;
        if (!at_seat_hub_start(w->seats, i, &fail)) continue;
        say(w, i + 1, fail.text);
        if (is_free(w, i + 1)) tell_lost(w, i + 1, false, false, "could not be started again");
    }
}

/* SIGUSR2 asks for another process, up to --workers-max. */
static void start_more(world *w)
{
    for (unsigned wanted = at_signals_joins(); wanted > 0; wanted--) {
        at_fail  fail = {0};
        uint32_t rank = 0;
        while (rank < w->seats->ranks_max &&
               (at_seat_children_pid(w->seats->children, rank) > 0 || !is_free(w, rank + 1) ||
                w->seats->restart_at[rank] != AT_NEVER))
            rank++;
        if (w->host.hub->end != AT_END_RUNNING) return;
        bool full = rank == w->seats->ranks_max;
        if (full || at_seat_hub_start(w->seats, rank, &fail))
            at_host_say(&w->host, at_host_now(&w->host),
                        full ? "no worker can join: all --workers-max are there" : fail.text);
        else
            w->left[rank] = false;
    }
}

/* ---- patience -------------------------------------------------------------------------------- */

/* The lease waits for seats that have not reported yet (programs load and compile) and for those
 * that do something else, and for a while after that. */
static bool lease_waits(world *w, at_ns now)
{
    bool waits = false;
    for (uint32_t i = 0; i < workers_max(w); i++) {
        chair *c = &w->chair[i];
        if (!c->guest) continue;
        if (atomic_load(&slot_of(c)->aside)) c->grace = now + GRACE;
        waits = waits || !c->reported || now < c->grace;
    }
    return waits;
}

/* A process that runs and never joins is a mistake that the user should see, unless fewer workers
 * are fine. */
static void check_joined(world *w, at_ns now)
{
    const at_hub *hub = w->host.hub;
    if (w->seats->few_is_fine || hub->assembled || w->host.timer[AT_TIMER_JOIN] > now) return;
    for (uint32_t i = 0; i < w->seats->ranks; i++) {
        if (!hub->member[i].expected || at_seat_children_pid(w->seats->children, i) == 0) continue;
        const char *line = at_seat_children_last_line(w->seats->children, i);
        at_fail_set(&w->failure, AT_ERR_FAILED,
                    "use --join-timeout to wait longer, or --workers-min to go on without it",
                    "rank %u has not joined within %g s%s%s", i,
                    at_seconds(hub->plan->join_timeout), *line ? "; its last line of errors: " : "",
                    line);
        at_host_event(&w->host, &(at_event){.kind = AT_EV_STOP, .now = now}, NULL);
        return;
    }
}

/* ---- loop ------------------------------------------------------------------------------------ */

static void stop(world *w)
{
    w->stopping = true;
    if (!w->host.finished)
        at_host_event(&w->host, &(at_event){.kind = AT_EV_STOP, .now = at_host_now(&w->host)},
                      NULL);
}

static void poll_time(world *w)
{
    at_ns now = at_host_now(&w->host);
    check_joined(w, now);
    if (lease_waits(w, now) && w->host.timer[AT_TIMER_LEASE] <= now)
        w->host.timer[AT_TIMER_LEASE] = now + LOOK_EVERY;
    if (!w->host.finished) at_host_poll(&w->host, now);
}

static at_ns next_due(const world *w, at_ns now)
{
    at_ns due = at_host_due(&w->host);
    for (uint32_t i = 0; i < w->seats->ranks_max; i++) {
        at_ns at = w->seats->restart_at[i];
        if (at != AT_NEVER && at - w->host.stopped < due) due = at - w->host.stopped;
    }
    return due < now + LOOK_EVERY ? due : now + LOOK_EVERY;
}

static void turn(world *w)
{
    if (w->asked_id > 0) { /* what is published came before the report that follows it */
        at_seat_hub_poll(w->seats);
        seat_guests(w);
    }
    for (at_node id = 1; id <= workers_max(w); id++) {
        if (w->chair[id - 1].guest) read_reports(w, id);
        if (w->chair[id - 1].guest) read_scores(w, id);
    }
    if (at_signals_stop() && !w->stopping) stop(w);
    if (at_signals_child()) reap(w);
    part(w);
    at_seat_hub_poll(w->seats);
    seat_guests(w);
    start_again(w);
    start_more(w);
    if (!w->host.finished) poll_time(w);
    flush(w);
}

static void loop(world *w)
{
    at_bell *bell = hub_bell(w);
    while (!w->host.finished) {
        uint32_t heard = at_bell_heard(bell);
        turn(w);
        if (w->host.finished) break;
        at_ns    now = at_host_now(&w->host);
        uint32_t rings = at_hub_wake_after(w->host.hub, now);
        at_host_wait(&w->host, bell, heard, rings, next_due(w, now), w->spin_ns);
    }
}

/* ---- start and end --------------------------------------------------------------------------- */

static at_err open_params(world *w, at_fail *fail)
{
    size_t size;
    if (!at_seat_params_size(w->seats->spec.floats, &size))
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller model",
                           "%zu parameters do not fit into memory", w->seats->spec.floats);
    AT_TRY(at_seat_file_new("anytime-params", size, true, &w->params, fail));
    return at_resume_params(w->context, at_seat_floats(&w->params), fail);
}

static at_err prepare(world *w, at_fail *fail)
{
    const at_world_context *context = w->context;
    const at_plan          *plan = context->plan;
    w->chair = calloc(plan->workers_max, sizeof *w->chair);
    w->left = calloc(w->seats->ranks_max, sizeof *w->left);
    if (!w->chair || !w->left) return at_fail_memory(fail);
    for (uint32_t i = 0; i < plan->workers_max; i++)
        w->chair[i] = (chair){.file = {.fd = -1}, .before = {.fd = -1}, .child = -1};
    w->in_place = plan->release->holds && plan->gather->waits_for_all;
    w->slots = plan->release->holds ? 1 : AT_SEAT_GRADIENTS;
    bool idle_cores = plan->workers_max + 1 <= context->cores && context->sample_time == 0;
    w->spin_ns = idle_cores ? SPIN : 0;
    AT_TRY(open_params(w, fail));
    at_world_ops ops = {.self = w,
                        .send = send_order,
                        .flush = flush,
                        .evict = evict,
                        .change = change,
                        .publish = publish,
                        .gradients = {w, gradient_at}};
    AT_TRY(at_host_init(&w->host, plan, context->recorder, &w->updater, NULL, &ops, fail));
    AT_TRY(at_host_watch(&w->host, context->usage_every, fail));
    w->learning = *context->learning;
    w->torch = *context->learning->torch;
    w->learning.torch = &w->torch;
    w->learning.rate[w->learning.groups].schedule.lr = w->torch.group[0].lr;
    AT_TRY(at_updater_init(&w->updater, &w->learning, at_seat_floats(&w->params),
                           w->seats->spec.floats, w->host.hub->pieces_max, fail));
    AT_TRY(at_resume_host(context, &w->host, fail));
    atomic_store(&board_of(w)->version, w->host.hub->version);
    for (uint32_t i = 0; i < plan->workers_max; i++)
        w->chair[i].drawn = at_resume_drawn(&w->host, i + 1);
    return AT_OK;
}

static at_err hand_over(const world *w, at_outcome *outcome, at_fail *fail)
{
    size_t size = w->seats->spec.floats * sizeof(float);
    at_host_outcome(&w->host, outcome);
    outcome->params = malloc(size);
    outcome->floats = w->seats->spec.floats;
    outcome->drawn = calloc(workers_max(w), sizeof(uint64_t));
    if (!outcome->params || !outcome->drawn) return at_fail_memory(fail);
    memcpy(outcome->params,
           w->seats->spec.at_workers ? at_seat_hub_params(w->seats) : at_seat_floats(&w->params),
           size);
    for (uint32_t i = 0; i < workers_max(w); i++) {
        const at_member *member = &w->host.hub->member[i];
        outcome->drawn[i] = w->chair[i].drawn;
        assert(outcome->drawn[i] == member->used + member->dropped);
    }
    snprintf(outcome->engine, sizeof outcome->engine, "seat");
    return AT_OK;
}

static at_err train(world *w, at_outcome *outcome, at_fail *fail)
{
    at_host_event(&w->host, &(at_event){.kind = AT_EV_START, .now = at_host_now(&w->host)}, NULL);
    reap(w); /* who has ended before we had handlers for signals */
    loop(w);
    if (w->failure.err) {
        *fail = w->failure;
        return fail->err;
    }
    if (w->seats->spec.at_workers && w->seats->base != w->host.hub->version)
        at_host_say(&w->host, at_clock_now() - w->host.stopped,
                    "the final parameters were not handed over; the model is that of an earlier "
                    "step");
    at_host_final_score(&w->host);
    return hand_over(w, outcome, fail);
}

static at_err run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    world w = {.context = context, .seats = context->seats, .params = {.fd = -1}};
    assert(w.seats && w.seats->known);
    at_err err = prepare(&w, fail);
    if (!err) {
        at_signals_open(hub_bell(&w));
        err = train(&w, outcome, fail);
        at_signals_close();
    }
    for (uint32_t i = 0; w.chair && i < workers_max(&w); i++) {
        if (w.chair[i].guest) at_seat_hub_forget(w.chair[i].guest);
        at_seat_file_close(&w.chair[i].file);
        at_seat_file_close(&w.chair[i].before);
    }
    at_updater_deinit(&w.updater);
    at_host_deinit(&w.host);
    at_seat_file_close(&w.params);
    free(w.chair);
    free(w.left);
    return err;
}

static at_err check(const at_world_context *context, at_fail *fail)
{
    uint32_t workers = context->plan->workers_max;
    if (!context->seats)
        return at_fail_set(fail, AT_ERR_USAGE, "use `anytime run -n 4 -- COMMAND`",
                           "--world seat works only with `anytime run`");
    if (at_plan_splits_update(context->plan) || context->plan->mix->updates_in_place)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "programs with their own loop need one hub");
    if (workers <= AT_BELL_RINGS_MAX) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use `anytime simulate`",
                       "%u workers are too many for one machine (at most %d)", workers,
                       AT_BELL_RINGS_MAX);
}

const at_world at_world_seat = {.name = "seat",
                                .called = "`anytime run`",
                                .admits_workers = true,
                                .has_hub = true,
                                .check = check,
                                .run = run};

/* Who sits where: guests take seats and leave them, programs end and are started again. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "message/message.h"
#include "world/process/signals.h"
#include "world/seat/seat_world.h"

/* ---- who is there ---------------------------------------------------------------------------- */

static void update_board(at_seat_world *w)
{
    uint32_t present = 0;
    w->seats->first_id = 0;
    for (uint32_t i = 0; i < at_seat_workers_max(w); i++) {
        if (!w->chair[i].guest) continue;
        present++;
        if (w->seats->first_id == 0) w->seats->first_id = i + 1;
    }
    atomic_store(&at_seat_world_board(w)->present, present);
    if (present > 0) atomic_store(&at_seat_world_board(w)->first_rank, w->seats->first_id - 1);
}

/* What it drew, by its own count; but never less than was reported, whatever its memory says. */
uint64_t at_seat_drawn(const at_seat_world *w, at_node id)
{
    const at_seat_chair *c = &w->chair[id - 1];
    const at_member     *member = &w->host.hub->member[id - 1];
    uint64_t counted = member->used + member->dropped + at_hub_samples_held(w->host.hub, member);
    uint64_t said = c->file.memory ? atomic_load(&at_seat_chair_slot(c)->drawn) : c->drawn;
    bool     believable = said >= counted && said < AT_MESSAGE_COUNT_MAX;
    return believable ? said : counted;
}

static void tell_lost(at_seat_world *w, at_node id, bool returns, bool left, const char *reason)
{
    at_seat_chair *c = &w->chair[id - 1];
    char           text[300];
    snprintf(text, sizeof text, "%s", reason); /* it may be the guest's */
    at_seat_measure(w, id); /* the last time; before the event, whose time is later */
    at_event event = {.kind = AT_EV_LOST, .worker = id, .now = at_host_now(&w->host)};
    c->drawn = at_seat_drawn(w, id);
    event.as.lost.drawn = c->drawn;
    event.as.lost.returns = returns;
    event.as.lost.left = left;
    if (c->guest) at_seat_hub_forget(c->guest);
    c->guest = NULL;
    at_host_process(&w->host, id, 0);
    update_board(w);
    if (!w->host.finished) at_host_event(&w->host, &event, &(at_about){.text = text});
}

/* ---- taking seats ---------------------------------------------------------------------------- */

/* The rules that a worker follows, as text in the order of at_seat_rules. */
static json_t *rules_of(const at_plan *plan)
{
    json_t *texts = json_array();
    for (size_t i = 0; i < AT_SEAT_RULES; i++) {
        char rule[AT_RULE_TEXT_SIZE];
        json_array_append_new(
            texts, json_string(at_plan_rule_text(plan, at_seat_rules[i], rule, sizeof rule)));
    }
    return texts;
}

static json_t *welcome_for(const at_seat_world *w, at_node id)
{
    const at_world_context *context = w->context;
    const at_plan          *plan = context->plan;
    const at_pace_options  *pace = context->pace_options;
    const at_seat_chair    *c = &w->chair[id - 1];
    char                    compress[AT_COMPRESS_TEXT_SIZE];
    return json_pack(
        "{s:i, s:i, s:i, s:I, s:i, s:I, s:i, s:b, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, "
        "s:f, s:I, s:I, s:s, s:o}",
        "rank", (int)id - 1, "workers", (int)plan->workers, "workers_max", (int)plan->workers_max,
        "seed", (json_int_t)context->seed, "incarnation", (int)c->incarnation, "sequence",
        (json_int_t)w->host.hub->member[id - 1].sequence, "slots", (int)w->slots, "cut_after",
        (int)plan->cut_after, "micro_batch", (int)plan->micro_batch, "sample_time",
        (json_int_t)context->sample_time, "round_ns", (json_int_t)pace->round_ns_mean, "rounds",
        (json_int_t)pace->rounds_per_epoch, "spin", (json_int_t)w->seat_spin_ns, "floats",
        (json_int_t)w->floats, "base", (json_int_t)w->seats->base, "straggler", pace->model,
        "scale", pace->scale, "trace_scale", pace->trace_scale, "drawn", (json_int_t)c->drawn,
        "redrawn", (json_int_t)w->host.hub->member[id - 1].redrawn, "compress",
        at_compress_text(context->compress, compress), "rules", rules_of(plan));
}

static at_err send_welcome(const at_seat_world *w, at_node id, at_guest *g, at_fail *fail)
{
    json_t *json = welcome_for(w, id);
    char   *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    int     fds[AT_SEAT_FDS] = {w->params.fd, w->seats->bells.fd, w->chair[id - 1].file.fd};
    json_decref(json);
    if (!text) return at_fail_memory(fail);
    at_err err = at_seat_hub_send(g, AT_SEAT_WELCOME, (at_seat_part){text, strlen(text)},
                                  (at_seat_part){0}, fds, fail);
    free(text);
    return err;
}

/* Keeps the memory of the last holder if the hub still needs a gradient in it, or that of an
 * earlier one if that is where the gradient is. */
static void retire_file(at_seat_world *w, at_node id)
{
    at_seat_chair   *c = &w->chair[id - 1];
    const at_hub    *hub = w->host.hub;
    const at_member *member = &hub->member[id - 1];
    bool             holds = hub->plan->release->holds && member->pieces_held > 0;
    assert(!hub->applying);
    bool earlier = holds && c->before.memory && hub->piece[id - 1].incarnation < c->incarnation;
    if (!holds || earlier) at_seat_file_close(&c->file);
    if (earlier) return;
    at_seat_file_close(&c->before);
    c->before = c->file;
}

/* New memory for a new holder: the one before may still write to its own. */
static at_err prepare_chair(at_seat_world *w, at_node id, at_fail *fail)
{
    at_seat_chair *c = &w->chair[id - 1];
    at_seat_file   file;
    size_t         size;
    if (!at_seat_slot_size(w->floats, w->slots, &size)) return at_fail_memory(fail);
    AT_TRY(at_seat_file_new("anytime-seat", size, false, &file, fail));
    retire_file(w, id);
    c->file = file;
    c->taken = c->scores = c->received = 0;
    c->reported = c->evicted = c->nonsense = c->named = false;
    c->grace = 0;
    c->joined = at_host_now(&w->host);
    c->incarnation++;
    atomic_store(&at_seat_chair_slot(c)->drawn, c->drawn);
    return AT_OK;
}

static at_err seat_remote(at_seat_world *w, at_node id, at_guest *g, at_fail *fail)
{
    at_remote_place place = {.file = &w->chair[id - 1].file,
                             .floats = w->floats,
                             .slots = w->slots,
                             .groups = w->seats->spec.groups,
                             .packing = at_packing_used(&w->packings.gradient)};
    return at_remote_seat(&g->remote, &place, fail);
}

static void seat_guest(at_seat_world *w, at_node id, at_guest *g)
{
    at_seat_chair *c = &w->chair[id - 1];
    at_fail        fail = {0};
    at_err         err = prepare_chair(w, id, &fail);
    if (!err && g->remote.link) err = seat_remote(w, id, g, &fail);
    if (!err) err = send_welcome(w, id, g, &fail);
    if (err) {
        at_seat_say(w, id, fail.text);
        at_seat_hub_forget(g);
        return;
    }
    at_spec_deinit(&g->spec);
    g->stage = AT_GUEST_SEATED;
    g->id = id;
    at_seat_hub_allow(g, g->inbox.size_max + 2 * w->floats * sizeof(float));
    c->guest = g;
    c->child = g->child;
    if (g->child >= 0) w->seats->sat[g->child] = true;
    update_board(w);
    at_host_process(&w->host, id, g->pid);
    at_event event = {.kind = AT_EV_JOINED, .worker = id, .now = at_host_now(&w->host)};
    event.as.joined.incarnation = c->incarnation;
    at_host_event(&w->host, &event, &(at_about){.pid = g->pid});
    at_seat_measure(w, id);
}

/* Once for each version; a seat that becomes the first is asked again. */
void at_seat_ask_to_publish(at_seat_world *w)
{
    at_node first = w->seats->first_id;
    if (first == 0 || (w->asked_id == first && w->asked_version == w->host.hub->version)) return;
    w->asked_id = first;
    w->asked_version = w->host.hub->version;
    atomic_fetch_add(&at_seat_chair_slot(&w->chair[first - 1])->publish, 1);
}

static bool is_free(const at_seat_world *w, at_node id)
{
    return id >= 1 && id <= at_seat_workers_max(w) && !w->chair[id - 1].guest &&
           w->host.hub->member[id - 1].state == AT_MEMBER_AWAY;
}

/* The rank that it asks for, otherwise one that no process of ours is expected to take, otherwise
 * any. */
static at_node find_seat(const at_seat_world *w, const at_guest *g)
{
    at_node any = 0, wanted = g->rank >= 0 ? (at_node)g->rank + 1 : 0;
    bool    ours = at_seat_children_command(w->seats->children);
    if (is_free(w, wanted)) return wanted;
    for (at_node id = at_seat_workers_max(w); id >= 1; id--) {
        bool expected = ours && w->host.hub->member[id - 1].expected;
        if (is_free(w, id) && (!any || !expected)) any = id;
    }
    return any;
}

/* Where seats update, a joiner needs the parameters of the current version, which the first seat is
 * asked for. When nobody is left who has them, the run goes on from the last that are known. */
static bool has_params(at_seat_world *w)
{
    at_seat_hub  *seats = w->seats;
    const at_hub *hub = w->host.hub;
    char          text[120];
    if (!seats->spec.at_workers || seats->base == hub->version) return true;
    if (seats->first_id > 0) {
        at_seat_ask_to_publish(w);
        return false;
    }
    snprintf(text, sizeof text,
             "the parameters of step %llu are lost; continuing with those of %llu",
             (unsigned long long)hub->version, (unsigned long long)seats->base);
    at_host_say(&w->host, at_host_now(&w->host), text);
    seats->base = hub->version;
    return true;
}

void at_seat_place_guests(at_seat_world *w)
{
    w->seats->over = w->host.hub->end != AT_END_RUNNING;
    for (uint32_t i = 0; i < w->seats->guests_max; i++) {
        at_guest *g = &w->seats->guest[i];
        if (g->stage != AT_GUEST_READY || w->host.finished) continue;
        at_node id = find_seat(w, g);
        if (w->seats->over)
            at_seat_hub_refuse(w->seats, g, AT_SEAT_OVER);
        else if (id == 0)
            at_seat_hub_refuse(w->seats, g, "all seats are taken; see --workers-max");
        else if (has_params(w))
            seat_guest(w, id, g);
    }
}

static const char *why_evicted(const at_seat_world *w, at_node id)
{
    return w->chair[id - 1].nonsense ? "evicted after a bad report"
                                     : at_hub_evicted_text(w->host.hub, id);
}

static const char *why_gone(const at_seat_world *w, at_node id)
{
    const at_seat_chair *c = &w->chair[id - 1];
    if (c->evicted) return why_evicted(w, id);
    return c->guest->why[0] ? c->guest->why : "lost its connection";
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Those who have said that they leave, were evicted, or have hung up without being ours. */
void at_seat_part_ways(at_seat_world *w)
{
    for (at_node id = 1; id <= at_seat_workers_max(w) && !w->host.finished; id++) {
        const at_seat_chair *c = &w->chair[id - 1];
        if (!c->guest) continue;
        bool left = atomic_load(&at_seat_chair_slot(c)->left) && !c->evicted;
        bool ours = c->child >= 0 && at_seat_children_pid(w->seats->children, (uint32_t)c->child);
        bool gone = !ours && (c->evicted || c->guest->hung_up);
        if (!left && !gone) continue;
        at_seat_read_reports(w, id);
        if (w->seats->spec.at_workers) at_seat_hub_poll(w->seats); /* its last parameters */
        if (left && c->child >= 0) w->left[c->child] = true;
        if (left && w->host.finished == false) at_seat_read_scores(w, id);
        if (c->guest) tell_lost(w, id, false, left, left ? "left" : why_gone(w, id));
    }
}

static void say_given_up(at_seat_world *w, const at_seat_end *end)
{
    char        text[500];
    const char *line = at_seat_children_last_line(w->seats->children, end->rank);
    snprintf(text, sizeof text, "rank %u %s and is not started again%s%s", end->rank, end->text,
             *line ? ": " : "", line);
    at_host_say(&w->host, at_host_now(&w->host), text);
}

static void record_usage(at_seat_world *w, const at_seat_end *end)
{
    at_usage usage;
    at_usage_ended(end->pid, &end->rusage, &usage);
    at_host_usage(&w->host, end->rank + 1, &usage, at_host_now(&w->host));
}

static void bury(at_seat_world *w, const at_seat_end *end)
{
    bool running = w->host.hub->end == AT_END_RUNNING, sat = false;
    bool returns = running && end->returns && !w->left[end->rank];
    w->seats->restart_at[end->rank] =
        returns ? at_seat_children_ready_at(w->seats->children, end->rank) : AT_NEVER;
    record_usage(w, end);
    if (!running) at_seat_hub_ended(w->seats, end->rank);
    for (at_node id = 1; id <= at_seat_workers_max(w) && !w->host.finished; id++) {
        const at_seat_chair *c = &w->chair[id - 1];
        if (!c->guest || c->child != (int64_t)end->rank) continue;
        if (w->seats->spec.at_workers) at_seat_hub_poll(w->seats);
        bool mine = id == end->rank + 1; /* further seats of a process are not taken again */
        sat = true;
        at_seat_read_reports(w, id);
        at_seat_read_scores(w, id);
        tell_lost(w, id, returns && mine, end->well, c->evicted ? why_evicted(w, id) : end->text);
    }
    if (!sat && !returns && !w->host.finished && is_free(w, end->rank + 1))
        tell_lost(w, end->rank + 1, false, end->well, end->text);
    if (running && !returns && !end->well && !w->left[end->rank]) say_given_up(w, end);
}

void at_seat_reap(at_seat_world *w)
{
    at_seat_end end;
    while (!w->host.finished && at_seat_children_reap(w->seats->children, &end)) bury(w, &end);
    at_host_reap(&w->host, at_host_now(&w->host));
}

void at_seat_start_again(at_seat_world *w)
{
    for (uint32_t i = 0; i < w->seats->ranks_max; i++) {
        at_fail fail = {0};
        if (w->seats->restart_at[i] > at_clock_now()) continue;
        w->seats->restart_at[i] = AT_NEVER;
        if (w->host.hub->end != AT_END_RUNNING) continue;
        if (!at_seat_hub_start(w->seats, i, &fail)) continue;
        at_seat_say(w, i + 1, fail.text);
        if (is_free(w, i + 1)) tell_lost(w, i + 1, false, false, "could not be started again");
    }
}

/* SIGUSR2 asks for another process, up to --workers-max. */
void at_seat_start_more(at_seat_world *w)
{
    unsigned wanted = at_signals_joins();
    if (!at_seat_children_command(w->seats->children)) return; /* others start the workers */
    for (; wanted > 0; wanted--) {
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

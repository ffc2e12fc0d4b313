#include "step/hub.h"

#include <assert.h>
#include <math.h>

#include "base/rng.h"
#include "step/hub_check.h"
#include "step/lease.h"
#include "step/limits.h"
#include "step/snapshot.h"
#include "step/switch.h"

static at_member *member_of(at_hub *hub, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= hub->plan->workers_max);
    return &hub->member[worker - 1];
}

static bool is_present(const at_member *member)
{
    return member->state != AT_MEMBER_AWAY;
}

/* ---- sample accounting ---------------------------------------------------------------------- */

static void trace(at_hub *hub, uint64_t kind, const at_piece *piece, uint64_t samples)
{
    assert(kind >= 1);
    assert(kind < 2 + AT_DROP_COUNT);
    const uint64_t words[] = {kind,    hub->version,  piece->worker, piece->sequence,
                              samples, piece->version};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hub->trace = at_rng_mix(hub->trace + 0x9e3779b97f4a7c15u + words[i]);
}

static void drop(at_hub *hub, at_member *member, const at_piece *piece, uint64_t samples,
                 at_drop why, at_out *out)
{
    assert(why < AT_DROP_COUNT);
    assert(samples == 0 || piece->worker == member->id);
    if (samples == 0) return;
    member->dropped += samples;
    hub->samples_dropped += samples;
    trace(hub, 2 + (uint64_t)why, piece, samples);
    at_action *action = at_out_push(out, AT_ACT_DROP);
    action->worker = member->id;
    action->as.drop.sequence = piece->sequence;
    action->as.drop.samples = samples;
    action->as.drop.version = piece->version;
    action->as.drop.why = why;
}

uint64_t at_hub_samples_held(const at_hub *hub, const at_member *member)
{
    assert(member->pieces_held <= hub->pieces);
    if (member->pieces_held == 0) return 0;
    if (hub->plan->release->holds) return hub->piece[member->id - 1].samples;
    uint64_t samples = 0;
    for (uint32_t i = 0; i < hub->pieces; i++)
        if (hub->piece[i].worker == member->id) samples += hub->piece[i].samples;
    return samples;
}

/* ---- orders --------------------------------------------------------------------------------- */

static void send_leave(at_hub *hub, at_member *member, at_ns now, at_out *out)
{
    assert(hub->end != AT_END_RUNNING);
    assert(is_present(member));
    assert(member->state != AT_MEMBER_LEAVING); /* one lease in total */
    member->state = AT_MEMBER_LEAVING;
    member->since = now;
    at_action *send = at_out_push(out, AT_ACT_SEND);
    send->worker = member->id;
    send->as.order.leave = true;
    at_lease_start(hub, now, out);
}

static at_order *push_order(const at_hub *hub, at_member *member, at_out *out)
{
    assert(hub->end == AT_END_RUNNING);
    const at_plan *plan = hub->plan;
    at_action     *send = at_out_push(out, AT_ACT_SEND);
    at_order      *order = &send->as.order;
    send->worker = member->id;
    *order = (at_order){.round = member->rounds_begun,
                        .version = hub->version,
                        .position = AT_POSITION_OWN,
                        .used = hub->samples_used,
                        .again = plan->release->self_starting,
                        .then = hub->switched};
    member->ordered = hub->share[member->id - 1];
    plan->work->amount(plan, &member->ordered, order);
    assert(order->samples_max >= 1);
    return order;
}

static void set_period_timer(const at_hub *hub, at_out *out)
{
    assert(!hub->applying);
    at_ns at = hub->plan->gather->closes_at ? hub->plan->gather->closes_at(hub) : AT_NEVER;
    if (at == AT_NEVER) return;
    at_action *timer = at_out_push(out, AT_ACT_TIMER);
    timer->as.timer.timer = AT_TIMER_PERIOD;
    timer->as.timer.at = at;
}

static void set_save_timer(const at_hub *hub, at_ns now, at_out *out)
{
    if (!hub->plan->saves || hub->plan->save_time == 0) return;
    at_action *timer = at_out_push(out, AT_ACT_TIMER);
    timer->as.timer.timer = AT_TIMER_SAVE;
    timer->as.timer.at = now + hub->plan->save_time;
}

/* The first order opens the first step, so the time that workers take to join is not part of it. */
static void begin(at_hub *hub, at_ns now, at_out *out)
{
    assert(hub->assembled);
    assert(hub->version == 0 || hub->resumed);
    hub->began_at = now - hub->elapsed_before;
    set_save_timer(hub, now, out);
    at_lease_step_opened(hub, now);
    set_period_timer(hub, out);
}

/* The next samples of the common order, or those of the lost round that is done again. */
static void deal(at_hub *hub, at_member *member, at_order *order)
{
    assert(order->samples_max >= 1);
    bool redo = member->redo_on == hub->version;
    member->redo_on = AT_VERSION_NONE;
    if (!redo) {
        member->dealt_at = hub->dealt;
        hub->dealt += order->samples_max;
    }
    order->position = member->dealt_at;
    assert(order->position < hub->dealt);
}

static void send_order(at_hub *hub, at_member *member, at_ns now, at_out *out)
{
    assert(member->state == AT_MEMBER_IDLE);
    assert(!hub->applying);
    assert(!hub->draining);
    if (hub->began_at == AT_NEVER) begin(hub, now, out);
    at_order *order = push_order(hub, member, out);
    if (hub->plan->deal_global) deal(hub, member, order);
    member->rounds_begun++;
    member->begun_on = hub->version;
    member->state = AT_MEMBER_WORKING;
    member->since = now;
    at_lease_start(hub, now, out);
}

/* With too few workers the run holds: nobody starts a round until others join. */
static bool is_holding(const at_hub *hub)
{
    assert(hub->present <= hub->plan->workers_max);
    return hub->assembled && hub->present < hub->plan->workers_min;
}

/* Behind a barrier the open step holds too: it waits for who takes the place of the lost. Under
 * other rules a step does not wait for anybody in particular, and what is reported counts. */
static bool holds_step(const at_hub *hub)
{
    return hub->plan->release->holds && is_holding(hub);
}

static bool may_release(const at_hub *hub)
{
    return hub->assembled && !is_holding(hub) && !hub->applying && !hub->draining &&
           hub->end == AT_END_RUNNING;
}

static void release_member(at_hub *hub, at_member *member, at_ns now, at_out *out)
{
    assert(may_release(hub));
    if (member->state == AT_MEMBER_IDLE && hub->plan->release->may_start(hub, member))
        send_order(hub, member, now, out);
}

static bool end_if_complete(at_hub *hub, at_ns now, at_out *out);

/* Starts every member that may start, in worker order, so that --deal global deals in order. */
static void release_ready(at_hub *hub, at_ns now, at_out *out)
{
    if (!may_release(hub) || end_if_complete(hub, now, out)) return;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++)
        release_member(hub, &hub->member[i], now, out);
}

/* Self-starting workers need no further orders, except when their amounts change. A paused worker
 * may be waiting already, and would take new amounts as an order to start. */
static void send_new_amounts(const at_hub *hub, at_out *out)
{
    assert(hub->end == AT_END_RUNNING);
    assert(!hub->applying);
    if (!hub->plan->release->self_starting || hub->draining || is_holding(hub)) return;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        at_member      *member = &hub->member[i];
        const at_share *share = &hub->share[i];
        bool            same = member->ordered.samples == share->samples &&
                    member->ordered.time_limit == share->time_limit;
        if (member->state == AT_MEMBER_WORKING && !same) push_order(hub, member, out);
    }
}

/* ---- checkpoints ---------------------------------------------------------------------------- */

static void save(at_hub *hub, bool last, at_ns now, at_out *out)
{
    assert(!hub->applying); /* a snapshot is of a closed step */
    if (!hub->plan->saves) return;
    at_snapshot_take(hub->snapshot, hub, now);
    at_action *action = at_out_push(out, AT_ACT_SAVE);
    action->as.save.step = hub->version;
    action->as.save.last = last;
    action->as.save.snapshot = hub->snapshot;
}

static void set_save_next(at_hub *hub)
{
    uint64_t every = hub->plan->save_steps;
    hub->save_next =
        hub->plan->saves && every > 0 ? (hub->version / every + 1) * every : UINT64_MAX;
    assert(hub->save_next > hub->version);
}

/* Tells a self-starting worker to wait for an order after its round. */
static void pause_member(const at_hub *hub, at_member *member, at_out *out)
{
    if (!hub->plan->release->self_starting || member->state != AT_MEMBER_WORKING) return;
    at_order *order = push_order(hub, member, out);
    order->again = false;
    order->pause = true;
}

static void drain_if_due(at_hub *hub, at_out *out)
{
    assert(!hub->applying);
    bool due = hub->version >= hub->save_next || hub->switching;
    if (!due || hub->draining) return;
    hub->draining = true;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) pause_member(hub, &hub->member[i], out);
}

static void close_step(at_hub *hub, at_ns now, at_out *out);

/* All workers wait: the next orders come from the second plan. */
static void switch_if_due(at_hub *hub, at_ns now)
{
    if (!hub->switching) return;
    at_hub_switch(hub);
    hub->switching = false;
    at_progress begin = at_size_begin(hub, now);
    hub->plan->size->decide(hub->size_state, hub->plan, hub->share, &begin);
}

/* Once no worker is working, closes the rest of the open step, if any; then saves and switches,
 * whatever is due. */
static void save_if_drained(at_hub *hub, at_ns now, at_out *out)
{
    assert(!hub->draining || hub->plan->saves || hub->switching);
    if (!hub->draining || hub->applying || hub->end != AT_END_RUNNING) return;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        at_member_state state = hub->member[i].state;
        if (state == AT_MEMBER_WORKING || state == AT_MEMBER_EVICTED) return;
    }
    if (hub->pieces > 0) {
        close_step(hub, now, out); /* APPLIED leads back here */
        return;
    }
    bool saves = hub->version >= hub->save_next;
    hub->draining = false;
    switch_if_due(hub, now);
    if (saves) set_save_next(hub);
    at_lease_step_opened(hub, now);
    if (saves) save(hub, false, now, out);
    set_period_timer(hub, out);
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) hub->member[i].begun_on = AT_VERSION_NONE;
    release_ready(hub, now, out);
}

/* ---- end of the run ------------------------------------------------------------------------- */

static void finish_if_all_gone(at_hub *hub, at_ns now, at_out *out)
{
    assert(hub->pieces == 0);
    assert(hub->end != AT_END_RUNNING);
    if (hub->present > 0 || hub->finished) return;
    hub->finished = true;
    hub->ended_at = now;
    at_out_push(out, AT_ACT_FINISH)->as.finish.why = hub->end;
}

/* From here on nothing is applied: all workers are ordered to leave, and samples they drew but did
 * not report count as dropped once they are gone. */
static void wind_down(at_hub *hub, at_end why, at_ns now, at_out *out)
{
    assert(why != AT_END_RUNNING);
    assert(why < AT_END_COUNT);
    assert(!hub->applying);
    if (hub->end != AT_END_RUNNING) return;
    if (why != AT_END_DIVERGED) save(hub, true, now, out);
    hub->end = why;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        at_member *member = &hub->member[i];
        at_piece   held = {
              .worker = member->id, .sequence = member->sequence, .version = hub->version};
        if (hub->plan->release->holds) held = hub->piece[i];
        drop(hub, member, &held, at_hub_samples_held(hub, member), AT_DROP_STOPPED, out);
        member->pieces_held = 0;
        if (member->state == AT_MEMBER_IDLE || member->state == AT_MEMBER_WORKING)
            send_leave(hub, member, now, out);
    }
    hub->pieces = 0;
    finish_if_all_gone(hub, now, out);
}

/* A run that was killed after its last checkpoint is resumed only to be finished. */
static bool end_if_complete(at_hub *hub, at_ns now, at_out *out)
{
    if (!hub->resumed || hub->began_at != AT_NEVER) return false;
    const at_limits *limits = &hub->plan->limits;
    bool             timeout = limits->time > 0 && hub->elapsed_before >= limits->time;
    at_end           end = at_limits_reached(hub, hub->began_at); /* without its time */
    if (end == AT_END_RUNNING && timeout) end = AT_END_SECONDS;
    if (end == AT_END_RUNNING && at_limits_targets_hit(hub)) end = AT_END_TARGET;
    if (end == AT_END_RUNNING) return false;
    hub->began_at = now - hub->elapsed_before;
    wind_down(hub, end, now, out);
    return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Closes the gaps between held gradients; a step lists them in worker order. */
static void collect_held(at_hub *hub)
{
    assert(hub->plan->release->holds);
    uint32_t count = 0;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++)
        if (hub->member[i].pieces_held > 0) hub->piece[count++] = hub->piece[i];
    assert(count == hub->pieces);
}

static void count_used(at_hub *hub)
{
    for (uint32_t i = 0; i < hub->pieces; i++) {
        const at_piece *piece = &hub->piece[i];
        at_member      *member = member_of(hub, piece->worker);
        assert(piece->version <= hub->version); /* versions beyond the hub's do not exist */
        trace(hub, 1, piece, piece->samples);
        member->used += piece->samples;
        member->pieces_held = 0;
    }
}

static void close_step(at_hub *hub, at_ns now, at_out *out)
{
    assert(hub->end == AT_END_RUNNING);
    assert(!hub->applying);
    assert(hub->samples_open >= hub->pieces); /* no gradient is empty */
    bool holds = hub->plan->release->holds;
    assert(hub->pieces > 0);
    if (hub->plan->gather->closed) hub->plan->gather->closed(hub, now);
    if (holds) collect_held(hub);
    count_used(hub);
    at_action *apply = at_out_push(out, AT_ACT_APPLY);
    apply->as.apply.step = hub->version + 1;
    apply->as.apply.samples = hub->samples_open;
    apply->as.apply.samples_used = hub->samples_used;
    apply->as.apply.pieces = hub->piece;
    apply->as.apply.count = hub->pieces;
    apply->as.apply.folded = !holds;
    apply->as.apply.loss_sum = hub->loss_open;
    apply->as.apply.wait_ns = now - hub->opened_at;
    apply->as.apply.lr_factor = at_size_lr_factor(hub);
    hub->samples_used += hub->samples_open;
    hub->applying = true;
    hub->applied_at = now;
    assert(hub->applied_at >= hub->opened_at);
}

static void close_if_ready(at_hub *hub, at_ns now, at_out *out)
{
    if (hub->applying || hub->pieces == 0 || hub->end != AT_END_RUNNING) return;
    if (holds_step(hub)) return;
    const at_gather_rule *gather = hub->plan->gather;
    bool                  full = !hub->plan->release->holds && hub->pieces == hub->pieces_max;
    bool                  timed = gather->arrived && gather->arrived(hub, now);
    hub->reports_needed = full ? 0 : gather->missing(hub, now);
    if (hub->reports_needed == 0)
        close_step(hub, now, out);
    else if (timed)
        set_period_timer(hub, out);
    assert(hub->reports_needed <= hub->pieces_max);
}

static bool evaluation_due(at_hub *hub)
{
    assert(hub->version >= 1);
    const at_plan *plan = hub->plan;
    if (plan->eval_steps > 0) return hub->version % plan->eval_steps == 0;
    if (plan->eval_samples == 0 || hub->samples_used < hub->eval_samples_next) return false;
    hub->eval_samples_next = (hub->samples_used / plan->eval_samples + 1) * plan->eval_samples;
    return true;
}

static void evaluate_if_due(at_hub *hub, at_out *out)
{
    assert(!hub->applying);
    if (!evaluation_due(hub)) return;
    hub->evaluations_due++;
    if (hub->evaluating) { /* the previous one still runs */
        hub->evaluations_skipped++;
        return;
    }
    hub->evaluating = true;
    at_out_push(out, AT_ACT_EVALUATE)->as.evaluate.step = hub->version;
}

static void on_applied(at_hub *hub, const at_event *event, at_out *out)
{
    assert(hub->applying);
    at_ns       now = event->now;
    bool        finite = isfinite(hub->loss_open) || hub->plan->nonfinite == AT_NONFINITE_IGNORE;
    double      loss = hub->loss_open / (double)hub->samples_open;
    at_progress progress = at_size_progress(hub, event);
    hub->applying = false;
    hub->apply_ns = now - hub->applied_at;
    hub->quorum.reached_at = hub->quorum.closes_at = AT_NEVER;
    hub->evicted_since_step = 0;
    hub->version++;
    hub->pieces = 0;
    hub->samples_open = 0;
    hub->loss_open = 0;
    hub->dealt_closed = hub->dealt;
    at_lease_step_opened(hub, now);
    at_end end = finite ? at_limits_reached(hub, now) : AT_END_DIVERGED;
    if (end != AT_END_RUNNING) {
        wind_down(hub, end, now, out);
        return;
    }
    evaluate_if_due(hub, out);
    hub->plan->size->decide(hub->size_state, hub->plan, hub->share, &progress);
    set_period_timer(hub, out);
    send_new_amounts(hub, out);
    if (at_switch_due(hub, loss, now)) hub->switching = true;
    drain_if_due(hub, out);
    release_ready(hub, now, out);
    save_if_drained(hub, now, out);
    assert(!hub->applying);
}

static void admit_waiting(at_hub *hub);

/* ---- reports -------------------------------------------------------------------------------- */

static void hold(at_hub *hub, at_member *member, const at_piece *piece, double loss_sum,
                 at_out *out)
{
    assert(hub->end == AT_END_RUNNING);
    assert(!hub->applying);
    assert(piece->weight >= 0);
    assert(hub->pieces < hub->pieces_max);
    if (hub->plan->release->holds) {
        assert(member->pieces_held == 0); /* under a barrier one gradient per worker and step */
        hub->piece[member->id - 1] = *piece;
    } else {
        hub->piece[hub->pieces] = *piece;
        at_out_push(out, AT_ACT_ADD)->as.add = *piece;
    }
    member->pieces_held++;
    hub->pieces++;
    hub->nonfinite_row = 0;
    hub->samples_open += piece->samples;
    hub->loss_open += loss_sum;
}

/* Whether this report must not be used, whatever its version. */
static bool is_refused(const at_hub *hub, const at_work *work)
{
    bool finite = work->nonfinite == 0 && isfinite(work->loss_sum);
    return !finite && !work->abandoned && hub->plan->nonfinite != AT_NONFINITE_IGNORE;
}

/* The parameters are still those of the last closed step. A worker behind a barrier waits for the
 * next version, like one that has reported; if nobody is left in the step, all start over. */
static void refuse(at_hub *hub, at_member *member, const at_piece *piece, at_ns now, at_out *out)
{
    assert(hub->end == AT_END_RUNNING);
    uint64_t most = AT_NONFINITE_ROW + (uint64_t)AT_NONFINITE_ROW_WORKER * hub->present;
    drop(hub, member, piece, piece->samples, AT_DROP_NONFINITE, out);
    hub->nonfinite_row++;
    if (hub->plan->nonfinite == AT_NONFINITE_STOP || hub->nonfinite_row > most)
        wind_down(hub, AT_END_DIVERGED, now, out);
}

static void take_report(at_hub *hub, at_member *member, const at_report *report, at_ns now,
                        at_out *out)
{
    const at_work *work = &report->work;
    at_piece       piece = {.worker = member->id,
                            .slot = report->slot,
                            .samples = work->samples,
                            .incarnation = report->incarnation,
                            .sequence = report->sequence,
                            .version = work->version};
    if (hub->end != AT_END_RUNNING) {
        drop(hub, member, &piece, work->samples, AT_DROP_STOPPED, out);
    } else if (is_refused(hub, work)) {
        refuse(hub, member, &piece, now, out);
    } else if (work->abandoned) {
        member->begun_on = AT_VERSION_NONE; /* it may start over on the same version */
        drop(hub, member, &piece, work->samples, AT_DROP_ABANDONED, out);
    } else {
        assert(work->samples >= 1);
        assert(work->version <= hub->version);
        piece.weight = hub->plan->stale->weight(hub->plan, hub->version - work->version);
        if (piece.weight < 0)
            drop(hub, member, &piece, work->samples, AT_DROP_STALE, out);
        else
            hold(hub, member, &piece, work->loss_sum, out);
    }
}

/* Whether this round gave nothing although its worker was sent newer parameters than it used.
 * Without a barrier that is certain only when the newest ones have been there for a whole lease. */
static bool is_outdated(const at_hub *hub, const at_member *member, const at_work *work, at_ns now)
{
    bool holds = hub->plan->release->holds;
    bool sent = holds ? member->begun_on == hub->version
                      : work->version < hub->version && now - hub->opened_at >= at_hub_lease(hub);
    if (!sent || is_refused(hub, work)) return false;
    return work->abandoned || hub->plan->stale->weight(hub->plan, hub->version - work->version) < 0;
}

static void on_report(at_hub *hub, const at_event *event, at_out *out)
{
    at_member       *member = member_of(hub, event->worker);
    const at_report *report = &event->as.report;
    bool fresh = report->incarnation == member->incarnation && report->sequence > member->sequence;
    bool owed = member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_LEAVING;
    if (!fresh || !owed) return; /* from a dead or evicted worker; LOST accounts for its samples */
    member->sequence = report->sequence;
    member->reported_at = event->now;
    member->rounds_ended++;
    if (member->state == AT_MEMBER_WORKING) { /* leaving has one lease in total */
        at_lease_observe(hub, member->since, event->now, out);
        member->since = event->now;
    }
    if (hub->plan->size->observe)
        hub->plan->size->observe(hub->size_state, hub->plan, member->id, &report->work);
    if (member->state == AT_MEMBER_WORKING && !report->again) member->state = AT_MEMBER_IDLE;
    if (report->again) member->rounds_begun++;
    if (report->again && (hub->draining || is_holding(hub)))
        pause_member(hub, member, out); /* again: the first pause came too late */
    bool outdated = is_outdated(hub, member, &report->work, event->now);
    take_report(hub, member, report, event->now, out);
    if (hub->reports_needed > 0) hub->reports_needed--;
    bool full = hub->pieces == hub->pieces_max;
    /* Behind a barrier nobody works on a version twice. */
    bool in_vain = outdated && hub->plan->release->holds && !report->work.abandoned;
    bool out_of_step = in_vain || is_refused(hub, &report->work);
    at_lease_count_outdated(hub, member, outdated, out);
    if (full || hub->reports_needed == 0 || out_of_step) close_if_ready(hub, event->now, out);
    if (out_of_step && hub->end == AT_END_RUNNING && !hub->applying) admit_waiting(hub);
    if (hub->plan->release->looks_at_others || out_of_step)
        release_ready(hub, event->now, out);
    else if (may_release(hub))
        release_member(hub, member, event->now, out);
    save_if_drained(hub, event->now, out);
}

/* ---- joins and losses ----------------------------------------------------------------------- */

static bool step_in_progress(const at_hub *hub)
{
    if (hub->pieces > 0) return true;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++)
        if (hub->member[i].state == AT_MEMBER_WORKING) return true;
    return false;
}

static uint64_t slowest_round(const at_hub *hub, uint64_t fallback)
{
    uint64_t slowest = UINT64_MAX;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        const at_member *member = &hub->member[i];
        bool live = member->state == AT_MEMBER_IDLE || member->state == AT_MEMBER_WORKING;
        if (live && member->rounds_ended < slowest) slowest = member->rounds_ended;
    }
    return slowest == UINT64_MAX ? fallback : slowest;
}

static void set_expected(at_hub *hub, at_member *member, bool expected)
{
    assert(!member->expected || hub->expected > 0);
    hub->expected += expected;
    hub->expected -= member->expected;
    member->expected = expected;
}

static void set_join_timer(at_ns at, at_out *out)
{
    at_action *timer = at_out_push(out, AT_ACT_TIMER);
    timer->as.timer.timer = AT_TIMER_JOIN;
    timer->as.timer.at = at;
}

static void check_assembled(at_hub *hub, at_out *out)
{
    if (hub->assembled || hub->expected > 0) return;
    hub->assembled = true;
    if (hub->present >= hub->plan->workers_min) set_join_timer(AT_NEVER, out);
}

/* The first loss that leaves too few: others have --join-timeout to join. */
static void hold_if_few(at_hub *hub, at_ns now, at_out *out)
{
    assert(hub->present < hub->plan->workers_max);
    if (!hub->assembled || hub->present + 1 != hub->plan->workers_min) return;
    set_join_timer(now + hub->plan->join_timeout, out);
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) pause_member(hub, &hub->member[i], out);
}

/* The time to join is up: the run continues with those present, or stops when they are too few. */
static void on_join_timeout(at_hub *hub, at_ns now, at_out *out)
{
    if (hub->end != AT_END_RUNNING) return;
    if (hub->present < hub->plan->workers_min) {
        wind_down(hub, AT_END_FEW, now, out);
        return;
    }
    for (uint32_t i = 0; !hub->assembled && i < hub->plan->workers_max; i++)
        set_expected(hub, &hub->member[i], false);
    hub->assembled = true;
    release_ready(hub, now, out);
    assert(hub->present >= hub->plan->workers_min);
}

/* A late joiner takes part from the next step on, so it cannot prolong the current one. If no
 * worker is working, or the step is held until there are enough, it starts at once. */
static void on_joined(at_hub *hub, const at_event *event, at_out *out)
{
    assert(hub->present < hub->plan->workers_max);
    at_member *member = member_of(hub, event->worker);
    assert(!is_present(member));
    assert(event->as.joined.incarnation > member->incarnation);
    bool waits = hub->assembled && step_in_progress(hub) && !holds_step(hub);
    if (hub->assembled) member->rounds_ended = slowest_round(hub, member->rounds_ended);
    member->state = AT_MEMBER_IDLE;
    set_expected(hub, member, false);
    hub->present++;
    member->incarnation = event->as.joined.incarnation;
    member->outdated = 0;
    member->begun_on = waits ? hub->version : AT_VERSION_NONE;
    if (hub->end != AT_END_RUNNING) {
        send_leave(hub, member, event->now, out);
        return;
    }
    if (hub->assembled && hub->present == hub->plan->workers_min) set_join_timer(AT_NEVER, out);
    check_assembled(hub, out);
    release_ready(hub, event->now, out);
    close_if_ready(hub, event->now, out); /* a step that was held may need nobody else */
}

/* If no worker is left in the open step, those waiting for the next one take part in it. */
static void admit_waiting(at_hub *hub)
{
    assert(hub->end == AT_END_RUNNING);
    if (step_in_progress(hub)) return;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) hub->member[i].begun_on = AT_VERSION_NONE;
}

/* The step waits for its successor, which does the lost round again. */
static void redo_round(at_hub *hub, at_member *member, bool worked, uint64_t lost)
{
    assert(holds_step(hub));
    member->redrawn += lost;
    if (!worked) return;
    assert(member->rounds_begun > 0);
    member->rounds_begun--;
    if (hub->plan->deal_global) member->redo_on = member->begun_on;
}

/* Samples that it drew but did not report are dropped; a gradient it had handed over stays. LOST is
 * also the event for a replacement that fails before it joins. */
static void on_lost(at_hub *hub, const at_event *event, at_out *out)
{
    at_member *member = member_of(hub, event->worker);
    if (!is_present(member) && !member->expected)
        return; /* given up when its time to join was up */
    uint64_t counted = member->used + member->dropped + at_hub_samples_held(hub, member);
    assert(event->as.lost.drawn >= counted);
    at_piece none = {.worker = member->id, .sequence = member->sequence, .version = hub->version};
    at_drop  why = hub->end == AT_END_RUNNING ? AT_DROP_LOST : AT_DROP_STOPPED;
    uint64_t lost = event->as.lost.drawn - counted;
    drop(hub, member, &none, lost, why, out);
    bool was_present = is_present(member);
    bool worked = member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_EVICTED;
    if (was_present) hub->present--;
    member->state = AT_MEMBER_AWAY;
    set_expected(hub, member, event->as.lost.returns);
    if (hub->end != AT_END_RUNNING) {
        finish_if_all_gone(hub, event->now, out);
        return;
    }
    if (was_present) hold_if_few(hub, event->now, out);
    if (was_present && holds_step(hub)) redo_round(hub, member, worked, lost);
    if (hub->present + hub->expected == 0 && !hub->plan->open) {
        wind_down(hub, event->as.lost.left ? AT_END_LEFT : AT_END_WORKERS, event->now, out);
        return;
    }
    check_assembled(hub, out);
    close_if_ready(hub, event->now, out);
    admit_waiting(hub);
    release_ready(hub, event->now, out);
    save_if_drained(hub, event->now, out);
    assert(!is_present(member));
}

/* ---- evaluations, timers, start ------------------------------------------------------------- */

static void on_evaluated(at_hub *hub, const at_event *event, at_out *out)
{
    hub->evaluating = false;
    if (at_limits_evaluated(hub, event)) wind_down(hub, AT_END_TARGET, event->now, out);
}

static void on_timer(at_hub *hub, const at_event *event, at_out *out)
{
    switch (event->as.timer) {
    case AT_TIMER_LEASE: at_lease_on_timer(hub, event->now, out); break;
    case AT_TIMER_NOTICE: at_lease_on_notice(hub, event->now, out); break;
    case AT_TIMER_PERIOD: close_if_ready(hub, event->now, out); break;
    case AT_TIMER_SAVE:
        if (hub->end == AT_END_RUNNING) save(hub, false, event->now, out);
        set_save_timer(hub, event->now, out);
        break;
    case AT_TIMER_JOIN: on_join_timeout(hub, event->now, out); break;
    case AT_TIMER_COUNT: assert(!"not a timer"); break;
    }
}

static void on_start(at_hub *hub, at_ns now, at_out *out)
{
    assert(hub->version == 0 || hub->resumed);
    assert(hub->present == 0);
    assert(hub->began_at == AT_NEVER);
    hub->started_at = now - hub->clock_before;
    at_lease_step_opened(hub, now);
    set_save_next(hub);
    if (!hub->resumed) hub->eval_samples_next = hub->plan->eval_samples;
    if (hub->resumed) hub->applied_at = now; /* the checkpoint is of the moment after its step */
    at_progress begin = at_size_begin(hub, now);
    if (!hub->size_restored)
        hub->plan->size->decide(hub->size_state, hub->plan, hub->share, &begin);
    set_join_timer(now + hub->plan->join_timeout, out);
    if (!hub->resumed) save(hub, false, now, out);
}

void at_hub_step(at_hub *hub, const at_event *event, at_out *out)
{
    assert(event->now >= hub->opened_at || event->kind == AT_EV_EVALUATED);
    assert(!hub->finished || event->kind == AT_EV_EVALUATED);
    assert(!hub->applying || event->kind == AT_EV_APPLIED);
    switch (event->kind) {
    case AT_EV_START: on_start(hub, event->now, out); break;
    case AT_EV_JOINED: on_joined(hub, event, out); break;
    case AT_EV_LOST: on_lost(hub, event, out); break;
    case AT_EV_MESSAGE: on_report(hub, event, out); break;
    case AT_EV_APPLIED: on_applied(hub, event, out); break;
    case AT_EV_EVALUATED: on_evaluated(hub, event, out); break;
    case AT_EV_TIMER: on_timer(hub, event, out); break;
    case AT_EV_STOP: wind_down(hub, AT_END_SIGNAL, event->now, out); break;
    }
    at_hub_check(hub);
    if (event->kind == AT_EV_APPLIED) at_hub_check_ledger(hub);
}

/* A gradient that is not held must be added before its slot is reused, and a worker that was
 * overtaken by a newer version waits for its next order: both need the hub at once. */
uint32_t at_hub_wake_after(const at_hub *hub, at_ns now)
{
    assert(!hub->applying);
    if (hub->end != AT_END_RUNNING || !hub->assembled || !hub->plan->release->holds) return 1;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        const at_member *member = &hub->member[i];
        if (member->state == AT_MEMBER_WORKING && member->begun_on != hub->version) return 1;
    }
    uint32_t missing = hub->plan->gather->missing(hub, now);
    return missing > 0 ? missing : 1;
}

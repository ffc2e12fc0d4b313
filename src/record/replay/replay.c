/* Two codecs write the recorded and the wanted actions side by side. As long as all actions agree
 * the codecs are in the same state, so equal bytes mean equal actions, whatever fields an action
 * has or will have. */
#include "record/replay/replay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "record/log/codec.h"
#include "record/log/eventlog.h"
#include "record/replay/line.h"
#include "record/runinfo.h"
#include "step/hub.h"

/* Longer than any run, and far from where ten times as much overflows: a year. */
static const at_ns time_max = (at_ns)1 << 55;

/* Actions as bytes. A spool that is emptied after each record never reaches for a file. */
typedef struct side {
    at_append_file *spool;
    at_codec       *codec;
} side;

typedef struct machine {
    at_eventlog *log;
    at_plan      plan;
    at_arena     arena;
    at_hub      *hub;
    at_out       out;
    size_t       done; /* of the actions in `out`: found in the log */
    side         recorded, wanted;
    uint64_t     events, actions;
    at_ns        started;
    at_event     event; /* the last one */
    at_ns        at;

    at_difference *difference;
} machine;

/* ---- building ------------------------------------------------------------------------------ */

static bool open_side(side *s)
{
    s->spool = calloc(1, sizeof *s->spool);
    if (!s->spool) return false;
    s->spool->fd = -1;
    s->codec = at_codec_new(s->spool, -1);
    return s->codec;
}

static void close_side(side *s)
{
    at_codec_free(s->codec);
    free(s->spool);
}

static bool build(machine *m)
{
    size_t hub_size = at_hub_size(&m->plan), actions = at_out_size(m->plan.workers);
    if (!at_arena_init(&m->arena, hub_size + actions * sizeof(at_action) + 128)) return false;
    m->hub = at_hub_init(&m->plan, at_arena_get(&m->arena, 1, hub_size), hub_size);
    m->out.actions = at_arena_get(&m->arena, actions, sizeof(at_action));
    m->out.size = actions;
    assert(m->out.actions);
    return open_side(&m->recorded) && open_side(&m->wanted);
}

/* What rules assert, and sums of times that must not overflow, be they from a file that somebody
 * made up. */
static at_err check_plan(const at_plan *plan, const char *path, at_fail *fail)
{
    const at_ns wait_max = (at_ns)1 << 62;
    const char *wrong = NULL;
    assert(plan->work);
    if (plan->lease > wait_max) wrong = "lease";
    if (plan->period > wait_max && plan->period != AT_NEVER) wrong = "period";
    if (plan->time_limit > wait_max && plan->time_limit != AT_NEVER) wrong = "time_limit";
    if (plan->work->timed && plan->cap < plan->batch) wrong = "cap";
    if (plan->size->finds_time_limit && !plan->work->timed) wrong = "size";
    if (!wrong) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: the plan has no usable `%s`", path, wrong);
}

/* The log of a run that was resumed begins where the checkpoint was. */
static at_err go_on(machine *m, const char *path, at_fail *fail)
{
    at_snapshot *snapshot;
    at_err       err = at_run_info_snapshot(at_eventlog_info(m->log), &snapshot, fail);
    if (err) return at_fail_wrap(fail, "%s", path);
    if (!snapshot) return AT_OK;
    bool sound = at_snapshot_valid(snapshot, &m->plan);
    if (sound) at_snapshot_restore(m->hub, snapshot);
    free(snapshot);
    return sound ? AT_OK
                 : at_fail_set(fail, AT_ERR_FORMAT, NULL,
                               "%s: no run could have been resumed like this", path);
}

static at_err open_machine(machine *m, const char *path, at_fail *fail)
{
    AT_TRY(at_eventlog_open(path, &m->log, fail));
    at_err err = at_run_info_plan(at_eventlog_info(m->log), &m->plan, fail);
    if (err) return at_fail_wrap(fail, "%s", path);
    AT_TRY(check_plan(&m->plan, path, fail));
    if (!build(m)) return at_fail_memory_for(fail, "for %s", path);
    return go_on(m, path, fail);
}

static void close_machine(machine *m)
{
    close_side(&m->recorded);
    close_side(&m->wanted);
    at_arena_deinit(&m->arena);
    at_eventlog_close(m->log);
}

/* ---- what cannot be ------------------------------------------------------------------------ */

/* Samples of this member in the open step. */
static uint64_t samples_held(const at_hub *hub, const at_member *member)
{
    if (hub->plan->release->holds) return member->pieces_held > 0 ? member->piece.samples : 0;
    uint64_t samples = 0;
    for (uint32_t i = 0; i < hub->pieces; i++)
        if (hub->piece[i].worker == member->id) samples += hub->piece[i].samples;
    return samples;
}

static const char *refuse_lost(const at_hub *hub, const at_event *event)
{
    const at_member *member = &hub->member[event->worker - 1];
    uint64_t         booked = member->used + member->dropped + samples_held(hub, member);
    if (member->state == AT_MEMBER_AWAY && !member->expected) return "it is not there";
    if (event->as.lost.drawn < booked) return "more of its samples are booked than it drew";
    return NULL;
}

static const char *refuse_joined(const at_hub *hub, const at_event *event)
{
    const at_member *member = &hub->member[event->worker - 1];
    if (member->state != AT_MEMBER_AWAY) return "it is there already";
    if (event->as.joined.incarnation <= member->incarnation) return "this process was there before";
    return NULL;
}

/* The word of a dead process is not listened to, and at the end nothing is taken any more. */
static const char *refuse_report(const at_hub *hub, const at_event *event)
{
    const at_member *member = &hub->member[event->worker - 1];
    const at_report *report = &event->as.report;
    bool             is_fresh =
        report->incarnation == member->incarnation && report->sequence > member->sequence;
    bool is_owed = member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_LEAVING;
    if (!is_fresh || !is_owed || hub->end != AT_END_RUNNING || report->work.abandoned) return NULL;
    if (report->work.samples < 1) return "a gradient of no samples";
    if (report->work.version > hub->version) return "this version does not exist yet";
    if (hub->pieces >= hub->pieces_max) return "the open step is full";
    return NULL;
}

/* Why no run can come to this event here; NULL when one can. The hub asserts what the world
 * promises, but a file promises nothing. */
static const char *refuse_event(const at_hub *hub, const at_event *event)
{
    bool is_worker = event->worker >= 1 && event->worker <= hub->plan->workers;
    if (hub->finished && event->kind != AT_EV_EVALUATED) return "the run is over";
    if (hub->applying && event->kind != AT_EV_APPLIED) return "APPLIED must follow an APPLY";
    switch (event->kind) {
    case AT_EV_JOINED: assert(is_worker); return refuse_joined(hub, event);
    case AT_EV_LOST: assert(is_worker); return refuse_lost(hub, event);
    case AT_EV_MESSAGE: assert(is_worker); return refuse_report(hub, event);
    case AT_EV_APPLIED: return hub->applying ? NULL : "nothing was to be applied";
    case AT_EV_NEWER:
    case AT_EV_COMPUTED:
    case AT_EV_SENT: return "this is no event of a hub";
    case AT_EV_START:
    case AT_EV_EVALUATED:
    case AT_EV_TIMER:
    case AT_EV_STOP: return NULL;
    }
    assert(!"unreachable");
    return NULL;
}

static const char *refuse(const machine *m, const at_record *record)
{
    const at_event *event = record->event;
    bool            is_start = event->kind == AT_EV_START;
    assert(m->events >= 1);
    if (is_start != (m->events == 1)) return "a run has one START, at its beginning";
    if (record->at > time_max || record->at != event->now - m->started)
        return "this time cannot be";
    const char *why = refuse_event(m->hub, event);
    if (!why && record->version != m->hub->version) why = "the hub is at another version";
    return why;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* Begins to tell a difference, at action `action` of the last event. */
static at_difference *differ(const machine *m, uint64_t action)
{
    at_difference *d = m->difference;
    at_text        line = at_text_in(d->line, sizeof d->line);
    assert(!d->found);
    d->found = true;
    d->event = m->events;
    d->action = action;
    d->at = m->at;
    if (m->events > 0)
        at_line_event(&line, &m->event, m->started);
    else
        at_text_add(&line, "before the first event");
    return d;
}

/* One line each; `piece` is the gradient of an APPLY in which they differ, -1 for none. */
static void tell_action(const machine *m, char *buffer, const at_action *action, int64_t piece)
{
    at_text line = at_text_in(buffer, AT_REPLAY_LINE);
    if (!action) {
        at_text_add(&line, "no further action");
        return;
    }
    at_line_action(&line, action, m->started);
    if (piece < 0) return;
    assert(piece < action->as.apply.count);
    at_text_add(&line, ", gradient %" PRId64 ": ", piece + 1);
    at_line_piece(&line, &action->as.apply.pieces[piece]);
}

static void tell_actions(const machine *m, const at_action *recorded, const at_action *wanted,
                         int64_t piece)
{
    at_difference *d = differ(m, m->done + 1);
    tell_action(m, d->recorded, recorded, piece);
    tell_action(m, d->wanted, wanted, piece);
    if (strcmp(d->recorded, d->wanted) != 0) return;
    at_text line = at_text_in(d->wanted, sizeof d->wanted);
    at_text_add(&line, "the same, but for its version, its time or a field that is not shown");
}

static void tell_refused(const machine *m, const char *why)
{
    at_difference *d = differ(m, 0);
    at_text        recorded = at_text_in(d->recorded, sizeof d->recorded);
    at_text        wanted = at_text_in(d->wanted, sizeof d->wanted);
    at_line_event(&recorded, &m->event, m->started);
    at_text_add(&wanted, "another event: %s", why);
}

static void write_side(side *s, const at_record *record)
{
    s->spool->used = 0;
    at_codec_write(s->codec, record);
    assert(s->spool->used > 0);
    assert(!s->spool->error);
}

/* Same bytes? */
static bool equal(machine *m, const at_record *recorded, const at_record *wanted)
{
    const at_append_file *a = m->recorded.spool, *b = m->wanted.spool;
    write_side(&m->recorded, recorded);
    write_side(&m->wanted, wanted);
    return a->used == b->used && memcmp(a->buffer, b->buffer, a->used) == 0;
}

/* The pieces of a large step do not fit into a spool's buffer, so each is written by itself, as the
 * ADD that it could have been. Returns the first that differs, -1 for none. */
static int64_t differing_piece(machine *m, const at_action *recorded, const at_action *wanted)
{
    assert(recorded->as.apply.count == wanted->as.apply.count);
    for (uint32_t i = 0; i < recorded->as.apply.count; i++) {
        at_action a = {.kind = AT_ACT_ADD, .as.add = recorded->as.apply.pieces[i]};
        at_action b = {.kind = AT_ACT_ADD, .as.add = wanted->as.apply.pieces[i]};
        if (!equal(m, &(at_record){.kind = AT_REC_ACTION, .action = &a},
                   &(at_record){.kind = AT_REC_ACTION, .action = &b}))
            return i;
    }
    return -1;
}

static void compare(machine *m, const at_record *record, const at_action *action)
{
    at_action recorded = *record->action, wanted = *action;
    at_record a = *record, b = *record; /* the learning rate is the world's, it is not compared */
    bool      is_apply = recorded.kind == AT_ACT_APPLY && wanted.kind == AT_ACT_APPLY;
    bool      same = !is_apply || recorded.as.apply.count == wanted.as.apply.count;
    a.action = &recorded;
    b.action = &wanted;
    b.at = m->at;
    b.version = m->hub->version;
    if (recorded.kind == AT_ACT_APPLY) recorded.as.apply.count = 0;
    if (wanted.kind == AT_ACT_APPLY) wanted.as.apply.count = 0;
    same = same && equal(m, &a, &b);
    int64_t piece = same && is_apply ? differing_piece(m, record->action, action) : -1;
    if (!same || piece >= 0) tell_actions(m, record->action, action, piece);
}

/* ---- the run ------------------------------------------------------------------------------- */

static void on_event(machine *m, const at_record *record)
{
    if (m->done < m->out.count) {
        tell_actions(m, NULL, &m->out.actions[m->done], -1);
        return;
    }
    if (m->events == 0) m->started = record->event->now - m->hub->clock_before;
    m->events++;
    m->event = *record->event;
    m->at = record->at;
    const char *why = refuse(m, record);
    if (why) {
        tell_refused(m, why);
        return;
    }
    m->done = m->out.count = 0;
    at_hub_step(m->hub, record->event, &m->out);
}

static void on_action(machine *m, const at_record *record)
{
    const at_action *wanted = m->done < m->out.count ? &m->out.actions[m->done] : NULL;
    if (wanted)
        compare(m, record, wanted);
    else
        tell_actions(m, record->action, NULL, -1);
    m->done++;
    m->actions++;
}

static at_err run(machine *m, at_fail *fail)
{
    const at_record *record;
    while (!m->difference->found) {
        AT_TRY(at_eventlog_next(m->log, &record, fail));
        if (!record) break;
        if (record->kind == AT_REC_EVENT) on_event(m, record);
        if (record->kind == AT_REC_ACTION) on_action(m, record);
    }
    return AT_OK;
}

static void sum_up(const machine *m, at_replay *replay)
{
    bool is_whole = m->done == m->out.count && !at_eventlog_truncated(m->log);
    replay->logs++;
    replay->events += m->events;
    replay->actions += m->actions;
    replay->steps = m->hub->version;
    replay->samples_used = m->hub->samples_used;
    replay->samples_dropped = m->hub->samples_dropped;
    replay->trace = m->hub->trace;
    replay->complete = m->hub->finished && is_whole;
}

at_err at_replay_log(const char *path, at_replay *replay, at_fail *fail)
{
    assert(!replay->difference.found);
    machine *m = calloc(1, sizeof *m);
    if (!m) return at_fail_memory_for(fail, "for %s", path);
    m->difference = &replay->difference;
    at_err err = open_machine(m, path, fail);
    if (!err) err = run(m, fail);
    if (!err) sum_up(m, replay);
    close_machine(m);
    free(m);
    return err;
}

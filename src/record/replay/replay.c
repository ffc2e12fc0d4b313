/* Recorded and replayed actions are encoded by two codecs and compared as bytes. As long as all
 * actions agree the codecs are in the same state, so equal bytes mean equal actions, whatever
 * fields an action has or will have. */
#include "record/replay/replay.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/disk.h"
#include "base/file.h"
#include "record/log/codec.h"
#include "record/log/eventlog.h"
#include "record/replay/event_text.h"
#include "record/runinfo.h"
#include "record/tally.h"
#include "step/hub.h"

enum { PATH_SIZE = 4096, RESULT_SIZE_MAX = 1 << 26 };

typedef struct machine {
    at_eventlog *log;
    at_plan      plan, then;
    at_arena     arena;
    at_hub      *hub;
    at_out       out;
    size_t       done;                /* actions of `out` that were compared */
    at_codec    *recorded, *replayed; /* encode the actions of both sides */
    uint64_t     events, actions;
    at_ns        started;
    at_event     event; /* the last one */
    at_ns        at;
    bool         thinned; /* records are missing from here on */

    at_difference *difference;
} machine;

/* ---- building ------------------------------------------------------------------------------ */

static bool build(machine *m)
{
    size_t hub_size = at_hub_size(&m->plan), actions = at_out_size(m->plan.workers_max);
    if (!at_arena_init(&m->arena, hub_size + actions * sizeof(at_action) + 128)) return false;
    m->hub = at_hub_init(&m->plan, at_arena_get(&m->arena, 1, hub_size), hub_size);
    m->out.actions = at_arena_get(&m->arena, actions, sizeof(at_action));
    m->out.size = actions;
    assert(m->out.actions);
    m->recorded = at_codec_new(true);
    m->replayed = at_codec_new(true);
    return m->recorded && m->replayed;
}

/* The file may have been tampered with: sums of its times must not overflow. */
static at_err check_plan(const at_plan *plan, const char *path, at_fail *fail)
{
    const at_ns wait_max = (at_ns)1 << 62;
    const char *wrong = NULL;
    assert(plan->work);
    if (plan->lease > wait_max) wrong = "lease";
    if (plan->save_time > wait_max) wrong = "save_time";
    if (plan->join_timeout > wait_max) wrong = "join_timeout";
    if (!wrong) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: the plan has no valid `%s`", path, wrong);
}

/* The log of a resumed run begins at its checkpoint. */
static at_err restore_snapshot(machine *m, const char *path, at_fail *fail)
{
    at_snapshot *snapshot;
    at_err       err = at_run_info_snapshot(at_eventlog_info(m->log), &snapshot, fail);
    if (err) return at_fail_wrap(fail, "%s", path);
    if (!snapshot) return AT_OK;
    bool valid = at_snapshot_valid(snapshot, &m->plan);
    if (valid) at_snapshot_restore(m->hub, snapshot);
    free(snapshot);
    return valid ? AT_OK
                 : at_fail_set(fail, AT_ERR_FORMAT, NULL,
                               "%s: the snapshot in the log does not fit its plan", path);
}

static at_err open_machine(machine *m, const char *path, at_fail *fail)
{
    AT_TRY(at_eventlog_open(path, &m->log, fail));
    at_err err = at_run_info_plan(at_eventlog_info(m->log), &m->plan, &m->then, fail);
    if (err) return at_fail_wrap(fail, "%s", path);
    AT_TRY(check_plan(&m->plan, path, fail));
    if (!build(m)) return at_fail_memory_for(fail, "for %s", path);
    return restore_snapshot(m, path, fail);
}

static void close_machine(machine *m)
{
    at_codec_free(m->recorded);
    at_codec_free(m->replayed);
    at_arena_deinit(&m->arena);
    at_eventlog_close(m->log);
}

/* ---- impossible events --------------------------------------------------------------------- */

static const char *refuse_lost(const at_hub *hub, const at_event *event)
{
    const at_member *member = &hub->member[event->worker - 1];
    uint64_t         booked = member->used + member->dropped + at_hub_samples_held(hub, member);
    if (member->state == AT_MEMBER_AWAY && !member->expected) return NULL; /* the hub ignores it */
    if (event->as.lost.drawn < booked) return "more samples were counted than the worker drew";
    return NULL;
}

static const char *refuse_joined(const at_hub *hub, const at_event *event)
{
    const at_member *member = &hub->member[event->worker - 1];
    if (member->state != AT_MEMBER_AWAY) return "the worker is already present";
    if (event->as.joined.incarnation <= member->incarnation)
        return "this incarnation was present before";
    return NULL;
}

/* The hub ignores reports of dead processes, and all reports once the run ends. */
static const char *refuse_report(const at_hub *hub, const at_event *event)
{
    const at_member *member = &hub->member[event->worker - 1];
    const at_report *report = &event->as.report;
    bool             is_fresh =
        report->incarnation == member->incarnation && report->sequence > member->sequence;
    bool is_expected = member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_LEAVING;
    if (!is_fresh || !is_expected || hub->end != AT_END_RUNNING || report->work.abandoned)
        return NULL;
    if (report->work.samples < 1) return "a gradient without samples";
    if (report->work.version > hub->version) return "this version does not exist yet";
    if (hub->pieces >= hub->pieces_max) return "the open step is full";
    return NULL;
}

/* Why the event is impossible in this state of the hub; NULL when it is possible. The hub asserts
 * this, since a world guarantees it; a file does not. */
static const char *refuse_event(const at_hub *hub, const at_event *event)
{
    bool is_worker = event->worker >= 1 && event->worker <= hub->plan->workers_max;
    if (hub->finished && event->kind != AT_EV_EVALUATED) return "the run has ended";
    if (hub->applying && event->kind != AT_EV_APPLIED) return "APPLIED must follow an APPLY";
    switch (event->kind) {
    case AT_EV_JOINED: assert(is_worker); return refuse_joined(hub, event);
    case AT_EV_LOST: assert(is_worker); return refuse_lost(hub, event);
    case AT_EV_MESSAGE: assert(is_worker); return refuse_report(hub, event);
    case AT_EV_APPLIED: return hub->applying ? NULL : "no update is being applied";
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
    if (is_start != (m->events == 1)) return "START must be the first event, and only the first";
    if (event->now < 0 || record->at > AT_RUN_MAX || record->at != event->now - m->started)
        return "invalid time";
    const char *why = refuse_event(m->hub, event);
    if (!why && record->version != m->hub->version) why = "the hub is at another version";
    return why;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* Starts the description of a difference at action `action` of the last event. */
static at_difference *begin_difference(const machine *m, uint64_t action)
{
    at_difference *d = m->difference;
    at_text        line = at_text_in(d->line, sizeof d->line);
    assert(!d->found);
    d->found = true;
    d->event = m->events;
    d->action = action;
    d->at = m->at;
    if (m->events > 0)
        at_event_text(&line, &m->event, m->started);
    else
        at_text_add(&line, "before the first event");
    return d;
}

/* `piece` is the gradient of an APPLY in which the two differ, -1 for none. */
static void describe_action(const machine *m, char *buffer, const at_action *action, int64_t piece)
{
    at_text line = at_text_in(buffer, AT_REPLAY_LINE);
    if (!action) {
        at_text_add(&line, "no further action");
        return;
    }
    at_action_text(&line, action, m->started);
    if (piece < 0) return;
    assert(piece < action->as.apply.count);
    at_text_add(&line, ", gradient %" PRId64 ": ", piece + 1);
    at_piece_text(&line, &action->as.apply.pieces[piece]);
}

static void report_actions(const machine *m, const at_action *recorded, const at_action *replayed,
                           int64_t piece)
{
    at_difference *d = begin_difference(m, m->done + 1);
    describe_action(m, d->recorded, recorded, piece);
    describe_action(m, d->replayed, replayed, piece);
    if (strcmp(d->recorded, d->replayed) != 0) return;
    at_text line = at_text_in(d->replayed, sizeof d->replayed);
    at_text_add(&line, "the same except for its version, its time or a field that is not shown");
}

static void report_impossible(const machine *m, const char *why)
{
    at_difference *d = begin_difference(m, 0);
    at_text        recorded = at_text_in(d->recorded, sizeof d->recorded);
    at_text        replayed = at_text_in(d->replayed, sizeof d->replayed);
    at_event_text(&recorded, &m->event, m->started);
    at_text_add(&replayed, "impossible event: %s", why);
}

/* Compares the encodings. */
static bool equal(machine *m, const at_record *recorded, const at_record *replayed)
{
    bool           encoded = at_codec_write(m->recorded, recorded);
    const at_wire *a = &m->recorded->wire, *b = &m->replayed->wire;
    encoded = at_codec_write(m->replayed, replayed) && encoded;
    assert(encoded); /* one action takes little memory */
    return a->next == b->next && memcmp(a->bytes, b->bytes, a->next) == 0;
}

/* The pieces of a step may be many, so each is encoded separately, as an ADD.
 * Returns the first that differs, -1 for none. */
static int64_t differing_piece(machine *m, const at_action *recorded, const at_action *replayed)
{
    assert(recorded->as.apply.count == replayed->as.apply.count);
    for (uint32_t i = 0; i < recorded->as.apply.count; i++) {
        at_action a = {.kind = AT_ACT_ADD, .as.add = recorded->as.apply.pieces[i]};
        at_action b = {.kind = AT_ACT_ADD, .as.add = replayed->as.apply.pieces[i]};
        if (!equal(m, &(at_record){.kind = AT_REC_ACTION, .action = &a},
                   &(at_record){.kind = AT_REC_ACTION, .action = &b}))
            return i;
    }
    return -1;
}

static void compare(machine *m, const at_record *record, const at_action *action)
{
    at_action recorded = *record->action, replayed = *action;
    at_record a = *record, b = *record; /* the learning rate comes from the world: not compared */
    bool      is_apply = recorded.kind == AT_ACT_APPLY && replayed.kind == AT_ACT_APPLY;
    bool      same = !is_apply || recorded.as.apply.count == replayed.as.apply.count;
    a.action = &recorded;
    b.action = &replayed;
    b.at = m->at;
    b.version = m->hub->version;
    if (recorded.kind == AT_ACT_APPLY) recorded.as.apply.count = 0;
    if (replayed.kind == AT_ACT_APPLY) replayed.as.apply.count = 0;
    same = same && equal(m, &a, &b);
    int64_t piece = same && is_apply ? differing_piece(m, record->action, action) : -1;
    if (!same || piece >= 0) report_actions(m, record->action, action, piece);
}

/* ---- one log ------------------------------------------------------------------------------- */

static void on_event(machine *m, const at_record *record)
{
    if (m->done < m->out.count) {
        report_actions(m, NULL, &m->out.actions[m->done], -1);
        return;
    }
    if (m->events == 0) m->started = record->event->now - m->hub->clock_before;
    m->events++;
    m->event = *record->event;
    m->at = record->at;
    const char *why = refuse(m, record);
    if (why) {
        report_impossible(m, why);
        return;
    }
    m->done = m->out.count = 0;
    at_hub_step(m->hub, record->event, &m->out);
}

static void on_action(machine *m, const at_record *record)
{
    const at_action *replayed = m->done < m->out.count ? &m->out.actions[m->done] : NULL;
    if (replayed)
        compare(m, record, replayed);
    else
        report_actions(m, record->action, NULL, -1);
    m->done++;
    m->actions++;
}

static at_err run(machine *m, at_fail *fail)
{
    const at_record *record;
    while (!m->difference->found && !m->thinned) {
        AT_TRY(at_eventlog_next(m->log, &record, fail));
        if (!record) break;
        if (record->kind == AT_REC_EVENT) on_event(m, record);
        if (record->kind == AT_REC_ACTION) on_action(m, record);
        m->thinned = record->kind == AT_REC_TOTALS && at_tally_totals_gap(record->text);
    }
    return AT_OK;
}

static void add_totals(const machine *m, at_replay *replay)
{
    bool is_whole = m->done == m->out.count && !at_eventlog_truncated(m->log) && !m->thinned;
    replay->thinned = replay->thinned || m->thinned;
    replay->logs++;
    replay->events += m->events;
    replay->actions += m->actions;
    replay->steps = m->hub->version;
    replay->samples_used = m->hub->samples_used;
    replay->samples_dropped = m->hub->samples_dropped;
    replay->trace = m->hub->trace;
    replay->complete = m->hub->finished && is_whole;
}

static at_err replay_log(const char *path, at_replay *replay, at_fail *fail)
{
    assert(!replay->difference.found);
    machine *m = calloc(1, sizeof *m);
    if (!m) return at_fail_memory_for(fail, "for %s", path);
    m->difference = &replay->difference;
    at_err err = open_machine(m, path, fail);
    if (!err) err = run(m, fail);
    if (!err) add_totals(m, replay);
    close_machine(m);
    free(m);
    return err;
}

/* ---- a run folder -------------------------------------------------------------------------- */

static at_err join(char *path, const char *folder, const char *name, at_fail *fail)
{
    int size = snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    assert(size > 0);
    if (size < PATH_SIZE) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "the path of the run folder is too long");
}

/* NULL without failure when there is no result.json: the run was killed or is still running. */
static at_err read_result(const char *folder, json_t **result, at_fail *fail)
{
    char           path[PATH_SIZE];
    unsigned char *bytes;
    size_t         size;
    json_error_t   error;
    *result = NULL;
    AT_TRY(join(path, folder, "result.json", fail));
    at_err err = at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, fail);
    if (err == AT_ERR_MISSING && fail) *fail = (at_fail){0};
    if (err) return err == AT_ERR_MISSING ? AT_OK : err;
    *result = json_loadb((const char *)bytes, size, 0, &error);
    free(bytes);
    if (*result) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: not JSON: %s", path, error.text);
}

static at_err no_log(const char *folder, at_fail *fail)
{
    static const char hint[] = "only runs with --record full, the default, can be replayed";
    json_t           *result;
    AT_TRY(read_result(folder, &result, fail));
    const char *record =
        json_string_value(json_object_get(json_object_get(result, "options"), "record"));
    at_err err =
        record ? at_fail_set(fail, AT_ERR_MISSING, hint,
                             "%s: no event log, since the run used --record %.16s", folder, record)
               : at_fail_set(fail, AT_ERR_MISSING, hint, "%s: no event log (events.bin)", folder);
    json_decref(result);
    return err;
}

static at_err check_folder(const char *folder, at_fail *fail)
{
    struct stat info;
    assert(folder);
    if (at_disk->stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING, "give the folder of a run, as in --run",
                       "%s: no such run folder", folder);
}

static at_err replay_logs(const char *folder, at_replay *replay, at_fail *fail)
{
    char        path[PATH_SIZE];
    struct stat info;
    for (uint32_t log = 1; !replay->difference.found; log++) {
        at_fail torn = {0};
        at_eventlog_name(replay->difference.log, log);
        AT_TRY(join(path, folder, replay->difference.log, fail));
        if (at_disk->stat(path, &info) != 0) return log == 1 ? no_log(folder, fail) : AT_OK;
        at_err err = replay_log(path, replay, &torn);
        if (err == AT_ERR_MISSING && log > 1) { /* its head is torn, so it has no records */
            replay->complete = false;
            return AT_OK;
        }
        if (err && fail) *fail = torn;
        if (err) return err;
    }
    return AT_OK;
}

static at_err check_number(const json_t *value, const char *name, uint64_t replayed, at_fail *fail)
{
    uint64_t recorded = (uint64_t)json_integer_value(value);
    if (!json_is_integer(value))
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "result.json: no number `%s`", name);
    if (recorded == replayed) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL,
                       "result.json has %s %" PRIu64 ", the replay gives %" PRIu64, name, recorded,
                       replayed);
}

static at_err check_trace(const json_t *value, uint64_t replayed, at_fail *fail)
{
    char        trace[17];
    const char *recorded = json_string_value(value);
    if (!recorded) return at_fail_set(fail, AT_ERR_FORMAT, NULL, "result.json: no `trace_hash`");
    snprintf(trace, sizeof trace, "%016" PRIx64, replayed);
    if (strcmp(recorded, trace) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL,
                       "result.json has trace_hash %.32s, the replay gives %s", recorded, trace);
}

static at_err check_totals(const json_t *result, const at_replay *replay, at_fail *fail)
{
    const json_t *samples = json_object_get(result, "samples");
    AT_TRY(check_number(json_object_get(result, "steps"), "steps", replay->steps, fail));
    AT_TRY(
        check_number(json_object_get(samples, "used"), "samples.used", replay->samples_used, fail));
    AT_TRY(check_number(json_object_get(samples, "dropped"), "samples.dropped",
                        replay->samples_dropped, fail));
    return check_trace(json_object_get(result, "trace_hash"), replay->trace, fail);
}

static at_err check_result(const char *folder, at_replay *replay, at_fail *fail)
{
    json_t *result;
    if (!replay->complete) return AT_OK;
    AT_TRY(read_result(folder, &result, fail));
    if (!result) return AT_OK;
    at_err err = check_totals(result, replay, fail);
    if (err) at_fail_wrap(fail, "%s", folder);
    replay->compared = !err;
    json_decref(result);
    return err;
}

at_err at_replay_run(const char *folder, at_replay *replay, at_fail *fail)
{
    *replay = (at_replay){0};
    AT_TRY(check_folder(folder, fail));
    AT_TRY(replay_logs(folder, replay, fail));
    return replay->difference.found ? AT_OK : check_result(folder, replay, fail);
}
